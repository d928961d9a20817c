"""Text to tokens and back, and the model as the editor sees it before any weight is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from apply_edit.decode.types import Target
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
