"""Places for requests that are answered at once: so many, and no more than memory has room for."""

from __future__ import annotations

from apply_edit.session import Session
from apply_edit.target.codec import Slotted

PART = 0.5
"""Of the memory that is free when the second seat is wanted, so much may go to keys and values."""


class Seats:
    """Sessions on one model's weights, at most `most`, each with a cache of its own.

    The first is `session`, which outlives the others; it loads the weights. A seat that is left
    gives back its memory. `room` bounds the bytes of keys and values of all but the first (None:
    a part of what is free).
    """

    def __init__(
        self, session: Session, backend: Slotted, most: int, room: int | None = None
    ) -> None:
        self._first = session
        self._backend = backend
        self._most = most
        self._room = room
        self._taken: dict[int, Session] = {}
        self._bytes: dict[int, int] = {}

    def take(self, number: int, positions: int) -> Session | None:
        """A seat for request `number`, whose prompt and answer have so many positions.

        None while there is no room. Where nobody sits there always is.
        """
        if len(self._taken) >= self._most:
            return None
        if self._first not in self._taken.values():
            self._taken[number] = self._first
            return self._first
        needed = self._backend.slot_bytes(positions)
        if sum(self._bytes.values()) + needed > self._limit():
            return None
        session = Session(self._first.backend, slot=self._backend.slot(positions))
        self._taken[number] = session
        self._bytes[number] = needed
        return session

    def leave(self, number: int) -> None:
        """Request `number` has ended (or never had a seat)."""
        self._taken.pop(number, None)
        self._bytes.pop(number, None)

    def taken(self) -> list[Session]:
        """The sessions that may hold the beginning of another prompt."""
        return [self._first, *(s for s in self._taken.values() if s is not self._first)]

    def close(self) -> None:
        """All seats are left."""
        self._taken.clear()
        self._bytes.clear()
        self._first.requests = 1

    def _limit(self) -> float:
        if self._room is None:
            free = self._backend.free_bytes()
            if free is None:
                return float("inf")
            self._room = int(PART * free)
        return self._room
