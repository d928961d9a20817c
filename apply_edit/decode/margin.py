"""Greedy decoding where passes of different widths disagree in the last bits.

Calibration measures by how much (`noise`). A token that wins by more than that wins in every
pass; a nearer one is decided by a pass of that row alone, as plain decoding would decide it. What
noise does to keys and values reaches later rows too, so a few times the measured noise counts as
near, and the promise is one of margins and not of bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from apply_edit.decode.rows import Asking, drive, scored
from apply_edit.decode.types import Branch, Scores, Target

NEAR = 3.0
"""Margins below so many times the noise are decided alone: twice for both tokens, and the rest for
what the cache carries on."""


@runtime_checkable
class Margins(Protocol):
    """Scores that know by how much a row's best token leads."""

    def margin(self, index: int) -> float: ...


def margin_of(scores: Scores, row: int) -> float:
    """The lead of a row's greatest logit over the second (0 for a tie)."""
    if isinstance(scores, Margins):
        return scores.margin(row)
    best = scores.top(row, 2)
    logits = scores.row(row)
    return logits[best[0]] - logits[best[1]] if len(best) == 2 else float("inf")


class SettledScores:
    """Scores of a pass with some rows replaced by those of a pass of their own."""

    def __init__(self, scores: Scores, alone: dict[int, Scores]) -> None:
        self._scores = scores
        self._alone = alone

    def __len__(self) -> int:
        return len(self._scores)

    def greedy(self) -> list[int]:
        picks = list(self._scores.greedy())
        for row, scores in self._alone.items():
            picks[row] = scores.greedy()[0]
        return picks

    def row(self, index: int) -> Sequence[float]:
        alone = self._alone.get(index)
        return self._scores.row(index) if alone is None else alone.row(0)

    def top(self, index: int, count: int) -> list[int]:
        alone = self._alone.get(index)
        return self._scores.top(index, count) if alone is None else alone.top(0, count)


class MarginTarget:
    """`target` with near-ties on the confirmed path of a pass decided one row at a time.

    `noise` is the greatest difference of a logit between passes that calibration saw. A near-tie
    costs two passes more. `settled` counts them. For greedy decoding only. In a batch (`shared`)
    even a pass of one row has others beside it, and is checked, too.
    """

    def __init__(self, target: Target, noise: float) -> None:
        self._target = target
        self._near = NEAR * noise
        self.settled = 0
        self.shared = False

    @property
    def length(self) -> int:
        return self._target.length

    @property
    def limit(self) -> int:
        return self._target.limit

    def prefill(self, tokens: Sequence[int]) -> None:
        self._target.prefill(tokens)

    def keep(self, rows: int, branch: int | None = None, branch_rows: int = 0) -> None:
        self._target.keep(rows, branch, branch_rows)

    def reset(self, length: int = 0) -> None:
        self._target.reset(length)

    def score(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> Scores:
        return drive(self.scoring(tokens, branches, first))

    def scoring(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> Asking[Scores]:
        """`score`, asking."""
        target = self._target
        scores = yield from scored(target, tokens, branches, first)
        if len(tokens) == 1 and not branches and not self.shared:
            return scores
        base = target.length
        alone: dict[int, Scores] = {}
        while True:
            settled = SettledScores(scores, alone)
            near = next(
                (
                    place
                    for place in _confirmed(settled.greedy(), tokens[first:], branches)
                    if place[0] not in alone and margin_of(scores, place[0]) <= self._near
                ),
                None,
            )
            if near is None:
                return settled if alone else scores
            row, main, branch, side = near
            # Commit what stands before the row, score it alone, and take both back.
            if branch is not None:
                if side:
                    target.keep(first + main, branch, side)
                else:
                    target.keep(first + main)
                token = branches[branch].tokens[side]
            else:
                if first + main > 1:
                    target.keep(first + main - 1)
                token = tokens[first + main - 1]
            alone[row] = yield from scored(target, [token], alone=True)
            target.reset(base)
            scores = yield from scored(target, tokens, branches, first)
            self.settled += 1


def _confirmed(
    picks: Sequence[int], tokens: Sequence[int], branches: Sequence[Branch]
) -> Iterator[tuple[int, int, int | None, int]]:
    """Rows whose picks decide about the draft, in the order of the output.

    `tokens` are the decided one and the chain. Each place is (row, main rows up to it or, on a
    branch, before it, number of the branch, branch rows before it).
    """
    main = 0
    while True:
        yield main, main + 1, None, 0
        if main + 1 >= len(tokens) or tokens[main + 1] != picks[main]:
            break
        main += 1
    row = len(tokens)
    for number, branch in enumerate(branches):
        if branch.fork == main:
            wanted = picks[main]
            for side, token in enumerate(branch.tokens):
                if token != wanted:
                    break
                yield row + side, main + 1, number, side
                wanted = picks[row + side]
        row += len(branch.tokens)
