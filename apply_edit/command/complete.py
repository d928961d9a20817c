"""What the shell may offer for an option's value. Knows no model, reads no weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def one_of(*values: str) -> Callable[[str], list[str]]:
    """A completion that offers `values`."""

    def offer(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return offer


def complete_file(incomplete: str) -> list[str]:
    """The subcommand, when it is being typed; files are the shell's own business."""
    if not incomplete or not "models".startswith(incomplete):
        return []
    here = [path.name for path in Path().iterdir() if path.name.startswith(incomplete)]
    return ["models", *sorted(here)]


def complete_model(incomplete: str) -> list[str]:
    """Names of the catalog."""
    from apply_edit.target.catalog import CATALOG

    return [name for name in (*CATALOG, "replay:") if name.startswith(incomplete)]


complete_draft = one_of("auto", "copy", "self", "heads", "model:", "none")


def complete_code(incomplete: str) -> list[str]:
    """Codes that --allow accepts."""
    return [code for code in refusals() if code.startswith(incomplete)]


def refusals() -> tuple[str, ...]:
    """The codes of damaged answers."""
    from apply_edit.text.guard import CODES

    return (*CODES, "garbled")
