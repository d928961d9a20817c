"""In what blocks of rows a linear layer is to be multiplied, so that each row keeps its bits.

A library of kernels chooses by the number of rows in what order a product is summed. On some CPUs
(those with matrix tiles) that order changes several times between 1 and 320 rows, and at other
counts for every shape of weights. Within a range of counts it is the same; so a layer is given
blocks of rows from one such range, and narrower passes are padded up to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor, nn

from apply_edit.events import OnEvent, Stage, ignore
from apply_edit.target.linear import PackedLinear
from apply_edit.target.probe import cancelling, mirrored

Shape = tuple[int, int]
"""Outputs and inputs of a layer."""

WIDEST = 320
LEAST = 64
"""The most rows that narrow passes may be padded to."""
NARROW, WIDE = 3, 256
"""An edit takes about three narrow passes for each of so many rows."""
HUGE = 1 << 27
"""Weights in a layer that is too slow to be tried with every count."""
TRIES = 3


@dataclass(frozen=True, slots=True)
class Range:
    """Row counts, both ends included, at which a product gives a row the same bits."""

    first: int
    last: int

    @property
    def divides(self) -> bool:
        """Whether any number of rows from `first` up can be cut into even blocks of this range."""
        return self.last >= min(2 * self.first - 1, WIDEST)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Passes have at least `least` rows; a layer multiplies at most `most[shape]` at once."""

    least: int
    most: Mapping[Shape, int]


def counts(weights: int) -> list[int]:
    """The row counts to try with a layer of so many weights, ascending: all, where that is quick,
    since a single count can have an order of its own."""
    if weights >= HUGE:
        return [*range(1, 41), *range(48, WIDEST + 1, 16)]
    return list(range(1, WIDEST + 1))


def ranges(product: Callable[[Tensor], Tensor], rows: Tensor, tried: Sequence[int]) -> list[Range]:
    """The ranges of `tried` row counts in which `product` agrees.

    product: [n, in] -> [n, out], for the first n of `rows` [WIDEST, in].
    """
    # The widest result seen of each way to sum, and the way of each count.
    known: list[Tensor] = []
    ways: list[int] = []
    for count in tried:
        result = product(rows[:count])
        way = next((i for i, other in enumerate(known) if _agree(result, other)), len(known))
        if way == len(known):
            known.append(result)
        ways.append(way)
        known[way] = max(known[way], result, key=len)
    found = [Range(tried[0], tried[0])]
    for before, (count, way) in zip(ways, zip(tried[1:], ways[1:], strict=True), strict=False):
        if way == before:
            found[-1] = Range(found[-1].first, count)
        else:
            found.append(Range(count, count))
    return found


def _agree(one: Tensor, other: Tensor) -> bool:
    both = min(len(one), len(other))
    return torch.equal(one[:both], other[:both])


def choose(
    found: Mapping[Shape, Sequence[Range]], cost: Callable[[Shape, int, int], float]
) -> Blocks | None:
    """The least number of rows and the blocks that cost least; None where nothing agrees.

    `cost(shape, rows, most)` is what all layers of a shape take for so many rows, in blocks of at
    most `most`.
    """
    best: tuple[float, Blocks] | None = None
    for least in sorted({r.first for some in found.values() for r in some if r.first <= LEAST}):
        most: dict[Shape, int] = {}
        for shape, some in found.items():
            fitting = [r.last for r in some if r.first <= least and r.divides]
            if not fitting:
                break
            most[shape] = max(fitting)
        else:
            price = sum(
                NARROW * cost(shape, least, some) + cost(shape, WIDE, some)
                for shape, some in most.items()
            )
            if best is None or price < best[0]:
                best = price, Blocks(least, most)
    return best[1] if best else None


def find(model: nn.Module, on_event: OnEvent = ignore) -> Blocks | None:
    """Measure the packed layers of `model`, and choose; None where some layer is not packed."""
    layers: dict[Shape, list[PackedLinear]] = {}
    for module in model.modules():
        if isinstance(module, nn.Linear):
            return None
        if isinstance(module, PackedLinear):
            module.most = 0
            layers.setdefault((module.out_features, module.in_features), []).append(module)
    dtype = next(model.parameters()).dtype
    found = {}
    inputs = {}
    with torch.inference_mode():
        for done, (shape, same) in enumerate(layers.items()):
            on_event(Stage("calibrate", 100 * done // len(layers), 100, "%"))
            outputs, width = shape
            inputs[shape] = mirrored(WIDEST, width).to(dtype)
            product = same[0]
            if outputs * width < HUGE:  # of the others no second one need fit into memory
                bias = same[0].bias
                zeros = None if bias is None else torch.zeros_like(bias)
                product = PackedLinear(cancelling(outputs, width).to(dtype), zeros)
            found[shape] = ranges(product, inputs[shape], counts(outputs * width))

        def cost(shape: Shape, rows: int, most: int) -> float:
            layer = layers[shape][0]
            layer.most = most
            times = []
            for _ in range(TRIES):
                started = perf_counter()
                layer(inputs[shape][:rows])
                times.append(perf_counter() - started)
            layer.most = 0
            return min(times) * len(layers[shape])

        return choose(found, cost) if found else None


def apply(model: nn.Module, most: Mapping[Shape, int]) -> None:
    """Have the packed layers of `model` multiply in blocks of at most `most[shape]` rows."""
    for module in model.modules():
        if isinstance(module, PackedLinear):
            module.most = most.get((module.out_features, module.in_features), 0)
