"""Numbers whose sums show in what order they were added.

Two orders of summation differ in the last bits of a float32 sum, and bfloat16 rounds nearly all of
that away: random numbers would show it in one result of many thousands. Here the numbers of a sum
cancel, so that what is left is nothing but its rounding, and differs with the order in most.
"""

from __future__ import annotations

import torch
from torch import Tensor

SPREAD = 4
"""Magnitudes differ by up to 2 to this power."""


def cancelling(rows: int, length: int) -> Tensor:
    """[rows, length] in float32: each number of a row is there with the other sign, too."""
    values = torch.randn(rows, length // 2, generator=_seeded(rows))
    scales = torch.randint(0, SPREAD + 1, values.shape, generator=_seeded(rows + 1))
    values = values * 2.0**scales
    return _scattered(values, -values, length)


def mirrored(rows: int, length: int) -> Tensor:
    """[rows, length] in float32: at the places of a number and of its opposite in `cancelling`
    rows of this length stand equal numbers, so products with them cancel, too."""
    values = torch.randn(rows, length // 2, generator=_seeded(rows + 2))
    return _scattered(values, values, length)


def _scattered(first: Tensor, second: Tensor, length: int) -> Tensor:
    rows = first.shape[0]
    odd = torch.zeros(rows, length % 2)
    places = torch.randperm(length, generator=_seeded(length))
    return torch.cat([first, second, odd], dim=1)[:, places]


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
