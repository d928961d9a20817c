"""Draft heads as a drafter: guesses from the target's last hidden state, at next to no cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from apply_edit.draft.drafter import Guess

State = TypeVar("State")


class Ahead(Protocol[State]):
    """What guesses ahead of the target: its state is a value, so a tree can go on from each."""

    @property
    def steps(self) -> int:
        """How many guesses in a row mean something."""
        ...

    def start(self, tokens: Sequence[int]) -> State | None:
        """The state before the last of all decided `tokens`; None where there is none, as
        before the first pass."""
        ...

    def step(self, state: State, token: int) -> tuple[State, list[tuple[int, float]]]:
        """Take `token`: the state behind it, and what may follow, best first, with its chance."""
        ...


class HeadsDrafter:
    """Drafts with `ahead`. It reads nothing and writes nothing of the target's."""

    def __init__(self, ahead: Ahead[State]) -> None:
        self._ahead: Ahead[object] = ahead  # type: ignore[assignment]
        self._state: object = None
        self._taken = 0

    def behind(self, tokens: Sequence[int]) -> int:
        return 0

    def begin(self, tokens: Sequence[int]) -> Guess | None:
        self._state = self._ahead.start(tokens) if tokens else None
        self._taken = 0
        return None if self._state is None else self.more(tokens[-1])

    def more(self, token: int) -> Guess | None:
        if self._taken >= self._ahead.steps:
            return None
        self._taken += 1
        self._state, best = self._ahead.step(self._state, token)
        first, *others = best
        return Guess(*first, *others[0]) if others else Guess(*first)

    def end(self) -> None:
        self._state = None
