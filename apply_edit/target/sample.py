"""Draws from a row of logits, fast for vocabularies of real size, to the law of decode/accept.py.

A row is worked on alone, never together with the other rows of its pass: a sum over a block may
be split by the block's height, and the same logits would then draw another token in a pass of
another width.
"""

from __future__ import annotations

import torch
from torch import Tensor

FAR = 40.0
"""Logits further below the greatest, in units of the temperature, are left out, as in accept."""
SLACK = 1e-4
"""More than float32 can be off in the sum of a row; closer calls are worked out in float64."""
FIRST_LOOK = 64
"""Candidates sorted at first; a draw beyond them looks at sixteen times as many, and so on."""


def draw(logits: Tensor, temperature: float, top_p: float, top_k: int, point: float) -> int:
    """The token at `point` of softmax(logits / temperature), cut to `top_k` tokens and `top_p`.

    logits: [vocab], any float type. The same token as `accept.distribution` and `accept.draw`
    give, but for points within rounding (about 1e-12 of the mass) of a border.
    """
    row = logits.float()
    greatest, best = row.max(dim=0)
    scaled = (row - greatest).div_(temperature)
    # Whatever is cut, the first token keeps its weight of 1 and the mass only shrinks: a point
    # below 1 of the whole mass falls on the first token. Copied stretches nearly always end here.
    if point * float(torch.exp(scaled).sum()) * (1.0 + SLACK) < 1.0:
        return int(best)
    return _walk(row, float(greatest), temperature, top_p, top_k, point)


def _walk(
    row: Tensor, greatest: float, temperature: float, top_p: float, top_k: int, point: float
) -> int:
    """The draw in float64, sorting no more candidates than the point asks for."""
    kept = torch.nonzero(row >= greatest - FAR * temperature).flatten()
    logits = row[kept].double()
    if 0 < top_k < kept.numel():
        # All that reach the k-th value stay until they are sorted, so that ties fall by token.
        reach = logits >= logits.topk(top_k).values[-1]
        kept, logits = kept[reach], logits[reach]
        logits, order = logits.sort(descending=True, stable=True)
        kept, logits = kept[order][:top_k], logits[:top_k]
    mass = float(torch.exp((logits - greatest) / temperature).sum())
    count = FIRST_LOOK
    while True:
        tokens, weights = _greatest(kept, logits, greatest, temperature, count)
        reached = weights.cumsum(0)
        limit = mass
        whole = tokens.numel() == kept.numel()
        if top_p < 1.0:
            crossed = torch.nonzero(reached >= mass * top_p).flatten()
            if crossed.numel():
                end = int(crossed[0]) + 1
                tokens, reached = tokens[:end], reached[:end]
                limit = float(reached[-1])
                whole = True
            elif not whole:
                count *= 16
                continue
        beyond = torch.nonzero(reached > point * limit).flatten()
        if beyond.numel():
            return int(tokens[beyond[0]])
        if whole:
            return int(tokens[-1])
        count *= 16


def _greatest(
    kept: Tensor, logits: Tensor, greatest: float, temperature: float, count: int
) -> tuple[Tensor, Tensor]:
    """At least `count` tokens (while there are as many), best first, equals by id; weights."""
    if count < kept.numel():
        reach = logits >= logits.topk(count).values[-1]
        kept, logits = kept[reach], logits[reach]
    logits, order = logits.sort(descending=True, stable=True)
    return kept[order], torch.exp((logits - greatest) / temperature)


def likely(logits: Tensor, count: int) -> list[tuple[int, float]]:
    """The `count` most likely tokens of a row and their chances at temperature 1."""
    row = logits.float()
    values, tokens = row.topk(count)
    chances = torch.exp(values - torch.logsumexp(row, 0))
    return list(zip(tokens.tolist(), chances.tolist(), strict=True))
