"""Row-invariant grouped attention: a row's result does not depend on the rows beside it.

The query heads of a group are folded into rows, so that one matrix product per group serves
them; softmax runs per row, masked keys weigh exactly zero. Stock kernels (flash, math) choose
their order of summation by the number of rows and give the same token other bits in another
pass; here each row is summed in one order for every row count and every key length that
`calibrate` found to agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import torch
from torch import Tensor

from apply_edit.target.cache import KeyValueCache
from apply_edit.target.probe import cancelling, mirrored

NAME = "apply_edit_grouped"
TURNED = 128
"""Rows of queries up to which keys come first in their product (see `turns`)."""


@dataclass(frozen=True, slots=True)
class Side:
    """A branch: its rows `start` to `stop` of the request's, standing at position `position` on."""

    start: int
    stop: int
    position: int


@dataclass(slots=True)
class PassPlan:
    """Where the rows of one request stand in a pass and which keys they see.

    Its rows follow one another from row `offset` of the pass on; rows of `sides` count from
    there. `main` rows continue the `past` cached positions; each side chain stands where it would
    stand alone. `span` is the key length of the pass, rounded up to one that agrees bit for bit
    with its neighbours; values are mixed `chunk` keys at a time (0: all at once). `masks` are
    additive [rows, span - past] for the main chain and [rows, span - past] for each side.
    """

    cache: KeyValueCache
    past: int
    main: int
    span: int
    sides: Sequence[Side]
    mask: Tensor
    side_masks: Sequence[Tensor] = field(default_factory=tuple)
    offset: int = 0
    chunk: int = 0

    @property
    def stop(self) -> int:
        """The row of the pass behind the last of these."""
        return self.offset + (self.sides[-1].stop if self.sides else self.main)

    def write(self, layer: int, key: Tensor, value: Tensor) -> None:
        """Put the main rows' keys and values, of [groups, rows, dim], behind the cached ones."""
        keys, values = self.cache.layer(layer)
        keys[:, self.past : self.past + self.main] = key[:, : self.main]
        values[:, self.past : self.past + self.main] = value[:, : self.main]


class Filled(Exception):  # noqa: N818
    """A pass has written the keys and values it was run for; what its last layer would still
    compute from them, nobody reads."""


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float, chunk: int = 0
) -> Tensor:
    """Attention of `query` over cached keys.

    query: [heads, rows, dim]; key, value: [groups, span, dim]; mask: [rows, tail], added to the
    scores of the last `tail` keys (the keys before them are seen by every row). Values are mixed
    `chunk` keys at a time (0: all at once): where kernels choose their order of summation by the
    number of keys, each chunk still has one, and those that are masked add exactly nothing.
    Returns [rows, heads, dim].
    """
    if query.shape[1] == 1:
        # A lone row takes another kernel where heads are not grouped; two rows never do.
        doubled = attend(query.expand(-1, 2, -1), key, value, mask.expand(2, -1), scaling, chunk)
        return doubled[:1]
    heads, rows, dim = query.shape
    groups, span, _ = key.shape
    folded = query.reshape(groups, heads // groups * rows, dim)
    scores = _scores(folded, key, scaling)
    tail = mask.shape[-1]
    scores.view(groups, heads // groups, rows, span)[..., span - tail :].add_(mask)
    weights = torch.softmax(scores, dim=-1)
    mixed = None
    for start in range(0, span, chunk or span):
        keys = slice(start, start + (chunk or span))
        mixed = _mixed(mixed, weights[..., keys], value[:, keys])
    assert mixed is not None
    return mixed.view(heads, rows, dim).transpose(0, 1)


def attend_sides(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    plan: PassPlan,
    seen: tuple[Tensor, Tensor],
    scaling: float,
) -> list[Tensor]:
    """`attend` for the rows of all sides of a `plan` at once: [rows, heads, dim] for each of them.

    query: [heads, rows, dim]; key, value: [groups, rows, dim], of this pass; seen: cached keys and
    values [groups, span, dim] with the main rows' own behind the past ones. Up to the last whole
    chunk of the past all sides see the same keys, and share the products; behind it each has a copy
    in which its own keys stand. Values are mixed as `attend` mixes them in chunks, bit for bit.
    """
    heads, rows, dim = query.shape
    groups, span, _ = seen[0].shape
    sides, chunk = plan.sides, plan.chunk
    folds, count = heads // groups, len(sides)
    base = plan.past - plan.past % chunk
    most = max(side.stop - side.start for side in sides)
    # Shorter sides repeat their last row.
    places = torch.tensor([[min(s.start + i, s.stop - 1) for i in range(most)] for s in sides])
    places = places.to(query.device)
    asking = query.view(groups, folds, rows, dim)[:, :, places]
    own = [tail[None, :, base:].repeat(count, 1, 1, 1) for tail in seen]
    for number, side in enumerate(sides):
        place = slice(side.position - base, side.position - base + side.stop - side.start)
        own[0][number, :, place] = key[:, side.start : side.stop]
        own[1][number, :, place] = value[:, side.start : side.stop]
    # [sides * groups, folds * rows of a side, ...]: a batch entry for each side and group.
    apart = asking.permute(2, 0, 1, 3, 4).reshape(count * groups, folds * most, dim)
    near = _scores(apart, own[0].view(count * groups, -1, dim), scaling)
    near = near.view(count, groups, folds, most, span - base)
    hidden = torch.stack(
        [torch.cat([m, m[-1:].expand(most - len(m), -1)]) for m in plan.side_masks]
    )
    near[..., span - base - hidden.shape[-1] :].add_(hidden[:, None, None])
    far = _scores(asking.reshape(groups, folds * count * most, dim), seen[0][:, :base], scaling)
    far = far.view(groups, folds, count, most, base).permute(2, 0, 1, 3, 4)
    weights = torch.softmax(torch.cat([far, near], dim=-1), dim=-1)
    # The chunks that all sides see, then each side's own.
    mixed = None
    shared = weights.permute(1, 2, 0, 3, 4).reshape(groups, folds * count * most, span)
    for start in range(0, base, chunk):
        keys = slice(start, start + chunk)
        mixed = _mixed(mixed, shared[..., keys], seen[1][:, keys])
    if mixed is not None:
        mixed = mixed.view(groups, folds, count, most, dim).permute(2, 0, 1, 3, 4)
        mixed = mixed.reshape(count * groups, folds * most, dim)
    weights = weights.reshape(count * groups, folds * most, span)
    values = own[1].view(count * groups, -1, dim)
    for start in range(0, span - base, chunk):
        keys = slice(base + start, base + start + chunk)
        mixed = _mixed(mixed, weights[..., keys], values[:, start : start + chunk])
    assert mixed is not None
    result = mixed.view(count, heads, most, dim).transpose(1, 2)
    return [result[i, : side.stop - side.start] for i, side in enumerate(sides)]


def _scores(query: Tensor, key: Tensor, scaling: float) -> Tensor:
    """query: [batch, rows, dim]; key: [batch, keys, dim]; [batch, rows, keys]."""
    start = query.new_empty(1, 1, 1)
    if query.shape[1] <= TURNED and query.device.type == "cpu" and turns(query.dtype):
        turned = torch.baddbmm(start, key, query.transpose(1, 2), beta=0, alpha=scaling)
        return turned.transpose(1, 2).contiguous()
    return torch.baddbmm(start, query, key.transpose(1, 2), beta=0, alpha=scaling)


@cache
def turns(dtype: torch.dtype) -> bool:
    """Whether this CPU gives queries times keys the bits of keys times queries.

    The library reorders the second factor before it multiplies, and the keys are many. So few
    queries go second where that changes nothing.
    """
    for rows, dim in ((2, 64), (12, 128), (50, 96), (TURNED, 128)):
        query = mirrored(2 * rows, dim).view(2, rows, dim).to(dtype)
        for keys in (256, 1024):
            key = cancelling(2 * keys, dim).view(2, keys, dim).to(dtype)
            usual = torch.bmm(query, key.transpose(1, 2))
            if not torch.equal(torch.bmm(key, query.transpose(1, 2)).transpose(1, 2), usual):
                return False
    return True


def _mixed(before: Tensor | None, weights: Tensor, values: Tensor) -> Tensor:
    """What values add to what was mixed before: [batch, rows, dim]."""
    return torch.bmm(weights, values) if before is None else before.baddbmm(weights, values)


def grouped_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    plan: Sequence[PassPlan],
    last: int | None = None,
    **unused: object,
) -> tuple[Tensor, None]:
    """The attention interface of transformers over the caches of the plan, a request at a time.

    query: [1, heads, rows, dim]; key, value: [1, groups, rows, dim] of this pass alone; rows
    behind those of the plan are padding. Each request's rows see its own keys and nothing else,
    by the operations of a pass in which it is alone. Where nothing but keys and values is wanted,
    `last` is the layer whose keys end the pass, by raising `Filled`.
    """
    layer = module.layer_idx
    parts = []
    for one in plan:
        rows = slice(one.offset, one.stop)
        if layer == last:
            one.write(layer, key[0, :, rows], value[0, :, rows])
            continue
        parts += _attend_one(
            layer, one, query[0, :, rows], key[0, :, rows], value[0, :, rows], scaling
        )
    if layer == last:
        raise Filled
    mixed = torch.cat(parts) if len(parts) > 1 else parts[0]
    padded = query.shape[2] - mixed.shape[0]
    if padded:
        mixed = torch.cat([mixed, mixed[-1:].expand(padded, -1, -1)])
    return mixed.contiguous().unsqueeze(0), None


def _attend_one(
    layer: int, plan: PassPlan, query: Tensor, key: Tensor, value: Tensor, scaling: float
) -> list[Tensor]:
    """Attention of one request's rows: [rows, heads, dim], the main rows and then each side's.

    query: [heads, rows, dim]; key, value: [groups, rows, dim]. The main rows' keys are written
    behind the cache; then each side chain's keys stand there for its own rows, so that a branch
    sees its keys in the order in which it would see them alone.
    """
    keys, values = plan.cache.layer(layer)
    span, past, main = plan.span, plan.past, plan.main
    plan.write(layer, key, value)
    seen = keys[:, :span], values[:, :span]
    parts = [attend(query[:, :main], *seen, plan.mask, scaling, plan.chunk)]
    if plan.chunk and len(plan.sides) > 1:
        parts += attend_sides(query, key, value, plan, seen, scaling)
        plan.cache.remember(layer, key, value)
        return parts
    for side, mask in zip(plan.sides, plan.side_masks, strict=True):
        rows = side.stop - side.start
        place = slice(side.position, side.position + rows)
        keys[:, place] = key[:, side.start : side.stop]
        values[:, place] = value[:, side.start : side.stop]
        parts.append(attend(query[:, side.start : side.stop], *seen, mask, scaling, plan.chunk))
        held = min(side.position + rows, past + main) - side.position
        if held > 0:
            first = side.position - past
            keys[:, side.position : side.position + held] = key[:, first : first + held]
            values[:, side.position : side.position + held] = value[:, first : first + held]
    if plan.sides:
        plan.cache.remember(layer, key, value)
    return parts


def register() -> None:
    """Make the interface known to transformers under `NAME`."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, grouped_attention)
    AttentionMaskInterface.register(NAME, _given_mask)


def _given_mask(*_args: object, **_kwargs: object) -> None:
    """Masks are the plan's; transformers need not build any."""
