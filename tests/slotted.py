"""Backends that can answer several requests at once: replays, and a tiny random model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apply_edit.decode.rows import Rows, serve
from apply_edit.decode.types import Branch, Scores, Target
from apply_edit.events import OnEvent
from apply_edit.target.replay import END, ReplayBackend, ReplayCodec, ReplayScores, ReplayTarget

CLOSING = "\n</updated-code>"


class SlotTarget(ReplayTarget):
    """Writes the answer whose key stands in the prompt that it was given."""

    def __init__(self, answers: Mapping[str, str], codec: ReplayCodec, limit: int) -> None:
        super().__init__((), lambda: len(codec), limit)
        self.answers = answers
        self.codec = codec
        self.tokens: list[int] = []

    def prefill(self, tokens: Sequence[int]) -> None:
        super().prefill(tokens)
        self.tokens += tokens

    def reset(self, length: int = 0) -> None:
        super().reset(length)
        del self.tokens[length:]

    def score(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> ReplayScores:
        if self._start is None:
            said = self.codec.decode([*self.tokens, *tokens])
            answer = next(text for key, text in self.answers.items() if key in said)
            self._answer = self.codec.encode(answer.removesuffix("\n") + CLOSING)
        return super().score(tokens, branches, first)


class SlottedReplay(ReplayBackend):
    """Answers by `answers`: what stands in a file -> the file as it is to become.

    `live` counts the slots that hold an unfinished request in the pass, `most` their greatest
    number; `widths` are the rows of all passes, `bytes` what one position takes.
    """

    def __init__(self, answers: Mapping[str, str], window: int = 1 << 20) -> None:
        self.answers = answers
        self._codec = ReplayCodec()
        self._window = window
        self._closing = ""
        self._first: SlotTarget | None = None
        self.most = 0
        self.widths: list[int] = []
        self.slots: list[int] = []
        self.bytes = 1
        self.free: int | None = None
        self.copied: list[int] = []

    def target(self, on_event: OnEvent) -> SlotTarget:
        if self._first is None:
            self._first = SlotTarget(self.answers, self._codec, self._window)
        return self._first

    def slot(self, positions: int) -> Target:
        self.slots.append(positions)
        return SlotTarget(self.answers, self._codec, self._window)

    def slot_bytes(self, positions: int) -> int:
        return positions * self.bytes

    def free_bytes(self) -> int | None:
        return self.free

    def copy(self, source: Target, target: Target, length: int) -> None:
        assert isinstance(source, SlotTarget)
        assert isinstance(target, SlotTarget)
        assert length <= source.length
        target.reset(0)
        target.prefill(source.tokens[:length])
        self.copied.append(length)

    def together(self, wanted: Sequence[Rows]) -> Sequence[Scores | None]:
        assert len({id(rows.target) for rows in wanted}) == len(wanted)
        self.most = max(self.most, len(wanted))
        self.widths.append(sum(rows.count for rows in wanted))
        return [serve(rows) for rows in wanted]


class ByteCodec:
    """A token a byte."""

    def encode(self, text: str) -> list[int]:
        return [2 + byte for byte in text.encode("utf-8", "surrogatepass")]

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(t - 2 for t in tokens if t >= 2).decode("utf-8", "replace")

    def chat(self, system: str, user: str) -> tuple[list[int], list[int]]:
        return [1, *self.encode(f"{system}\n{user}")], [1]

    @property
    def stop(self) -> frozenset[int]:
        return frozenset({END, 1})


VOCAB = 258


class TinyBackend:
    """A random transformers model as `engine`, of `VOCAB` tokens, on bytes."""

    name = "tiny"
    noise = 0.0

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.codec = ByteCodec()
        self.window = engine.limit
        self.most = 0

    def frame(self, closing: str) -> None:
        pass

    def target(self, on_event: OnEvent) -> Any:
        return self.engine

    def facts(self) -> dict[str, str | int]:
        return {"model": "tiny", "exact": "bit"}

    def costs(self) -> None:
        return None

    def observe(self, passes: Sequence[tuple[int, float]]) -> None:
        pass

    def slot(self, positions: int) -> Target:
        slot: Target = self.engine.beside(positions)
        return slot

    def slot_bytes(self, positions: int) -> int:
        return int(self.engine.bytes_for(positions))

    def free_bytes(self) -> int | None:
        return None

    def copy(self, source: Target, target: Any, length: int) -> None:
        target.take(source, length)

    def together(self, wanted: Sequence[Rows]) -> Sequence[Scores | None]:
        self.most = max(self.most, len(wanted))
        scores: Sequence[Scores | None] = self.engine.together(wanted)
        return scores
