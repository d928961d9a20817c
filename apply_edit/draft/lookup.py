"""Draft by copying: from the file, from a predicted merge, and from all else that was said before.

Two pointers follow the original and, when there is one, the predicted merge. Where both are lost
the end of the output is looked up in every sequence at hand (original, sketch, instruction, output
so far), and the likeliest continuations become a short chain with side branches.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from apply_edit.decode.types import Draft, Source
from apply_edit.draft.index import Reference
from apply_edit.draft.pointer import Pointer

OPENING = 12
"""An answer nearly always begins as the file does: worth this many agreeing tokens."""
REGION = 128
"""Tokens of the original that share an acceptance history."""
GUESS = -1
"""The region of all drafts that no pointer in step stands behind."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Tokens that may come next: those of `reference` from `place` on, with their chances.

    `chance` is that of the first token; `match` what the hazard of the later ones starts from.
    """

    reference: Reference
    place: int
    chance: float
    match: int
    kind: str = ""

    @property
    def first(self) -> int:
        return self.reference.tokens[self.place]


class CopyProposer:
    """Drafts copies of `original`; behind its last token, `closing` (the template's closing tag).

    `predicted` is the output expected from a sketch: when given it is drafted first. `update` and
    `instruction` are the edit's tokens, looked up where the pointers are lost. Drafts hold no
    token of `forbidden`. `free` is how many rows a pass may have at about the cost of one.
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
        free: int = 8,
    ) -> None:
        self._forbidden = frozenset(forbidden)
        self._free = free
        self._output = Reference("output")
        self._original = Pointer(Reference("copy", [*original, *closing]), OPENING)
        self._pointers = [self._original]
        if predicted is not None:
            merge = Reference("update", [*predicted, *closing])
            self._pointers.insert(0, Pointer(merge, OPENING))
        self._extra = [Reference("update", part) for part in (update, instruction) if part]

    def propose(self, limit: int) -> Draft:
        for pointer in self._pointers:
            if not pointer.lost and pointer.home < len(pointer.reference):
                return self._follow(pointer, limit)
        return self._guess(limit)

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        output = self._output
        for token in tokens:
            output.extend((token,))
            for pointer in self._pointers:
                pointer.step(output.tokens)

    def _follow(self, pointer: Pointer, limit: int) -> Draft:
        place = pointer.home
        tokens = self._allowed(pointer.reference.tokens[place : place + limit])
        source: Source = pointer.reference.source
        origin = None
        home = self._original.home
        if pointer is not self._original and self._agrees(tokens, home):
            source = "copy"
        if source == "copy":
            origin = home
        region = home // REGION + (0 if pointer is self._original else 1 << 20)
        return Draft(tokens, source, origin, region, pointer.matched)

    def _agrees(self, tokens: Sequence[int], home: int) -> bool:
        known = self._original.reference.tokens
        return tuple(known[home : home + len(tokens)]) == tuple(tokens)

    def _guess(self, limit: int) -> Draft:
        candidates = self._candidates()
        if not candidates:
            return Draft(region=GUESS)
        best = candidates[0]
        length = 4 if best.match < 2 else 8 if best.match < 4 else limit
        tokens = self._allowed(best.reference.tokens[best.place :][: min(length, limit)])
        if not tokens:
            return Draft(region=GUESS)
        source = best.reference.source
        origin = best.place if source == "copy" else None
        return Draft(tokens, source, origin, GUESS, best.match)

    def _candidates(self) -> list[Candidate]:
        context = self._output.tokens
        found: list[Candidate] = []
        for pointer in self._pointers:
            found += [
                Candidate(m.reference, m.place, 0.0, m.length, "point")
                for m in pointer.matches(context)
            ]
        for reference in (self._output, *self._extra):
            found += [
                Candidate(m.reference, m.place, 0.0, m.length, "gram")
                for m in reference.find(context, len(reference))
            ]
        found.sort(key=lambda c: -c.match)
        return found

    def _allowed(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """The tokens before the first forbidden one."""
        if self._forbidden.isdisjoint(tokens):
            return tuple(tokens)
        for index, token in enumerate(tokens):
            if token in self._forbidden:
                return tuple(tokens[:index])
        return tuple(tokens)
