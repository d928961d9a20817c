"""The target's last hidden states, as the passes that verify leave them: what draft heads read.

A row's hidden state is what the output layer sees of it. The row that predicted the last decided
token is the newest one there is: the token itself goes through the target with the next pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from apply_edit.target.attention import Side

OnRows = Callable[[int, Tensor], None]
"""Told the position of the first of some committed rows and their hidden states [rows, hidden]."""


class Tap:
    """Takes the input of `model`'s output layer out of each scoring pass of an engine.

    `last` is the hidden state [hidden] of the row at position `position`, the last one committed;
    `on_rows` hears of all scored rows of a pass that were committed.
    """

    def __init__(self, model: Any) -> None:
        self.position = -1
        self.last: Tensor | None = None
        self.on_rows: OnRows | None = None
        self._seen: Tensor | None = None
        self._rows: Tensor | None = None
        model.get_output_embeddings().register_forward_pre_hook(self._see)

    def _see(self, _layer: object, arguments: tuple[Tensor, ...]) -> None:
        self._seen = arguments[0]

    def scored(self, start: int, stop: int) -> None:
        """Rows `start` to `stop` of what the output layer saw are those of the pass."""
        assert self._seen is not None
        self._rows = self._seen[0, start:stop]
        self._seen = None

    def kept(self, length: int, main: int, side: Side | None, side_rows: int, first: int) -> None:
        """Of the pass, behind `length` committed positions, `main` main rows were committed and
        `side_rows` rows of `side`; its first scored row was row `first`."""
        rows, self._rows = self._rows, None
        if rows is None or main <= first:
            # Some of the prompt without its last token: nothing was predicted.
            self.last, self.position = None, -1
            return
        path = rows[: main - first]
        if side is not None and side_rows:
            start = side.start - first
            path = torch.cat([path, rows[start : start + side_rows]])
        # A copy: the pass's other rows need not be held.
        self.last = path[-1].clone()
        self.position = length + main + side_rows - 1
        if self.on_rows is not None:
            self.on_rows(length + first, path)

    def forget(self) -> None:
        """Positions were taken back: there is no last row."""
        self.last, self.position, self._rows = None, -1, None


def positions(rows: Sequence[tuple[int, Tensor]], start: int, stop: int) -> Tensor | None:
    """Hidden states of positions `start` to `stop` out of rows heard; None where one lacks.

    Of a position that was heard of twice the later row counts.
    """
    if not rows or stop <= start:
        return None
    found = rows[0][1].new_empty(stop - start, rows[0][1].shape[1])
    known = [False] * (stop - start)
    for first, states in rows:
        for index in range(states.shape[0]):
            place = first + index - start
            if 0 <= place < stop - start:
                found[place] = states[index]
                known[place] = True
    return found if all(known) else None
