"""Import lines, and whether a text still has a use for what they bring in."""

from __future__ import annotations

import re

from apply_edit.text.change import Change

IMPORT = re.compile(
    r"^(?:import\b|from\s+\S+\s+import\b|#\s*include\b|using\b|use\b|require\b"
    r"|const\s+\S+\s*=\s*require\b|export\s+\*)"
)
PACKAGE = re.compile(r"^(?:package|module|namespace)\s+[\w.:\\]+\s*;?$")


def unused(lines: list[str], change: Change) -> bool:
    """Whether the lines are imports of names that the edit left without a use."""
    if not all(IMPORT.match(line) and "*" not in line for line in lines):
        return False
    before = "\n".join(line for line in change.old if not IMPORT.match(line))
    after = "\n".join(line for line in change.new if not IMPORT.match(line))
    for line in lines:
        name = (re.findall(r"\w+", line) or [""])[-1]
        alone = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
        if not name or alone.search(after) or not alone.search(before):
            return False
    return True


def still_imported(line: str, change: Change) -> bool:
    """Whether the output uses the name that an import brought in."""
    name = (re.findall(r"\w+", line) or [""])[-1]
    alone = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    return any(alone.search(text) for text in change.new if not IMPORT.match(text))
