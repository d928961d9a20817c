"""A few lines at the bottom of the terminal, drawn over and over in one place.

rich's own Live erases line by line, and loses count when the window is made narrower; this one
overwrites, in one write a frame, and knows how many rows the last frame takes at any width.
"""

from __future__ import annotations

from collections.abc import Sequence

from apply_edit.show.look import Line, Look, cut, width_of
from apply_edit.show.terminal import Terminal

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
# Text that proves wider than we think must be cut off by the terminal, not wrapped.
NO_WRAP, WRAP = "\x1b[?7l", "\x1b[?7h"
# Terminals that know synchronized updates show a frame at once; others ignore this.
BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"


class Painter:
    """Draws frames in place and takes them away again."""

    def __init__(self, terminal: Terminal, look: Look) -> None:
        self.terminal = terminal
        self.look = look
        self._widths: list[int] = []

    def draw(self, lines: Sequence[Line]) -> None:
        """Put `lines` where the last frame stood."""
        columns, rows = self.terminal.size()
        room = max(1, columns - 1)
        shown = [cut(line, room) for line in lines[-max(1, rows - 1) :]]
        body = "\r\n".join(self.look.paint(line) + "\x1b[K" for line in shown)
        frame = BEGIN + HIDE + NO_WRAP + self._home(columns, rows) + body + "\x1b[J" + WRAP + END
        self._widths = [width_of(line) for line in shown]
        self.terminal.write(frame)

    def erase(self) -> None:
        """Leave the screen as if nothing had been drawn, the cursor where it was, and visible."""
        if self._widths:
            columns, rows = self.terminal.size()
            self.terminal.write(self._home(columns, rows) + "\x1b[J" + WRAP + SHOW)
            self._widths = []

    def say(self, text: str) -> None:
        """A line that stays, above the frame."""
        self.erase()
        self.terminal.write(text + "\r\n")

    def _home(self, columns: int, rows: int) -> str:
        """The way to the first cell of the last frame."""
        if not self._widths:
            return "\r"
        taken = len(self._widths)
        if self.terminal.reflows:
            taken = sum(max(1, -(-width // columns)) for width in self._widths)
        up = min(taken, rows) - 1
        return f"\r\x1b[{up}A" if up else "\r"
