"""Tokens to text as they land."""

from __future__ import annotations

from collections.abc import Sequence

from apply_edit.decode.types import Source, Step
from apply_edit.events import Piece
from apply_edit.target.codec import Codec

LONGEST = 16
"""Tokens after which bytes that form no character are not one that is still to be finished."""


class TextStream:
    """Gives each step's text; the bytes of a character that is not whole yet wait for the rest."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._waiting: list[int] = []
        self._source: Source = "target"

    def feed(self, step: Step) -> tuple[Piece, ...]:
        pieces = []
        for run in step.runs:
            self._waiting.extend(run.tokens)
            self._source = run.source
            text = self._codec.decode(self._waiting)
            if text.endswith("\ufffd") and len(self._waiting) < LONGEST + len(run.tokens):
                continue
            self._waiting.clear()
            pieces.append(Piece(run.source, text))
        return tuple(pieces)

    def rest(self) -> tuple[Piece, ...]:
        """What still waits at the end."""
        if not self._waiting:
            return ()
        text = self._codec.decode(self._waiting)
        self._waiting.clear()
        return (Piece(self._source, text),)


class Body:
    """The text of an answer as it lands, without the closing tag that ends it.

    What may be the beginning of the tag waits until more is known. `closing` is the text that
    ends a whole answer, the line end before its tag included; empty where there is none.
    """

    def __init__(self, closing: str = "") -> None:
        self._closing = closing
        self._waiting: list[Piece] = []

    def feed(self, pieces: Sequence[Piece], ended: bool = False) -> list[Piece]:
        """What may be shown now. `ended`: nothing follows, so what is not the tag is text."""
        text = "".join(piece.text for piece in (*self._waiting, *pieces))
        start, whole = self._tag(text)
        shown, kept = _parted([*self._waiting, *pieces], start)
        self._waiting = [] if ended else kept
        return shown + kept if ended and not whole else shown

    def cut(self, rejected: str) -> str:
        """A draft that would have gone on here, up to the closing tag in it or its beginning."""
        waiting = "".join(piece.text for piece in self._waiting)
        text = waiting + rejected
        if self._closing and (at := text.find(self._closing.strip())) >= 0:
            text = text[:at].removesuffix("\n")
        return text[len(waiting) : max(len(waiting), self._tag(text)[0])]

    def _tag(self, text: str) -> tuple[int, bool]:
        """Where the tag, or what may become it, begins at the text's end; whether it is whole."""
        for closing in (self._closing, self._closing.removeprefix("\n")):
            if closing and text.rstrip().endswith(closing):
                return len(text.rstrip()) - len(closing), True
        for closing in (self._closing, self._closing.removeprefix("\n")):
            for size in range(min(len(closing), len(text)), 0, -1):
                if text.endswith(closing[:size]):
                    return len(text) - size, False
        return len(text), False


def _parted(pieces: Sequence[Piece], at: int) -> tuple[list[Piece], list[Piece]]:
    """The pieces before and behind a place in their text."""
    before, behind = [], []
    for piece in pieces:
        size = max(0, min(at, len(piece.text)))
        at -= len(piece.text)
        if piece.text[:size]:
            before.append(Piece(piece.source, piece.text[:size]))
        if piece.text[size:]:
            behind.append(Piece(piece.source, piece.text[size:]))
    return before, behind


def merged(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbours of one source as one piece."""
    runs: list[tuple[Source, list[str]]] = []
    for piece in pieces:
        if runs and runs[-1][0] == piece.source:
            runs[-1][1].append(piece.text)
        else:
            runs.append((piece.source, [piece.text]))
    return [Piece(source, "".join(texts)) for source, texts in runs]
