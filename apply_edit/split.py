"""Which parts of a file a sketch touches, and which share of the sketch belongs to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from apply_edit.errors import UsageError
from apply_edit.text import merge, segments
from apply_edit.text.document import Document
from apply_edit.text.outline import Definition, defined_name, outline
from apply_edit.text.place import Place
from apply_edit.windowed import Part, part

__all__ = ["split"]

_MARGIN = 8  # lines around a place in no definition that are rewritten with it
_LARGE = 80  # lines of a definition that is rewritten as a whole
_NEAR = 4  # lines between two parts that are not worth a prompt of their own
_GUESS = 0.3  # confidence of a place that rests on no telling line
_EDGE = 3  # lines between a place and the end of the file that do not part them
_MARKER = "... existing code ..."


def split(document: Document, outer: Part) -> list[Part]:
    """The parts of `outer` that its sketch touches, each with its share of the sketch.

    Raises `UsageError` ``unplaced`` where nothing says for certain where code of the sketch goes:
    only a model that sees the whole file could tell.
    """
    assert outer.update is not None
    view = outer.document.view
    sketch = segments.parse(outer.update, view)
    lines = view.split("\n")[:-1]
    places = [_sure(p, sketch, lines) for p in merge.predict(view, outer.update).places]
    definitions = outline(lines)
    groups: list[tuple[int, int, list[Place]]] = []
    for place in places:
        start, end = _widened(lines, definitions, place.start, place.end)
        if groups and start <= groups[-1][1] + _NEAR:
            low, high, held = groups.pop()
            groups.append((low, max(high, end), [*held, place]))
        else:
            groups.append((start, end, [place]))
    offset = outer.first
    return [
        part(document, start + offset, end + offset - 1, _share(held, sketch, start, end))
        for start, end, held in groups
    ]


def _sure(place: Place, sketch: segments.Sketch, lines: Sequence[str]) -> Place:
    """The place of a segment, if more than a guess says so."""
    size = len(lines)
    if place.confidence > _GUESS or place.end - place.start == size:
        return place
    named = set(map(defined_name, lines[place.start : place.end])) - {None}
    if named & set(map(defined_name, place.text)):
        return place
    if sketch.markers:
        segment = sketch.segments[place.segment]
        if segment.before is None:  # the file begins like this
            return place if place.start <= _EDGE else replace(place, start=0, end=0)
        if segment.after is None:  # the file ends like this
            near = place.end >= size - _EDGE
            return place if near else replace(place, start=size, end=size, text=segment.lines)
    line = next(line.strip() for line in place.text if line.strip())
    shown = repr(line if len(line) <= 60 else line[:57] + "...")
    raise UsageError(
        "unplaced",
        f"the file is too long for the model's window, and nothing in the sketch says where {shown}"
        " goes; put unchanged lines of the file around it, or name the place with --lines A:B",
    )


def _widened(
    lines: Sequence[str], definitions: Sequence[Definition], start: int, end: int
) -> tuple[int, int]:
    """The definitions that a place is in, or some lines more on both sides, up to a blank one.

    A model keeps a definition whole where it drops loose lines that the sketch does not speak of.
    """
    rows = [at for at in range(start, end) if lines[at].strip()]
    if rows:
        around = [d for d in definitions if d.lead <= rows[0] <= rows[-1] < d.end]
        inner = max(around, key=lambda d: d.start, default=None)
        if inner is not None and inner.end - inner.lead <= _LARGE:
            return min(inner.lead, start), max(inner.end, end)
        if {rows[0], rows[-1] + 1} <= {at for d in definitions for at in (d.lead, d.end)}:
            return start, end
    low, high = max(0, start - _MARGIN), min(len(lines), end + _MARGIN)
    up = range(low, max(0, low - _MARGIN), -1)
    low = next((at for at in up if not lines[at - 1].strip()), low)
    down = range(high, min(len(lines), high + _MARGIN))
    return low, next((at for at in down if not lines[at].strip()), high)


def _share(places: Sequence[Place], sketch: segments.Sketch, start: int, end: int) -> str:
    """The part of the sketch that stands for lines `start` to `end`, with markers around it."""
    marks = [(s.before, s.after) for s in sketch.segments]
    known = next((mark for pair in marks for mark in pair if mark), _MARKER)
    rows: list[str] = []
    at = start
    for place in places:
        before, after = marks[place.segment] if sketch.markers else (None, None)
        if place.start > at or rows:
            rows.append(before or known)
        rows += place.text
        at = place.end
    if at < end:
        rows.append(after or known)
    return "\n".join(rows) + "\n"
