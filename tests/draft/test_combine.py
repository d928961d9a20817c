"""Copying with a drafter beside it: what rides where, and that it never costs more than allowed."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.decode.accept import Greedy
from apply_edit.decode.loop import decode
from apply_edit.decode.schedule import AdaptiveSchedule
from apply_edit.decode.types import Branch, Draft, Proposer, Schedule, Step
from apply_edit.draft.baseline import Baseline, Finished, follow
from apply_edit.draft.chain import LEARNED, ChainProposer
from apply_edit.draft.combine import LOSS, CombinedProposer, beside
from apply_edit.draft.drafter import Guess
from apply_edit.draft.lookup import CopyProposer
from tests.decode.fake import END, VOCAB, FakeTarget

COSTS = [(1, 80.0), (8, 88.0), (64, 300.0)]
STEP = 20.0


class Foreseer:
    """Knows what will be written, and says it rightly as often as `right` has it.

    A guess takes `STEP` milliseconds of its own clock.
    """

    def __init__(self, written: Sequence[int], right: float, seed: int = 0) -> None:
        self._written = written
        self._right = right
        self._chance = random.Random(seed)
        self._place = 0
        self.guesses = 0

    def clock(self) -> float:
        return self.guesses * STEP / 1000.0

    def behind(self, tokens: Sequence[int]) -> int:
        return 0

    def begin(self, tokens: Sequence[int]) -> Guess:
        self._place = len(tokens) - 2
        return self.more(0)

    def more(self, token: int) -> Guess:
        self._place += 1
        self.guesses += 1
        known = self._written[self._place] if self._place < len(self._written) else 1
        if self._chance.random() < self._right:
            return Guess(known, 0.999)
        return Guess(1 + known % (VOCAB - 1), 0.999, known, 0.001)

    def end(self) -> None:
        pass


def writer(written: Sequence[int]) -> FakeTarget:
    """Writes these tokens behind a prompt of one; its second choice is the token above."""

    def logits(prefix: tuple[int, ...]) -> list[float]:
        place = len(prefix) - 1
        token = written[place] if place < len(written) else END
        return [9.0 if t == token else 5.0 * (t == token + 1) for t in range(VOCAB)]

    return FakeTarget(logits)


def passes(written: Sequence[int], proposer: Proposer, schedule: Schedule) -> list[Step]:
    steps = list(
        decode(
            writer(written),
            proposer,
            schedule,
            tail=[1],
            rule=Greedy(),
            stop={END},
            budget=len(written) + 1,
        )
    )
    assert [token for step in steps for token in step.tokens] == list(written)
    return steps


def alone(original: Sequence[int], written: Sequence[int]) -> list[Step]:
    schedule = AdaptiveSchedule(COSTS)
    return passes(written, CopyProposer(original, forbidden={END}), schedule)


def together(
    original: Sequence[int],
    written: Sequence[int],
    drafter: Foreseer,
    before: float,
    loss: float,
) -> tuple[list[Step], float]:
    """The passes with a drafter, and the milliseconds that its guesses took."""
    schedule = AdaptiveSchedule(COSTS)
    chain = ChainProposer(
        drafter,
        [1],
        schedule.cost,
        forbidden={END},
        trust=1.0,
        share=STEP / schedule.cost(1),
        clock=drafter.clock,
    )
    both = CombinedProposer(
        CopyProposer(original, forbidden={END}),
        chain,
        schedule,
        schedule.cost,
        schedule.scale,
        expected=(before, 0.0),
        loss=loss,
        long_loss=loss,
    )
    return passes(written, both, both), drafter.guesses * STEP


def ms(steps: Sequence[Step]) -> float:
    cost = AdaptiveSchedule(COSTS).cost
    return sum(cost(step.rows) for step in steps)


def replaced(edit: int, size: int) -> tuple[list[int], list[int]]:
    """A file of `size` tokens, and its edit: five times `edit` new tokens for one."""
    original = [1 + (i * i + i // 7) % (VOCAB - 3) for i in range(size)]
    written: list[int] = []
    for place, token in enumerate(original):
        new = [VOCAB - 2 + (i * i % 5 == 1) for i in range(edit)]
        written += new if place % (size // 5) == size // 10 else [token]
    return original, written


tokens = st.integers(1, VOCAB - 1)


@st.composite
def edits(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """A file and what is written in its place: pieces kept, left out, repeated and new."""
    original = draw(st.lists(tokens, min_size=1, max_size=120))
    written: list[int] = []
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(original)))
        written += original[start : start + draw(st.integers(0, 60))]
        written += draw(st.lists(tokens, max_size=12))
    return original, written


@given(edits(), st.lists(st.integers(1, 40), min_size=1), st.booleans())
def test_copying_alone_is_carried_on_whatever_the_real_passes_are(
    edit: tuple[list[int], list[int]], sizes: list[int], taught: bool
) -> None:
    original, written = edit

    class Deaf:
        """Copying that learns nothing from the target."""

        def __init__(self, copy: CopyProposer) -> None:
            self.propose, self.observe = copy.propose, copy.observe

    def copying() -> Proposer:
        copy = CopyProposer(original, forbidden={END})
        return copy if taught else Deaf(copy)

    real = passes(written, copying(), AdaptiveSchedule(COSTS))
    schedule = AdaptiveSchedule(COSTS)
    kept = Baseline(copying(), schedule, schedule.cost)
    target = writer(written)
    finished: list[Finished] = []
    place = 0
    while place < len(written):
        finished += kept.catch_up(len(written) - place)
        # However far the real pass gets, what is left of copying's own holds what is written.
        held = kept.rest
        main, _, side = follow(held, written[place:])
        count = sizes[len(finished) % len(sizes)]
        part = written[place : place + count]
        scores = target.score([written[place - 1] if place else 1, *part[:-1]])
        target.keep(len(part))
        shown = [written[place - 1] if place else 1, *part[:-1]]
        kept.learn(shown, [scores.top(row, 4) for row in range(len(shown))])
        kept.observe(part)
        place += count
        if count <= main + side:  # the pass is still under way
            assert kept.catch_up(len(written) - place) == []
            assert kept.rest.rows <= held.rows
    finished += kept.catch_up(0)
    # The last pass of copying is not over until the target ends the text.
    assert [one.held + 1 for one in finished] == [len(step.tokens) for step in real][
        : len(finished)
    ]
    assert [one.draft.rows for one in finished] == [step.rows for step in real][: len(finished)]
    assert len(finished) >= len(real) - 1
    assert kept.spent == pytest.approx(ms(real[: len(finished)]))


@given(
    edits(),
    st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    st.sampled_from([0.0, 500.0, 5000.0]),
    st.sampled_from([0.0, LOSS, 0.2, 2.0]),
    st.integers(0, 3),
)
def test_no_run_takes_longer_than_its_share_allows(
    edit: tuple[list[int], list[int]], right: float, before: float, loss: float, seed: int
) -> None:
    """Not one, by what guesses and passes cost: there is no luck in it."""
    original, written = edit
    drafter = Foreseer(written, right, seed)
    steps, asking = together(original, written, drafter, before, loss)
    least = before + ms(alone(original, written))
    assert before + ms(steps) + asking <= least * (1.0 + loss) + 1e-6


@pytest.mark.parametrize(
    ("edit", "size", "right", "loss", "least", "most"),
    [
        # A drafter that is always wrong costs its share, and is left alone when it is spent.
        (12, 400, 0.0, LOSS, 1.0, 1.03),
        (12, 400, 0.0, 0.2, 1.01, 1.2),
        # One that is right gains in long edits.
        (12, 400, 1.0, LOSS, 0.8, 0.95),
        (12, 400, 1.0, 0.2, 0.8, 0.95),
        # In short ones copying is over them before anybody is asked.
        (1, 400, 1.0, LOSS, 1.0, 1.0),
        (1, 400, 0.0, 0.2, 1.0, 1.0),
        # Where nothing may be lost, nothing can be gained.
        (12, 400, 1.0, 0.0, 1.0, 1.0),
    ],
)
def test_what_a_drafter_brings_and_costs(
    edit: int, size: int, right: float, loss: float, least: float, most: float
) -> None:
    original, written = replaced(edit, size)
    before = 2000.0
    steps, asking = together(original, written, Foreseer(written, right), before, loss)
    ratio = (before + ms(steps) + asking) / (before + ms(alone(original, written)))
    assert least <= ratio <= most


def test_a_copy_rides_behind_the_chain_where_the_original_is_found_again() -> None:
    original = [1 + (i * 7 + i // 5) % (VOCAB - 1) for i in range(60)]
    written = [*original[:20], 2, 2, 9, 9, 2, 4, 4, 2, *original[22:]]
    steps, _ = together(original, written, Foreseer(written, 1.0), 1e4, 0.2)
    assert len(steps) < len(alone(original, written))
    drafted = next(step for step in steps if step.sources.get("draft", (0, 0))[1])
    assert drafted.accepted > 10  # the edit's end, and the file behind it


def test_drafts_along_a_path_know_what_is_decided() -> None:
    draft = Draft((1, 2, 3), branches=(Branch(1, (5, 6)), Branch(1, (5, 6, 7)), Branch(0, (9,))))
    assert follow(draft, []) == (0, None, 0)
    assert follow(draft, [1, 2]) == (2, None, 0)
    assert follow(draft, [1, 5, 6]) == (1, Branch(1, (5, 6, 7)), 2)
    assert follow(draft, [1, 5, 8]) == (1, Branch(1, (5, 6, 7)), 1)
    assert follow(draft, [9]) == (0, Branch(0, (9,)), 1)
    assert follow(draft, [4]) == (0, None, 0)


def test_all_of_another_draft_stands_beside_a_chain() -> None:
    chain = Draft((1, 2, 3), "draft", None, LEARNED, branches=(Branch(0, (7,)),))
    copied = Draft((1, 5, 6, 8, 9), "output", branches=(Branch(0, (7, 4)), Branch(1, (2, 3, 4))))
    assert beside(chain, copied) == (
        Branch(0, (7, 4)),
        Branch(1, (5, 6, 8, 9), "output"),
        Branch(3, (4,)),
    )
    assert beside(chain, Draft()) == chain.branches
    assert beside(chain, Draft((1, 2))) == chain.branches


@given(st.lists(tokens, max_size=6), st.lists(tokens, max_size=6), st.data())
def test_every_path_of_the_other_draft_is_scored(
    chain: list[int], other: list[int], data: st.DataObject
) -> None:
    forks = st.integers(0, len(other))
    paths = st.lists(tokens, min_size=1, max_size=3)
    sides = data.draw(st.lists(st.builds(Branch, forks, paths.map(tuple)), max_size=3))
    copied = Draft(tuple(other), branches=tuple(sides))
    whole = Draft(tuple(chain), "draft", branches=beside(Draft(tuple(chain)), copied))
    for path in [other, *([*other[: b.fork], *b.tokens] for b in sides)]:
        main, _, side = follow(copied, path)
        covered, _, beyond = follow(whole, path)
        assert covered + beyond >= main + side
