"""The values that pass between target, proposer, schedule and loop. Knows no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

Source = Literal["copy", "update", "output", "draft", "target"]
"""Where output tokens come from: the original, the sketch or instruction, the output so far,
a learned draft, or the target itself (corrections, and bonus tokens that continue no source)."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A side chain of a draft tree: leaves the main chain after `fork` of its tokens.

    `fork=0` means an alternative to the first drafted token. Nodes of a branch form a chain.
    """

    fork: int
    tokens: tuple[int, ...]
    source: Source = "draft"


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens proposed to follow the output so far; a main chain and, perhaps, side chains.

    `sources[i]` is the source of `tokens[i]`. `origin` is the index in the reference (the
    original's tokens) of the first token when it was copied from there. `region` names the
    stretch whose acceptance history should decide how much of this draft is worth scoring;
    `match` is how many tokens of context agreed where it was found (0: a guess).
    """

    tokens: tuple[int, ...] = ()
    source: Source = "copy"
    origin: int | None = None
    region: int = 0
    match: int = 0
    branches: tuple[Branch, ...] = ()

    @property
    def rows(self) -> int:
        """Rows of the pass that scores it: its own, and the one before the first drafted token."""
        return 1 + len(self.tokens) + sum(len(branch.tokens) for branch in self.branches)

    def cut(self, k: int) -> Draft:
        """The same draft with at most `k` main tokens; branches that fork later go."""
        if k >= len(self.tokens):
            return self
        kept = tuple(b for b in self.branches if b.fork <= k)
        return Draft(self.tokens[:k], self.source, self.origin, self.region, self.match, kept)


class Scores(Protocol):
    """What one pass of the target says about its scored rows (row i predicts the token after i)."""

    def __len__(self) -> int: ...

    def greedy(self) -> list[int]:
        """The token of the greatest logit per row (the lowest id of equals)."""
        ...

    def row(self, index: int) -> Sequence[float]:
        """All logits of one row, as float32."""
        ...

    def top(self, index: int, count: int) -> list[int]:
        """The `count` tokens of greatest logits of one row, best first."""
        ...


class Target(Protocol):
    """The model that decides, as decode sees it: tokens in, scores out, a cache that is cut back.

    `length` counts the committed positions. `score` appends its rows after them without
    committing; `keep` commits a prefix of the main chain (and perhaps of one branch) and drops
    the rest. Rows of the pass: the main chain first, then each branch in order.
    """

    @property
    def length(self) -> int: ...

    @property
    def limit(self) -> int:
        """The most positions the context window holds."""
        ...

    def prefill(self, tokens: Sequence[int]) -> None:
        """Commit `tokens` without asking for scores (in chunks)."""
        ...

    def score(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> Scores:
        """Score one pass. `tokens[0]` is already decided; the rest is drafted.

        A branch with `fork=f` hangs below main row `first + f`. Rows before `first` are known
        context that rides along (the tail of the prompt): no scores are computed for them, and
        row 0 of the result is main row `first`.
        """
        ...

    def keep(self, rows: int, branch: int | None = None, branch_rows: int = 0) -> None:
        """Commit the first `rows` main rows of the last pass (context rows that rode along
        count), then `branch_rows` rows of `branch`."""
        ...

    def reset(self, length: int = 0) -> None:
        """Forget all committed positions past `length`."""
        ...


class Proposer(Protocol):
    """Whatever drafts. It is told every output token, and may be asked for a draft at any time."""

    def propose(self, limit: int) -> Draft:
        """Up to `limit` tokens that may come next. An empty draft is a fair answer."""
        ...

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        """The last pass emitted `tokens`; the first `accepted` of them were `draft`'s."""
        ...


@runtime_checkable
class Learner(Protocol):
    """A proposer that wants to see what else the target considered (token recycling)."""

    def learn(self, tokens: Sequence[int], tops: Sequence[Sequence[int]]) -> None:
        """After `tokens[i]`, the target's best choices were `tops[i]`, best first."""
        ...


class Schedule(Protocol):
    """How much of a draft is worth scoring."""

    @property
    def limit(self) -> int:
        """The longest draft that could be worth asking for now."""
        ...

    def choose(self, draft: Draft) -> int:
        """How many tokens of the draft's main chain to score (0: none)."""
        ...

    def record(self, draft: Draft, accepted: int, seconds: float) -> None:
        """`draft` (already cut) was scored: `accepted` of it held; the pass took `seconds`."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive output tokens from one source. `start` is an index into the output tokens."""

    source: Source
    tokens: tuple[int, ...]
    start: int
    origin: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One pass and what came of it.

    `drafted` counts rows drafted (main chain and branches), `accepted` those that held,
    `rejected` holds the main chain's tokens that fell. `seconds` is the wall time of the pass,
    `draft_seconds` the time the proposer and schedule took before it.
    """

    runs: tuple[Run, ...]
    rows: int
    drafted: int
    accepted: int
    rejected: tuple[int, ...]
    k: int
    context: int
    seconds: float
    draft_seconds: float
    finish: Finish | None = None
    sources: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Per source: (drafted, accepted)."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """The output tokens of this step, in order."""
        return tuple(t for run in self.runs for t in run.tokens)


Finish = Literal["stop", "length", "loop", "cancelled"]
"""Why decoding ended: end of text, budget, a watch that saw a loop, or the caller."""
