"""What followed before: for each context, the last few tokens that came after it, latest first.

The table is token recycling's adjacency (Luo et al. 2024), with longer contexts beside single
tokens: it starts from the n-grams of the file and the edit, follows the output, and takes in the
target's own runner-up choices, which cost nothing since the pass has computed them anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apply_edit.draft.index import Reference

ORDERS = (8, 4, 2, 1, 0)
"""Context lengths, tried from the longest. Order 0 skips the last token and looks at the one
before it: all that can be said behind a word never seen."""
WIDTH = 8
"""Successors kept per context: the ninth latest is right less than once in a hundred."""

_Place = tuple[Reference, int]
_Entry = dict[int, "_Place | None"]


@dataclass(frozen=True, slots=True)
class Successor:
    """A token that followed a context of `order` tokens before.

    `rank` counts the later ones of the same order before it. `reference` and `place` say where
    the token stands, so that the run behind it can be drafted too; None for a choice of the
    target that no text holds.
    """

    token: int
    order: int
    rank: int
    reference: Reference | None = None
    place: int = 0


class Successors:
    """The adjacency table; filled from the texts it follows and by `learn` from the target."""

    __slots__ = ("_tables", "_texts")

    def __init__(self) -> None:
        self._texts: list[tuple[Reference, int]] = []
        # Insertion order is age: the last entry of a context is its latest successor.
        self._tables: list[dict[tuple[int, ...], _Entry]] = [{} for _ in ORDERS]

    def follow(self, reference: Reference) -> None:
        """Take in a reference and all that it grows by. Later ones come before earlier ones."""
        self._texts.append((reference, 0))

    def _extend(self, reference: Reference, start: int) -> None:
        tokens = reference.tokens
        for place in range(start, len(tokens)):
            token = tokens[place]
            for table, order in zip(self._tables, ORDERS, strict=True):
                key = _context(tokens, place, order)
                if key is None:
                    continue
                entry = table.get(key)
                if entry is None:
                    table[key] = {token: (reference, place)}
                    continue
                entry.pop(token, None)
                entry[token] = (reference, place)
                if len(entry) > WIDTH:
                    del entry[next(iter(entry))]

    def _catch_up(self) -> None:
        # Only now: while a pointer is in step nobody asks, and most tokens pass by unasked.
        for index, (reference, known) in enumerate(self._texts):
            if known < len(reference):
                self._extend(reference, known)
                self._texts[index] = (reference, len(reference))

    def learn(self, token: int, tops: Sequence[int]) -> None:
        """The target's best choices after `token` were `tops`, best first.

        They rank behind what text says already, and push none of it out.
        """
        self._catch_up()
        table = self._tables[ORDERS.index(1)]
        entry = table.get((token,), {})
        fresh = [top for top in tops if top not in entry][: WIDTH - len(entry)]
        if fresh:
            older: _Entry = dict.fromkeys(reversed(fresh))
            table[(token,)] = {**older, **entry}

    def after(self, context: Sequence[int]) -> Iterator[Successor]:
        """Distinct tokens that followed the end of `context`, longest context first."""
        self._catch_up()
        seen: set[int] = set()
        for table, order in zip(self._tables, ORDERS, strict=True):
            key = _context(context, len(context), order)
            entry = None if key is None else table.get(key)
            if not entry:
                continue
            for rank, (token, place) in enumerate(reversed(entry.items())):
                if token in seen:
                    continue
                seen.add(token)
                if place is None:
                    yield Successor(token, order, rank)
                else:
                    yield Successor(token, order, rank, *place)


def _context(tokens: Sequence[int], place: int, order: int) -> tuple[int, ...] | None:
    """The context of this order before `place`; None where too little stands there."""
    if order == 0:
        return (tokens[place - 2],) if place >= 2 else None
    return tuple(tokens[place - order : place]) if place >= order else None
