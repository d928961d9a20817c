"""Copying and a learned draft together: whichever promises more tokens per second drafts.

Where a pointer is in step copying costs nothing and wins. Inside an edit the model writes, until
its own words are found in the original again: from there the copy rides behind its chain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from apply_edit.decode.schedule import hazard, survival
from apply_edit.decode.types import Branch, Draft, Learner, Proposer, Schedule
from apply_edit.draft.chain import LEARNED, ChainProposer
from apply_edit.draft.index import Reference

GUESSED = 0.4
"""Tokens that a guess of the copying proposer is thought to bring until some were counted."""
AGED = 0.9
"""What a guess keeps of the weight of those before it."""
FOLLOW = 24
"""The longest copy behind a chain."""
EVIDENCE = 3
"""Tokens that must agree before the original is followed behind a chain."""
CAUTION = 2.0
"""How much likelier than a copy in step one behind a chain is thought to fall at first."""
WEIGHT = 3.0
"""How many expected falls that first thought counts for."""
RIDING = 3
"""Tokens of a branch that rides beside a learned chain."""
CONTEXT = 32
"""Output tokens that a place in the original is compared with."""


class CombinedProposer:
    """Asks `copy` first, and `learned` where that promises more.

    `reference` is what an edit is expected to return to, the original's tokens. `scale(region)`
    is how much likelier than usual a copy of a region falls; `cost(rows)` a pass in milliseconds.
    Up to `riding` of the copying proposer's guesses ride as branches beside a learned chain.
    """

    def __init__(
        self,
        copy: Proposer,
        learned: ChainProposer,
        reference: Sequence[int],
        cost: Callable[[int], float],
        scale: Callable[[int], float] = lambda region: 1.0,
        riding: int = 0,
    ) -> None:
        self._copy = copy
        self._riding = riding
        self._learned = learned
        self._cost = cost
        self._scale = scale
        self._reference = Reference("copy", reference)
        self._home = 0
        self._output: list[int] = []
        self._copied = Draft()
        self._hits, self._tries = GUESSED * 4.0, 4.0
        self._fell, self._hazard = CAUTION * WEIGHT, WEIGHT
        self._followed: tuple[int, int, int] | None = None

    def propose(self, limit: int) -> Draft:
        self._copied = copied = self._copy.propose(limit)
        if self._worth(copied, limit) >= self._learned.rate():
            return copied
        self._followed = None
        draft = self._learned.write(limit, self._resume)
        if not draft.tokens:
            return copied
        if self._riding and copied.region < 0:
            return replace(draft, branches=riding(draft, copied, self._riding))
        return draft

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        copied = self._copied
        held = _held(copied, tokens)
        self._judge(draft, tokens)
        if copied.region < 0 and (copied.tokens or copied.branches):
            self._hits = self._hits * AGED + held
            self._tries = self._tries * AGED + 1.0
        if copied.region >= 0 and copied.origin is not None:
            self._home = copied.origin + held
        self._output.extend(tokens)
        # Copying hears what its own draft was worth, whether or not it was the one scored.
        self._copy.observe(tokens, copied, held)
        self._learned.observe(tokens, draft, accepted)
        self._copied = Draft()

    def learn(self, tokens: Sequence[int], tops: Sequence[Sequence[int]]) -> None:
        """Pass on what else the target considered."""
        if isinstance(self._copy, Learner):
            self._copy.learn(tokens, tops)

    def _worth(self, draft: Draft, limit: int) -> float:
        """Tokens per millisecond that a copying draft may bring."""
        side = sum(len(branch.tokens) for branch in draft.branches)
        if draft.region < 0:
            rows = len(draft.tokens) + side
            return (1.0 + (self._hits / self._tries if rows else 0.0)) / self._cost(1 + rows)
        scale = self._scale(draft.region)
        alive = expected = 1.0
        best = 1.0 / self._cost(1 + side)
        for k in range(1, min(len(draft.tokens), limit) + 1):
            alive *= survival(draft.match + k - 1, scale)
            expected += alive
            best = max(best, expected / self._cost(1 + side + k))
        return best

    def _resume(self, chain: Sequence[int]) -> tuple[Sequence[int], Sequence[float]]:
        """What the original says may follow the chain, if its end stands there."""
        length = len(chain)
        copied = self._copied
        if copied.region >= 0 and tuple(chain) == copied.tokens[:length]:
            tokens: Sequence[int] = copied.tokens[length : length + FOLLOW]
            match = copied.match + length
        else:
            context = [*self._output[-CONTEXT:], *chain]
            found = self._reference.find(context, self._home, 1)
            if not found or found[0].length < EVIDENCE:
                return (), ()
            place, match = found[0].place, found[0].length
            tokens = self._reference.tokens[place : place + FOLLOW]
        self._followed = length, len(tokens), match
        scale = self._fell / self._hazard
        return tokens, [survival(match + i, scale) for i in range(len(tokens))]

    def _judge(self, draft: Draft, tokens: Sequence[int]) -> None:
        """Learn from a copy that rode behind a chain which held."""
        if draft.region != LEARNED or self._followed is None:
            return
        length, rows, match = self._followed
        rows = min(rows, len(draft.tokens) - length)
        held = _held(Draft(draft.tokens), tokens) - length
        if rows > 0 and held >= 0:
            fell = held < rows
            self._fell += fell
            self._hazard += sum(hazard(match + i) for i in range(held + fell))
        self._followed = None


def riding(draft: Draft, copied: Draft, most: int) -> tuple[Branch, ...]:
    """The branches of `draft`, and up to `most` paths of `copied` that leave its chain elsewhere.

    >>> riding(Draft((1, 2), "draft"), Draft((1, 5, 6)), 1)
    (Branch(fork=1, tokens=(5, 6), source='copy'),)
    """
    found = list(draft.branches)
    taken = {(branch.fork, branch.tokens[0]): place for place, branch in enumerate(found)}
    paths = [(copied.source, copied.tokens)]
    paths += [(b.source, (*copied.tokens[: b.fork], *b.tokens)) for b in copied.branches]
    for source, path in paths:
        fork = 0
        while fork < min(len(path), len(draft.tokens)) and path[fork] == draft.tokens[fork]:
            fork += 1
        tokens = path[fork : fork + RIDING]
        if not tokens or fork == len(draft.tokens):
            continue
        known = taken.get((fork, tokens[0]))
        if known is not None:
            # The same guess, but it may know how to go on.
            if len(found[known].tokens) < len(tokens):
                found[known] = Branch(fork, tokens, source)
        elif len(found) < len(draft.branches) + most:
            taken[fork, tokens[0]] = len(found)
            found.append(Branch(fork, tokens, source))
    return tuple(found)


class CombinedSchedule:
    """Scores a model's chain whole: it was cut to what pays when it was written."""

    def __init__(self, inner: Schedule) -> None:
        self._inner = inner

    @property
    def limit(self) -> int:
        return self._inner.limit

    def choose(self, draft: Draft) -> int:
        return len(draft.tokens) if draft.region == LEARNED else self._inner.choose(draft)

    def record(self, draft: Draft, accepted: int, seconds: float) -> None:
        if draft.region != LEARNED:
            self._inner.record(draft, accepted, seconds)


def _held(draft: Draft, tokens: Sequence[int]) -> int:
    """How many of `tokens` the draft foretold, along its chain or its best branch."""
    best = 0
    paths = [draft.tokens]
    paths += [(*draft.tokens[: branch.fork], *branch.tokens) for branch in draft.branches]
    for path in paths:
        count = 0
        while count < min(len(path), len(tokens)) and path[count] == tokens[count]:
            count += 1
        best = max(best, count)
    return best
