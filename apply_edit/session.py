"""A model at work: prompt -> prefill -> decode, with what it holds of the last prompt reused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from apply_edit.answer import Answer, Writing
from apply_edit.decode.accept import Greedy
from apply_edit.decode.batch import Share
from apply_edit.decode.loop import decoding
from apply_edit.decode.margin import MarginTarget
from apply_edit.decode.prefix import shared_prefix
from apply_edit.decode.rows import Asking, Rows, drive
from apply_edit.decode.schedule import AdaptiveSchedule, FixedSchedule
from apply_edit.decode.stats import Stats
from apply_edit.decode.types import Proposer, Schedule, Step, Target
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
from apply_edit.events import OnEvent, Stage, ignore
from apply_edit.options import Options
from apply_edit.target.codec import Backend, Slotted
from apply_edit.target.prompt import Prompt
from apply_edit.verify import verifying
from apply_edit.windowed import too_long

__all__ = ["CHUNK", "MOST", "TAIL", "Answer", "Options", "Session"]

CHUNK = 256
"""Prompt tokens per pass of the prefill: where a CPU's rows per second have levelled off."""
TAIL = 64
"""The fewest prompt tokens that ride along with the first draft, while there are as many."""

MOST = 240
"""The longest draft: with side branches and the tail of the prompt within the widest pass that
calibration has compared."""


@runtime_checkable
class Recalling(Protocol):
    """A backend that keeps the beginning of prompts between runs."""

    def recall(self, target: Target, tokens: Sequence[int]) -> int:
        """Commit the prompt's beginning `tokens` from an earlier run, in place of what `target`
        holds; returns how many were, all or none."""
        ...

    def retain(self, target: Target, tokens: Sequence[int]) -> None:
        """Keep the prompt's beginning `tokens`, which `target` holds, for later runs."""
        ...


class Session:
    """Asks one backend for answers; tokens that the next prompt begins with alike are kept.

    `slot` is a target of the backend to use in place of its first one, for one of several
    requests at once. `requests` is how many there are at the moment: passes are shared, and drafts
    are to be as long as pays then.
    """

    def __init__(
        self,
        backend: Backend,
        load_seconds: float = 0.0,
        slot: Target | None = None,
    ) -> None:
        self.backend = backend
        self.requests = 1
        self._load_seconds = load_seconds
        self._slot = slot
        self._target: Target | None = slot
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
        return drive(
            self.answering(prompt, options, predicted=predicted, watch=watch, on_event=on_event)
        )

    def answering(
        self,
        prompt: Prompt,
        options: Options,
        *,
        predicted: str | None = None,
        watch: Callable[[str], bool] | None = None,
        on_event: OnEvent = ignore,
        share: Share | None = None,
        others: Callable[[], Sequence[Session]] = tuple,
    ) -> Asking[Answer]:
        """`answer`, asking for the scores of each pass.

        In a batch, `share` is the request's clock, and what `others` hold of the prompt's
        beginning is taken over from them.
        """
        budget = self.budget(prompt, options.max_new_tokens)
        check_draft(options.draft)
        if options.k != 0:  # no length, no use for a drafter
            check_drafter(self.backend, options.draft)
        writing = Writing(
            prompt,
            options,
            self.backend.codec,
            budget,
            predicted=predicted,
            watch=watch,
            on_event=on_event,
            share=share,
            loading=self._load_seconds,
        )
        stats = writing.answer.stats
        self.backend.frame(prompt.closing_text)
        target, drafter = self._open(writing)
        stats.load_seconds = self._load_seconds + writing.clock() - writing.started
        self._load_seconds = 0.0
        writing.begin()
        self._take_over(prompt.tokens, others())
        tail = yield from self._prefill(target, writing)
        if isinstance(drafter, ModelDrafter):
            drafter.read(prompt.tokens, lambda done, total: writing.check_time())
        stats.prompt_tokens = len(prompt.tokens)
        stats.prefill_seconds = writing.clock() - writing.started
        held = stats.cached_tokens
        proposer, schedule = self._drafting(prompt, options, predicted, drafter, held)
        yield from self._decode(writing, target, tail, proposer, schedule)
        self._figures(stats)
        if stats.exact == "margin" and options.temperature > 0.0:
            # Near-ties are told apart for greedy choices only; the distribution holds anyway.
            stats.exact = "none"
        if isinstance(self.backend, Recalling) and self._target is not None:
            self.backend.retain(self._target, prompt.tokens[: prompt.fixed])
        if stats.batch == 1:  # a share of a pass says nothing about what passes cost
            self.backend.observe([(s.rows, s.seconds * 1000.0) for s in writing.answer.steps])
        if options.verify:
            self._held.clear()
            yield from verifying(writing, target, self.backend.codec)
        return writing.answer

    def _open(self, writing: Writing) -> tuple[Target, Drafter | None]:
        """The target, and what drafts for it beside copying."""
        options, on_event = writing.options, writing.on_event
        target = self._target = self._slot or self.backend.target(on_event)
        if isinstance(options.rule(), Greedy):
            target = settled(self.backend, target)
            if isinstance(target, MarginTarget):
                target.shared = writing.share is not None
        if options.k == 0:
            return target, None
        return target, open_drafter(self.backend, options.draft, on_event)

    def _take_over(self, tokens: Sequence[int], others: Sequence[Session]) -> None:
        """Copy what the others hold of the prompt's beginning, if it is more than is held here."""
        held = self._shared(tokens)
        best, most = None, held
        for other in others:
            if other is not self and (shared := other._shared(tokens)) > most:
                best, most = other, shared
        if best is None or best._target is None or self._target is None:
            return
        if isinstance(self.backend, Slotted):
            self.backend.copy(best._target, self._target, most)
            self._held[:] = tokens[:most]

    def _shared(self, tokens: Sequence[int]) -> int:
        """How many tokens of a prompt stand in the cache; its last one has to be scored anyway."""
        if self._target is None:
            return 0
        return min(shared_prefix(self._held, tokens[:-1]), self._target.length)

    def _prefill(self, target: Target, writing: Writing) -> Asking[list[int]]:
        """Commit the prompt but for its tail, which the first draft rides along with."""
        tokens, on_event = writing.prompt.tokens, writing.on_event
        shared = self._shared(tokens)
        fixed = tokens[: writing.prompt.fixed]
        if shared < len(fixed) and isinstance(self.backend, Recalling):
            assert self._target is not None
            shared = self.backend.recall(self._target, fixed) or shared
            self._held[:] = tokens[:shared]
        target.reset(shared)
        del self._held[shared:]
        writing.answer.stats.cached_tokens = shared
        total = len(tokens)
        while total - target.length > TAIL:
            writing.check_time()
            on_event(Stage("prefill", target.length, total, "tokens"))
            chunk = tokens[target.length : min(target.length + CHUNK, total - TAIL)]
            assert self._target is not None
            yield Rows(self._target, chunk, first=None)
            self._held.extend(chunk)
        on_event(Stage("prefill", total, total, "tokens"))
        return list(tokens[target.length :])

    def _drafting(
        self,
        prompt: Prompt,
        options: Options,
        predicted: str | None,
        drafter: Drafter | None,
        held: int = 0,
    ) -> tuple[Proposer, Schedule]:
        """The proposer and the schedule that the options name, where `held` tokens of the prompt
        were in the cache."""
        if options.draft == "none" or options.k == 0:
            return Silent(), FixedSchedule(0)
        codec = self.backend.codec
        k = None if options.k is None else min(options.k, MOST)
        schedule = AdaptiveSchedule(self.backend.costs(), most=MOST, requests=lambda: self.requests)
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
            name, stop = options.draft, codec.stop
            return beside_copying(drafter, name, prompt, proposer, schedule, stop, k, held=held)
        return proposer, schedule if k is None else FixedSchedule(k)

    def _decode(
        self,
        writing: Writing,
        target: Target,
        tail: list[int],
        proposer: Proposer,
        schedule: Schedule,
    ) -> Asking[None]:
        """All output tokens; events and figures on the way."""
        self._held.extend(tail)

        def each(step: Step) -> None:
            self._held.extend(step.tokens)
            writing.wrote(step)

        yield from decoding(
            target,
            proposer,
            schedule,
            tail=tail,
            rule=writing.options.rule(),
            stop=self.backend.codec.stop,
            budget=writing.answer.budget,
            each=each,
            watch=writing.reader,
            clock=writing.clock,
        )
        # The last token has not been through the target.
        del self._held[target.length :]
        writing.end()

    def _figures(self, stats: Stats) -> None:
        """What the backend knows about the run's worth."""
        for key, value in self.backend.facts().items():
            setattr(stats, key, value)
        costs = self.backend.costs()
        if costs:
            fastest = max(rows / ms for rows, ms in costs) * 1000.0
            read = stats.prompt_tokens - stats.cached_tokens
            stats.floor_seconds = (read + stats.output_tokens) / fastest
