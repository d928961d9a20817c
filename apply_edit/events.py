"""What happens during an edit, as values: the editor emits them, show/ draws them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from apply_edit.decode.types import Source, Step

StageName = Literal["wait", "download", "verify", "convert", "load", "calibrate", "prefill"]


@dataclass(frozen=True, slots=True)
class Stage:
    """Progress of something slow before the first output token.

    `done` and `total` count `unit`s; `total` is None where it is not known. A stage is over
    when `done == total`, or when another stage or a `Wrote` follows.
    """

    name: StageName
    done: float
    total: float | None
    unit: Literal["bytes", "tokens", "tensors", "passes"]
    label: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive output text from one source."""

    source: Source
    text: str


@dataclass(frozen=True, slots=True)
class Wrote:
    """One pass landed. `position` is how far into the original the output has come (0 to 1);
    `closing` the text of the prompt's frame that ends a whole answer, which is none of the file's.
    """

    pieces: tuple[Piece, ...]
    rejected: str
    step: Step
    position: float
    tokens: int
    seconds: float
    closing: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A decision in plain words, for -v."""

    text: str


Event = Stage | Wrote | Note
OnEvent = Callable[[Event], None]


def ignore(_event: Event) -> None:
    """The listener of callers that do not want to watch."""
