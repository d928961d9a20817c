"""Which elements of two sequences are the same, in order: a longest common subsequence.

Shortest where the sequences are alike (Myers, "An O(ND) Difference Algorithm and Its
Variations", 1986), bounded where they are not: past some hundred edits the stretch is cut at
elements that occur once on both sides (patience), or, failing that, at the furthest point
reached. Time is near-linear in the length for any input, however many elements are equal.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import count

__all__ = ["Match", "common"]

Match = tuple[int, int, int]
"""(index in a, index in b, length) of a run of equal elements."""

_EDITS = 256
_WORK = 8_000_000  # inner steps that the worst input may cost, in all
_DEPTH = 24


def common(a: Sequence[Hashable], b: Sequence[Hashable], edits: int = _EDITS) -> list[Match]:
    """Runs of equal elements, ascending in both and never empty.

    The longest possible where no more than `edits` elements that occur on both sides differ.
    """
    if a == b:
        return [(0, 0, len(a))] if a else []
    names: dict[Hashable, int] = {}
    fresh = count()
    x = [names[e] if e in names else names.setdefault(e, next(fresh)) for e in a]
    y = [names[e] if e in names else names.setdefault(e, next(fresh)) for e in b]
    partner = [-1] * len(x)
    limit = max(1, min(edits, max(16, _WORK // (len(x) + len(y) + 1))))
    todo = [(0, len(x), 0, len(y), 0)]
    while todo:
        todo += _match(x, y, todo.pop(), partner, limit)
    return _runs(partner)


_Stretch = tuple[int, int, int, int, int]  # a from, a to, b from, b to, depth


def _match(
    x: list[int], y: list[int], stretch: _Stretch, partner: list[int], limit: int
) -> list[_Stretch]:
    """Pair what is common in one stretch; what is still to do comes back as smaller ones."""
    a0, a1, b0, b1, depth = stretch
    while a0 < a1 and b0 < b1 and x[a0] == y[b0]:
        partner[a0] = b0
        a0, b0 = a0 + 1, b0 + 1
    while a0 < a1 and b0 < b1 and x[a1 - 1] == y[b1 - 1]:
        a1, b1 = a1 - 1, b1 - 1
        partner[a1] = b1
    # Elements of one side only cannot match; without them few edits remain to be searched.
    here, there = set(x[a0:a1]), set(y[b0:b1])
    left = [i for i in range(a0, a1) if x[i] in there]
    right = [j for j in range(b0, b1) if y[j] in here]
    if not left or not right:
        return []
    u, v = [x[i] for i in left], [y[j] for j in right]
    pairs, i, j = _shortest(u, v, 0, 0, limit)
    if i < len(u) and j < len(v):
        anchors = _anchors(u, v) if depth < _DEPTH else []
        if anchors:
            return _between(anchors, left, right, (a0, a1, b0, b1, depth + 1), partner)
    while True:
        for p, q in pairs:
            partner[left[p]] = right[q]
        if i >= len(u) or j >= len(v):
            return []
        pairs, i, j = _shortest(u, v, i, j, limit)


def _between(
    anchors: list[tuple[int, int]],
    left: list[int],
    right: list[int],
    stretch: _Stretch,
    partner: list[int],
) -> list[_Stretch]:
    a0, a1, b0, b1, depth = stretch
    rest = []
    for p, q in anchors:
        partner[left[p]] = right[q]
        rest.append((a0, left[p], b0, right[q], depth))
        a0, b0 = left[p] + 1, right[q] + 1
    rest.append((a0, a1, b0, b1, depth))
    return rest


def _shortest(
    u: list[int], v: list[int], i0: int, j0: int, limit: int
) -> tuple[list[tuple[int, int]], int, int]:
    """Pairs of a shortest edit path from (i0, j0), and where it ends: the far corner, or the
    furthest point that `limit` edits reach.

    `reach[k]` is the furthest index in `u` on diagonal k (steps in u minus steps in v).
    """
    n, m, shift = len(u), len(v), i0 - j0
    wide, high = n - i0, m - j0
    limit = min(limit, wide + high)
    reach = [-1] * (2 * limit + 3)  # negative k counts from the end of the list
    reach[1] = i0
    trace: list[list[int]] = []
    for edits in range(limit + 1):
        low, top = -edits + 2 * max(0, edits - high), edits - 2 * max(0, edits - wide)
        for k in range(low, top + 1, 2):
            below, above = reach[k - 1], reach[k + 1]
            i = above if below < above else below + 1
            j = i - k - shift
            while i < n and j < m and u[i] == v[j]:
                i, j = i + 1, j + 1
            reach[k] = i
            if i >= n and j >= m:
                return _walk(trace, edits, n, m, shift, i0), n, m
        trace.append(reach.copy())
    ends = [(reach[k], reach[k] - k - shift) for k in range(-limit, limit + 1, 2) if reach[k] >= i0]
    ends = [(i, j) for i, j in ends if i <= n and j0 <= j <= m]
    if not ends:
        return [], n, m
    i, j = max(ends, key=lambda end: (end[0] + end[1], -abs(end[0] - end[1] - shift)))
    return _walk(trace, limit, i, j, shift, i0), i, j


def _walk(
    trace: list[list[int]], edits: int, i: int, j: int, shift: int, i0: int
) -> list[tuple[int, int]]:
    """Back from (i, j), reached with `edits` edits, to where i is `i0`."""
    pairs = []
    for step in range(edits, 0, -1):
        reach, k = trace[step - 1], i - j - shift
        below, above = reach[k - 1], reach[k + 1]
        down = below < above
        start = above if down else below + 1
        pairs += [(p, p - k - shift) for p in range(i - 1, start - 1, -1)]
        i, j = (above, above - (k + 1) - shift) if down else (below, below - (k - 1) - shift)
    return pairs + [(p, p - shift) for p in range(i - 1, i0 - 1, -1)]


def _anchors(u: list[int], v: list[int]) -> list[tuple[int, int]]:
    """The longest ascending chain of elements that occur once on both sides."""
    in_u, in_v = Counter(u), Counter(v)
    where = {e: j for j, e in enumerate(v) if in_v[e] == 1}
    pairs = [(i, where[e]) for i, e in enumerate(u) if in_u[e] == 1 and e in where]
    tails: list[int] = []
    heads: list[int] = []
    back: list[int] = []
    for index, (_, j) in enumerate(pairs):
        at = bisect_left(tails, j)
        tails[at : at + 1] = [j]
        heads[at : at + 1] = [index]
        back.append(heads[at - 1] if at else -1)
    chain = []
    index = heads[-1] if heads else -1
    while index >= 0:
        chain.append(pairs[index])
        index = back[index]
    return chain[::-1]


def _runs(partner: list[int]) -> list[Match]:
    runs: list[Match] = []
    for i, j in enumerate(partner):
        if j < 0:
            continue
        if runs and runs[-1][0] + runs[-1][2] == i and runs[-1][1] + runs[-1][2] == j:
            runs[-1] = (runs[-1][0], runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((i, j, 1))
    return runs
