"""A terminal emulator for tests of the display, and events to feed it with."""

from __future__ import annotations

from collections.abc import Iterator

import pyte

from apply_edit.decode.types import Finish, Run, Source, Step
from apply_edit.events import Piece, Wrote
from apply_edit.show.terminal import Terminal
from tests.terminal import Seen


class Emulator(Seen, Terminal):
    """A terminal that exists in memory only; `screen` is what a person would see."""

    def __init__(self, columns: int, rows: int, encoding: str = "utf-8", color: bool = True):
        super().__init__(-1, color, encoding)
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.sent = b""

    def size(self) -> tuple[int, int]:
        return self.screen.columns, self.screen.lines

    def write(self, text: str) -> None:
        data = text.encode(self.encoding, "replace")
        self.sent += data
        self.stream.feed(data)


def wrote(
    *pieces: tuple[Source, str],
    rejected: str = "",
    position: float = 0.5,
    tokens: int = 100,
    drafted: int = 0,
    accepted: int = 0,
    new: int = 1,
    k: int = 16,
    seconds: float = 0.1,
    elapsed: float = 1.0,
    closing: str = "",
    finish: Finish | None = None,
) -> Wrote:
    """An event as the editor would emit it."""
    step = Step(
        runs=(Run("target", tuple(range(new)), 0),),
        rows=drafted + 1,
        drafted=drafted,
        accepted=accepted,
        rejected=(1,) if rejected else (),
        k=k,
        context=1000,
        seconds=seconds,
        draft_seconds=0.0,
        finish=finish,
    )
    texts = tuple(Piece(s, t) for s, t in pieces)
    return Wrote(texts, rejected, step, position, tokens, elapsed, closing)


def an_edit(lines: int = 60, span: range = range(20, 24)) -> Iterator[Wrote]:
    """A plausible run: long copied stretches, a few new lines one token at a time."""
    tokens = 0
    for passes, number in enumerate(range(lines), 1):
        position = (number + 1) / lines
        if number in span:
            tokens += 4
            yield wrote(
                ("copy", "    "),
                ("target", f"new line {number}\n"),
                rejected=f"old line {number}",
                position=position,
                tokens=tokens,
                drafted=8,
                accepted=1,
                new=4,
                k=4,
                elapsed=passes / 10,
            )
        else:
            tokens += 30
            yield wrote(
                ("copy", f"def copied_{number}(): return {number}\n"),
                position=position,
                tokens=tokens,
                drafted=32,
                accepted=30,
                new=30,
                k=32,
                elapsed=passes / 10,
            )
