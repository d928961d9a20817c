"""How far the new lines of a segment reach beyond the lines of it that stand in the file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from apply_edit.text.align import Pair, weight
from apply_edit.text.fresh import added, entries
from apply_edit.text.outline import block_end, defined_name, indent_of
from apply_edit.text.segments import Segment

_WORD = re.compile(r"\w+|[^\w\s]")
_ALIKE = 0.6  # token overlap from which a new line counts as the rewriting of an old one
_WINDOW = 60  # lines looked at when a replaced line is sought beside an anchor


def alike(one: str, other: str) -> float:
    """Overlap of the tokens of two lines, 0 to 1 (Dice)."""
    a, b = Counter(_WORD.findall(one)), Counter(_WORD.findall(other))
    total = a.total() + b.total()
    return 2 * (a & b).total() / total if total else 0.0


def grow_up(segment: Segment, row: int, lines: Sequence[str], low: int, start: int) -> int:
    """The first line above `start` that the unmatched lines above the segment's `row` rewrite."""
    text = segment.lines
    head = text[:row]
    floor = max(low, start - len(head) * 2 - 3, start - _WINDOW)
    best = start
    ceiling = start
    extra: set[int] = set()
    if segment.before is not None:
        old = lines[floor:start]
        extra = added(text, old, row) | entries(text, old, row)
    for index in range(row - 1, max(-1, row - 1 - _WINDOW), -1):
        line = text[index]
        if weight(line) < 0.5 or index in extra:
            continue
        scored = [(alike(line, lines[at]), at) for at in range(floor, ceiling) if lines[at].strip()]
        if not scored:
            break
        score, at = max(scored)
        if score >= _ALIKE:
            best = ceiling = at
    return best


def grow_down(segment: Segment, row: int, lines: Sequence[str], end: int, high: int) -> int:
    """The line after the last below `end` that the unmatched lines from `row` on rewrite."""
    tail = segment.lines[row:]
    roof = min(high, end + len(tail) * 2 + 3, end + _WINDOW)
    floor = end
    extra = added(tail, lines[end:roof], len(tail)) if segment.after is not None else set()
    for index, line in enumerate(tail[:_WINDOW]):
        if weight(line) < 0.5 or index in extra:
            continue
        scored = [(alike(line, lines[at]), -at) for at in range(floor, roof) if lines[at].strip()]
        if not scored:
            break
        score, negative = max(scored)
        if score >= _ALIKE:
            floor = -negative + 1
    return floor


def whole_block(segment: Segment, pairs: list[Pair], lines: list[str], high: int) -> int | None:
    """The end of the definition that the segment's unmatched tail rewrites to its end, if so."""
    text = segment.lines
    last = pairs[-1]
    tail_depth = min(indent_of(line) for line in text[last.sketch + 1 :] if line.strip())
    for pair in reversed(pairs):
        if defined_name(text[pair.sketch]) is None:
            continue
        depth = indent_of(text[pair.sketch])
        closed = block_end(text, pair.sketch)
        inside = all(
            not line.strip() or row < closed for row, line in enumerate(text) if row > last.sketch
        )
        if not inside or (
            tail_depth <= depth and text[closed - 1].strip()[:1] not in ("}", "e", "]")
        ):
            continue
        if segment.after is not None and indent_of(segment.after) > depth:
            return None  # the marker goes on inside the body
        return max(last.original + 1, min(block_end(lines, pair.original), high))
    return None
