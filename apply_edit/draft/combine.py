"""Copying and a learned draft together: whichever promises more tokens per second drafts.

Where a pointer is in step copying costs nothing and wins. Inside an edit the model writes, until
copying would be in step again behind its chain: from there the copy rides in the same pass. Many
edits are over before a draft could pay, and copying's own guesses are free; so a drafter works on
account. What copying alone would have taken is known, since its passes are carried on beside the
real ones, and a draft is asked for only as far as the run stays within a share of that if nothing
comes of it: either the pass holds all that copying's own would, or it can be paid for whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from apply_edit.decode.schedule import hazard, survival
from apply_edit.decode.types import Branch, Draft, Proposer, Schedule
from apply_edit.draft.baseline import Baseline, agreeing
from apply_edit.draft.chain import LEARNED, LONGEST, SIDE, ChainProposer

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
LOSS = 0.03
"""What of a run's time may be lost to a drafter."""
BOLD_LOSS = 0.3
"""What of it a drafter that was asked for by name may lose in long edits, where drafts pay."""
LONG = 2
"""Passes in a row that copying guessed nothing of: the edit is a long one."""


class Copying(Proposer, Protocol):
    """A proposer that knows what it would draft behind tokens which are not decided yet."""

    def foresee(self, tokens: Sequence[int], limit: int) -> Draft:
        """What `propose` would give if `tokens` came next, but no guesses; changes nothing."""
        ...


class CombinedProposer:
    """Copies where that brings most, and asks `learned` where it promises more.

    It is the schedule of its own drafts, too. `schedule` says how much of a copy is worth scoring,
    `cost(rows)` is a pass in milliseconds, and `scale(region)` is how much likelier than usual a
    copy of a region falls. `expected` are the milliseconds that a run takes before its first pass,
    and at least in its passes. By these costs no run takes more than the share `loss` longer than
    under copying alone, whatever is guessed; in long edits `long_loss` may be risked.
    """

    def __init__(
        self,
        copy: Copying,
        learned: ChainProposer,
        schedule: Schedule,
        cost: Callable[[int], float],
        scale: Callable[[int], float] = lambda region: 1.0,
        expected: tuple[float, float] = (0.0, 0.0),
        loss: float = LOSS,
        long_loss: float = LOSS,
    ) -> None:
        self._copy = copy
        self._learned = learned
        self._schedule = schedule
        self._cost = cost
        self._scale = scale
        self._before, self._least = expected
        self._loss, self._long_loss = loss, long_loss
        self._alone = Baseline(copy, schedule, cost)
        self._side = SIDE * cost(1)
        self._spent = 0.0
        self._lost = 0
        self._hits, self._tries = GUESSED * 4.0, 4.0
        self._fell, self._hazard = CAUTION * WEIGHT, WEIGHT
        self._followed: tuple[int, int, int] | None = None
        self._k = self._branches = 0

    @property
    def limit(self) -> int:
        """`Schedule.limit`: the longest copy that may be worth asking for."""
        return self._schedule.limit

    def choose(self, draft: Draft) -> int:
        """`Schedule.choose`, for the draft proposed last: settled when it was."""
        return self._k

    def record(self, draft: Draft, accepted: int, seconds: float) -> None:
        """Nothing is learnt here: copying's own passes are recorded as they are decided."""

    @property
    def gained(self) -> float:
        """Milliseconds that copying alone would have taken more so far (at least)."""
        return self._alone.spent - self._spent

    @property
    def purse(self) -> float:
        """Milliseconds that may be lost now: the run's share, and what was gained."""
        run = self._before + max(self._least, self._alone.spent)
        loss = self._long_loss if self._lost >= LONG else self._loss
        return loss * run + self.gained

    def propose(self, limit: int) -> Draft:
        self._followed = None
        for done in self._alone.catch_up(limit):
            self._count(done.draft, done.held)
        self._branches = len(self._alone.rest.branches)
        copied, self._k = self._copied(limit)
        if self._lost or self.gained > 0.0:
            guesses = self._affordable()
            # Most edits are a token or two: until something was gained, copying begins them.
            if guesses and self._worth(copied.cut(self._k)) < self._learned.rate():
                draft = self._learned.write(limit, self._resume, guesses)
                if draft.tokens:
                    self._k = len(draft.tokens)
                    return self._beside_copying(draft)
        return copied

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        more = max(0, len(draft.branches) - self._branches)
        self._spent += self._cost(draft.rows) + more * self._side + self._learned.spent
        self._judge(draft, tokens)
        self._alone.observe(tokens)
        self._learned.observe(tokens, draft, accepted)

    def learn(self, tokens: Sequence[int], tops: Sequence[Sequence[int]]) -> None:
        """Pass on what else the target considered."""
        self._alone.learn(tokens, tops)

    def _count(self, draft: Draft, held: int) -> None:
        """A pass of copying's own was decided."""
        guessed = draft.region < 0
        if guessed and draft.rows > 1:
            self._hits = self._hits * AGED + held
            self._tries = self._tries * AGED + 1.0
        self._lost = self._lost + 1 if guessed and not held else 0

    def _copied(self, limit: int) -> tuple[Draft, int]:
        """What copying's own pass still drafts, or a copy that knows more and holds it, too; and
        how many tokens of its chain are worth scoring."""
        rest = self._alone.rest
        following = self._alone.following
        tokens = rest.tokens if following is None else (*rest.tokens, following)
        own = replace(rest, tokens=tokens), len(rest.tokens)
        if not self._alone.known:
            return own
        copied = self._copy.foresee(self._alone.known, limit)
        # Only if it costs no more than copying's own pass, or can be paid for.
        most = max(self._cost(rest.rows), self._alone.price + self.purse)

        def price(k: int) -> float:
            draft = _covering(copied.cut(k), rest)
            more = max(0, len(draft.branches) - len(rest.branches))
            return self._cost(draft.rows) + more * self._side

        k = bisect_right(range(1, self._schedule.choose(copied) + 1), most, key=price)
        return (_covering(copied, rest, k), k) if k else own

    def _affordable(self) -> int:
        """How many guesses may be asked for though nothing may come of them."""
        left = self._spare
        rows = self._alone.rest.rows + self._learned.sides
        for count in range(min(LONGEST, int(left / self._learned.step)), 0, -1):
            if count * self._learned.step + self._cost(rows + count) <= left:
                return count
        return 0

    @property
    def _spare(self) -> float:
        """Milliseconds that a pass with a chain may take, and its guesses: it has the chain's
        branches more than copying's own, and one for what copying would draft."""
        return self._alone.price + self.purse - (self._learned.sides + 1) * self._side

    def _beside_copying(self, draft: Draft) -> Draft:
        """A learned draft, and all that copying's own pass holds; unless that is not worth its
        rows, and the pass can be paid for whole."""
        whole = _covering(draft, self._alone.rest)
        price = self._cost(draft.rows)
        sides = len(draft.branches) * self._side
        if self._learned.spent + price + sides <= self.purse and self._alone.rest.region < 0:
            hoped = self._learned.doubt * self._hits / self._tries
            if hoped * price < (self._cost(whole.rows) - price) * (1.0 + draft.match):
                return draft
        return whole

    def _worth(self, draft: Draft) -> float:
        """Tokens per millisecond that a copying draft may bring."""
        if draft.region < 0:
            found = self._hits / self._tries if draft.rows > 1 else 0.0
            return (1.0 + found) / self._cost(draft.rows)
        scale = self._scale(draft.region)
        side = draft.rows - len(draft.tokens)
        alive = expected = 1.0
        best = 1.0 / self._cost(side)
        for k in range(1, len(draft.tokens) + 1):
            alive *= survival(draft.match + k - 1, scale)
            expected += alive
            best = max(best, expected / self._cost(side + k))
        return best

    def _resume(self, chain: Sequence[int]) -> tuple[Sequence[int], Sequence[float]]:
        """What copying would go on with behind the chain, if it were in step there."""
        copied = self._copy.foresee([*self._alone.known, *chain], FOLLOW)
        length = self._schedule.choose(copied)
        # A wide pass that brings nothing has to be paid for, too.
        rows = self._alone.rest.rows + self._learned.sides + len(chain)
        left = self._spare - len(chain) * self._learned.step
        while length and self._cost(rows + length) > left:
            length -= 1
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
        held = agreeing(draft.tokens, tokens) - length
        if rows > 0 and held >= 0:
            fell = held < rows
            self._fell += fell
            self._hazard += sum(hazard(match + i) for i in range(held + fell))


def _covering(draft: Draft, other: Draft, k: int | None = None) -> Draft:
    """`draft`, and beside the first `k` tokens of its chain (None: all) whatever `other` holds."""
    scored = draft if k is None else draft.cut(k)
    return replace(draft, branches=beside(scored, other))


def beside(draft: Draft, other: Draft) -> tuple[Branch, ...]:
    """The branches of `draft`, and all paths of `other` from where they leave its chain.

    >>> beside(Draft((1, 2), "draft"), Draft((1, 5, 6)))
    (Branch(fork=1, tokens=(5, 6), source='copy'),)
    """
    found = list(draft.branches)
    paths = [(other.source, other.tokens)]
    paths += [(b.source, (*other.tokens[: b.fork], *b.tokens)) for b in other.branches]
    for source, path in paths:
        fork = agreeing(path, draft.tokens)
        tokens = path[fork:]
        if not tokens:
            continue
        for place, known in enumerate(found):
            shorter = min(len(known.tokens), len(tokens))
            if known.fork == fork and agreeing(known.tokens, tokens) == shorter:
                # The same guess, but it may know how to go on.
                if len(known.tokens) < len(tokens):
                    found[place] = Branch(fork, tokens, source)
                break
        else:
            found.append(Branch(fork, tokens, source))
    return tuple(found)
