"""What a request wants of the target next, as a value, so that several can be served at once.

The algorithms of this folder are generators that yield `Rows` and are sent their scores. Whoever
drives one decides when and with what else the rows go through the target: `drive` does so at once
and alone, `batch.py` gathers those of several requests into one pass.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, runtime_checkable

from apply_edit.decode.types import Branch, Scores, Target

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one request, to stand behind the committed positions of `target`.

    `tokens`, `branches` and `first` are those of `Target.score`; `first=None` asks for no scores:
    the tokens are to be committed (`Target.prefill`). Rows that want to be `alone` go into a pass
    that holds nothing else.
    """

    target: Target
    tokens: Sequence[int]
    branches: Sequence[Branch] = ()
    first: int | None = 0
    alone: bool = False

    @property
    def count(self) -> int:
        """Rows of the pass."""
        return len(self.tokens) + sum(len(branch.tokens) for branch in self.branches)

    def split(self, count: int) -> tuple[Rows, Rows]:
        """The first `count` rows and the others, of rows that ask for no scores."""
        return (
            replace(self, tokens=self.tokens[:count]),
            replace(self, tokens=self.tokens[count:]),
        )


Asking = Generator[Rows, "Scores | None", R]
"""Yields rows and is sent their scores (None for rows that ask for none); returns an `R`."""


@runtime_checkable
class Thorough(Protocol):
    """A target that may take several passes over others' rows for one answer."""

    def scoring(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> Asking[Scores]:
        """`Target.score`, asking."""
        ...


def scored(
    target: Target,
    tokens: Sequence[int],
    branches: Sequence[Branch] = (),
    first: int = 0,
    *,
    alone: bool = False,
) -> Asking[Scores]:
    """Ask for what ``target.score(tokens, branches, first)`` gives."""
    if isinstance(target, Thorough):
        return (yield from target.scoring(tokens, branches, first))
    scores = yield Rows(target, tokens, branches, first, alone)
    if scores is None:
        raise TypeError("rows that are to be scored were sent no scores")
    return scores


def drive(asking: Asking[R]) -> R:
    """Give `asking` what it asks for, each time at once, and return what it returns."""
    try:
        rows = next(asking)
        while True:
            rows = asking.send(serve(rows))
    except StopIteration as end:
        result: R = end.value
        return result
    finally:
        asking.close()


def passes(asking: Asking[object]) -> Iterator[None]:
    """As `drive`, giving way after every pass."""
    try:
        rows = next(asking)
        while True:
            rows = asking.send(serve(rows))
            yield
    except StopIteration:
        return
    finally:
        asking.close()


def serve(rows: Rows) -> Scores | None:
    """One pass of the rows' own target."""
    if rows.first is None:
        rows.target.prefill(rows.tokens)
        return None
    return rows.target.score(rows.tokens, rows.branches, rows.first)
