"""The accept rules on exact small vocabularies."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from apply_edit.decode.accept import Greedy, Sampled, accept, distribution, draw, uniform
from apply_edit.decode.types import Draft
from tests.decode.fake import FakeScores


def test_greedy_takes_the_lowest_id_of_equals() -> None:
    assert Greedy().pick(FakeScores([[0.0, 2.0, 2.0]]), 0, 0) == 1


def test_distribution_is_the_softmax() -> None:
    tokens, weights = distribution([1.0, 3.0, 2.0], 1.0)
    total = sum(math.exp(x) for x in (1.0, 2.0, 3.0))
    assert tokens == [1, 2, 0]
    shares = [w / sum(weights) for w in weights]
    assert shares == pytest.approx([math.exp(x) / total for x in (3.0, 2.0, 1.0)])


def test_top_k_and_top_p_cut() -> None:
    logits = [math.log(p) for p in (0.5, 0.3, 0.15, 0.05)]
    assert distribution(logits, 1.0, top_k=2)[0] == [0, 1]
    assert distribution(logits, 1.0, top_p=0.79)[0] == [0, 1]
    assert distribution(logits, 1.0, top_p=0.81)[0] == [0, 1, 2]
    assert distribution(logits, 1.0, top_p=0.0)[0] == [0]


def test_draw_at_the_ends() -> None:
    assert draw([7, 8], [1.0, 1.0], 0.0) == 7
    assert draw([7, 8], [1.0, 1.0], 0.4999) == 7
    assert draw([7, 8], [1.0, 1.0], 0.5) == 8
    assert draw([7, 8], [1.0, 1.0], 1.0) == 8


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("drafted", [0, 1, 3])
def test_the_distribution_is_the_targets_whatever_is_drafted(
    temperature: float, drafted: int
) -> None:
    """Chi-square over 4,000 seeds; 16.27 is the 99.9 % point at 3 degrees of freedom."""
    logits = [2.0, 1.0, 0.5, 0.0]
    draft = Draft((drafted,))
    seen: Counter[int] = Counter()
    trials = 4_000
    for seed in range(trials):
        rule = Sampled(temperature, seed=seed)
        verdict = accept(draft, FakeScores([logits, logits]), rule, 0)
        seen[drafted if verdict.main else verdict.token] += 1
    total = sum(math.exp(x / temperature) for x in logits)
    expected = [trials * math.exp(x / temperature) / total for x in logits]
    chi = sum((seen[t] - e) ** 2 / e for t, e in enumerate(expected))
    assert chi < 16.27


def test_a_place_has_its_own_uniform_number() -> None:
    numbers = {uniform(seed, place) for seed in range(20) for place in range(20)}
    assert len(numbers) == 400
    assert all(0.0 <= n < 1.0 for n in numbers)
    assert uniform(3, 4) == uniform(3, 4)
