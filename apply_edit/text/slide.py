"""Where a removed or added group of lines is shown when several places are equally right.

The indent heuristic of git (xdiff/xdiffi.c, Michael Haggerty, 2016), so that hunks begin and end
where a reader of `git diff` expects: at blank lines and at the outermost indentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from apply_edit.text.lcs import Match

__all__ = ["slide"]

_MOST_SLIDING = 100
_MOST_BLANKS = 20
_MOST_INDENT = 200


def slide(runs: list[Match], old: Sequence[bytes], new: Sequence[bytes]) -> list[Match]:
    """The same runs of equal lines, with the groups between them moved to the best place."""
    spans = [list(run) for run in runs]
    if not spans:
        return []
    spans.insert(0, [0, 0, 0])
    spans.append([len(old), len(new), 0])
    for before, after in pairwise(spans):
        i, j = before[0] + before[2], before[1] + before[2]
        removed, added = after[0] - i, after[1] - j
        if (removed > 0) == (added > 0):
            continue
        lines, start, size = (old, i, removed) if removed else (new, j, added)
        shift = _shift(lines, start, size, before[2], after[2])
        before[2] += shift
        after[0], after[1], after[2] = after[0] + shift, after[1] + shift, after[2] - shift
    return [(i, j, size) for i, j, size in spans if size]


def _shift(lines: Sequence[bytes], start: int, size: int, above: int, below: int) -> int:
    """How far to move lines[start : start + size], with this many equal lines around it."""
    up = 0
    while up < above - (start > above) and lines[start - up - 1] == lines[start + size - up - 1]:
        up += 1
    down = 0
    last = below - (start + size + below < len(lines))
    while down < last and lines[start + down] == lines[start + size + down]:
        down += 1
    if not up and not down:
        return 0
    first = max(-up, down - size - 1, down - _MOST_SLIDING)
    best, best_score = first, (0, 0)
    for shift in range(first, down + 1):
        one = _score(lines, start + shift)
        two = _score(lines, start + shift + size)
        score = (one[0] + two[0], one[1] + two[1])
        if shift == first or _compare(score, best_score) <= 0:
            best, best_score = shift, score
    return best


def _compare(a: tuple[int, int], b: tuple[int, int]) -> int:
    return 60 * ((a[0] > b[0]) - (a[0] < b[0])) + a[1] - b[1]


def _score(lines: Sequence[bytes], split: int) -> tuple[int, int]:
    """(indentation, penalty) of a border before line `split`; less is better."""
    indent = _indent(lines[split]) if split < len(lines) else -1
    before, blanks_before = _near(lines, range(split - 1, -1, -1))
    after, blanks_after = _near(lines, range(split + 1, len(lines)))
    penalty = 0
    if before == -1 and not blanks_before:
        penalty += 1
    if split >= len(lines):
        penalty += 21
    blanks_here = 1 + blanks_after if indent == -1 else 0
    blanks = blanks_before + blanks_here
    penalty += -30 * blanks + 6 * blanks_here
    if indent == -1:
        indent = after
    if indent != -1 and before != -1:
        if indent > before:
            penalty += 10 if blanks else -4
        elif indent < before:
            if after != -1 and after > indent:
                penalty += 17 if blanks else 24
            else:
                penalty += 17 if blanks else 23
    return indent, penalty


def _near(lines: Sequence[bytes], places: range) -> tuple[int, int]:
    """The indentation of the nearest line that is not blank, and how many blank ones precede."""
    blanks = 0
    for place in places:
        indent = _indent(lines[place])
        if indent != -1:
            return indent, blanks
        blanks += 1
        if blanks == _MOST_BLANKS:
            return 0, blanks
    return -1, blanks


def _indent(line: bytes) -> int:
    """Columns of blanks before the text, -1 for a blank line."""
    columns = 0
    for byte in line:
        if byte == 0x20:
            columns += 1
        elif byte == 0x09:
            columns += 8 - columns % 8
        elif byte not in b"\n\v\f\r":
            return columns
        if columns >= _MOST_INDENT:
            return _MOST_INDENT
    return -1
