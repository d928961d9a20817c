"""Text to tokens and back, and the model as the editor sees it before any weight is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from apply_edit.decode.rows import Rows
from apply_edit.decode.types import Scores, Target
from apply_edit.events import OnEvent


class Codec(Protocol):
    """A tokenizer that treats every text as plain text."""

    def encode(self, text: str) -> list[int]:
        """Tokens of `text`; control tokens that stand in it are spelled out, never obeyed."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`; bytes that are not UTF-8 become U+FFFD."""
        ...

    def chat(self, system: str, user: str) -> tuple[list[int], list[int]]:
        """The control tokens and fixed text before and behind `user`'s place in a chat.

        The pair holds everything of the model's chat template but the user's own text:
        ``before + encode(text) + behind`` is a prompt that ends where the reply begins.
        """
        ...

    @property
    def stop(self) -> frozenset[int]:
        """Tokens that end an answer: all of the model's control tokens."""
        ...


class Backend(Protocol):
    """A model that can be asked: what is known before its weights are loaded, and the target."""

    @property
    def name(self) -> str: ...

    @property
    def codec(self) -> Codec: ...

    @property
    def window(self) -> int:
        """Positions of the context window, prompt and output together."""
        ...

    def frame(self, closing: str) -> None:
        """Be told the text that ends a whole answer (a replay writes it; models are asked to)."""
        ...

    def target(self, on_event: OnEvent) -> Target:
        """The target, loaded at the first call."""
        ...

    def facts(self) -> dict[str, str | int]:
        """model, dtype, device, threads, exact: what the figures of a run are worth."""
        ...

    def costs(self) -> Sequence[tuple[int, float]] | None:
        """Measured (rows, milliseconds) of a pass, or None where it was never measured."""
        ...

    def observe(self, passes: Sequence[tuple[int, float]]) -> None:
        """Be told what passes of a run cost: (rows, milliseconds) each."""
        ...


@runtime_checkable
class Slotted(Protocol):
    """A backend that can have several requests in hand at once, once its target is loaded."""

    def slot(self, positions: int) -> Target:
        """A target on the same weights that holds another request of so many positions."""
        ...

    def slot_bytes(self, positions: int) -> int:
        """What such a target takes of the device's memory."""
        ...

    def free_bytes(self) -> int | None:
        """What of the device's memory is free now; None where that cannot be told."""
        ...

    def copy(self, source: Target, target: Target, length: int) -> None:
        """Make the first `length` committed positions of one slot those of another."""
        ...

    def together(self, wanted: Sequence[Rows]) -> Sequence[Scores | None]:
        """Score rows of several slots in one pass; None for rows that ask for no scores."""
        ...
