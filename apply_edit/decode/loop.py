"""draft -> verify -> accept, one pass at a time, as a generator of steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from time import perf_counter

from apply_edit.decode.accept import Rule, Verdict, accept
from apply_edit.decode.rows import Asking, passes, scored
from apply_edit.decode.types import (
    Draft,
    Finish,
    Learner,
    Proposer,
    Run,
    Schedule,
    Scores,
    Source,
    Step,
    Target,
)

LEARNED_ROWS = 16
"""Wider copies teach a learner nothing worth a top-k; of other drafts, so many tokens may."""
LEARNED_TOPS = 4


def decode(
    target: Target,
    proposer: Proposer,
    schedule: Schedule,
    *,
    tail: Sequence[int],
    rule: Rule,
    stop: Collection[int],
    budget: int,
    watch: Callable[[Sequence[int]], Finish | None] | None = None,
) -> Iterator[Step]:
    """Decode until a token of `stop`, or `budget` tokens (a stop token counts, but is not output).

    `tail` is the part of the prompt the target has not seen yet, at least one token; the first
    draft rides in the same pass. `watch` sees each step's tokens and may end the decoding. The
    output tokens equal those of plain decoding under `rule`, whatever the proposer drafts: each
    is the rule's pick on scores of exactly the tokens before it.

    An abandoned generator leaves the target with the last finished step committed.
    """
    landed: list[Step] = []
    asking = decoding(
        target,
        proposer,
        schedule,
        tail=tail,
        rule=rule,
        stop=stop,
        budget=budget,
        each=landed.append,
        watch=watch,
    )
    for _ in passes(asking):
        yield from landed
        landed.clear()
    yield from landed


def decoding(
    target: Target,
    proposer: Proposer,
    schedule: Schedule,
    *,
    tail: Sequence[int],
    rule: Rule,
    stop: Collection[int],
    budget: int,
    each: Callable[[Step], None],
    watch: Callable[[Sequence[int]], Finish | None] | None = None,
    clock: Callable[[], float] = perf_counter,
) -> Asking[None]:
    """`decode`, asking for the scores of each pass; `each` is told every step as it lands."""
    context = list(tail)
    written = 0
    while written < budget and target.length + len(context) <= target.limit:
        started = clock()
        room = min(budget - written - 1, target.limit - target.length - len(context))
        draft, following = offer(proposer, schedule, room)
        drafted = clock()
        first = len(context) - 1
        scores = yield from scored(target, [*context, *draft.tokens], draft.branches, first)
        verdict = accept(draft, scores, rule, written)
        target.keep(first + 1 + verdict.main, verdict.branch, verdict.side)
        ended = clock()

        runs = _runs(draft, verdict, written, following)
        tokens = [token for run in runs for token in run.tokens]
        finish = _cut(tokens, stop)
        if finish is not None:
            runs = _shorten(runs, len(tokens))
        held = min(verdict.main + verdict.side, len(tokens))
        written += len(tokens)
        if isinstance(proposer, Learner):
            _teach(proposer, draft, verdict, scores, context[-1])
        proposer.observe(tokens, draft, held)
        schedule.record(draft, min(verdict.main, len(tokens)), ended - drafted)
        if finish is None and watch is not None:
            finish = watch(tokens)
        if finish is None and (written >= budget or target.length + 1 > target.limit):
            finish = "length"
        step = Step(
            runs=runs,
            rows=first + draft.rows,
            drafted=draft.rows - 1,
            accepted=held,
            rejected=draft.tokens[verdict.main :],
            k=len(draft.tokens),
            context=target.length,
            seconds=ended - drafted,
            draft_seconds=(drafted - started) + (clock() - ended),
            finish=finish,
            sources=_by_source(draft, verdict),
        )
        each(step)
        if finish is not None:
            return
        context = [tokens[-1]]


def offer(proposer: Proposer, schedule: Schedule, room: int) -> tuple[Draft, int | None]:
    """What the proposer offers, cut to what the schedule finds worth scoring and to `room`;
    and the token that the cut left out, None if it left out none."""
    limit = min(schedule.limit, room)
    if limit <= 0:
        return Draft(), None
    offered = proposer.propose(limit)
    draft = offered.cut(min(schedule.choose(offered), limit))
    k = len(draft.tokens)
    following = offered.tokens[k] if k < len(offered.tokens) else None
    fitting = tuple(b for b in draft.branches if b.fork + len(b.tokens) <= limit)
    if len(fitting) != len(draft.branches):
        draft = Draft(draft.tokens, draft.source, draft.origin, draft.region, draft.match, fitting)
    return draft, following


def _runs(draft: Draft, verdict: Verdict, start: int, following: int | None) -> tuple[Run, ...]:
    """The pass's output as runs: the chain's part, the branch's part, the target's token.

    A bonus token that goes on as the source does (`following`) belongs to the source's run:
    a person who sees it as the target's own would take it for a change.
    """
    runs = []
    whole = verdict.branch is None and verdict.main == len(draft.tokens)
    if whole and verdict.token == following:
        return (Run(draft.source, (*draft.tokens, verdict.token), start, draft.origin),)
    if verdict.main:
        runs.append(Run(draft.source, draft.tokens[: verdict.main], start, draft.origin))
    if verdict.branch is not None:
        branch = draft.branches[verdict.branch]
        place = start + verdict.main
        runs.append(Run(branch.source, branch.tokens[: verdict.side], place))
    runs.append(Run("target", (verdict.token,), start + verdict.main + verdict.side))
    return tuple(runs)


def _cut(tokens: list[int], stop: Collection[int]) -> Finish | None:
    """Drop the first stop token and all behind it, in place."""
    for index, token in enumerate(tokens):
        if token in stop:
            del tokens[index:]
            return "stop"
    return None


def _shorten(runs: tuple[Run, ...], length: int) -> tuple[Run, ...]:
    """The first `length` tokens of the runs."""
    kept = []
    for run in runs:
        tokens = run.tokens[:length]
        length -= len(tokens)
        if tokens:
            kept.append(Run(run.source, tokens, run.start, run.origin))
    return tuple(kept)


def teaches(draft: Draft) -> bool:
    """Whether a learner is shown what the target considered along this draft."""
    return draft.region < 0 or draft.rows <= LEARNED_ROWS


def _teach(learner: Learner, draft: Draft, verdict: Verdict, scores: Scores, decided: int) -> None:
    """Show a learner the target's top choices after each token of the confirmed path."""
    if not teaches(draft):
        return
    shown = [decided, *draft.tokens[: verdict.main]]
    places = list(range(len(shown)))
    if verdict.branch is not None:
        before = sum(len(branch.tokens) for branch in draft.branches[: verdict.branch])
        first = 1 + len(draft.tokens) + before
        shown += draft.branches[verdict.branch].tokens[: verdict.side]
        places += range(first, first + verdict.side)
    del shown[LEARNED_ROWS:], places[LEARNED_ROWS:]
    learner.learn(shown, [scores.top(place, LEARNED_TOPS) for place in places])


def _by_source(draft: Draft, verdict: Verdict) -> dict[str, tuple[int, int]]:
    """Per source, rows drafted and rows that held."""
    counts: dict[str, tuple[int, int]] = {}

    def count(source: Source, drafted: int, accepted: int) -> None:
        before = counts.get(source, (0, 0))
        counts[source] = (before[0] + drafted, before[1] + accepted)

    if draft.tokens:
        count(draft.source, len(draft.tokens), verdict.main)
    for number, branch in enumerate(draft.branches):
        count(branch.source, len(branch.tokens), verdict.side if number == verdict.branch else 0)
    return counts
