"""Linear layers in 4 bits, for drafting: a narrow pass reads a quarter of the bytes.

Each group of `GROUP` weights along a row has a scale and a zero point. Weights that came out of a
4-bit file lie on such a grid already, one of at most 15 steps; the search over step counts finds
it again, so that these layers give nearly the target's own numbers. Nearly is enough for a
draft and never for the target. The operators are private to torch and made for CPUs: they are
probed before use.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

GROUP = 32
"""Weights per scale: the grid of the 4-bit files models are handed out in; 64 is a tenth faster
and off by twenty times as much on such weights."""
STEPS = (14, 13, 12, 11, 10)
"""Tried, after 15, for groups that do not reach from one end of their grid to the other."""
FITS = 1e-3
"""Mean square error, in steps, of a group that lies on the grid but for its rounding."""
KERNEL = torch.bfloat16
"""What the operator multiplies, whatever the target's own type: its kernel for float32 is a plain
loop, seven times as slow."""
BLOCK = 1 << 20
"""Weights worked on at a time: they stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class FourBits:
    """A weight matrix in 4 bits. `packed`: uint8 [out, in / 2] in the order of this machine's
    kernel; `scales`: [in / GROUP, out, 2], scale and zero point."""

    packed: Tensor
    scales: Tensor

    @property
    def nbytes(self) -> int:
        return self.packed.nbytes + self.scales.nbytes


class FourBitLinear(nn.Module):
    """y = x W^T + b with W in 4 bits. x: [..., in], y: [..., out], both of the bias's type."""

    def __init__(self, weight: FourBits, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features = weight.packed.shape[0]
        self._weight = weight
        self._bias = bias

    def forward(self, x: Tensor) -> Tensor:
        weight = self._weight
        y: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(
            x.reshape(-1, x.shape[-1]).to(KERNEL), weight.packed, GROUP, weight.scales
        ).to(x.dtype)
        if self._bias is not None:
            y += self._bias
        return y.view(*x.shape[:-1], self.out_features)


def fits(out_features: int, in_features: int) -> bool:
    """Whether the kernel takes a matrix of this shape."""
    return out_features % 16 == 0 and in_features % GROUP == 0


def quantise(weight: Tensor) -> FourBits:
    """Round `weight` [out, in] to 4 bits. Raises ValueError unless it `fits`.

    Takes about a second per 300 million weights and core.
    """
    rows, columns = weight.shape
    if not fits(rows, columns):
        raise ValueError(f"a matrix of {rows} x {columns} cannot be packed in 4 bits")
    levels = torch.empty(rows, columns, dtype=torch.int32)
    scales = torch.empty(columns // GROUP, rows, 2, dtype=KERNEL)
    height = max(1, BLOCK // columns)
    for start in range(0, rows, height):
        part = weight[start : start + height].float().reshape(-1, GROUP)
        grid, scale, zero = _round(part)
        stop = min(start + height, rows)
        levels[start:stop] = grid.view(stop - start, columns)
        for place, values in enumerate((scale, zero)):
            scales[:, start:stop, place] = values.view(stop - start, -1).t().to(KERNEL)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(levels, 1)
    return FourBits(packed, scales)


def _round(groups: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Levels 0 to 15 [groups, GROUP], scale and zero point [groups, 1] of least square error."""
    least, greatest = torch.aminmax(groups, dim=1, keepdim=True)
    grid, scale, zero, error = _fit(groups, least, greatest, 15)
    open_ = torch.nonzero(error[:, 0] > FITS * GROUP * scale[:, 0] ** 2).flatten()
    for steps in STEPS:
        if not open_.numel():
            break
        found = _fit(groups[open_], least[open_], greatest[open_], steps)
        better = (found[3] < error[open_])[:, 0]
        taken = open_[better]
        for kept, new in zip((grid, scale, zero, error), found, strict=True):
            kept[taken] = new[better]
        open_ = open_[error[open_, 0] > FITS * GROUP * scale[open_, 0] ** 2]
    return grid, scale, zero


def _fit(
    groups: Tensor, least: Tensor, greatest: Tensor, steps: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Levels, scale, zero point and square error if a group's range is `steps` steps wide."""
    # A group of equal weights has no range; any positive scale will do.
    scale = ((greatest - least) / steps).clamp_min_(1e-8).to(KERNEL).float()
    # The kernel computes (level - 8) * scale + zero.
    zero = (least + 8 * scale).to(KERNEL).float()
    grid = ((groups - zero) / scale).round_().clamp_(-8, 7)
    error = (grid * scale + zero - groups).square_().sum(dim=1, keepdim=True)
    return grid.add_(8), scale, zero, error


def restored(weight: FourBits) -> Tensor:
    """The matrix that a packed one stands for, [out, in]: what the kernel says of unit vectors."""
    size = weight.packed.shape[1] * 2
    unit = torch.eye(size, dtype=KERNEL)
    columns: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(
        unit, weight.packed, GROUP, weight.scales
    )
    return columns.t()


@cache
def can_quantise() -> bool:
    """Whether this CPU and build of torch multiply by 4-bit weights, and rightly."""
    generator = torch.Generator().manual_seed(0)
    # Weights on a grid of 16 levels come back as they are.
    levels = torch.randint(0, 16, (64, 2 * GROUP), generator=generator)
    levels[:, ::GROUP], levels[:, 1::GROUP] = 0, 15
    weight = ((levels - 6) * 0.125).to(KERNEL)
    x = torch.randn(3, 2 * GROUP, generator=generator).to(KERNEL)
    try:
        found = FourBitLinear(quantise(weight), None)(x)
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    wanted = functional.linear(x.float(), weight.float())
    return torch.allclose(found.float(), wanted, rtol=0.02, atol=0.02)
