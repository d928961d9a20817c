"""From the name of a draft to the proposer and schedule that it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from apply_edit.decode.schedule import AdaptiveSchedule, CostTable
from apply_edit.decode.types import Draft, Proposer, Schedule
from apply_edit.draft.chain import ChainProposer
from apply_edit.draft.combine import CombinedProposer, CombinedSchedule
from apply_edit.draft.drafter import Drafter
from apply_edit.errors import UsageError
from apply_edit.events import OnEvent

MODEL = "model:"
TRUST = {"self": 0.9, "model": 0.6}
"""How much likelier than stated a first guess of a drafter is taken to hold."""


@runtime_checkable
class Drafting(Protocol):
    """A backend that has drafters beside its target."""

    def drafter(self, name: str, on_event: OnEvent) -> Drafter | None: ...


class Silent:
    """Drafts nothing: plain decoding."""

    def propose(self, limit: int) -> Draft:
        return Draft()

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        pass


def check_draft(name: str) -> None:
    """Raises `UsageError` ``unknown-draft`` for a proposer that does not exist."""
    if name in ("auto", "copy", "none", "self") or (name.startswith(MODEL) and name != MODEL):
        return
    raise UsageError(
        "unknown-draft",
        f"there is no draft {name!r}; use auto, copy, self, none or model:NAME",
    )


def learned(
    drafter: Drafter,
    prompt: Sequence[int],
    schedule: Schedule,
    copy: Proposer | None,
    reference: Sequence[int],
    *,
    name: str,
    forbidden: frozenset[int],
    k: int | None = None,
) -> tuple[Proposer, Schedule]:
    """`drafter` behind `prompt`, with `copy` where there is one, under `schedule`."""
    cost = schedule.cost if isinstance(schedule, AdaptiveSchedule) else CostTable()
    chain = ChainProposer(
        drafter,
        prompt,
        cost,
        forbidden=forbidden,
        trust=TRUST[name.partition(":")[0]],
        k=k,
    )
    if copy is None:
        return chain, CombinedSchedule(schedule)
    if isinstance(schedule, AdaptiveSchedule):
        proposer = CombinedProposer(copy, chain, reference, cost, schedule.scale)
    else:
        proposer = CombinedProposer(copy, chain, reference, cost)
    return proposer, CombinedSchedule(schedule)
