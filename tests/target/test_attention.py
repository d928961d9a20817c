"""Attention: in chunks and for several sides at once it is what it is whole and one by one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from apply_edit.target import attention
from apply_edit.target.attention import PassPlan, Side, attend, attend_sides, turns
from apply_edit.target.cache import KeyValueCache
from apply_edit.target.linear import can_pack
from apply_edit.target.probe import cancelling, mirrored
from tests.target.families import same

pytestmark = pytest.mark.usefixtures("one_thread")

CHUNK, MAIN = 256, 7
DTYPES = [torch.bfloat16, torch.float32]


def hiding(span: int, past: int, position: int, rows: int) -> Tensor:
    """The mask of `rows` at `position`, over the keys from `past` on."""
    hidden = torch.arange(past, span)[None] > torch.arange(position, position + rows)[:, None]
    return torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf"))


def usual(dtype: torch.dtype) -> None:
    if dtype == torch.bfloat16 and not can_pack(dtype):
        pytest.skip("this CPU emulates bf16")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("past", [10, 255, 256, 700, 1100])
@pytest.mark.parametrize("sizes", [[2, 1], [3, 1, 2, 1, 1, 5], [1] * 12])
def test_sides_at_once_are_the_sides_alone(dtype: torch.dtype, past: int, sizes: list[int]) -> None:
    usual(dtype)
    heads, groups, dim = 6, 2, 32
    rows = MAIN + sum(sizes)
    generator = torch.Generator().manual_seed(past)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    query, key, value = (
        random(heads, rows, dim),
        random(groups, rows, dim),
        random(groups, rows, dim),
    )
    keys, values = random(groups, 2048, dim), random(groups, 2048, dim)
    keys[:, past : past + MAIN], values[:, past : past + MAIN] = key[:, :MAIN], value[:, :MAIN]
    sides: list[Side] = []
    for fork, size in enumerate(sizes):
        start = sides[-1].stop if sides else MAIN
        sides.append(Side(start, start + size, past + 1 + fork % MAIN))
    end = max(past + MAIN, *(side.position + side.stop - side.start for side in sides))
    span = -(-end // CHUNK) * CHUNK
    masks = [hiding(span, past, s.position, s.stop - s.start).to(dtype) for s in sides]
    plan = PassPlan(
        cache=KeyValueCache(1, groups, dim, dtype=dtype, device=torch.device("cpu")),
        past=past,
        main=MAIN,
        span=span,
        sides=sides,
        mask=hiding(span, past, past, MAIN).to(dtype),
        side_masks=masks,
        chunk=CHUNK,
    )
    found = attend_sides(query, key, value, plan, (keys[:, :span], values[:, :span]), 0.2)
    for side, mask, result in zip(sides, masks, found, strict=True):
        own = keys[:, :span].clone(), values[:, :span].clone()
        place = slice(side.position, side.position + side.stop - side.start)
        own[0][:, place] = key[:, side.start : side.stop]
        own[1][:, place] = value[:, side.start : side.stop]
        alone = attend(query[:, side.start : side.stop], *own, mask, 0.2, CHUNK)
        assert same(result, alone)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_mixed_in_chunks_are_what_they_are_whole(dtype: torch.dtype) -> None:
    query, key, value = (
        torch.randn(n, length, 32, generator=torch.Generator().manual_seed(length)).to(dtype)
        for n, length in ((4, 9), (2, 700), (2, 701))
    )
    mask = hiding(700, 691, 691, 9).to(dtype)
    whole = attend(query, key, value[:, :700], mask, 0.2)
    chunks = attend(query, key, value[:, :700], mask, 0.2, CHUNK)
    close = 3e-2 if dtype == torch.bfloat16 else 1e-5
    assert torch.allclose(whole, chunks, rtol=close, atol=close)


def test_keys_go_first_only_where_no_bit_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    dtype = torch.bfloat16
    usual(dtype)
    query, key = torch.randn(2, 12, 64).to(dtype), torch.randn(2, 512, 64).to(dtype)
    before = attention._scores(query, key, 0.5)
    monkeypatch.setattr(attention, "turns", lambda dtype: not turns(dtype))
    after = attention._scores(query, key, 0.5)
    assert torch.allclose(before.float(), after.float(), rtol=1e-2, atol=1e-2)
    assert torch.equal(before, after) or not turns(dtype)


def test_sums_of_probes_are_nothing_but_their_rounding() -> None:
    for length in (64, 255):
        rows = cancelling(40, length)
        assert torch.equal(rows.double().sum(1), torch.zeros(40, dtype=torch.double))
        products = mirrored(5, length).double() @ rows.double().T
        assert products.abs().max() < 1e-11
        assert rows.abs().max() > 1.0
    # Two orders of adding up differ in most of them.
    rows = cancelling(400, 512)
    other = rows.view(400, 2, 256).sum(2).sum(1)
    one_by_one = rows.cumsum(1)[:, -1]
    assert (other != one_by_one).float().mean() > 0.5
