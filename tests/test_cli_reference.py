"""docs/cli.md is what the command says of itself."""

from __future__ import annotations

from apply_edit.command.reference import reference
from apply_edit.command.setting import SETTINGS
from tests.command import ROOT


def test_the_page_is_what_the_command_makes() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert page == reference(), "run: python -m apply_edit.command.reference > docs/cli.md"


def test_every_setting_has_an_option_and_a_row() -> None:
    page = reference()
    for setting in SETTINGS:
        assert f"--{setting.name}" in page
        assert f"`{setting.variable}`" in page
