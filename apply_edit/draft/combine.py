"""Copying and a learned draft together: whichever promises more tokens per second drafts.

Where a pointer is in step copying costs nothing and wins. Inside an edit the model writes, until
copying would be in step again behind its chain: from there the copy rides in the same pass. Many
edits are over before a draft could pay, and copying's own guesses are free; so in the first passes
of an edit a drafter is asked only as far as a small share of the run's time can pay for, and
what it gained before; a cautious one only if a pass may be lost besides, or copying is stuck.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from apply_edit.decode.schedule import hazard, survival
from apply_edit.decode.types import Branch, Draft, Learner, Proposer, Schedule
from apply_edit.draft.chain import LEARNED, LONGEST, ChainProposer

GUESSED = 0.4
"""Tokens that a guess of the copying proposer is thought to bring until some were counted."""
AGED = 0.9
"""What a guess keeps of the weight of those before it."""
FOLLOW = 24
"""The longest copy behind a chain: a longer one saves no further pass, and may fall."""
CAUTION = 2.0
"""How much likelier than a copy in step one behind a chain is thought to fall at first."""
WEIGHT = 3.0
"""How many expected falls that first thought counts for."""
SHARE = 0.02
"""What of a run's time may be lost to a drafter on edits where copying alone is faster."""
RISK = 0.025
"""What of it a cautious one may lose if all goes wrong: its guesses, and copying's in that pass."""
STUCK, STUCK_RISK = 5, 0.04
"""After so many passes in a row that copying guessed nothing of, a cautious one may lose more."""
STAKE = 3
"""Guesses that have to be paid for before the first is asked: fewer seldom bring anything."""
UNPROVEN = 8
"""Guesses that are asked for in a long edit, though they are not paid for yet."""
LONG = 2
"""Passes in a row that copying guessed nothing of: the edit is a long one, where drafts pay."""
RIDING = 3
"""Tokens of a branch that rides beside a learned chain."""


class Copying(Proposer, Protocol):
    """A proposer that knows what it would draft behind tokens which are not decided yet."""

    def foresee(self, tokens: Sequence[int], limit: int) -> Draft:
        """What `propose` would give if `tokens` came next, but no guesses; changes nothing."""
        ...


class Ledger:
    """What a drafter has brought so far against copying alone, in milliseconds.

    A run is thought to take `expected` and what its passes take besides; `share` of it may be lost.
    """

    def __init__(self, expected: float, share: float = SHARE) -> None:
        self._run = expected
        self._share = share
        self._gained = 0.0

    @property
    def free(self) -> float:
        """What may be lost now: what was gained, and the share of the run that it may cost."""
        return self.part(self._share) + self._gained

    def part(self, share: float) -> float:
        """So much of the run, in milliseconds."""
        return share * self._run

    @property
    def paid(self) -> bool:
        """Whether the drafter has not cost more than it brought."""
        return self._gained >= 0.0

    def passed(self, ms: float) -> None:
        """A pass, and what was asked before it, took so long."""
        self._run += ms

    def settle(self, gain: float) -> None:
        """A draft gained so much over what copying would have done in its place (or lost it)."""
        self._gained += gain


class CombinedProposer:
    """Asks `copy` first, and `learned` where that promises more.

    `cost(rows)` is a pass in milliseconds; `scale(region)` is how much likelier than usual a copy
    of a region falls, and `length(draft)` how much of a copy is worth scoring. Up to `riding` of
    the copying proposer's guesses ride as branches beside a learned chain. `expected` is what a
    run takes whatever is drafted, in milliseconds: its prompt's rows and its output's. A `cautious`
    one asks `learned` only where the run stays within `RISK` of what copying alone takes even if
    all its guesses are wrong and those that copying would have made are right; and, where copying
    is stuck and nothing was lost before, for as many guesses as `STUCK_RISK` pays for.
    """

    def __init__(
        self,
        copy: Copying,
        learned: ChainProposer,
        cost: Callable[[int], float],
        scale: Callable[[int], float] = lambda region: 1.0,
        length: Callable[[Draft], int] = lambda draft: len(draft.tokens),
        riding: int = 0,
        expected: float = 0.0,
        cautious: bool = False,
    ) -> None:
        self._copy = copy
        self._riding = riding
        self._learned = learned
        self._cost = cost
        self._scale = scale
        self._length = length
        self._cautious = cautious
        self._ledger = Ledger(expected, RISK if cautious else SHARE)
        self._copied = Draft()
        self._rate = 0.0
        self._lost = 0
        self._hits, self._tries = GUESSED * 4.0, 4.0
        self._fell, self._hazard = CAUTION * WEIGHT, WEIGHT
        self._followed: tuple[int, int, int] | None = None

    def propose(self, limit: int) -> Draft:
        self._copied = copied = self._copy.propose(limit)
        self._followed = None
        self._rate = self._worth(copied, limit)
        guesses = self._affordable()
        if guesses < STAKE or self._rate >= self._learned.rate():
            return copied
        draft = self._learned.write(limit, self._resume, guesses)
        if not draft.tokens:
            return copied
        if self._riding and copied.region < 0:
            return replace(draft, branches=riding(draft, copied, self._riding))
        return draft

    def _affordable(self) -> int:
        """How many guesses may be asked for now."""
        ledger, step = self._ledger, self._learned.step
        reserve = self._cost(1) if self._cautious else 0.0
        most = min(LONGEST, int((ledger.free - reserve) / step))
        if self._lost >= (STUCK if self._cautious else LONG) and ledger.paid:
            unproven = int(ledger.part(STUCK_RISK) / step) if self._cautious else UNPROVEN
            most = max(most, min(UNPROVEN, unproven))
        return most

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        copied = self._copied
        held = _held(copied, tokens)
        self._settle(draft, tokens, held)
        self._judge(draft, tokens)
        if copied.region < 0 and (copied.tokens or copied.branches):
            self._hits = self._hits * AGED + held
            self._tries = self._tries * AGED + 1.0
        self._lost = 0 if copied.region >= 0 or held else self._lost + 1
        # Copying hears what its own draft was worth, whether or not it was the one scored.
        self._copy.observe(tokens, copied, held)
        self._learned.observe(tokens, draft, accepted)
        self._copied = Draft()

    def learn(self, tokens: Sequence[int], tops: Sequence[Sequence[int]]) -> None:
        """Pass on what else the target considered."""
        if isinstance(self._copy, Learner):
            self._copy.learn(tokens, tops)

    def _settle(self, draft: Draft, tokens: Sequence[int], held: int) -> None:
        """Note what the pass took, and what a learned draft brought that copying, which would
        have brought `held` tokens, would not: a token of the chain is worth what copying takes for
        one in edits, a token copied behind the chain no more than its row."""
        cost, rows = self._cost, _rows(draft)
        asking = self._learned.spent
        self._ledger.passed(cost(rows) + asking)
        if not asking:
            return
        alone = cost(_rows(self._copied))
        if draft.region != LEARNED:
            self._ledger.settle(-asking)  # nothing came of it
            return
        length = draft.match
        more = min(_held(draft, tokens), length) - held
        chain = cost(rows - (len(draft.tokens) - length))
        self._ledger.settle(more / self._rate + alone - chain - asking)

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
        """What copying would go on with behind the chain, if it were in step there."""
        copied = self._copy.foresee(chain, FOLLOW)
        length = self._length(copied)
        if not length:
            return (), ()
        self._followed = len(chain), length, copied.match
        scale = self._fell / self._hazard
        return copied.tokens[:length], [survival(copied.match + i, scale) for i in range(length)]

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


def _rows(draft: Draft) -> int:
    """Rows of the pass that scores a draft."""
    return 1 + len(draft.tokens) + sum(len(branch.tokens) for branch in draft.branches)


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
