"""The arithmetic of speculative decoding (Leviathan et al. 2023, theorem 3.8 and corollary 3.9).

`alpha` is the chance that a drafted token is accepted given that all before it were, `k` the
draft length, `c` the cost of drafting one token in units of a pass of the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


def expected_tokens(alpha: float, k: int) -> float:
    """Tokens that a pass yields on average: (1 - alpha^(k+1)) / (1 - alpha).

    >>> round(expected_tokens(0.8, 4), 2)
    3.36
    """
    _check(alpha, k)
    if alpha == 1.0:
        return k + 1.0
    return float((1.0 - alpha ** (k + 1)) / (1.0 - alpha))


def pass_cost(k: int, c: float) -> float:
    """The cost of drafting k tokens and verifying them, in passes of the target: 1 + k·c."""
    _check(0.0, k)
    return 1.0 + k * c


def speedup(alpha: float, k: int, c: float) -> float:
    """How many times faster than one token per pass.

    >>> round(speedup(0.6, 8, 0.05), 2)
    1.77
    """
    return expected_tokens(alpha, k) / pass_cost(k, c)


def best_k(alpha: float, c: float, limit: int = 256) -> int:
    """The draft length of greatest speedup, at most `limit` (the shortest of equals)."""
    return max(range(limit + 1), key=lambda k: (speedup(alpha, k, c), -k))


def expected_survivors(survival: Iterable[float]) -> float:
    """Tokens accepted on average; token i holds with chance `survival[i]` if all before did."""
    total, alive = 0.0, 1.0
    for chance in survival:
        alive *= chance
        total += alive
    return total


def tokens_per_second(survival: Iterable[float], cost: Callable[[int], float], rows: int) -> float:
    """Tokens per second of a pass over that chain and its target token.

    `cost(rows)` is the pass in milliseconds; `rows` counts all rows, the decided token included.
    """
    return 1000.0 * (1.0 + expected_survivors(survival)) / cost(rows)


def _check(alpha: float, k: int) -> None:
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha is a chance, not {alpha}")
    if k < 0:
        raise ValueError(f"k counts tokens, not {k}")
