from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.text.lcs import Match, common


def longest(a: list[int], b: list[int]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        new = [0]
        for j, y in enumerate(b):
            new.append(max(row[j + 1], new[j], row[j] + 1 if x == y else 0))
        row = new
    return row[-1]


def size_of_valid(a: list[int], b: list[int], runs: list[Match]) -> int:
    i = j = 0
    for p, q, size in runs:
        assert size > 0
        assert p >= i
        assert q >= j
        assert a[p : p + size] == b[q : q + size] != []
        i, j = p + size, q + size
    assert i <= len(a)
    assert j <= len(b)
    return sum(run[2] for run in runs)


small = st.lists(st.integers(0, 4), max_size=24)


@given(small, small)
def test_longest_when_few_edits(a: list[int], b: list[int]) -> None:
    assert size_of_valid(a, b, common(a, b)) == longest(a, b)


@given(small, small, st.integers(1, 4))
def test_valid_past_the_limit(a: list[int], b: list[int], limit: int) -> None:
    size_of_valid(a, b, common(a, b, limit))


@pytest.mark.parametrize("kinds", [1, 2, 3, 50, 20_000])
def test_ten_thousand_lines_without_blow_up(kinds: int) -> None:
    draw = random.Random(kinds)
    a = [draw.randrange(kinds) for _ in range(10_000)]
    b = [draw.randrange(kinds) for _ in range(10_000)]
    # The random texts share about this much; a quadratic search would not end here.
    expected = {1: 10_000, 2: 7_000, 3: 6_000, 50: 1_000, 20_000: 100}[kinds]
    assert size_of_valid(a, b, common(a, b)) >= expected


def test_equal_lines_all_over_with_few_edits_is_minimal() -> None:
    a = [i % 40 for i in range(10_000)]
    b = list(a)
    for at in range(500, 10_000, 500):
        b[at] = -1
    assert size_of_valid(a, b, common(a, b)) == 10_000 - 19


def test_removed_block_that_stands_twice() -> None:
    part, block = [i % 50 for i in range(8_000)], [i % 37 for i in range(3_000)]
    a, b = part + block + part, part + part
    assert size_of_valid(a, b, common(a, b)) == len(b)
