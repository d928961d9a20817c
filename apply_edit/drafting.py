"""From the name of a draft to the proposer and schedule that it means."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from time import perf_counter
from typing import Protocol, runtime_checkable

from apply_edit.decode.margin import MarginTarget
from apply_edit.decode.schedule import AdaptiveSchedule, FixedSchedule
from apply_edit.decode.types import Draft, Proposer, Schedule, Target
from apply_edit.draft.chain import SHARE, ChainProposer
from apply_edit.draft.combine import BOLD_LOSS, LOSS, CombinedProposer, Copying
from apply_edit.draft.drafter import Drafter
from apply_edit.draft.heads import HeadsDrafter
from apply_edit.errors import ModelError, UsageError
from apply_edit.events import Note, OnEvent
from apply_edit.target.codec import Backend
from apply_edit.target.prompt import Prompt

AUTO = "auto"
MODEL = "model:"
HEADS = "heads"
SELF_TRUST, MODEL_TRUST, HEADS_TRUST = 0.9, 0.6, 0.0
"""How much likelier than stated the first guesses of a drafter are taken to hold."""
MODEL_SHARE, HEADS_SHARE = 0.25, 0.03
"""What a guess of a smaller model or of draft heads is thought to cost, in passes of the target."""
WIDE = 256
"""Rows of the passes that cost the least per row."""


@runtime_checkable
class Drafting(Protocol):
    """A backend that has drafters beside its target."""

    def drafter(self, name: str, on_event: OnEvent) -> Drafter | None: ...

    def check_drafter(self, name: str) -> None:
        """Raise for a drafter that can be told to be missing before any weights are loaded."""
        ...


@runtime_checkable
class Noisy(Protocol):
    """A backend that knows by how much its passes disagree."""

    @property
    def noise(self) -> float:
        """The greatest difference of a logit between passes; 0 where they agree bit for bit."""
        ...


class Silent:
    """Drafts nothing: plain decoding."""

    def propose(self, limit: int) -> Draft:
        return Draft()

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        pass


def check_draft(name: str) -> None:
    """Raises `UsageError` ``unknown-draft`` for a proposer that does not exist."""
    if name in (AUTO, "copy", "none", "self", HEADS) or (name.startswith(MODEL) and name != MODEL):
        return
    raise UsageError(
        "unknown-draft",
        f"there is no draft {name!r}; use auto, copy, self, heads, none or model:NAME",
    )


def check_drafter(backend: Backend, name: str) -> None:
    """Refuse, before weights are loaded, a draft that this backend lacks.

    Raises `UsageError` ``no-draft-model`` and `ModelError` ``no-heads``.
    """
    if isinstance(backend, Drafting):
        backend.check_drafter(name)
    elif name == HEADS or name.startswith(MODEL):
        what = "draft heads" if name == HEADS else "a draft model"
        raise UsageError("no-draft-model", f"{backend.name} runs without {what}; use --draft copy")


def settled(backend: Backend, target: Target) -> Target:
    """`target` with near-ties decided alone, where passes of this backend disagree."""
    if isinstance(backend, Noisy) and backend.noise > 0.0:
        return MarginTarget(target, backend.noise)
    return target


def open_drafter(backend: Backend, name: str, on_event: OnEvent) -> Drafter | None:
    """The drafter that `name` asks for beside copying; None where it asks for none, or for
    ``self`` or ``auto`` on a machine or model that has none.

    ``auto`` are the heads trained for the model, else its weights in 4 bits: heads cost no memory
    to speak of, and a run can bear their guesses sooner.
    Raises what `check_drafter` raises, and what loading a drafter raises.
    """
    if name in ("copy", "none"):
        return None
    if name == AUTO:
        return _any_drafter(backend, on_event)
    check_drafter(backend, name)
    return backend.drafter(name, on_event) if isinstance(backend, Drafting) else None


def _any_drafter(backend: Backend, on_event: OnEvent) -> Drafter | None:
    if not isinstance(backend, Drafting):
        return None
    try:
        backend.check_drafter(HEADS)
        return backend.drafter(HEADS, on_event)
    except ModelError as error:
        if error.code != "no-heads":
            on_event(Note(f"no draft heads: {error.message}"))
    return backend.drafter("self", on_event)


def beside_copying(
    drafter: Drafter,
    name: str,
    prompt: Prompt,
    copy: Copying | None,
    schedule: AdaptiveSchedule,
    forbidden: Collection[int],
    k: int | None = None,
    clock: Callable[[], float] = perf_counter,
    held: int = 0,
) -> tuple[Proposer, Schedule]:
    """`drafter` inside edits and `copy` everywhere else; without `copy`, the drafter everywhere.

    ``auto`` asks its drafter only as far as no run can take 3 % longer. `k` fixes the length of
    all drafts. `clock` counts what the drafter spends, in seconds; `held` tokens of the prompt need
    not be read.
    """
    trust, share = SELF_TRUST, SHARE
    if name.startswith(MODEL):
        trust, share = MODEL_TRUST, MODEL_SHARE
    elif name == HEADS or isinstance(drafter, HeadsDrafter):
        trust, share = HEADS_TRUST, HEADS_SHARE
    chain = ChainProposer(
        drafter,
        prompt.tokens,
        schedule.cost,
        forbidden=forbidden,
        trust=trust,
        k=k,
        share=share,
        clock=clock,
    )
    chosen: Schedule = schedule if k is None else FixedSchedule(k)
    if copy is None:
        # A chain is cut to what pays while it is written.
        return chain, FixedSchedule(chosen.limit)
    row = schedule.cost(WIDE) / WIDE
    proposer = CombinedProposer(
        copy,
        chain,
        chosen,
        schedule.cost,
        schedule.scale,
        expected=((len(prompt.tokens) - held) * row, len(prompt.reference) * row),
        long_loss=LOSS if name == AUTO else BOLD_LOSS,
    )
    return proposer, proposer
