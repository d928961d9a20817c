"""What may come next where no pointer is in step: candidates with chances, and a tree of them.

The chances start from what replays of real edits showed and follow the run: each kind of
candidate counts how often it was right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from apply_edit.decode.types import Branch, Source
from apply_edit.draft.index import Reference
from apply_edit.draft.pointer import Pointer
from apply_edit.draft.recycle import Successors

Kind = tuple[str, int, int]
"""What a candidate rests on: ("point", match, rank), ("home", shift, strayed) or
("next", order, rank); the numbers are capped so that kinds stay few."""

POINT = (0.20, 0.30, 0.45, 0.55)
"""Chance of the token behind a match of 1, 2, 3, 4 and more tokens around the pointer's home."""
NEXT = {0: 0.10, 1: 0.28, 2: 0.42, 4: 0.65, 8: 0.90}
"""Chance of the latest successor of a context of so many tokens (0: the last one skipped)."""
RANKS = (1.0, 0.30, 0.20, 0.15, 0.10)
"""What a later rank keeps of the first one's chance."""
REPLACED = 0.16
"""Chance that the second token of an edit is the one behind a single replaced token."""
RESUMED = 0.03
"""The same later on, and for an insertion."""
RUN = (0.20, 0.35, 0.45, 0.52, 0.60, 0.68, 0.74, 0.80, 0.84, 0.86, 0.90, 0.92)
"""Chance that a run which has agreed for so many tokens agrees for one more."""
LIKELY = 0.5
"""A main chain this likely to hold may use more rows than are free."""
SIDE = 0.03
"""What a side branch has to promise beside its rows' price: it has an attention of its own, which
costs about so much of a pass."""
STRENGTH = 6.0
"""How many trials the starting chance of a kind counts for."""
PATIENCE = 4.0
"""How many right trees the whole of the chances is trusted for in advance."""
FADING = 0.97
"""What a tree keeps of the evidence before it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that may come next and, if it stands in a `reference`, the run from `place` on.

    `match` is how many tokens of context agree there.
    """

    token: int
    chance: float
    kind: Kind
    match: int
    reference: Reference | None = None
    place: int = 0

    @property
    def source(self) -> Source:
        return self.reference.source if self.reference is not None else "draft"


class Chances:
    """How often each kind of candidate is right: a Beta estimate around the starting chance."""

    __slots__ = ("_expected", "_hits", "_right", "_tries")

    def __init__(self) -> None:
        self._hits: dict[Kind, int] = {}
        self._tries: dict[Kind, int] = {}
        self._expected = 0.0
        self._right = 0.0

    @property
    def worth(self) -> float:
        """How many trees held the right token for one expected to, at most 1.

        Below 1 where all kinds promise too much at once, as when a file is rewritten throughout.
        """
        return min(1.0, (PATIENCE + self._right) / (PATIENCE + self._expected))

    def of(self, kind: Kind) -> float:
        hits, tries = self._hits.get(kind, 0), self._tries.get(kind, 0)
        return (_start(kind) * STRENGTH + hits) / (STRENGTH + tries)

    def add(self, kind: Kind, right: bool) -> None:
        """A candidate of this kind was right or wrong."""
        self._tries[kind] = self._tries.get(kind, 0) + 1
        if right:
            self._hits[kind] = self._hits.get(kind, 0) + 1

    def judge(self, expected: float, right: bool) -> None:
        """A tree was scored whose first tokens had the chance `expected` in all."""
        self._expected = self._expected * FADING + min(1.0, expected)
        self._right = self._right * FADING + right


def _start(kind: Kind) -> float:
    name, number, rank = kind
    if name == "point":
        return POINT[number - 1] / (1 + rank)
    if name == "home":
        return REPLACED if (number, rank) == (1, 1) else RESUMED
    return NEXT[number] * RANKS[rank]


def candidates(
    context: Sequence[int],
    pointers: Iterable[Pointer],
    successors: Successors,
    chances: Chances,
) -> list[Candidate]:
    """Distinct tokens that may follow `context`, likeliest first."""
    best: dict[int, Candidate] = {}

    def add(token: int, kind: Kind, match: int, reference: Reference | None, place: int) -> None:
        fresh = Candidate(token, chances.of(kind), kind, match, reference, place)
        known = best.get(token)
        if known is None:
            best[token] = fresh
        elif known.kind[0] != kind[0]:
            # Two kinds of evidence for one token: more than the better, less than both.
            both = 1.0 - (1.0 - fresh.chance) * (1.0 - known.chance)
            better = fresh if fresh.chance > known.chance else known
            best[token] = replace(better, chance=both)

    for pointer in pointers:
        reference = pointer.reference
        for rank, match in enumerate(pointer.matches(context)):
            kind = ("point", min(match.length, len(POINT)), min(rank, 2))
            add(reference.tokens[match.place], kind, match.length, reference, match.place)
        for shift in (0, 1):
            # Nothing agrees yet: an insertion goes on at home, a replacement behind it.
            place = pointer.home + shift
            if place < len(reference):
                kind = ("home", shift, min(pointer.strayed, 3))
                add(reference.tokens[place], kind, 0, reference, place)
    for after in successors.after(context):
        kind = ("next", after.order, min(after.rank, len(RANKS) - 1))
        add(after.token, kind, after.order, after.reference, after.place)
    return sorted(best.values(), key=lambda c: (-c.chance, c.token))


def tree(
    found: Sequence[Candidate],
    *,
    price: float,
    rows: int,
    longest: int,
    allowed: Callable[[Sequence[int]], tuple[int, ...]],
) -> tuple[tuple[int, ...], Candidate | None, tuple[Branch, ...]]:
    """The likeliest chain, its candidate, and side branches, about `rows` rows in all.

    `found` comes likeliest first. Rows are given out in order of their chance to be accepted,
    none below `price`. No chain is longer than `longest`; `allowed` cuts one before a token that
    must not be drafted.
    """
    lengths = [0] * len(found)
    open_ = {
        index: candidate.chance
        for index, candidate in enumerate(found)
        if not index or candidate.chance >= price + SIDE
    }
    spent = 0
    while open_ and longest > 0:
        index = max(open_, key=lambda i: (open_[i], -i))
        chance = open_.pop(index)
        if chance < price:
            break
        if spent >= rows and (index or chance < LIKELY):
            continue
        candidate = found[index]
        lengths[index] += 1
        spent += 1
        if candidate.reference is not None and lengths[index] < longest:
            agreed = min(candidate.match + lengths[index], len(RUN) - 1)
            open_[index] = chance * RUN[agreed]
    chains = []
    for candidate, length in zip(found, lengths, strict=True):
        chain = allowed(_run(candidate, length))
        if chain:
            chains.append((chain, candidate))
    if not chains:
        return (), None, ()
    (main, first), *others = chains
    return main, first, tuple(Branch(0, chain, c.source) for chain, c in others)


def _run(candidate: Candidate, length: int) -> Sequence[int]:
    if candidate.reference is None:
        return (candidate.token,)[:length]
    return candidate.reference.tokens[candidate.place : candidate.place + length]
