"""How things look: the styles and marks of each source, with and without colour or Unicode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

Span = tuple[str, str]
"""A text and the name of its style."""
Line = list[Span]

# SGR parameters: the 16 colours of the user's own theme, so that they suit any background.
COLORED = {
    "": "",
    "title": "1",
    "faint": "2",
    "copy": "2",
    "update": "36",
    "output": "34",
    "draft": "35",
    "target": "1;32",
    "rejected": "9;31",
    "bar": "32",
    "error": "1;31",
    "added": "32",
    "removed": "31",
    "hunk": "36",
}
# NO_COLOR asks for no colour; weight and lines are not colour.
PLAIN = {
    **dict.fromkeys(COLORED, ""),
    "title": "1",
    "update": "4",
    "output": "3",
    "draft": "3;4",
    "target": "1",
    "rejected": "9",
}


@dataclass(frozen=True, slots=True)
class Look:
    """Styles and marks for one terminal."""

    color: bool = True
    unicode: bool = True

    @property
    def marks(self) -> dict[str, str]:
        """What stands in the gutter before a line, by the newest source in it."""
        if self.unicode:
            return {"copy": " ", "update": "»", "output": "=", "draft": "~", "target": "+"}
        return {"copy": " ", "update": ">", "output": "=", "draft": "~", "target": "+"}

    @property
    def dot(self) -> str:
        return " · " if self.unicode else " | "

    @property
    def cross(self) -> str:
        return "×" if self.unicode else "x"

    @property
    def times(self) -> str:
        return "×" if self.unicode else "x"

    def bar(self, width: int, share: float) -> Line:
        """A bar of `width` cells, `share` (0 to 1) of it full."""
        full = round(width * min(1.0, max(0.0, share)))
        done, rest = ("━", "─") if self.unicode else ("#", "-")
        return [(done * full, "bar"), (rest * (width - full), "faint")]

    def paint(self, line: Sequence[Span]) -> str:
        """The line with its SGR codes."""
        styles = COLORED if self.color else PLAIN
        parts = []
        for text, style in line:
            code = styles[style]
            parts.append(f"\x1b[{code}m{text}\x1b[0m" if code and text else text)
        return "".join(parts)


def clean(text: str) -> str:
    """`text` with nothing in it that moves a cursor: tabs as blanks, the rest as dots."""
    text = text.replace("\t", "    ")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "." for c in text)


def width_of(line: Sequence[Span]) -> int:
    """Cells the line takes."""
    return sum(len(text) if text.isascii() else cell_len(text) for text, _ in line)


def cut(line: Sequence[Span], width: int) -> Line:
    """The line's first `width` cells."""
    kept: Line = []
    for text, style in line:
        need = len(text) if text.isascii() else cell_len(text)
        if need >= width:
            kept.append((text[:width] if text.isascii() else set_cell_size(text, width), style))
            return kept
        kept.append((text, style))
        width -= need
    return kept
