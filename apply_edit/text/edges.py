"""Blank lines at the ends of a file, which models drop and add without being asked."""

from __future__ import annotations

import re

_BLANK = re.compile(r"[^\S\n]*")
_ASKED = re.compile(r"\b(blank|empty|trailing|leading|white ?space|newlines?)\b", re.IGNORECASE)


def keep_edges(original: str, output: str, instruction: str | None = None) -> str:
    """`output` with the blank lines that `original` begins and ends with.

    An end is mended only where the line beside it is the original's, and not at all where the
    instruction speaks of such lines. Both texts are views: every line ends in a line feed.

    >>> keep_edges("\\na\\nb\\n\\n", "a\\nc\\nb\\n")
    '\\na\\nc\\nb\\n\\n'
    """
    if instruction is not None and _ASKED.search(instruction):
        return output
    old, new = original.split("\n")[:-1], output.split("\n")[:-1]
    head, new_head = _blanks(old), _blanks(new)
    tail, new_tail = _blanks(old[::-1]), _blanks(new[::-1])
    if head == len(old) or new_head == len(new):
        return output
    last, new_last = len(old) - tail, len(new) - new_tail
    lines = new[new_head:new_last]
    before = old[:head] if old[head] == lines[0] else new[:new_head]
    behind = old[last:] if old[last - 1] == lines[-1] else new[new_last:]
    return "".join(f"{line}\n" for line in (*before, *lines, *behind))


def _blanks(lines: list[str]) -> int:
    """How many lines at the beginning are blank."""
    count = 0
    for line in lines:
        if not _BLANK.fullmatch(line):
            break
        count += 1
    return count
