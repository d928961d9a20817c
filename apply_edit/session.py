"""A model at work: prompt -> prefill -> decode, with what it holds of the last prompt reused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from apply_edit.decode.accept import Greedy, Rule, Sampled
from apply_edit.decode.divergence import Remembering, first_divergence
from apply_edit.decode.loop import decode
from apply_edit.decode.prefix import shared_prefix
from apply_edit.decode.schedule import AdaptiveSchedule, FixedSchedule
from apply_edit.decode.stats import Stats
from apply_edit.decode.types import Finish, Proposer, Schedule, Step, Target
from apply_edit.draft.drafter import Drafter
from apply_edit.draft.lookup import CopyProposer
from apply_edit.draft.model import ModelDrafter
from apply_edit.drafting import (
    Silent,
    beside_copying,
    check_draft,
    check_drafter,
    open_drafter,
    settled,
)
from apply_edit.errors import Refusal
from apply_edit.events import Note, OnEvent, Piece, Stage, Wrote, ignore
from apply_edit.stream import LONGEST, TextStream, merged
from apply_edit.target.codec import Backend, Codec
from apply_edit.target.prompt import Prompt
from apply_edit.windowed import too_long

CHUNK = 256
"""Prompt tokens per pass of the prefill: where a CPU's rows per second have levelled off."""
TAIL = 64
"""The fewest prompt tokens that ride along with the first draft, while there are as many."""

MOST = 240
"""The longest draft: with side branches and the tail of the prompt within the widest pass that
calibration has compared."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to decode. `k=None` adapts the draft length; `max_new_tokens=None` follows the file's
    length; `timeout` is in seconds; temperature 0 is greedy."""

    max_new_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    draft: str = "copy"
    k: int | None = None
    verify: bool = False
    timeout: float | None = None

    def after(self, seconds: float) -> Options:
        """What is left of these when `seconds` are spent."""
        if self.timeout is None:
            return self
        return replace(self, timeout=max(0.0, self.timeout - seconds))

    def rule(self) -> Rule:
        """How the target decides on a token."""
        if self.temperature <= 0.0:
            return Greedy()
        return Sampled(self.temperature, self.top_p, self.top_k, self.seed)


@dataclass(slots=True)
class Answer:
    """What the target wrote, and how: output tokens, one step per pass, text by source."""

    budget: int
    stats: Stats
    tokens: list[int] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)


class Session:
    """Asks one backend for answers; tokens that the next prompt begins with alike are kept."""

    def __init__(self, backend: Backend, load_seconds: float = 0.0) -> None:
        self.backend = backend
        self._load_seconds = load_seconds
        self._held: list[int] = []

    def forget(self) -> None:
        """Keep nothing of the last prompt (for measurements)."""
        self._held.clear()

    def budget(self, prompt: Prompt, wanted: int | None = None) -> int:
        """Tokens an answer may have: `wanted`, or what is ample, as far as the window holds it.

        Raises `InputError` ``too-long`` where the window cannot hold the prompt and the file.
        """
        window = self.backend.window
        room = window - len(prompt.tokens)
        whole = len(prompt.reference)
        if room <= whole:
            raise too_long(
                "the file",
                prompt.seen.count("\n") + 1,
                whole,
                len(prompt.tokens) - whole - len(prompt.update),
                len(prompt.tokens) + whole,
                window,
                sketch=bool(prompt.update),
            )
        return min(prompt.ample if wanted is None else wanted, room)

    def answer(
        self,
        prompt: Prompt,
        options: Options,
        *,
        predicted: str | None = None,
        watch: Callable[[str], bool] | None = None,
        on_event: OnEvent = ignore,
    ) -> Answer:
        """Decode the answer to `prompt`.

        `predicted` is the text the answer is expected to hold (a draft, no more); `watch` sees
        the text as it grows and ends the decoding by returning True.

        Raises `InputError` ``too-long``, `ModelError` while loading, `Refusal` ``timeout`` and
        ``not-exact``.
        """
        answer = Answer(self.budget(prompt, options.max_new_tokens), Stats(draft=options.draft))
        stats = answer.stats
        check_draft(options.draft)
        if options.k != 0:  # no length, no use for a drafter
            check_drafter(self.backend, options.draft)
        started = perf_counter()
        deadline = None if options.timeout is None else started + options.timeout
        self.backend.frame(prompt.closing_text)
        target = self.backend.target(on_event)
        rule = options.rule()
        if isinstance(rule, Greedy):
            target = settled(self.backend, target)
        drafter = None
        if options.k != 0:
            drafter = open_drafter(self.backend, options.draft, on_event)
        stats.load_seconds = self._load_seconds + perf_counter() - started
        self._load_seconds = 0.0
        started = perf_counter()
        tail = self._prefill(target, prompt.tokens, on_event, deadline)
        if isinstance(drafter, ModelDrafter):
            drafter.read(prompt.tokens, lambda done, total: _check_time(deadline))
        stats.prompt_tokens = len(prompt.tokens)
        stats.prefill_seconds = perf_counter() - started
        proposer, schedule = self._drafting(prompt, options, predicted, drafter)
        self._decode(
            answer,
            target,
            tail,
            proposer,
            schedule,
            prompt,
            rule,
            watch,
            on_event,
            started,
            deadline,
        )
        stats.total_seconds = perf_counter() - started
        self._figures(stats)
        if stats.exact == "margin" and not isinstance(rule, Greedy):
            # Near-ties are told apart for greedy choices only; the distribution holds anyway.
            stats.exact = "none"
        self.backend.observe([(s.rows, s.seconds * 1000.0) for s in answer.steps])
        if options.verify:
            self._verify(answer, target, prompt, options, on_event, deadline)
        return answer

    def _prefill(
        self, target: Target, tokens: Sequence[int], on_event: OnEvent, deadline: float | None
    ) -> list[int]:
        """Commit the prompt but for its tail, which the first draft rides along with."""
        shared = min(shared_prefix(self._held, tokens[:-1]), target.length)
        target.reset(shared)
        del self._held[shared:]
        total = len(tokens)
        while total - target.length > TAIL:
            _check_time(deadline)
            on_event(Stage("prefill", target.length, total, "tokens"))
            chunk = tokens[target.length : min(target.length + CHUNK, total - TAIL)]
            target.prefill(chunk)
            self._held.extend(chunk)
        on_event(Stage("prefill", total, total, "tokens"))
        return list(tokens[target.length :])

    def _drafting(
        self, prompt: Prompt, options: Options, predicted: str | None, drafter: Drafter | None
    ) -> tuple[Proposer, Schedule]:
        """The proposer and the schedule that the options name."""
        if options.draft == "none" or options.k == 0:
            return Silent(), FixedSchedule(0)
        codec = self.backend.codec
        k = None if options.k is None else min(options.k, MOST)
        schedule = AdaptiveSchedule(self.backend.costs(), most=MOST)
        proposer = CopyProposer(
            prompt.reference,
            update=prompt.update,
            instruction=prompt.instruction,
            predicted=None if predicted is None else codec.encode(predicted + prompt.closing_text),
            forbidden=codec.stop,
            free=schedule.cost.free_rows,
            price=schedule.cost.row_price,
        )
        if drafter is not None:
            return beside_copying(drafter, options.draft, prompt, proposer, schedule, codec.stop, k)
        return proposer, schedule if k is None else FixedSchedule(k)

    def _decode(
        self,
        answer: Answer,
        target: Target,
        tail: list[int],
        proposer: Proposer,
        schedule: Schedule,
        prompt: Prompt,
        rule: Rule,
        watch: Callable[[str], bool] | None,
        on_event: OnEvent,
        started: float,
        deadline: float | None,
    ) -> None:
        """All output tokens; events and figures on the way."""
        codec = self.backend.codec
        stream = TextStream(codec)
        self._held.extend(tail)
        for step in decode(
            target,
            proposer,
            schedule,
            tail=tail,
            rule=rule,
            stop=codec.stop,
            budget=answer.budget,
            watch=None if watch is None else _reader(codec, watch),
        ):
            if not answer.steps:
                answer.stats.first_run_seconds = perf_counter() - started
            answer.steps.append(step)
            answer.stats.add(step)
            answer.tokens.extend(step.tokens)
            self._held.extend(step.tokens)
            pieces = stream.feed(step)
            answer.pieces.extend(pieces)
            on_event(
                Wrote(
                    pieces=pieces,
                    rejected=codec.decode(step.rejected),
                    step=step,
                    position=_position(step, len(answer.tokens), len(prompt.reference)),
                    tokens=len(answer.tokens),
                    seconds=perf_counter() - started,
                )
            )
            _check_time(deadline)
        answer.pieces[:] = merged([*answer.pieces, *stream.rest()])
        # The last token has not been through the target.
        del self._held[target.length :]

    def _figures(self, stats: Stats) -> None:
        """What the backend knows about the run's worth."""
        for key, value in self.backend.facts().items():
            setattr(stats, key, value)
        costs = self.backend.costs()
        if costs:
            fastest = max(rows / ms for rows, ms in costs) * 1000.0
            stats.floor_seconds = (stats.prompt_tokens + stats.output_tokens) / fastest

    def _verify(
        self,
        answer: Answer,
        target: Target,
        prompt: Prompt,
        options: Options,
        on_event: OnEvent,
        deadline: float | None,
    ) -> None:
        """Decode once more, one token a pass, and compare."""
        on_event(Note("decoding once more, one token a pass, to verify"))
        self._held.clear()
        target.reset(len(prompt.tokens) - 1)
        plain: list[int] = []
        watched = Remembering(target)
        for step in decode(
            watched,
            Silent(),
            FixedSchedule(0),
            tail=prompt.tokens[target.length :],
            rule=options.rule(),
            stop=self.backend.codec.stop,
            # An answer cut short for its loop would go on here.
            budget=answer.budget if answer.stats.finish == "stop" else len(answer.tokens),
        ):
            plain.extend(step.tokens)
            on_event(Stage("verify", len(plain), len(answer.tokens), "tokens"))
            _check_time(deadline)
            if plain != answer.tokens[: len(plain)]:
                break
        target.reset(0)
        answer.stats.verified = plain == answer.tokens
        found = first_divergence(answer.tokens, plain, watched.last)
        if found is not None:
            raise Refusal(
                "not-exact",
                f"drafted and plain decoding differ at {found.describe(self.backend.codec.decode)}"
                "; please report this with the output of -v",
            )


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


def _check_time(deadline: float | None) -> None:
    if deadline is not None and perf_counter() > deadline:
        raise Refusal("timeout", "there was no whole answer in time; raise --timeout")
