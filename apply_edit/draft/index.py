"""Where the last tokens of the output stood before: n-gram anchors over several sequences.

Each sequence keeps, for a few lengths n, a table from n-gram to the places behind it in order.
Adding a token costs one table entry per length; a question costs one look-up per length and a
bisection, never a scan. Longer matches are found by walking backwards from an anchor, at most
`DEPTH` tokens.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from apply_edit.decode.types import Source

LENGTHS = (1, 2, 4, 8)
"""Anchor lengths. Between two of them the backward walk finds the exact length of a match."""
DEPTH = 32
"""No match is measured further back than this: longer ones are all equally good."""
AHEAD, BEHIND = 2, 1
"""Anchors tried per length on either side of the place expected."""


@dataclass(frozen=True, slots=True)
class Match:
    """The last `length` tokens of the output stand right before `place` in `reference`."""

    reference: Reference
    place: int
    length: int


class Reference:
    """One sequence of tokens that the output may repeat, all from one source.

    It is indexed as far as it goes when it is first searched, and from there on as it grows.
    `operations` counts table entries made, anchors looked up and tokens compared (for tests).
    """

    __slots__ = ("_counts", "_indexed", "_places", "operations", "source", "tokens")

    def __init__(self, source: Source, tokens: Sequence[int] = ()) -> None:
        self.source = source
        self.tokens: list[int] = list(tokens)
        self.operations = 0
        self._indexed = 0
        self._places: list[dict[tuple[int, ...], list[int]]] = [{} for _ in LENGTHS]
        self._counts: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.tokens)

    def count(self, token: int) -> int:
        """How often `token` stands in this sequence: a newline says less than a name."""
        self._index()
        return self._counts.get(token, 0)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens."""
        self.tokens += tokens

    def _index(self) -> None:
        tokens = self.tokens
        if self._indexed == len(tokens):
            return
        for end in range(self._indexed + 1, len(tokens) + 1):
            token = tokens[end - 1]
            self._counts[token] = self._counts.get(token, 0) + 1
            for table, length in zip(self._places, LENGTHS, strict=True):
                if end < length:
                    break
                table.setdefault(tuple(tokens[end - length : end]), []).append(end)
                self.operations += 1
        self._indexed = len(tokens)

    def find(self, context: Sequence[int], near: int, fewest: int = 3) -> list[Match]:
        """Places behind which the end of `context` stood: longest first, then nearest ahead.

        `near` is the place expected. Shorter anchors are tried until `fewest` places are known.
        A place at the very end of the sequence continues with nothing and is left out.
        """
        self._index()
        found: dict[int, int] = {}
        for table, length in zip(reversed(self._places), reversed(LENGTHS), strict=True):
            if len(context) < length:
                continue
            self.operations += 1
            places = table.get(tuple(context[-length:]))
            if places is None:
                continue
            # Only the last place may be the end of the sequence.
            known = len(places) - (places[-1] == len(self.tokens))
            middle = bisect_left(places, near, 0, known)
            for place in places[max(0, middle - BEHIND) : min(known, middle + AHEAD)]:
                if place not in found:
                    found[place] = self._measure(context, place, length)
            if len(found) >= fewest:
                break
        ranked = sorted(found.items(), key=lambda item: (-item[1], *distance(item[0], near)))
        return [Match(self, place, length) for place, length in ranked]

    def _measure(self, context: Sequence[int], place: int, length: int) -> int:
        """How many tokens before `place` agree with the end of `context` (`length` surely do)."""
        tokens = self.tokens
        most = min(DEPTH, place, len(context))
        while length < most and tokens[place - length - 1] == context[-length - 1]:
            length += 1
        self.operations += length
        return length


def distance(place: int, near: int) -> tuple[bool, int]:
    """Sort key of nearness: what lies ahead of `near` first, then by how far."""
    return (place < near, abs(place - near))
