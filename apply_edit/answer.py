"""An answer of the target, and one that is being written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from apply_edit.deadline import Deadline
from apply_edit.decode.batch import Share
from apply_edit.decode.stats import Stats
from apply_edit.decode.types import Finish, Step
from apply_edit.events import OnEvent, Piece, Wrote, ignore
from apply_edit.options import Options
from apply_edit.stream import LONGEST, TextStream, merged
from apply_edit.target.codec import Codec
from apply_edit.target.prompt import Prompt


@dataclass(slots=True)
class Answer:
    """What the target wrote, and how: output tokens, one step per pass, text by source."""

    budget: int
    stats: Stats
    tokens: list[int] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)


class Writing:
    """An answer on its way: what was asked, what has been written, and how long it may take.

    `share` is the clock of a request in a batch, which counts its own seconds; None for a
    request alone. `loading` are seconds spent before this, which the time limit counts.
    `on_event` and `check_time` raise `Refusal` ``timeout``.
    """

    def __init__(
        self,
        prompt: Prompt,
        options: Options,
        codec: Codec,
        budget: int,
        *,
        predicted: str | None = None,
        watch: Callable[[str], bool] | None = None,
        on_event: OnEvent = ignore,
        share: Share | None = None,
        loading: float = 0.0,
    ) -> None:
        self.prompt = prompt
        self.options = options
        self.predicted = predicted
        self.share = share
        self.clock: Callable[[], float] = perf_counter if share is None else share
        self.answer = Answer(budget, Stats(draft=options.draft))
        self.started = self.clock()
        deadline = Deadline(options.timeout, self.clock, loading=loading)
        self.on_event = deadline.listening(on_event)
        self.check_time = deadline.check
        self._codec = codec
        self._stream = TextStream(codec)
        self.reader = None if watch is None else _reader(codec, watch)

    def begin(self) -> None:
        """The prompt is about to be read: the figures' seconds count from here."""
        self.started = self.clock()

    def wrote(self, step: Step) -> None:
        """One pass landed: keep it, and tell the listener."""
        answer = self.answer
        seconds = self.clock() - self.started
        if not answer.steps:
            answer.stats.first_run_seconds = seconds
        answer.steps.append(step)
        answer.stats.add(step)
        answer.tokens.extend(step.tokens)
        pieces = self._stream.feed(step)
        answer.pieces.extend(pieces)
        self.on_event(
            Wrote(
                pieces=pieces,
                rejected=self._codec.decode(step.rejected),
                step=step,
                position=_position(step, len(answer.tokens), len(self.prompt.reference)),
                tokens=len(answer.tokens),
                seconds=self.clock() - self.started,
                closing=self.prompt.closing_text,
            )
        )

    def end(self) -> None:
        """All has been written."""
        self.answer.pieces[:] = merged([*self.answer.pieces, *self._stream.rest()])
        self.answer.stats.total_seconds = self.clock() - self.started
        if self.share is not None:
            self.answer.stats.batch = self.share.most


def _reader(codec: Codec, watch: Callable[[str], bool]) -> Callable[[Sequence[int]], Finish | None]:
    """Shows `watch` the text of tokens; half a character waits for its other half."""
    waiting: list[int] = []

    def read(tokens: Sequence[int]) -> Finish | None:
        waiting.extend(tokens)
        text = codec.decode(waiting)
        if text.endswith("\ufffd") and len(waiting) < LONGEST + len(tokens):
            return None
        waiting.clear()
        return "loop" if watch(text) else None

    return read


def _position(step: Step, written: int, whole: int) -> float:
    """How far into the original the output has come, 0 to 1."""
    for run in reversed(step.runs):
        if run.origin is not None and run.source == "copy":
            return min(1.0, (run.origin + len(run.tokens)) / whole)
    return min(1.0, written / whole)
