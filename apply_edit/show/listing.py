"""The answer as a listing: its runs coloured by source, drafts that fell marked where they fell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from apply_edit.show.escape import code, plain
from apply_edit.show.file_report import FileReport
from apply_edit.show.recording import Pass

CLASSES = {"copy": "c", "update": "u", "output": "o", "draft": "d", "target": "t"}
LONGEST_DRAFT = 160
"""Characters shown of a draft that fell."""
LONGEST_LINE = 4000
NEAR = 3
"""Copied lines kept around a line of interest when a listing has to be shortened."""


@dataclass(slots=True)
class Row:
    """Line `number` of the result: its runs, as (class, text), and marks, as ("x", label)."""

    number: int
    parts: list[tuple[str, str]] = field(default_factory=list)
    changed: bool = False

    @property
    def interesting(self) -> bool:
        """Whether more happened than copying; a pass ends with a token of the target even then."""
        return self.changed or any(kind not in ("c", "t") for kind, _ in self.parts)

    def html(self) -> str:
        body = []
        room = LONGEST_LINE
        for kind, text in self.parts:
            if kind == "x":
                label = plain(text).replace("\n", "&#10;")
                body.append(f'<b tabindex=0 role=note aria-label="{label}"></b>')
                continue
            shown = text[:room]
            room -= len(shown)
            if shown:
                body.append(code(shown) if kind == "c" else f"<u class={kind}>{code(shown)}</u>")
            if len(shown) < len(text):
                body.append(f"<i>{len(text) - len(shown):,} more characters</i>")
        mark = " class=n" if self.changed else ""
        # An empty element would have no line of its own, and could not be copied.
        return f"<li{mark}>{''.join(body) or ' '}"


def listing(one: FileReport, budget: int) -> str:
    """The answer as ordered lists of lines, in at most about `budget` bytes.

    Where it does not fit, copied lines far from any edit are left out first, and a note says so.
    """
    rows = rows_of(one)
    if not rows:
        return "<p>No token was written.</p>"
    lines = [row.html() for row in rows]
    sizes = [len(line.encode("utf-8", "replace")) + 1 for line in lines]
    shown = _fitting(rows, sizes, budget)
    parts = []
    place = 0
    line = rows[0].number
    while place < len(rows):
        end = place + 1
        while end < len(rows) and shown[end] == shown[place] and _follows(rows, end):
            end += 1
        first = rows[place].number
        if first > line:
            parts.append(_gap(first - line, "lines that stayed as they were"))
        if shown[place]:
            text = "\n".join(lines[place:end])
            parts.append(f"<ol class=f start={first}>\n{text}\n</ol>")
        else:
            seen = any(row.interesting for row in rows[place:end])
            what = "lines" if seen else "copied lines"
            parts.append(_gap(end - place, f"{what} left out to keep this page small"))
        line = rows[end - 1].number + 1
        place = end
    return "\n".join(parts)


def _follows(rows: Sequence[Row], place: int) -> bool:
    return rows[place].number == rows[place - 1].number + 1


def _gap(lines: int, words: str) -> str:
    return f"<p class=gap>{lines:,} {words}</p>"


def rows_of(one: FileReport) -> list[Row]:
    """The lines that were written, with their runs and marks."""
    rows: list[Row] = []
    part = -1
    for number, each in enumerate(one.passes):
        if each.part != part:
            part = each.part
            rows.append(Row(one.first_lines[part]))
        pieces = list(each.pieces)
        own = pieces.pop() if pieces and pieces[-1].source == "target" else None
        for piece in pieces:
            _append(rows, CLASSES[piece.source], piece.text)
        if each.rejected:
            rows[-1].parts.append(("x", label(number, each)))
        if own is not None:
            _append(rows, CLASSES[own.source], own.text)
    if rows and not any(row.parts for row in rows):
        return []
    new = set(one.new_lines)
    for row in rows:
        row.changed = row.number in new
    return rows


def label(number: int, each: Pass) -> str:
    """What a mark says: which pass, how much fell, and the text that fell."""
    text = each.rejected
    if len(text) > LONGEST_DRAFT:
        text = text[:LONGEST_DRAFT] + "\u2026"
    tokens = "token" if each.fallen == 1 else "tokens"
    return f"pass {number + 1}: {each.fallen:,} drafted {tokens} rejected\n{text}"


def _append(rows: list[Row], kind: str, text: str) -> None:
    first, *rest = text.split("\n")
    _extend(rows[-1], kind, first)
    for line in rest:
        rows.append(Row(rows[-1].number + 1))
        _extend(rows[-1], kind, line)


def _extend(row: Row, kind: str, text: str) -> None:
    if not text:
        return
    if row.parts and row.parts[-1][0] == kind:
        text = row.parts.pop()[1] + text
    row.parts.append((kind, text))


def _fitting(rows: Sequence[Row], sizes: Sequence[int], budget: int) -> list[bool]:
    """Which lines to show: changed ones and their neighbours first, then others of interest."""
    if sum(sizes) <= budget:
        return [True] * len(rows)
    shown = [False] * len(rows)
    spent = 0
    for wanted in (
        _near([row.changed for row in rows]),
        _near([row.interesting for row in rows]),
        range(len(rows)),
    ):
        for place in wanted:
            if shown[place]:
                continue
            if spent + sizes[place] > budget:
                return shown
            shown[place] = True
            spent += sizes[place]
    return shown


def _near(flags: Sequence[bool]) -> list[int]:
    """Places that are flagged, or close to one that is."""
    near: set[int] = set()
    for place, flag in enumerate(flags):
        if flag:
            near.update(range(max(0, place - NEAR), min(len(flags), place + NEAR + 1)))
    return sorted(near)
