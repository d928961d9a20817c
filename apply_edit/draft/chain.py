"""How far a drafter goes on: a chain of its guesses, as long as tokens per second grow.

Each further guess costs the drafter's own pass and a row of the verifying one, and pays only if
all before it hold. The chance that a guess holds is what it was for guesses of like confidence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from time import perf_counter

from apply_edit.decode.types import Branch, Draft
from apply_edit.draft.drafter import Drafter, Guess

LEARNED = -2
"""The region of drafts that a model wrote."""
EDGES = (0.3, 0.5, 0.7, 0.85, 0.95, 0.99)
"""Guesses are counted by confidence between these."""
STRENGTH = 6.0
"""How many trials the starting chance of a confidence counts for."""
LONGEST = 16
"""Guesses per chain: on the machines met, longer ones never paid."""
LOOK = 8
"""How many more guesses are thought ahead when deciding to go on."""
SHARE = 0.45
"""What a guess of the target's own weights costs in passes of the target."""
SIDE = 0.03
"""What a side branch costs beside its row, in passes of the target (its own attention)."""
AMORTISED = 8
"""Drafts over which the reading of unread tokens is spread: as many as a middling edit takes."""

Resume = Callable[[Sequence[int]], tuple[Sequence[int], Sequence[float]]]
"""Given a chain, tokens that may follow it and the chance of each to hold after all before it."""


class Confidence:
    """How often guesses of a stated chance held: a Beta estimate per interval of `EDGES`.

    `trust` (0 to 1) is how much likelier than stated a guess is thought to hold at first.
    """

    def __init__(self, trust: float) -> None:
        self._trust = trust
        self._hits = [0.0] * (len(EDGES) + 1)
        self._tries = [0.0] * (len(EDGES) + 1)
        self._recent = 0.5 + 0.5 * trust

    def of(self, chance: float) -> float:
        """The chance that a guess of stated `chance` holds."""
        place = bisect_right(EDGES, chance)
        start = chance + (1.0 - chance) * self._trust
        return (start * STRENGTH + self._hits[place]) / (STRENGTH + self._tries[place])

    @property
    def usual(self) -> float:
        """The chance that a guess of unknown confidence holds, recent ones weighing more."""
        return self._recent

    def add(self, chance: float, held: bool) -> None:
        place = bisect_right(EDGES, chance)
        self._tries[place] += 1.0
        self._hits[place] += held
        self._recent += 0.06 * (held - self._recent)


class ChainProposer:
    """Drafts what `drafter` writes behind `prompt` and the output.

    `cost(rows)` is a pass of the target in milliseconds. `k` fixes the chain's length; a guess is
    thought to cost `share` passes of the target until it was measured. At most `sides` branches
    hang from the chain. `clock` counts seconds.
    """

    def __init__(
        self,
        drafter: Drafter,
        prompt: Sequence[int],
        cost: Callable[[int], float],
        *,
        forbidden: Collection[int] = (),
        trust: float = 0.5,
        k: int | None = None,
        share: float = SHARE,
        sides: int = 1,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._drafter = drafter
        self._tokens = list(prompt)
        self._cost = cost
        self._forbidden = frozenset(forbidden)
        self._k = k
        self.sides = sides
        self._clock = clock
        self._confidence = Confidence(trust)
        self._asked: list[Guess] = []
        self._step = share * cost(1)
        self._measured = 0
        self.spent = 0.0
        """Milliseconds that the draft offered last took."""

    def propose(self, limit: int) -> Draft:
        return self.write(limit, None)

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        for token, guess in zip(tokens, self._asked, strict=False):
            self._confidence.add(guess.chance, guess.token == token)
            if guess.token != token:
                break
        self._asked = []
        self.spent = 0.0
        self._tokens.extend(tokens)

    def rate(self) -> float:
        """Tokens per millisecond that a chain begun now may bring."""
        reading = self._drafter.behind(self._tokens)
        spent = 0.0
        if reading:
            spent = self._step * (1.0 + reading / LONGEST) / AMORTISED
        return self._best(1.0, 1.0, spent, 0)

    @property
    def doubt(self) -> float:
        """The chance that a guess of unknown confidence falls."""
        return 1.0 - self._confidence.usual

    @property
    def step(self) -> float:
        """What a guess costs, in milliseconds."""
        return self._step

    def write(self, limit: int, resume: Resume | None, guesses: int = LONGEST) -> Draft:
        """A chain of at most so many guesses, and behind it what `resume` says may follow."""
        most = limit if self._k is None else min(limit, self._k)
        if most < 1:
            return Draft(region=LEARNED)
        try:
            return self._write(most, resume, min(guesses, LONGEST))
        finally:
            self._drafter.end()

    def _write(self, most: int, resume: Resume | None, guesses: int) -> Draft:
        confidence = self._confidence
        chain: list[int] = []
        alive = expected = 1.0
        reach: list[float] = []
        follow: Sequence[int] = ()
        guess = self._timed(lambda: self._drafter.begin(self._tokens), self._tokens)
        while guess is not None and guess.token not in self._forbidden:
            self._asked.append(guess)
            chain.append(guess.token)
            alive *= confidence.of(guess.chance)
            reach.append(alive)
            expected += alive
            if len(chain) >= most:
                break
            if self._k is None:
                follow, gain = self._following(chain, alive, resume, most - len(chain))
                rows = 1 + len(chain) + len(follow)
                spent = self._step * len(chain)
                stopping = (expected + gain) / (spent + self._cost(rows))
                going = self._best(alive, expected, spent, len(chain))
                if len(chain) >= guesses or stopping >= going:
                    break
                follow = ()
            token = guess.token
            guess = self._timed(lambda token=token: self._drafter.more(token))  # type: ignore[misc]
        if self._k is None:
            price = self._price(expected, len(chain))
            while reach and reach[-1] < price and not follow:
                reach.pop()
        tokens = (*chain[: len(reach)], *follow)
        branches = self._branches(reach) if self._k is None else ()
        return Draft(tokens, "draft", None, LEARNED, len(reach), branches)

    def _best(self, alive: float, expected: float, spent: float, length: int) -> float:
        """The best rate that up to `LOOK` further guesses of usual confidence would bring."""
        usual = self._confidence.usual
        best = 0.0
        for more in range(1, LOOK + 1):
            alive *= usual
            expected += alive
            spent += self._step
            best = max(best, expected / (spent + self._cost(1 + length + more)))
        return best

    def _price(self, expected: float, length: int) -> float:
        """The chance of acceptance that pays for one more row of the verifying pass."""
        rows = 1 + length
        whole = self._cost(rows) + self._step * length
        return (self._cost(rows + 4) - self._cost(rows)) / 4.0 * expected / whole

    def _following(
        self, chain: Sequence[int], alive: float, resume: Resume | None, most: int
    ) -> tuple[Sequence[int], float]:
        """What may follow the chain as far as its rows pay, and the tokens expected of it."""
        if resume is None or most < 1:
            return (), 0.0
        tokens, chances = resume(chain)
        price = self._price(1.0 + len(chain), len(chain))
        gain = 0.0
        for count, chance in enumerate(chances[:most]):
            alive *= chance
            if alive < price or tokens[count] in self._forbidden:
                return tokens[:count], gain
            gain += alive
        return tokens[: min(most, len(chances))], gain

    def _branches(self, reach: Sequence[float]) -> tuple[Branch, ...]:
        """The runners-up where the chain is likeliest to fall, as far as their rows pay."""
        found: list[tuple[float, Branch]] = []
        alive = 1.0
        for place, (guess, still) in enumerate(zip(self._asked, reach, strict=False)):
            left = 1.0 - guess.chance
            if guess.second is not None and guess.second not in self._forbidden and left > 0.0:
                worth = (alive - still) * min(1.0, guess.second_chance / left)
                found.append((worth, Branch(place, (guess.second,))))
            alive = still
        price = self._price(1.0 + sum(reach), len(reach)) + SIDE
        found.sort(key=lambda one: -one[0])
        return tuple(branch for worth, branch in found[: self.sides] if worth >= price)

    def _timed(
        self, ask: Callable[[], Guess | None], tokens: Sequence[int] | None = None
    ) -> Guess | None:
        """Ask for a guess and learn what one costs (catching up is not counted)."""
        reading = 0 if tokens is None else self._drafter.behind(tokens)
        started = self._clock()
        guess = ask()
        taken = (self._clock() - started) * 1000.0
        # What was read stays read: the drafts that follow have a part of it, too.
        self.spent += taken / AMORTISED if reading else taken
        if guess is not None and not reading:
            # The first builds kernels, and a machine at work makes outliers.
            self._measured += 1
            if self._measured == 1:
                return guess
            share = 0.5 if self._measured < 5 else 0.1
            self._step += share * (min(taken, 2.0 * self._step) - self._step)
        return guess
