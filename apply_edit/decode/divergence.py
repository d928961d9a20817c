"""Where two decodings of one prompt part: the tokens, their logits and how near they were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apply_edit.decode.rows import Asking, drive, scored
from apply_edit.decode.types import Branch, Scores, Target


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first place at which drafted and plain decoding differ.

    `place` is an index into the output. A token is None where that decoding had ended. The
    logits are those of plain decoding's row, None where it was not asked for that place.
    """

    place: int
    drafted: int | None
    plain: int | None
    drafted_logit: float | None = None
    plain_logit: float | None = None

    @property
    def margin(self) -> float | None:
        """By how much plain decoding preferred its own token; 0 is a tie."""
        if self.drafted_logit is None or self.plain_logit is None:
            return None
        return self.plain_logit - self.drafted_logit

    def describe(self, text: Callable[[Sequence[int]], str]) -> str:
        """One clause: both tokens as `text` shows them, their logits and the margin."""
        sides = []
        for name, token, logit in (
            ("drafted", self.drafted, self.drafted_logit),
            ("plain", self.plain, self.plain_logit),
        ):
            shown = "the end" if token is None else f"{text([token])!r} (token {token})"
            sides.append(f"{name} {shown}" + ("" if logit is None else f" at {logit:.6g}"))
        margin = "" if self.margin is None else f", margin {self.margin:.3g}"
        return f"token {self.place}: {sides[0]}, {sides[1]}{margin}"


def first_divergence(
    drafted: Sequence[int], plain: Sequence[int], last: Scores | None = None
) -> Divergence | None:
    """Compare outputs; None where they are equal.

    `last` holds plain decoding's scores of the place where it parted, in its last row.
    """
    shortest = min(len(drafted), len(plain))
    place = next((i for i in range(shortest) if drafted[i] != plain[i]), shortest)
    if place == len(drafted) == len(plain):
        return None
    mine = drafted[place] if place < len(drafted) else None
    theirs = plain[place] if place < len(plain) else None
    if last is None or not len(last):
        return Divergence(place, mine, theirs)
    row = last.row(len(last) - 1)
    return Divergence(
        place,
        mine,
        theirs,
        None if mine is None else row[mine],
        None if theirs is None else row[theirs],
    )


class Remembering:
    """A target that keeps the scores of its last pass."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.last: Scores | None = None

    @property
    def length(self) -> int:
        return self._target.length

    @property
    def limit(self) -> int:
        return self._target.limit

    def prefill(self, tokens: Sequence[int]) -> None:
        self._target.prefill(tokens)

    def score(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> Scores:
        return drive(self.scoring(tokens, branches, first))

    def scoring(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> Asking[Scores]:
        """`score`, asking."""
        self.last = yield from scored(self._target, tokens, branches, first)
        return self.last

    def keep(self, rows: int, branch: int | None = None, branch_rows: int = 0) -> None:
        self._target.keep(rows, branch, branch_rows)

    def reset(self, length: int = 0) -> None:
        self._target.reset(length)
