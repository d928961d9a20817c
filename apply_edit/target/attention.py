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

import torch
from torch import Tensor

from apply_edit.target.cache import KeyValueCache

NAME = "apply_edit_grouped"


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
    scores = torch.baddbmm(
        folded.new_empty(1, 1, 1), folded, key.transpose(1, 2), beta=0, alpha=scaling
    )
    tail = mask.shape[-1]
    scores.view(groups, heads // groups, rows, span)[..., span - tail :].add_(mask)
    weights = torch.softmax(scores, dim=-1)
    mixed = torch.bmm(weights[..., : chunk or span], value[:, : chunk or span])
    for start in range(chunk, span if chunk else 0, chunk or span):
        keys = slice(start, start + chunk)
        mixed = torch.baddbmm(mixed, weights[..., keys], value[:, keys])
    return mixed.view(heads, rows, dim).transpose(0, 1)


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
