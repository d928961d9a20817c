"""Draws from long rows: the law of the accept rule, by the row alone."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.decode import accept
from apply_edit.decode.accept import Drawer, Sampled, distribution
from apply_edit.target.engine import TorchScores
from apply_edit.target.sample import draw, likely
from tests.decode.fake import FakeScores

LONG = 20_000


def row(seed: int, spread: float, vocab: int = LONG) -> torch.Tensor:
    """bf16 logits: many ties."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(vocab, generator=generator) * spread).to(torch.bfloat16)


CUTS = [(1.0, 1.0, 0), (0.7, 0.9, 0), (1.3, 1.0, 50), (0.2, 0.95, 40), (2.0, 0.999, 0), (1, 0.5, 3)]


@pytest.mark.parametrize(("temperature", "top_p", "top_k"), CUTS)
@pytest.mark.parametrize("spread", [0.02, 1.0, 5.0])
def test_a_draw_is_that_of_the_rule(
    temperature: float, top_p: float, top_k: int, spread: float
) -> None:
    logits = row(3, spread)
    tokens, weights = distribution(logits.tolist(), temperature, top_p, top_k)
    for index in range(11):
        point = (index + 0.31) / 11.0
        wanted = accept.draw(tokens, weights, point)
        assert draw(logits, temperature, top_p, top_k, point) == wanted
    assert draw(logits, temperature, top_p, top_k, 0.0) == tokens[0]


@given(
    logits=st.lists(st.integers(-6, 6), min_size=1, max_size=12),
    temperature=st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    top_p=st.sampled_from([0.0, 0.3, 0.8, 1.0]),
    top_k=st.integers(0, 14),
    point=st.floats(0.0, 1.0, exclude_max=True),
)
def test_short_rows_with_ties(
    logits: list[int], temperature: float, top_p: float, top_k: int, point: float
) -> None:
    values = [float(x) for x in logits]
    tokens, weights = distribution(values, temperature, top_p, top_k)
    found = draw(torch.tensor(values), temperature, top_p, top_k, point)
    wanted = accept.draw(tokens, weights, point)
    if found != wanted:  # on a border, to the last bit of a sum
        borders = [sum(weights[: i + 1]) / sum(weights) for i in range(len(weights))]
        assert min(abs(point - border) for border in borders) < 1e-12


def test_equals_fall_by_token() -> None:
    logits = torch.zeros(LONG, dtype=torch.bfloat16)
    assert draw(logits, 1.0, 1.0, 0, 0.0) == 0
    assert draw(logits, 1.0, 1.0, 0, 0.5) == LONG // 2
    assert draw(logits, 1.0, 1.0, 3, 0.99) == 2
    assert draw(logits, 1.0, 0.001, 0, 0.999) == LONG // 1000 - 1


def test_a_row_draws_alike_in_every_pass() -> None:
    block = torch.stack([row(seed, 4.0) for seed in range(9)])
    rule = Sampled(0.9, 0.97, 0, seed=5)
    alone = [rule.pick(TorchScores(block[i : i + 1]), 0, i) for i in range(9)]
    assert [rule.pick(TorchScores(block), i, i) for i in range(9)] == alone
    assert isinstance(TorchScores(block), Drawer)
    assert not isinstance(FakeScores([[0.0]]), Drawer)


def test_likely_tokens_and_their_chances() -> None:
    found = likely(torch.tensor([1.0, 3.0, 2.0]), 2)
    assert [token for token, _ in found] == [1, 2]
    assert [chance for _, chance in found] == pytest.approx([0.66524, 0.24473], abs=1e-4)
