"""The table of `apply-edit models`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from apply_edit.show.look import Line, Look, clean, cut, width_of
from apply_edit.target.catalog import CATALOG
from apply_edit.target.store import Stored

STATES = {"present": "here", "partial": "half fetched", "absent": "not here"}


def table(
    rows: Sequence[Stored], default: str, cache: Path, color: bool, width: int | None
) -> list[str]:
    """Lines of text, for a terminal of `width` columns or, where it is None, for anything else.

    On a terminal too narrow for the remarks these stand below the rows, and what does not fit of
    a row itself is cut.
    """
    look = Look(color, unicode=False)
    head = ("name", "state", "download", "on disk", "licence", "")
    cells = [head, *(_row(row, default) for row in rows)]
    widths = [max(width_of([(row[i], "")]) for row in cells) for i in range(5)]
    whole = sum(widths) + 2 * len(widths) + max(width_of([(row[5], "")]) for row in cells)
    below = width is not None and whole > width - 1
    lines = []
    for number, row in enumerate(cells):
        line: Line = []
        for place, (cell, room) in enumerate(zip(row, widths, strict=False)):
            pad = " " * (room - width_of([(cell, "")]))
            right = place in (2, 3)
            line.append(((pad + cell if right else cell + pad) + "  ", _style(number, place, cell)))
        if not below:
            line.append((row[5], "faint"))
        lines.append(_painted(line, look, width, color))
        if below and width is not None:
            remarks = wrap(row[5], max(width - 3, 12))
            lines += [_painted([("  " + t, "faint")], look, None, color) for t in remarks]
    folder = [("kept in ", "faint"), (clean(str(cache)), "")]
    return [*lines, "", _painted(folder, look, None, color)]


def _row(row: Stored, default: str) -> tuple[str, str, str, str, str, str]:
    known = CATALOG.get(row.name)
    note = known.note if known else "converted from a GGUF file"
    if row.name == default:
        note = f"the default; {note}"
    if row.heads:
        note = f"{note}; has draft heads"
    download = _size(known.size) if known else "-"
    disk = _size(row.bytes or (known.disk if known else 0))
    licence = known.licence if known else "?"
    return clean(row.name), STATES[row.state], download, disk, licence, note


def _style(number: int, place: int, cell: str) -> str:
    if number == 0:
        return "title"
    if place == 1:
        return {"here": "bar", "half fetched": "removed"}.get(cell, "faint")
    return "title" if place == 0 else ""


def _painted(line: Line, look: Look, width: int | None, color: bool) -> str:
    kept = line if width is None else cut(line, width - 1)
    return (look.paint(kept) if color else "".join(text for text, _ in kept)).rstrip()


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
