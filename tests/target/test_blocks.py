"""Blocks of rows: found where a product changes its order, and chosen by what they cost."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from apply_edit.target.blocks import HUGE, WIDEST, Blocks, Range, choose, counts, ranges
from apply_edit.target.linear import PackedLinear, can_pack

BIG, SMALL = (900, 100), (30, 100)


def stepped(*steps: int) -> list[Range]:
    """The ranges of a product that changes at `steps` rows."""

    def product(x: Tensor) -> Tensor:
        way = sum(x.shape[0] >= step for step in steps)
        return x + (way % 2) * 0.5

    return ranges(product, torch.arange(WIDEST * 3.0).view(WIDEST, 3), counts(300))


def test_ranges_end_where_a_row_gets_other_bits() -> None:
    assert stepped() == [Range(1, WIDEST)]
    assert stepped(33) == [Range(1, 32), Range(33, WIDEST)]
    # The same order again further up is a range of its own: what lies between is not.
    assert stepped(33, 128) == [Range(1, 32), Range(33, 127), Range(128, WIDEST)]
    assert stepped(2, 3) == [Range(1, 1), Range(2, 2), Range(3, WIDEST)]


def test_big_layers_are_tried_with_fewer_counts() -> None:
    for weights in (300, HUGE):
        tried = counts(weights)
        assert tried == sorted(set(tried))
        assert (tried[0], tried[-1]) == (1, WIDEST)
    assert len(counts(HUGE)) < len(counts(300)) / 2


@pytest.mark.parametrize(
    ("span", "divides"), [((1, 1), True), ((33, 36), False), ((37, 73), True), ((37, 72), False)]
)
def test_a_range_that_can_be_cut_into(span: tuple[int, int], divides: bool) -> None:
    some = Range(*span)
    assert some.divides == divides
    if divides:
        for rows in range(some.first, 400):
            parts = torch.zeros(rows).tensor_split(-(-rows // some.last))
            assert all(some.first <= len(part) <= some.last for part in parts)


def cost(block: float, row: float) -> object:
    """Each block costs, and each row."""
    return lambda shape, rows, most: shape[0] * (-(-rows // most) * block + rows * row)


def test_wide_blocks_are_chosen_where_each_block_reads_the_weights_again() -> None:
    found = {BIG: [Range(1, 32), Range(33, 127), Range(128, WIDEST)], SMALL: [Range(1, WIDEST)]}
    assert choose(found, cost(100.0, 1.0)) == Blocks(33, {BIG: 127, SMALL: WIDEST})  # type: ignore[arg-type]
    assert choose(found, cost(0.0, 1.0)) == Blocks(1, {BIG: 32, SMALL: WIDEST})  # type: ignore[arg-type]


def test_a_layer_whose_counts_never_divide_leaves_no_choice() -> None:
    found = {BIG: [Range(1, WIDEST)], SMALL: [Range(4, 5), Range(70, WIDEST)]}
    assert choose(found, cost(1.0, 1.0)) is None  # type: ignore[arg-type]
    # Another layer may keep to its own range below the least.
    found[SMALL] = [Range(1, 20), Range(21, 30)]
    found[BIG] = [Range(1, 3), Range(40, WIDEST)]
    assert choose(found, cost(100.0, 1.0)) == Blocks(40, {BIG: WIDEST, SMALL: 20})  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(1, 70, 48), (70, 48)])
def test_a_layer_in_blocks_is_the_layer(shape: tuple[int, ...]) -> None:
    if not can_pack(torch.float32):
        pytest.skip("this build of torch packs no weights")
    generator = torch.Generator().manual_seed(0)
    weight, x = torch.randn(16, 48, generator=generator), torch.randn(shape, generator=generator)
    layer = PackedLinear(weight, torch.randn(16, generator=generator))
    whole = layer(x)
    layer.most = 32
    assert layer(x).shape == whole.shape
    assert torch.allclose(layer(x), whole, rtol=1e-5, atol=1e-5)
    sizes: list[int] = []
    layer._product = lambda block: sizes.append(block.shape[-2]) or whole[..., : block.shape[-2], :]  # type: ignore[assignment,method-assign,func-returns-value]
    layer(x)
    assert sizes == [24, 23, 23]
