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
    """A branch of this pass: its rows `start` to `stop`, standing at position `position` on."""

    start: int
    stop: int
    position: int


@dataclass(slots=True)
class PassPlan:
    """Where the rows of one pass stand and which keys they see.

    `main` rows continue the `past` cached positions; each side chain stands where it would
    stand alone. `span` is the key length of the pass, rounded up to one that agrees bit for bit
    with its neighbours. `masks` are additive [rows, span - past] for the main chain and
    [rows, span - past] for each side. Where nothing but keys and values is wanted, `last` is the
    layer whose keys end the pass.
    """

    cache: KeyValueCache
    past: int
    main: int
    span: int
    sides: Sequence[Side]
    mask: Tensor
    side_masks: Sequence[Tensor] = field(default_factory=tuple)
    last: int | None = None


class Filled(Exception):  # noqa: N818
    """A pass has written the keys and values it was run for; what its last layer would still
    compute from them, nobody reads."""


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float) -> Tensor:
    """Attention of `query` over cached keys.

    query: [heads, rows, dim]; key, value: [groups, span, dim]; mask: [rows, tail], added to the
    scores of the last `tail` keys (the keys before them are seen by every row).
    Returns [rows, heads, dim].
    """
    if query.shape[1] == 1:
        # A lone row takes another kernel where heads are not grouped; two rows never do.
        doubled = attend(query.expand(-1, 2, -1), key, value, mask.expand(2, -1), scaling)
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
    mixed = torch.bmm(weights, value)
    return mixed.view(heads, rows, dim).transpose(0, 1)


def grouped_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    plan: PassPlan,
    **unused: object,
) -> tuple[Tensor, None]:
    """The attention interface of transformers over the plan's cache.

    query: [1, heads, rows, dim]; key, value: [1, groups, rows, dim] of this pass alone. The main
    rows' keys are written behind the cache; then each side chain's keys stand there for its own
    rows, so that a branch sees its keys in the order in which it would see them alone.
    """
    layer = module.layer_idx
    keys, values = plan.cache.layer(layer)
    span, past, main = plan.span, plan.past, plan.main
    keys[:, past : past + main] = key[0, :, :main]
    values[:, past : past + main] = value[0, :, :main]
    if layer == plan.last:
        raise Filled
    parts = [attend(query[0, :, :main], keys[:, :span], values[:, :span], plan.mask, scaling)]
    for side, mask in zip(plan.sides, plan.side_masks, strict=True):
        rows = side.stop - side.start
        place = slice(side.position, side.position + rows)
        keys[:, place] = key[0, :, side.start : side.stop]
        values[:, place] = value[0, :, side.start : side.stop]
        parts.append(
            attend(
                query[0, :, side.start : side.stop], keys[:, :span], values[:, :span], mask, scaling
            )
        )
        held = min(side.position + rows, past + main) - side.position
        if held > 0:
            first = side.position - past
            keys[:, side.position : side.position + held] = key[0, :, first : first + held]
            values[:, side.position : side.position + held] = value[0, :, first : first + held]
    if plan.sides:
        plan.cache.remember(layer, key[0], value[0])
    mixed = torch.cat(parts) if len(parts) > 1 else parts[0]
    padded = query.shape[2] - mixed.shape[0]
    if padded:
        mixed = torch.cat([mixed, mixed[-1:].expand(padded, -1, -1)])
    return mixed.contiguous().unsqueeze(0), None


def register() -> None:
    """Make the interface known to transformers under `NAME`."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, grouped_attention)
    AttentionMaskInterface.register(NAME, _given_mask)


def _given_mask(*_args: object, **_kwargs: object) -> None:
    """Masks are the plan's; transformers need not build any."""
