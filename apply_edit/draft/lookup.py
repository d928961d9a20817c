"""Draft by copying: from the file, from a predicted merge, and from all else that was said before.

Pointers follow the original, the sketch and the predicted merge. Where all are lost, the end of
the output is looked up in everything at hand, and the likeliest continuations become a small tree.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from apply_edit.decode.types import Draft, Source
from apply_edit.draft.guess import Candidate, Chances, candidates, tree
from apply_edit.draft.index import Reference
from apply_edit.draft.pointer import Pointer
from apply_edit.draft.recycle import Successors

OPENING = 12
"""An answer nearly always begins as the file does: worth this many agreeing tokens, and more in a
long file, which has the more tokens between two edits."""
OPENING_MOST = 60
PREDICTED = 128
"""How many agreeing tokens a predicted merge counts for from the start."""
TRUST = 5
"""A pointer in step is where it was expected to be: worth this many agreeing tokens more."""
REGION = 128
"""Tokens of a reference that share an acceptance history."""
KNOWN = 8
"""Agreeing tokens after which the sketch is believed rather than the file where both go on."""
GUESS = -1
"""The region of all drafts that no pointer in step stands behind."""
FREE = 12
"""Rows of a pass that cost little more than one on the CPUs measured."""
PRICE = 0.04
"""The chance of acceptance that pays for a row there (a row adds 2.6 % of a narrow pass)."""
CONTEXT = 40
"""Output tokens that a place is compared with: more than any match is measured back."""
CONSIDERED = 12
"""Candidates kept per guess; the thirteenth is hardly ever worth a row."""


class CopyProposer:
    """Drafts copies of `original`; behind its last token, `closing` (the template's closing tag).

    `predicted` is the output expected from a sketch: when given it is drafted first. `update` and
    `instruction` are the edit's tokens: the sketch is followed where the output enters it, the
    instruction is looked up in edits. Drafts hold no token of `forbidden`. A tree of guesses has
    up to about `free` rows, none of which is less likely than `price` to be accepted.

    >>> proposer = CopyProposer([5, 6, 7, 8], closing=[9])
    >>> proposer.propose(8).tokens
    (5, 6, 7, 8, 9)
    >>> proposer.observe([5, 1], proposer.propose(8), 1)  # 6 was replaced by 1
    >>> proposer.propose(8).tokens
    (7, 8)
    """

    def __init__(
        self,
        original: Sequence[int],
        closing: Sequence[int] = (),
        update: Sequence[int] = (),
        instruction: Sequence[int] = (),
        predicted: Sequence[int] | None = None,
        *,
        forbidden: Collection[int] = (),
        free: int = FREE,
        price: float = PRICE,
    ) -> None:
        self._forbidden = frozenset(forbidden)
        self._free = free
        self._price = price
        self._chances = Chances()
        self._asked: list[Candidate] = []
        self._output = Reference("output")
        file = Reference("copy", [*original, *closing])
        opening = min(OPENING_MOST, OPENING + len(original) // 16)
        self._original = Pointer(file, opening)
        # The original's pointer is the last of them.
        self._pointers = [self._original]
        if update:
            self._pointers.insert(0, Pointer(Reference("update", update), 0, lost=True))
        if predicted is not None:
            merge = Reference("update", [*predicted, *closing])
            self._pointers.insert(0, Pointer(merge, PREDICTED))
        self._sketch = len(self._pointers) - 2 if update else None
        self._successors = Successors()
        for text in (file, Reference("update", instruction), Reference("update", update)):
            self._successors.follow(text)
        self._successors.follow(self._output)

    def propose(self, limit: int) -> Draft:
        draft = self._follow(self._pointers, limit)
        return self._guess(limit) if draft is None else draft

    def foresee(self, tokens: Sequence[int], limit: int) -> Draft:
        """What would be drafted if `tokens` came next; empty if no pointer were in step then."""
        forks = [pointer.fork() for pointer in self._pointers]
        context = self._output.tokens[-CONTEXT:]
        for token in tokens:
            context.append(token)
            for pointer in forks:
                pointer.step(context)
        return self._follow(forks, limit) or Draft(region=GUESS)

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        if self._asked and tokens:
            self._score(tokens[0], draft)
        self._asked = []
        for token in tokens:
            self._output.extend((token,))
            for pointer in self._pointers:
                pointer.step(self._output.tokens)

    def learn(self, tokens: Sequence[int], tops: Sequence[Sequence[int]]) -> None:
        """After `tokens[i]` the target's best choices were `tops[i]`: guesses for later."""
        for token, choices in zip(tokens, tops, strict=True):
            self._successors.learn(token, choices)

    def _leader(self, pointers: Sequence[Pointer]) -> int | None:
        """The pointer to follow: the merge's, then the sketch's if it is sure, then the file's."""
        ready = [index for index, pointer in enumerate(pointers) if pointer.ready]
        for index in ready:
            pointer = pointers[index]
            if index != self._sketch or pointer.matched >= KNOWN or len(ready) == 1:
                return index
        return None

    def _follow(self, pointers: Sequence[Pointer], limit: int) -> Draft | None:
        leader = self._leader(pointers)
        if leader is None:
            return None
        pointer, original = pointers[leader], pointers[-1]
        tokens = self._allowed(pointer.ahead(limit))
        home = original.home
        copied = tuple(original.reference.tokens[home : home + len(tokens)]) == tokens
        source: Source = "copy" if copied else pointer.reference.source
        # Each pointer has its own histories; a region is a stretch of its reference.
        region = (leader << 32) + pointer.home // REGION
        match = pointer.matched + TRUST
        return Draft(tokens, source, home if copied else None, region, match)

    def _guess(self, limit: int) -> Draft:
        """A small tree of what the end of the output suggests; empty where nothing does."""
        context = self._output.tokens
        found = candidates(context, self._pointers, self._successors, self._chances)
        self._asked = found[:CONSIDERED]
        main, best, branches = tree(
            self._asked,
            price=self._price / self._chances.worth,
            rows=self._free - 1,
            longest=limit,
            allowed=self._allowed,
        )
        if best is None:
            return Draft(region=GUESS)
        origin = best.place if best.reference is self._original.reference else None
        return Draft(main, best.source, origin, GUESS, best.match, branches)

    def _score(self, token: int, draft: Draft) -> None:
        """Count what the last guess was worth, now that the token it was about is known."""
        firsts = set(draft.tokens[:1])
        firsts.update(branch.tokens[0] for branch in draft.branches if branch.fork == 0)
        hoped = sum(c.chance for c in self._asked if c.token in firsts)
        self._chances.judge(hoped, token in firsts)
        for candidate in self._asked:
            self._chances.add(candidate.kind, candidate.token == token)

    def _allowed(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """The tokens before the first forbidden one."""
        if self._forbidden.isdisjoint(tokens):
            return tuple(tokens)
        cut = next(i for i, token in enumerate(tokens) if token in self._forbidden)
        return tuple(tokens[:cut])
