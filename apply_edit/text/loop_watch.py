"""Seeing that an answer repeats itself to no end, while it is being written.

Tells a loop from a table: what repeats in the original may repeat in the answer, and rows that
differ at all do not count.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["LoopWatch", "Periods", "repeats"]

_LINES = 24  # lines of one repeated block, in all, from which it is a loop
_TIMES = 3  # at least so many copies of a block
_ROWS = 16  # copies of one line
_DATA = 48  # copies of one line without letters (rows of numbers), or of a blank one
_INLINE = 600  # characters of a line that repeats within itself
_LOOK = 1024  # how far back in a line to look
_EVERY = 512  # characters between two looks
_SLACK = 64  # copies beyond twice the original's that are still believed


class Periods:
    """The shortest period of the last lines, kept up in constant time per line."""

    def __init__(self) -> None:
        self.keys: list[int] = []
        self._sums = [0]
        self._last: dict[int, int] = {}
        self.period = 0
        self.run = 0

    def add(self, line: str) -> None:
        """Take in one more line; blanks at its end do not count."""
        key = hash(line.rstrip())
        at = len(self.keys)
        self.keys.append(key)
        self._sums.append(self._sums[-1] + key)
        if self.period and self.keys[at - self.period] == key:
            self.run += 1
        else:
            seen = self._last.get(key)
            self.period, self.run = (at - seen, 1) if seen is not None else (0, 0)
        self._last[key] = at

    @property
    def copies(self) -> int:
        """How often the block of the last `period` lines stands there in a row."""
        return self.run // self.period + 1 if self.period else 1

    @property
    def block(self) -> tuple[int, int]:
        """A name of that block, the same wherever in its cycle it is looked at."""
        return self.period, self._sums[-1] - self._sums[len(self.keys) - self.period]


class LoopWatch:
    """Watches the text of an answer as it grows.

    Costs constant time per line, amortised. Once it has seen a loop it stays with that.

    >>> watch = LoopWatch("a = 1\\n")
    >>> watch.feed("b = 2\\n"), watch.feed("same again\\n" * 40)
    (False, True)
    """

    def __init__(self, original: str) -> None:
        self._original = original
        self._periods = Periods()
        self._allowed = repeats(original.split("\n"))
        self._line: list[str] = []
        self._length = 0
        self._looked = 0
        self.looping = False
        self.line: int | None = None
        """The 1-based line of the answer at which the loop was seen."""

    def feed(self, text: str) -> bool:
        """Take in the next piece of the answer, of any length; True once it is looping."""
        if self.looping or not text:
            return self.looping
        head, *rest = text.split("\n")
        self._grow(head)
        for piece in rest:
            self._end_line()
            if self.looping:
                break
            self._grow(piece)
        return self.looping

    def _grow(self, piece: str) -> None:
        if not piece:
            return
        self._line.append(piece)
        self._length += len(piece)
        if self._length - self._looked >= _EVERY and self._length >= _INLINE:
            self._looked = self._length
            self._see(self._loops_within("".join(self._line)))

    def _end_line(self) -> None:
        line = "".join(self._line)
        self._line, self._length, self._looked = [], 0, 0
        self._periods.add(line)
        self._see(self._loops_over(line))

    def _see(self, looping: bool) -> None:
        if looping:
            self.looping = True
            self.line = len(self._periods.keys) + (1 if self._line else 0)

    def _loops_over(self, line: str) -> bool:
        period, copies = self._periods.period, self._periods.copies
        if copies < _TIMES:
            return False
        if period == 1:
            limit = _ROWS if any(map(str.isalpha, line)) else _DATA
        else:
            limit = max(_TIMES, -(-_LINES // period))
        if copies < limit:
            return False
        known = self._allowed.get(self._periods.block, 0)
        return copies > (2 * known + _SLACK if known else limit - 1)

    def _loops_within(self, line: str) -> bool:
        tail = line[-_LOOK:]
        period = _period(tail)
        if period > len(tail) // 8:
            return False
        span = tail[-_INLINE:]
        return span[: _INLINE // 2] not in self._original


def repeats(lines: Iterable[str]) -> dict[tuple[int, int], int]:
    """Per block of lines that stands several times in a row, how often at most."""
    found: dict[tuple[int, int], int] = {}
    periods = Periods()
    for line in lines:
        periods.add(line)
        if periods.copies > 1:
            found[periods.block] = max(found.get(periods.block, 0), periods.copies)
    return found


def _period(text: str) -> int:
    """The shortest period that the end of a text has over at least `_INLINE` characters.

    The length of the text if there is none (by the border of each prefix of its reverse).
    """
    turned = text[::-1]
    border = [0] * len(turned)
    k = 0
    for i in range(1, len(turned)):
        while k and turned[i] != turned[k]:
            k = border[k - 1]
        if turned[i] == turned[k]:
            k += 1
        border[i] = k
    for length in range(len(turned), _INLINE - 1, -1):
        period = length - border[length - 1]
        if period <= length // 8:
            return period
    return len(text)
