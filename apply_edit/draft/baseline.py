"""What copying alone would do: its passes, carried on over tokens as they become known.

A drafter that gets ahead of copying shifts where copying's passes begin, and a copy that would
have held may then fall. So copying keeps its own passes, each from the place where it would be
had nobody else drafted; they only cost nothing. As long as the real passes hold whatever is left
of the pass that copying would be in, they are never behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from apply_edit.decode.loop import LEARNED_ROWS, offer, teaches
from apply_edit.decode.types import Branch, Draft, Learner, Proposer, Schedule


@dataclass(frozen=True, slots=True)
class Finished:
    """A pass of copying that is decided: its draft, and how many tokens of it held."""

    draft: Draft
    held: int


class Baseline:
    """Runs `copy` under `schedule` as `decode` would, on tokens that are decided elsewhere.

    `cost(rows)` is a pass in milliseconds.
    """

    def __init__(self, copy: Proposer, schedule: Schedule, cost: Callable[[int], float]) -> None:
        self._copy = copy
        self._schedule = schedule
        self._cost = cost
        self._open: Draft | None = None
        self._following: int | None = None
        self._start = 0
        self._known: list[int] = []
        self._tops: dict[int, tuple[int, Sequence[int]]] = {}
        self.spent = 0.0
        """Milliseconds that its finished passes take."""

    @property
    def known(self) -> Sequence[int]:
        """Tokens that are decided behind its last finished pass."""
        return self._known

    def learn(self, tokens: Sequence[int], tops: Sequence[Sequence[int]]) -> None:
        """`Learner.learn` of the real pass, before its tokens are observed."""
        place = self._start + len(self._known) - 1
        for token, choices in zip(tokens, tops, strict=True):
            self._tops[place] = token, choices
            place += 1

    def observe(self, tokens: Sequence[int]) -> None:
        """These tokens were decided."""
        self._known.extend(tokens)

    def catch_up(self, limit: int) -> list[Finished]:
        """Finish all passes that the known tokens decide; `limit` counts from behind them."""
        finished: list[Finished] = []
        while True:
            if self._open is None:
                room = limit + len(self._known)
                self._open, self._following = offer(self._copy, self._schedule, room)
            main, _, side = follow(self._open, self._known)
            if main + side >= len(self._known):
                return finished
            finished.append(Finished(self._open, main + side))
            self._finish(self._open, main, side)

    def _finish(self, draft: Draft, main: int, side: int) -> None:
        emitted = self._known[: main + side + 1]
        if teaches(draft) and isinstance(self._copy, Learner):
            places = range(self._start - 1, self._start + main + side)
            seen = [self._tops[at] for at in places[:LEARNED_ROWS] if at in self._tops]
            self._copy.learn([token for token, _ in seen], [tops for _, tops in seen])
        self._copy.observe(emitted, draft, main + side)
        cost = self._cost(draft.rows)
        self._schedule.record(draft, main, cost / 1e3)
        self.spent += cost
        del self._known[: len(emitted)]
        self._start += len(emitted)
        for place in [place for place in self._tops if place < self._start - 1]:
            del self._tops[place]
        self._open = None

    @property
    def price(self) -> float:
        """Milliseconds of the pass under way, as a whole."""
        return self._cost(self._pass.rows)

    @property
    def rest(self) -> Draft:
        """What the pass under way drafts behind the known tokens."""
        draft, count = self._pass, len(self._known)
        if not count:
            return draft
        _, branch, side = follow(draft, self._known)
        if branch is not None:
            return Draft(branch.tokens[side:], branch.source, None, draft.region)
        return Draft(
            draft.tokens[count:],
            draft.source,
            None if draft.origin is None else draft.origin + count,
            draft.region,
            draft.match + count,
            tuple(replace(b, fork=b.fork - count) for b in draft.branches if b.fork >= count),
        )

    @property
    def following(self) -> int | None:
        """The token that copying thinks to come behind the chain of the pass under way."""
        branch = follow(self._pass, self._known)[1]
        return self._following if branch is None else None

    @property
    def _pass(self) -> Draft:
        assert self._open is not None, "a pass is under way once it has caught up"
        return self._open


def follow(draft: Draft, tokens: Sequence[int]) -> tuple[int, Branch | None, int]:
    """How far `tokens` walk along a draft: tokens of its chain, then a branch and tokens of that.

    >>> follow(Draft((1, 2), branches=(Branch(1, (5, 6)),)), (1, 5, 7))
    (1, Branch(fork=1, tokens=(5, 6), source='draft'), 1)
    """
    main = agreeing(draft.tokens, tokens)
    best: Branch | None = None
    side = 0
    for branch in draft.branches:
        if branch.fork == main:
            count = agreeing(branch.tokens, tokens[main:])
            longer = best is None or len(branch.tokens) > len(best.tokens)
            if count > side or (count and count == side and longer):
                best, side = branch, count
    return main, best, side


def agreeing(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens of both agree, from the first on."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count
