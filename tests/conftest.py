"""What all tests share: properties without a clock, and a home of their own."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile(
    "steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No configuration, history or variables of whoever runs the tests."""
    home = tmp_path_factory.getbasetemp() / "home"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    for name in ("APPLY_EDIT_MODEL", "APPLY_EDIT_HISTORY", "APPLY_EDIT_DRAFT", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
