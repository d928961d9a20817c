"""What an answer lost: lines of the original that are gone though the edit gives no reason.

With a sketch, lines may go only where the sketch stands; with an instruction alone, `Reasons`
judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from apply_edit.text.align import align
from apply_edit.text.change import Change, Hunk, Loss
from apply_edit.text.imports import unused
from apply_edit.text.merge import predict
from apply_edit.text.reasons import LARGE, Reasons, quoted
from apply_edit.text.segments import parse

_NEAR = 3  # lines, blanks aside, between a sketch's end and the file's that count as none


def lost(change: Change, instruction: str | None, update: str | None) -> Iterator[Loss]:
    """The losses that neither the instruction nor the sketch explains, in order."""
    if not change.hunks or not change.new:
        return
    if update is not None:
        yield from _outside_sketch(change, update, instruction)
    else:
        yield from Reasons(change, instruction or "").losses()


def _outside_sketch(change: Change, update: str, instruction: str | None) -> Iterator[Loss]:
    """Lines gone where the sketch does not stand, and that the predicted merge keeps."""
    original = "\n".join(change.old_text)
    kept = Counter(line.strip() for line in predict(original, update).text.split("\n"))
    has = Counter(change.new)
    spans = _spans(change, update)
    for hunk in change.hunks:
        gone = [i for i in change.lost(hunk) if has[change.old[i]] < kept[change.old[i]]]
        if not gone or _within(hunk, spans, change) or _between(hunk, spans, len(gone)):
            continue
        if unused([change.old[i] for i in gone], change):
            continue
        if instruction and len(gone) <= LARGE and Reasons(change, instruction).related(hunk):
            continue
        tail = hunk.b == len(change.old) and hunk.d == hunk.c
        yield Loss(change.old_at[gone[0]] + 1, len(gone), quoted(change.old[gone[0]]), tail)


def _spans(change: Change, update: str) -> list[tuple[int, int]]:
    """Stretches of the output's lines in which one segment of the sketch stands."""
    sketch = parse(update, "\n".join(change.old_text))
    lines: list[str] = []
    breaks, starts = set(), []
    for segment in sketch.segments:
        if segment.before is not None:
            breaks.add(len(lines))
        starts.append(len(lines))
        lines += [line for line in segment.lines if line.strip()]
    pairs = align(lines, frozenset(breaks), [change.new_text[i] for i in change.new_at])
    spans = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        own = [p.original for p in pairs if start <= p.sketch < end]
        if own:
            spans.append((own[0], own[-1] + 1))
    if spans and sketch.segments[0].before is None and spans[0][0] <= _NEAR:
        spans[0] = (-1, spans[0][1])
    if spans and sketch.segments[-1].after is None and spans[-1][1] >= len(change.new) - _NEAR:
        spans[-1] = (spans[-1][0], len(change.new) + 1)
    return spans


def _within(hunk: Hunk, spans: list[tuple[int, int]], change: Change) -> bool:
    """Whether both edges of the hunk lie in one segment of the sketch.

    A hunk that only takes away may as well be read some lines further up or down.
    """
    places = [(hunk.c, hunk.d)]
    if hunk.c == hunk.d:
        a, b, c = hunk.a, hunk.b, hunk.c
        while a > 0 and c > 0 and change.old[a - 1] == change.old[b - 1] == change.new[c - 1]:
            a, b, c = a - 1, b - 1, c - 1
            places.append((c, c))
        a, b, c = hunk.a, hunk.b, hunk.c
        while (
            b < len(change.old)
            and c < len(change.new)
            and (change.old[a] == change.old[b] == change.new[c])
        ):
            a, b, c = a + 1, b + 1, c + 1
            places.append((c, c))
    return any(_edges_in(c, d, span) for c, d in places for span in spans)


def _edges_in(c: int, d: int, span: tuple[int, int]) -> bool:
    low, high = span
    left = low <= c - 1 < high or (d > c and low <= c < high)
    right = low <= d < high or (d > c and low <= d - 1 < high)
    return left and right


def _between(hunk: Hunk, spans: list[tuple[int, int]], gone: int) -> bool:
    """Whether a hunk runs from one segment into the next and brings in more than is gone."""
    touched = [s for s in spans if s[0] <= hunk.d and hunk.c <= s[1]]
    return len(touched) > 1 and hunk.d - hunk.c >= 3 * gone
