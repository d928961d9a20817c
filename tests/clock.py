"""A clock of the tests' own."""

from __future__ import annotations


class Clock:
    """Each look takes a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now
