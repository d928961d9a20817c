"""Several requests in one pass of the target, each with its own length: a ragged batch.

A request is a generator that asks for rows (rows.py). Every turn takes what the requests ask for,
in their order, as far as it fits into one pass; those that found no room come first in the next.
So no request waits for another's draft to be decided, each goes on with its own scores, and one
that ends leaves at once. What a request is sent are the scores of its own rows, which do not
depend on the others; so its output is that of a run alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Generic, TypeVar

from apply_edit.decode.rows import Asking, Rows
from apply_edit.decode.types import Scores

WIDEST = 320
"""Rows of a pass at most: what calibration has compared, and where rows per second are flat."""
LEAST_CHUNK = 64
"""Prompt tokens that fill up a pass in which others have left room for so many."""

R = TypeVar("R")
Together = Callable[[Sequence[Rows]], Sequence["Scores | None"]]
"""Scores the rows of several requests in one pass."""


class Share:
    """The clock of one request among several: seconds that belong to others do not count.

    A pass is shared by rows. So the seconds of all requests add up to those of the batch, a time
    limit means the same in a batch as alone, and costs can be compared with those of other runs.
    `most` is the greatest number of requests that shared a pass with this one, itself included.
    """

    def __init__(self) -> None:
        self._others = 0.0
        self.most = 1

    def __call__(self) -> float:
        return perf_counter() - self._others

    def leave_out(self, seconds: float) -> None:
        """So much of the time that has passed was others'."""
        self._others += seconds


@dataclass(slots=True, eq=False)
class _Live(Generic[R]):
    """A request in the batch: what it asks for, and what of that is left for another turn."""

    number: int
    asking: Asking[R]
    share: Share
    rows: Rows
    rest: Rows | None = None


class Batch(Generic[R]):
    """Requests under way. `together` scores rows of several of them in a pass of `widest` rows.

    A failure of one (an exception in its generator) ends the batch: requests that may fail
    return their failure.
    """

    def __init__(self, together: Together, widest: int = WIDEST) -> None:
        self._together = together
        self._widest = widest
        self._live: list[_Live[R]] = []

    def __len__(self) -> int:
        return len(self._live)

    @property
    def reading(self) -> bool:
        """Whether a request still reads its prompt."""
        return any(one.rows.first is None for one in self._live)

    def add(self, number: int, asking: Asking[R], share: Share) -> list[tuple[int, R]]:
        """Take in a request; its result, if it needs no pass at all."""
        began = perf_counter()
        try:
            self._live.append(_Live(number, asking, share, next(asking)))
            return []
        except StopIteration as end:
            return [(number, end.value)]
        finally:
            self._spent(share, perf_counter() - began)

    def turn(self) -> list[tuple[int, R]]:
        """One pass; the numbers and results of the requests that ended with it."""
        turn = self._fitting()
        began = perf_counter()
        scores = self._together([one.rows for one in turn])
        self._passed(turn, perf_counter() - began)
        ended = []
        for one, got in zip(turn, scores, strict=True):
            if one.rest is not None:
                one.rows, one.rest = one.rest, None
                continue
            began = perf_counter()
            try:
                one.rows = one.asking.send(got)
            except StopIteration as end:
                self._live.remove(one)
                ended.append((one.number, end.value))
            finally:
                self._spent(one.share, perf_counter() - began)
        return ended

    def close(self) -> None:
        """Let go of all requests where they are."""
        for one in self._live:
            one.asking.close()
        self._live.clear()

    def _fitting(self) -> list[_Live[R]]:
        """The requests of the next pass, those that had to wait before the others."""
        turn: list[_Live[R]] = []
        waiting: list[_Live[R]] = []
        room = self._widest
        for one in self._live:
            count = one.rows.count
            if turn and (one.rows.alone or turn[0].rows.alone):
                waiting.append(one)
            elif count <= room or not turn:
                turn.append(one)
                room -= count
            elif one.rows.first is None and room >= LEAST_CHUNK:
                one.rows, one.rest = one.rows.split(room)
                turn.append(one)
                room = 0
            else:
                waiting.append(one)
        self._live = waiting + turn
        return turn

    def _passed(self, turn: list[_Live[R]], seconds: float) -> None:
        """A pass took so long: each request's share goes by its rows."""
        total = sum(one.rows.count for one in turn)
        for one in self._live:
            mine = one.rows.count / total if one in turn else 0.0
            one.share.leave_out(seconds * (1.0 - mine))
        for one in turn:
            one.share.most = max(one.share.most, len(turn))

    def _spent(self, share: Share, seconds: float) -> None:
        """One request has worked so long for itself, between passes."""
        for one in self._live:
            if one.share is not share:
                one.share.leave_out(seconds)
