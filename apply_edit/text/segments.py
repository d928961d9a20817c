"""A sketch cut into its segments: the new code between the marker lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apply_edit.errors import UsageError
from apply_edit.text.markers import looks_like_marker


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive lines of new code.

    `before` and `after` are the marker lines around them, None where the sketch begins or ends
    without one; `line` is the index, in the sketch, of the first line.
    """

    lines: tuple[str, ...]
    before: str | None
    after: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Sketch:
    """A sketch in parts. `markers` counts its marker lines (several in a row are one gap)."""

    segments: tuple[Segment, ...]
    markers: int

    @property
    def code(self) -> list[str]:
        """All lines that are neither markers nor blank, in order."""
        return [line for segment in self.segments for line in segment.lines if line.strip()]


def parse(update: str, original: str) -> Sketch:
    """Cut a sketch at its markers.

    Raises UsageError `empty-sketch` when nothing but markers and blank lines is there.
    """
    lines = _unfenced(update).split("\n")
    if not lines[-1]:
        lines.pop()
    marks = _markers(lines, original.split("\n"))
    segments: list[Segment] = []
    before: str | None = None
    start = 0
    for index in [*marks, len(lines)]:
        after = lines[index] if index < len(lines) else None
        body = lines[start:index]
        if any(line.strip() for line in body):
            segments.append(Segment(tuple(body), before, after, start))
            before = after
        elif before is None:
            before = after
        elif after is not None and segments and segments[-1].after is before:
            before = after if _depth(after) < _depth(before) else before
        start = index + 1
    if not segments:
        raise UsageError(
            "empty-sketch",
            "the sketch holds no code of its own; write the lines to change between the markers",
        )
    return Sketch(tuple(segments), len(marks))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _unfenced(update: str) -> str:
    """A sketch without the code fence around all of it, if it has one."""
    lines = update.strip("\n").split("\n")
    if len(lines) > 2 and lines[0].startswith("```") and lines[-1].rstrip() == "```":
        inner = lines[1:-1]
        if not any(line.startswith("```") for line in inner) and " " not in lines[0].strip():
            return "\n".join(inner)
    return update


def _markers(lines: Sequence[str], original: Sequence[str]) -> list[int]:
    """Indices of the marker lines.

    A marker-like line that the original has too is a marker only where no line beside it stands
    beside it in the original as well.
    """
    where: dict[str, list[int]] = {}
    for index, line in enumerate(original):
        if looks_like_marker(line):
            where.setdefault(line.strip(), []).append(index)
    marks = []
    for index, line in enumerate(lines):
        if not looks_like_marker(line):
            continue
        spots = where.get(line.strip())
        if spots is None or not _fits(lines, index, original, spots):
            marks.append(index)
    return marks


def _fits(lines: Sequence[str], index: int, original: Sequence[str], spots: Sequence[int]) -> bool:
    """Whether a nonblank neighbour of the sketch's line is its neighbour in the original."""

    def beside(text: Sequence[str], at: int, step: int) -> str | None:
        at += step
        while 0 <= at < len(text):
            if text[at].strip():
                return text[at].strip()
            at += step
        return None

    for step in (-1, 1):
        mine = beside(lines, index, step)
        if mine is not None and any(beside(original, at, step) == mine for at in spots):
            return True
    return beside(lines, index, -1) is None and beside(lines, index, 1) is None
