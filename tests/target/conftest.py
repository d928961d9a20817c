from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty weights cache, and no Hub."""
    root = tmp_path / "cache"
    monkeypatch.setenv("APPLY_EDIT_CACHE", str(root))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return root
