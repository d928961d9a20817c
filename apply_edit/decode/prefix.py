"""How far two sequences of tokens agree."""

from __future__ import annotations

from collections.abc import Sequence


def shared_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading tokens of `a` and `b` agree.

    >>> shared_prefix([1, 2, 3], (1, 2, 4, 5))
    2
    """
    most = min(len(a), len(b))
    # Nearly always the shorter one is a prefix, and lists compare faster than a loop.
    if list(a[:most]) == list(b[:most]):
        return most
    return next(i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
