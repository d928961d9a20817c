"""Draft lengths chosen on known cost tables and known histories."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.decode.schedule import (
    HAZARD,
    AdaptiveSchedule,
    CostTable,
    FixedSchedule,
    hazard,
    in_batch,
    survival,
)
from apply_edit.decode.types import Branch, Draft

FLAT = [(1, 100.0), (8, 100.0), (256, 100.0)]
STEEP = [(1, 100.0), (2, 200.0), (256, 25600.0)]
CPU = [(1, 84.0), (8, 101.0), (16, 115.0), (32, 179.0), (64, 295.0), (128, 540.0), (256, 1050.0)]


def draft(length: int, match: int, region: int = 0) -> Draft:
    return Draft(tuple(range(length)), region=region, match=match)


def test_costs_are_linear_between_and_beyond_the_measured_counts() -> None:
    cost = CostTable([(1, 80.0), (8, 100.0), (16, 140.0)])
    assert [cost(rows) for rows in (1, 8, 12, 16, 24)] == [80.0, 100.0, 120.0, 140.0, 180.0]
    assert CostTable([(4, 40.0)])(8) == 80.0


def test_a_wider_pass_is_never_cheaper() -> None:
    # A kernel that is slow for single rows only, and noise.
    cost = CostTable([(1, 123.0), (2, 116.0), (4, 122.0), (8, 141.0)])
    assert cost(1) == cost(2) == cost(4) == 123.0


@pytest.mark.parametrize("points", [[], [(0, 1.0)], [(1, 0.0)], [(1, -3.0), (2, 4.0)]])
def test_a_table_that_measures_nothing_is_refused(points: list[tuple[int, float]]) -> None:
    with pytest.raises(ValueError, match="cost table"):
        CostTable(points)


def test_free_rows_and_their_price_follow_the_table() -> None:
    assert CostTable(FLAT).free_rows == 64
    assert CostTable(FLAT).row_price == pytest.approx(0.01)
    assert CostTable(STEEP).free_rows == 4
    assert CostTable(STEEP).row_price == 0.5
    assert 8 <= CostTable(CPU).free_rows <= 16
    assert 0.03 < CostTable(CPU).row_price < 0.06


def test_fixed() -> None:
    schedule = FixedSchedule(5)
    assert schedule.limit == 5
    assert schedule.choose(draft(9, 0)) == 5
    assert schedule.choose(draft(3, 0)) == 3
    schedule.record(draft(5, 0), 0, 1.0)
    assert schedule.choose(draft(9, 0)) == 5
    with pytest.raises(ValueError, match="counts"):
        FixedSchedule(-1)


def test_the_longer_the_match_the_longer_the_draft() -> None:
    schedule = AdaptiveSchedule(CPU)
    chosen = [schedule.choose(draft(256, match)) for match in (0, 4, 8, 16, 32, 64, 256)]
    assert chosen == sorted(chosen)
    assert chosen[0] <= 4
    assert chosen[-1] >= 100


def test_rows_that_cost_nothing_are_all_used_and_dear_ones_not_at_all() -> None:
    assert AdaptiveSchedule(FLAT).choose(draft(200, 64)) == 200
    assert AdaptiveSchedule(STEEP).choose(draft(200, 64)) == 0


def test_nothing_drafted_is_nothing_chosen() -> None:
    schedule = AdaptiveSchedule(CPU)
    assert schedule.choose(Draft()) == 0
    schedule.record(Draft(), 0, 1.0)
    assert schedule.scale(0) == 1.0


def test_the_bound() -> None:
    schedule = AdaptiveSchedule(FLAT, most=40)
    assert schedule.limit == 40
    assert schedule.choose(draft(200, 300)) == 40


def test_rows_of_side_branches_count() -> None:
    schedule = AdaptiveSchedule([(1, 100.0), (4, 100.0), (5, 300.0)])
    alone = draft(3, 16)
    crowded = Draft(alone.tokens, match=16, branches=(Branch(0, (1, 2, 3)),))
    assert schedule.choose(alone) == 3
    assert schedule.choose(crowded) < 3


def test_rejections_shorten_and_acceptance_lengthens_per_region() -> None:
    schedule = AdaptiveSchedule(CPU)
    start = schedule.choose(draft(256, 64))
    for _ in range(10):
        schedule.record(draft(start, 64, region=7), 3, 0.1)
    assert schedule.choose(draft(256, 64, region=7)) < start / 2
    # Elsewhere the same run counts too, but less.
    assert schedule.scale(7) > schedule.scale(0) > 1.0
    calm = AdaptiveSchedule(CPU)
    for _ in range(30):
        calm.record(draft(200, 64), 200, 0.1)
    assert calm.choose(draft(256, 64)) >= start
    assert calm.scale(0) < 1.0


def test_one_rejection_is_not_a_catastrophe() -> None:
    schedule = AdaptiveSchedule(CPU)
    start = schedule.choose(draft(256, 128))
    schedule.record(draft(start, 128), 40, 0.1)
    assert schedule.choose(draft(256, 128)) > start / 2


def test_the_curve_goes_through_its_points_and_falls() -> None:
    for match, chance in HAZARD:
        assert hazard(match) == pytest.approx(chance)
    curve = [hazard(match) for match in range(400)]
    assert curve == sorted(curve, reverse=True)
    assert hazard(10_000) == HAZARD[-1][1]


@given(match=st.integers(0, 600), scale=st.floats(0.1, 10.0))
def test_survival_is_a_chance(match: int, scale: float) -> None:
    assert 0.0 < survival(match, scale) < 1.0


@given(
    length=st.integers(0, 300),
    match=st.integers(0, 300),
    history=st.lists(st.tuples(st.integers(0, 64), st.integers(0, 64)), max_size=8),
)
def test_a_choice_is_always_possible(
    length: int, match: int, history: list[tuple[int, int]]
) -> None:
    schedule = AdaptiveSchedule(CPU)
    for drafted, accepted in history:
        schedule.record(draft(drafted, match), min(drafted, accepted), 0.1)
    assert 0 <= schedule.choose(draft(length, match)) <= min(length, schedule.limit)


def test_in_a_batch_each_pays_a_share_and_fewer_rows_are_free() -> None:
    assert in_batch(CPU, 1) == CPU
    shared = in_batch(CPU, 4)
    assert dict(shared)[1] == CostTable(CPU)(4) / 4
    assert dict(shared)[64] == CostTable(CPU)(256) / 4
    alone, four = CostTable(CPU), CostTable(shared)
    assert four.free_rows < alone.free_rows
    assert four.row_price > alone.row_price
    # A pass of one row costs a fraction, a wide one nearly as much as alone.
    assert four(1) < 0.3 * alone(1)
    assert four(240) > 0.9 * alone(240)
    unsure = draft(200, 2)
    assert AdaptiveSchedule(shared).choose(unsure) <= AdaptiveSchedule(CPU).choose(unsure)


def test_who_is_left_alone_drafts_as_one_who_always_was() -> None:
    requests = 4
    schedule = AdaptiveSchedule(CPU, requests=lambda: requests)
    unsure = draft(200, 6)
    together = schedule.choose(unsure)
    requests = 1
    assert schedule.choose(unsure) == AdaptiveSchedule(CPU).choose(unsure) > together
