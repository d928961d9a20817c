"""The accept rules: which token the target decides on, and how much of a draft that confirms.

A proposer here always names one token per place (its distribution q is 1 on that token).
Speculative sampling (Leviathan et al. 2023, Chen et al. 2023) then accepts x with probability
p(x) and on rejection draws from p without x, renormalised. Drawing y from p first and accepting
if y = x is the same law, so one `pick` per place serves greedy and sampled decoding alike, and
since the random number belongs to the place (not to the pass), the draft cannot change what is
picked: equal seeds give equal tokens whatever was proposed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from apply_edit.decode.types import Draft, Scores


class Rule(Protocol):
    """Decides the token at a place of the output."""

    def pick(self, scores: Scores, row: int, place: int) -> int:
        """The token that follows `row`; `place` is its index in the output."""
        ...


@runtime_checkable
class Drawer(Protocol):
    """Scores that can draw from a row themselves (vocabularies are long, and lists slow)."""

    def draw(self, row: int, temperature: float, top_p: float, top_k: int, point: float) -> int:
        """What ``draw(*distribution(self.row(row), ...), point)`` gives, however it is computed.

        The result depends on the row's logits alone, not on the rows beside it.
        """
        ...


class Greedy:
    """The token of the greatest logit; the lowest id of equals."""

    def pick(self, scores: Scores, row: int, place: int) -> int:
        return scores.greedy()[row]


@dataclass(frozen=True, slots=True)
class Sampled:
    """A draw from softmax(logits / temperature), cut to `top_k` tokens and `top_p` mass.

    `top_k=0` and `top_p=1.0` cut nothing. The uniform number of a place depends on `seed` and
    the place alone.
    """

    temperature: float
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0

    def pick(self, scores: Scores, row: int, place: int) -> int:
        point = uniform(self.seed, place)
        if isinstance(scores, Drawer):
            return scores.draw(row, self.temperature, self.top_p, self.top_k, point)
        tokens, weights = distribution(scores.row(row), self.temperature, self.top_p, self.top_k)
        return draw(tokens, weights, point)


def uniform(seed: int, place: int) -> float:
    """The uniform number in [0, 1) that belongs to a place of the output under a seed."""
    return random.Random(f"{seed}:{place}").random()


def distribution(
    logits: Sequence[float], temperature: float, top_p: float = 1.0, top_k: int = 0
) -> tuple[list[int], list[float]]:
    """Candidate tokens, most likely first, and their weights (unnormalised, greatest is 1).

    `logits`: float [vocab]. Tokens whose weight is below float resolution of the sum (e**-40 of
    the greatest) are left out; so is everything past `top_k` tokens or past `top_p` of the mass
    (the token that crosses the line stays in, as in Holtzman et al. 2020).
    """
    greatest = max(logits)
    least = greatest - 40.0 * temperature
    order = sorted(
        (token for token, logit in enumerate(logits) if logit >= least),
        key=lambda token: (-logits[token], token),
    )
    if top_k > 0:
        order = order[:top_k]
    weights = [math.exp((logits[token] - greatest) / temperature) for token in order]
    if top_p < 1.0:
        mass = sum(weights) * top_p
        reached = 0.0
        for count, weight in enumerate(weights, 1):
            reached += weight
            if reached >= mass:
                return order[:count], weights[:count]
    return order, weights


def draw(tokens: Sequence[int], weights: Sequence[float], point: float) -> int:
    """The token at `point` (0 <= point < 1) of the cumulated weights (inverse transform)."""
    left = point * sum(weights)
    for token, weight in zip(tokens, weights, strict=True):
        left -= weight
        if left < 0.0:
            return token
    return tokens[-1]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a pass decided: `main` tokens of the draft's chain held, then `side` tokens of
    branch number `branch`, then `token`, the target's own."""

    main: int
    branch: int | None
    side: int
    token: int


def accept(draft: Draft, scores: Scores, rule: Rule, place: int) -> Verdict:
    """Walk the draft along the rule's picks: the longest confirmed path, and the token after it.

    Row 0 of `scores` follows the last decided token, row i the i-th drafted one; the branches'
    rows stand behind the chain's, branch by branch. `place` is the output index of the first
    drafted token.
    """
    main = 0
    token = rule.pick(scores, 0, place)
    while main < len(draft.tokens) and draft.tokens[main] == token:
        main += 1
        token = rule.pick(scores, main, place + main)

    row = 1 + len(draft.tokens)
    best = Verdict(main, None, 0, token)
    for number, branch in enumerate(draft.branches):
        if branch.fork == main and branch.tokens and branch.tokens[0] == token:
            side = 0
            following = token
            while side < len(branch.tokens) and branch.tokens[side] == following:
                following = rule.pick(scores, row + side, place + main + side + 1)
                side += 1
            if side > best.side:
                best = Verdict(main, number, side, following)
        row += len(branch.tokens)
    return best
