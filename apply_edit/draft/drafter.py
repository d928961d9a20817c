"""A model that drafts: what a chain of guesses needs to know of it, and two kinds of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Protocol, runtime_checkable

from apply_edit.decode.types import Scores


@dataclass(frozen=True, slots=True)
class Guess:
    """The token a drafter thinks comes next and its runner-up, with their chances (0 to 1)."""

    token: int
    chance: float
    second: int | None = None
    second_chance: float = 0.0


class Drafter(Protocol):
    """Continues the decided tokens, one guess at a time.

    `begin`, then `more` for each token taken, then `end`, which must be called whatever
    happened: it leaves everything that is not the drafter's own as it was.
    """

    def behind(self, tokens: Sequence[int]) -> int:
        """How many of the decided `tokens` the drafter has not read yet."""
        ...

    def begin(self, tokens: Sequence[int]) -> Guess | None:
        """What may follow all decided `tokens`; None where it cannot say."""
        ...

    def more(self, token: int) -> Guess | None:
        """What may follow the last guess's place if `token` stands there."""
        ...

    def end(self) -> None: ...


@runtime_checkable
class Likely(Protocol):
    """Scores that know the chances of a row's best tokens."""

    def likely(self, index: int, count: int) -> list[tuple[int, float]]:
        """The `count` most likely tokens of row `index` and their chances at temperature 1."""
        ...


def guess_of(scores: Scores, row: int) -> Guess:
    """The best two tokens of a row and their chances."""
    if isinstance(scores, Likely):
        best = scores.likely(row, 2)
    else:
        logits = scores.row(row)
        tokens = scores.top(row, 2)
        greatest = logits[tokens[0]]
        total = sum(exp(logit - greatest) for logit in logits)
        best = [(token, exp(logits[token] - greatest) / total) for token in tokens]
    if len(best) < 2:
        return Guess(*best[0])
    return Guess(*best[0], *best[1])
