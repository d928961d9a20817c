"""A place in a reference that the output follows: kept while it agrees, found again after an edit.

While the output repeats the reference, the pointer walks along. At the first other token it is
lost: it keeps its place and moves only once what follows is enough evidence for another one. How
much is enough grows with the distance, and common tokens (newlines, indentation, brackets) are
weak evidence, so that a lone newline never throws the pointer far away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log2

from apply_edit.draft.index import Match, Reference, distance

PLAIN_BITS = 9.0
"""A token this surprising (in bits) counts as one whole token of evidence; commoner ones less."""
NEAR = 0.7
"""Evidence (in tokens) that moves the pointer to the place where it would be expected."""
FARTHER = 0.45
"""More evidence asked for each doubling of the distance."""
BACKWARDS = 3.0
"""More evidence asked to go backwards, over what the output has repeated already."""
FAR = 32
"""A resync further away than this, or backwards, may be a moved block: the place left is kept."""
SURE = 12
"""Tokens that must agree after a far resync before its first mismatch leaves the pointer there."""
GONE = 48
"""Tokens that must agree after a far resync before the place left behind is forgotten."""
SHORT = 6
"""Longer replacements are rewrites, not renames: they are not expected to come again."""
PROVEN = 2
"""Times in a row that a replacement must have come before it is drafted."""


@dataclass(slots=True)
class Substitution:
    """Tokens that the output has put in place of `old`; `streak` counts its last times in a row."""

    old: tuple[int, ...]
    new: tuple[int, ...]
    streak: int = 1


class Pointer:
    """Follows one reference. `home` is the place expected next (an index into its tokens).

    `matched` counts tokens agreed since the last resync (0 while lost); `strayed` counts tokens
    since the pointer got lost (0 while in step); `left` holds places left by a far resync.
    Renames and new indentation repeat: a replacement once seen is recognised at its first token,
    and drafted once it has come `PROVEN` times in a row.
    """

    __slots__ = ("_pending", "_substitutions", "home", "left", "matched", "reference", "strayed")

    def __init__(self, reference: Reference, matched: int, *, lost: bool = False) -> None:
        self.reference = reference
        self.home = 0
        self.matched = matched
        self.strayed = int(lost)
        self.left: list[int] = []
        self._pending: list[int] = []
        self._substitutions: dict[int, Substitution] = {}

    def fork(self) -> Pointer:
        """A pointer at the same place, in the same reference, that goes its own way."""
        other = Pointer(self.reference, self.matched)
        other.home, other.strayed = self.home, self.strayed
        other.left, other._pending = self.left[:], self._pending[:]
        other._substitutions = {old: replace(s) for old, s in self._substitutions.items()}
        return other

    @property
    def ready(self) -> bool:
        """Whether the pointer is in step and has tokens to offer."""
        return not self.strayed and (self.home < len(self.reference) or bool(self._pending))

    def ahead(self, limit: int) -> list[int]:
        """Up to `limit` tokens expected next; sensible only while in step."""
        tokens = self.reference.tokens
        chain = self._pending[:]
        place = self.home
        proven = [s for s in self._substitutions.values() if s.streak >= PROVEN]
        if not proven:
            return (chain + tokens[place : place + limit])[:limit]
        known = {s.old[0]: s for s in proven}
        while place < len(tokens) and len(chain) < limit:
            found = known.get(tokens[place])
            if found is not None and self._stands(found, place):
                chain += found.new
                place += len(found.old)
            else:
                chain.append(tokens[place])
                place += 1
        return chain[:limit]

    def step(self, context: Sequence[int]) -> None:
        """The last token of `context` was just emitted."""
        if not self.strayed:
            if self._agrees(context[-1]):
                return
            if self.left and self.matched < SURE:
                # Lost again so soon: the far resync was a coincidence.
                self.home = self.left.pop()
        self.strayed += 1
        self.matched = 0
        for match in self.matches(context):
            if self.trusts(match):
                self._move(match, context)
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
        if not behind:
            # A replacement of equal length resumes `strayed` further on: no distance at all.
            gap = min(gap, abs(gap - self.strayed))
        needed = NEAR + FARTHER * log2(1 + gap) + (BACKWARDS if behind else 0.0)
        return match.length >= needed and self.weight(match) >= needed

    def weight(self, match: Match) -> float:
        """The match in whole tokens of evidence: rare tokens count 1, common ones less."""
        reference = self.reference
        size = len(reference) + 1
        total = 0.0
        for token in reference.tokens[match.place - match.length : match.place]:
            total += min(1.0, log2(size / reference.count(token)) / PLAIN_BITS)
        return total

    def _agrees(self, token: int) -> bool:
        """Whether the pointer is still in step behind `token`."""
        if self._pending:
            if self._pending[0] == token:
                del self._pending[0]
                self.matched += 1
                return True
            self._pending.clear()
            return False
        if self.home >= len(self.reference):
            return False
        expected = self.reference.tokens[self.home]
        known = self._substitutions.get(expected)
        if expected == token:
            self.home += 1
            self.matched += 1
            if self.matched > GONE:
                self.left.clear()
            if known is not None:
                known.streak = 0
            return True
        if known is not None and known.new[0] == token and self._stands(known, self.home):
            known.streak += 1
            self.home += len(known.old)
            self.matched = min(self.matched + 1, SURE)
            self._pending = list(known.new[1:])
            return True
        return False

    def _stands(self, known: Substitution, place: int) -> bool:
        return tuple(self.reference.tokens[place : place + len(known.old)]) == known.old

    def _move(self, match: Match, context: Sequence[int]) -> None:
        """Resync at the match, remembering what replaced what, and the place left if it is far."""
        home = self.home
        if match.length < self.strayed:
            new = tuple(context[-self.strayed : -match.length])
            old = tuple(self.reference.tokens[home : max(home, match.place - match.length)])
            if 0 < len(new) <= SHORT and 0 < len(old) <= SHORT:
                self._substitutions[old[0]] = Substitution(old, new)
        behind, gap = distance(match.place, home)
        if behind or gap > FAR:
            self.left = [*self.left[-1:], home]
        self.home = match.place
        self.matched = match.length
        self.strayed = 0
