"""The copy proposer: what it drafts, how many passes that takes, and what it never drafts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.decode.accept import Greedy
from apply_edit.decode.loop import decode
from apply_edit.decode.schedule import AdaptiveSchedule, FixedSchedule
from apply_edit.decode.types import Branch, Draft, Schedule, Step
from apply_edit.draft.lookup import CopyProposer

END = -1
CLOSING = [7, 8]
LINE = 6


def file(lines: int) -> list[int]:
    return [t for line in range(lines) for t in (2, *(50 * line + 20 + i for i in range(4)), 1)]


FILE = file(50)


class Known:
    """A target that writes one answer whatever is drafted."""

    limit = 1 << 30

    def __init__(self, answer: Sequence[int]) -> None:
        self.answer = [*answer, END]
        self.length = 0
        self.written = 0

    def prefill(self, tokens: Sequence[int]) -> None:
        self.length += len(tokens)

    def reset(self, length: int = 0) -> None:
        self.length = length

    def score(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> Certain:
        rows = [self.at(self.written + i) for i in range(len(tokens) - first)]
        for branch in branches:
            rows += [self.at(self.written + branch.fork + 1 + i) for i in range(len(branch.tokens))]
        return Certain(rows)

    def keep(self, rows: int, branch: int | None = None, branch_rows: int = 0) -> None:
        self.length += rows + branch_rows
        self.written += rows + branch_rows

    def at(self, place: int) -> int:
        return self.answer[min(place, len(self.answer) - 1)]


class Certain:
    def __init__(self, tokens: list[int]) -> None:
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def greedy(self) -> list[int]:
        return self.tokens

    def row(self, index: int) -> Sequence[float]:
        raise NotImplementedError

    def top(self, index: int, count: int) -> list[int]:
        return [self.tokens[index]]


def replay(
    proposer: CopyProposer, answer: Sequence[int], schedule: Schedule | None = None
) -> list[Step]:
    steps = list(
        decode(
            Known(answer),
            proposer,
            schedule or FixedSchedule(64),
            tail=[0],
            rule=Greedy(),
            stop={END},
            budget=len(answer) + 1,
        )
    )
    assert [t for step in steps for t in step.tokens] == list(answer)
    return steps


def passes(answer: Sequence[int], **more: Sequence[int]) -> int:
    return len(replay(CopyProposer(FILE, CLOSING, **more), [*answer, *CLOSING]))


def test_a_copy_takes_the_fewest_passes_and_ends_by_itself() -> None:
    # 302 tokens and the end, 65 a pass.
    assert passes(FILE) == 5


@pytest.mark.parametrize(
    ("answer", "most"),
    [
        ([*FILE[:100], 9001, *FILE[101:]], 7),
        ([*FILE[:102], 2, 9001, 9002, 1, *FILE[102:]], 11),
        ([*FILE[:102], *FILE[126:]], 7),
        ([*FILE[:60], *FILE[240:270], *FILE[60:240], *FILE[270:]], 12),
        ([*FILE, 2, 9001, 1], 9),
        ([9001, 1, *FILE], 9),
        (FILE[:-LINE], 6),
    ],
    ids=["replace", "insert", "delete", "move", "append", "prepend", "cut the end"],
)
def test_an_edit_costs_few_passes(answer: list[int], most: int) -> None:
    assert passes(answer) <= most


def test_a_right_prediction_is_as_good_as_a_copy() -> None:
    merged = [*FILE[:102], 2, *range(9001, 9020), 1, *FILE[102:]]
    assert passes(merged, predicted=merged) == 1 + (len(merged) + 2) // 65


def test_a_wrong_prediction_falls_back_to_sketch_and_file() -> None:
    merged = [*FILE[:102], 2, *range(9001, 9020), 1, *FILE[102:]]
    sketch = [3, *FILE[96:102], 2, *range(9001, 9020), 1, *FILE[102:108], 3]
    misplaced = [*FILE[:30], 2, *range(9001, 9020), 1, *FILE[30:]]
    best = passes(merged, predicted=merged)
    assert passes(merged, update=sketch) <= best + 4
    assert passes(merged, update=sketch, predicted=misplaced) <= best + 5
    assert passes(merged, update=sketch, predicted=[5] * 40) <= best + 4
    # Without the sketch the nineteen new tokens cost a pass each.
    assert passes(merged) > best + 15


def test_words_of_the_instruction_are_drafted_inside_the_edit() -> None:
    words = [9001, 9002, 9003, 9004, 9005, 9006]
    answer = [*FILE[:102], *words, *FILE[102:]]
    assert passes(answer, instruction=words) + 3 <= passes(answer)


def test_a_rename_throughout() -> None:
    original = [t for i in range(40) for t in (2, 100 + 3 * i, 50, 101 + 3 * i, 1)]
    answer = [60 if t == 50 else t for t in original]
    steps = replay(CopyProposer(original), answer)
    # Forty places, two of which have to be seen before the rest follow.
    assert len(steps) <= 12


def test_every_draft_says_where_it_comes_from() -> None:
    proposer = CopyProposer(FILE, CLOSING, update=[9001, 9002, 9003])
    draft = proposer.propose(10)
    assert (draft.source, draft.origin, draft.tokens) == ("copy", 0, tuple(FILE[:10]))
    proposer.observe([*FILE[:4], 9001], draft, 4)
    draft = proposer.propose(10)
    sources = {draft.source, *(b.source for b in draft.branches)}
    assert "update" in sources
    merge = CopyProposer(FILE, CLOSING, predicted=[*FILE[:12], 9001, *FILE[12:]])
    assert (merge.propose(12).source, merge.propose(12).origin) == ("copy", 0)
    assert (merge.propose(13).source, merge.propose(13).origin) == ("update", None)


def test_a_substitution_has_no_place_in_the_file() -> None:
    original = [t for i in range(40) for t in (2, 100 + 3 * i, 50, 101 + 3 * i, 1)]
    proposer = CopyProposer(original)
    output = [60 if t == 50 else t for t in original[:15]]
    proposer.observe(output, Draft(), 0)
    draft = proposer.propose(10)
    assert 60 in draft.tokens
    assert draft.origin is None


def test_guesses_share_a_narrow_pass() -> None:
    proposer = CopyProposer(FILE, free=8)
    # An edit begins with a word that went on in three ways before.
    proposer.observe([*FILE[:30], 9, 30, 9, 31, 9, 32, 9], Draft(), 0)
    draft = proposer.propose(64)
    assert draft.branches
    assert len(draft.tokens) + sum(len(b.tokens) for b in draft.branches) <= 8
    firsts = {draft.tokens[0], *(b.tokens[0] for b in draft.branches)}
    assert {30, 31, 32} & firsts


def test_the_targets_own_choices_are_drafted() -> None:
    proposer = CopyProposer(FILE)
    proposer.learn([9001], [[9002, 9003]])
    proposer.observe([9001], Draft(), 0)
    draft = proposer.propose(8)
    assert 9002 in {draft.tokens[0], *(b.tokens[0] for b in draft.branches)}


def test_rewriting_throughout_costs_almost_nothing() -> None:
    answer = [5000 + i for i in range(300)]
    steps = replay(CopyProposer(FILE, CLOSING), answer, AdaptiveSchedule())
    cost = AdaptiveSchedule().cost
    assert sum(cost(s.rows) for s in steps) <= 1.03 * cost(1) * (len(answer) + 1)


def test_tokens_of_the_file_in_no_order_cost_almost_nothing() -> None:
    answer = [FILE[(i * 7919 + i * i * 31) % len(FILE)] for i in range(600)]
    steps = replay(CopyProposer(FILE, CLOSING), answer, AdaptiveSchedule())
    cost = AdaptiveSchedule().cost
    assert sum(cost(s.rows) for s in steps) <= 1.03 * cost(1) * (len(answer) + 1)


tokens = st.lists(st.integers(0, 9), max_size=40)


@given(
    original=tokens,
    update=tokens,
    instruction=tokens,
    predicted=st.none() | tokens,
    rounds=st.lists(st.tuples(tokens, st.integers(0, 12)), max_size=12),
    forbidden=st.sets(st.integers(0, 9), max_size=3),
)
def test_any_history_is_survived_and_drafts_keep_their_bounds(
    original: list[int],
    update: list[int],
    instruction: list[int],
    predicted: list[int] | None,
    rounds: list[tuple[list[int], int]],
    forbidden: Collection[int],
) -> None:
    def fresh() -> CopyProposer:
        return CopyProposer(
            original, [3, 4], update, instruction, predicted, forbidden=forbidden, free=8
        )

    proposer, twin = fresh(), fresh()
    known = {*original, 3, 4, *update, *instruction, *(predicted or ())}
    for output, limit in rounds:
        draft = proposer.propose(limit)
        assert draft == twin.propose(limit)
        chains = [draft.tokens, *(b.tokens for b in draft.branches)]
        assert all(len(chain) <= limit for chain in chains)
        drafted = {token for chain in chains for token in chain}
        assert drafted <= known
        assert drafted.isdisjoint(forbidden)
        assert all(b.tokens and b.fork <= len(draft.tokens) for b in draft.branches)
        if draft.origin is not None:
            whole = [*original, 3, 4]
            assert tuple(whole[draft.origin :][: len(draft.tokens)]) == draft.tokens
        for one in (proposer, twin):
            one.learn(output[:2], [[1, 2]] * len(output[:2]))
            one.observe(output, draft, 0)
        known.update(output, *([(1, 2)] if output else []))
    assert isinstance(proposer.propose(5), Draft)


@given(
    original=st.lists(st.integers(2, 9), max_size=60),
    answer=st.lists(st.integers(2, 9), max_size=60),
)
def test_whatever_is_drafted_the_output_is_the_targets(
    original: list[int], answer: list[int]
) -> None:
    for schedule in (FixedSchedule(8), AdaptiveSchedule()):
        replay(CopyProposer(original, [1]), answer, schedule)


@given(st.data())
def test_what_is_foreseen_is_what_would_be_drafted(data: st.DataObject) -> None:
    """Tokens that may come are followed without a trace, to where they would really lead."""
    small = st.integers(1, 6)
    original = data.draw(st.lists(small, min_size=1, max_size=40))
    sketch = data.draw(st.lists(small, max_size=12))
    predicted = data.draw(st.none() | st.lists(small, min_size=1, max_size=40))
    before = data.draw(st.lists(st.lists(small, min_size=1, max_size=5), max_size=6))
    coming = data.draw(st.lists(small, max_size=8))

    def proposer() -> CopyProposer:
        made = CopyProposer(original, CLOSING, sketch, predicted=predicted)
        for tokens in before:
            made.observe(tokens, made.propose(4), 0)
        return made

    asked, untouched = proposer(), proposer()
    foreseen = asked.foresee(coming, 9)
    assert asked.propose(9) == untouched.propose(9)  # nothing was changed
    for token in coming:
        asked.observe([token], Draft(), 0)
    drafted = asked.propose(9)
    if drafted.region < 0:
        assert not foreseen.tokens
    else:
        assert foreseen == drafted
