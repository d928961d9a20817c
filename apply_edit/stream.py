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


def merged(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbours of one source as one piece."""
    runs: list[tuple[Source, list[str]]] = []
    for piece in pieces:
        if runs and runs[-1][0] == piece.source:
            runs[-1][1].append(piece.text)
        else:
            runs.append((piece.source, [piece.text]))
    return [Piece(source, "".join(texts)) for source, texts in runs]
