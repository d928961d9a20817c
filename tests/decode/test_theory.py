"""The formulas of speculative decoding on known numbers, and where they meet the schedule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.decode.theory import (
    best_k,
    expected_survivors,
    expected_tokens,
    pass_cost,
    speedup,
    tokens_per_second,
)


@pytest.mark.parametrize(
    ("alpha", "k", "tokens"),
    [
        (0.8, 4, 3.36),
        (0.6, 4, 2.31),
        (0.6, 8, 2.47),
        (0.95, 16, 11.64),
        (0.0, 7, 1.0),
        (1.0, 7, 8.0),
    ],
)
def test_expected_tokens(alpha: float, k: int, tokens: float) -> None:
    assert expected_tokens(alpha, k) == pytest.approx(tokens, abs=0.006)


@pytest.mark.parametrize(("alpha", "k", "times"), [(0.8, 4, 2.80), (0.6, 4, 1.92), (0.6, 8, 1.77)])
def test_speedup_where_a_drafted_token_costs_a_twentieth(
    alpha: float, k: int, times: float
) -> None:
    assert pass_cost(k, 0.05) == pytest.approx(1.0 + k / 20)
    assert speedup(alpha, k, 0.05) == pytest.approx(times, abs=0.006)


def test_best_k() -> None:
    assert best_k(0.0, 0.05) == 0
    assert best_k(1.0, 0.05, limit=64) == 64
    k = best_k(0.8, 0.05)
    assert speedup(0.8, k, 0.05) > max(speedup(0.8, k - 1, 0.05), speedup(0.8, k + 1, 0.05))


@given(alpha=st.floats(0.0, 1.0), k=st.integers(0, 64))
def test_equal_chances_sum_to_the_closed_form(alpha: float, k: int) -> None:
    assert 1.0 + expected_survivors([alpha] * k) == pytest.approx(expected_tokens(alpha, k))


def test_tokens_per_second() -> None:
    # Three expected tokens in a pass of 50 ms.
    assert tokens_per_second([1.0, 1.0], lambda rows: 10.0 + 10 * rows, 4) == pytest.approx(60.0)


@pytest.mark.parametrize(("alpha", "k"), [(-0.1, 1), (1.1, 1), (0.5, -1)])
def test_what_is_no_chance_or_no_length_is_refused(alpha: float, k: int) -> None:
    with pytest.raises(ValueError, match=r"chance|counts"):
        expected_tokens(alpha, k)
