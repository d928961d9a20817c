"""A place in a reference that the output follows: kept while it agrees, found again after an edit.

While the output repeats the reference, the pointer walks along. At the first other token it is
lost: it keeps its place and moves only once what follows is enough evidence for another one. How
much is enough grows with the distance, and common tokens (newlines, indentation, brackets) are
weak evidence, so that a lone newline never throws the pointer far away.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from apply_edit.draft.index import Match, Reference, distance

PLAIN_BITS = 8.0
"""A token this surprising (in bits) counts as one whole token of evidence; commoner ones less."""
FAR = 64
"""A resync further away than this, or backwards, may be a moved block: the place left is kept."""
SURE = 12
"""Tokens that must agree after a far resync before the place left behind it is given up."""


class Pointer:
    """Follows one reference. `home` is the place expected next (an index into its tokens).

    `matched` counts tokens agreed since the last resync (0 while lost); `strayed` counts tokens
    since the pointer got lost (0 while in step); `left` holds places left by a far resync.
    """

    __slots__ = ("home", "left", "matched", "reference", "strayed")

    def __init__(self, reference: Reference, matched: int) -> None:
        self.reference = reference
        self.home = 0
        self.matched = matched
        self.strayed = 0
        self.left: list[int] = []

    @property
    def lost(self) -> bool:
        """Whether the output has left the reference and not been found in it again."""
        return self.strayed > 0

    def step(self, context: Sequence[int]) -> None:
        """The last token of `context` was just emitted."""
        tokens = self.reference.tokens
        token = context[-1]
        if not self.strayed:
            if self.home < len(tokens) and tokens[self.home] == token:
                self.home += 1
                self.matched += 1
                if self.left and self.matched > SURE + FAR:
                    self.left.clear()
                return
            if self.left and self.matched < SURE:
                self.home = self.left.pop()
        self.strayed += 1
        self.matched = 0
        for match in self.matches(context):
            if self.trusts(match):
                self._move(match)
                return

    def matches(self, context: Sequence[int]) -> list[Match]:
        """Places that the end of `context` agrees with, around home and around places left."""
        found = self.reference.find(context, self.home)
        for place in self.left:
            known = {match.place for match in found}
            found += [m for m in self.reference.find(context, place, 1) if m.place not in known]
        return found

    def trusts(self, match: Match) -> bool:
        """Whether the match is evidence enough to move the pointer there."""
        behind, gap = distance(match.place, self.home)
        if any(0 <= match.place - place <= FAR for place in self.left):
            behind, gap = False, 0
        needed = 1.0 + log2(1 + gap) / 3 + (2.0 if behind else 0.0)
        return match.length >= needed and self.weight(match) >= needed

    def weight(self, match: Match) -> float:
        """The match in whole tokens of evidence: rare tokens count 1, common ones less."""
        reference = self.reference
        total = 0.0
        size = len(reference) + 1
        for token in reference.tokens[match.place - match.length : match.place]:
            total += min(1.0, log2(size / (reference.count(token) or 1)) / PLAIN_BITS)
        return total

    def _move(self, match: Match) -> None:
        behind, gap = distance(match.place, self.home)
        if behind or gap > FAR:
            self.left = [*self.left[-1:], self.home]
        self.home = match.place
        self.matched = match.length
        self.strayed = 0
