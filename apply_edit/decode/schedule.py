"""How long to draft: the k with the most expected tokens per second.

A pass over k drafted tokens costs what the machine's table says and yields one token more than
its accepted prefix. The chance that token i of a copy holds is not the same for all i: right
after a resync one token in five falls, after a hundred agreeing tokens one in three hundred. The
hazard curve below says so for edits of source files; each region's own history scales it (events
seen over events expected, a Gamma-Poisson estimate), old passes weighing less.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise

from apply_edit.decode.types import Draft

DEFAULT_COST: tuple[tuple[int, float], ...] = (
    (1, 84.0),
    (2, 84.0),
    (4, 89.0),
    (8, 101.0),
    (16, 115.0),
    (32, 179.0),
    (64, 295.0),
    (128, 540.0),
    (256, 1050.0),
)
"""Milliseconds of a pass by rows, for a machine not measured yet: only the shape matters here
(flat up to about 8 rows, then linear), and CPUs with fast bf16 and small models share it."""

HAZARD: tuple[tuple[int, float], ...] = (
    (0, 0.80),
    (1, 0.60),
    (2, 0.50),
    (4, 0.32),
    (6, 0.16),
    (8, 0.11),
    (11, 0.09),
    (12, 0.055),
    (16, 0.036),
    (20, 0.025),
    (24, 0.015),
    (52, 0.009),
    (68, 0.0042),
    (132, 0.0023),
    (260, 0.0015),
)
"""Chance that the token behind `match` agreeing ones falls."""

WEIGHT = 5.0
"""How many expected rejections the curve's own word counts for."""
DECAY = 0.98
"""What a pass keeps of the evidence before it."""
LEAST, MOST = 0.5, 6.0
"""Bounds of a region's scale."""
LONG, SLACK = 100, 0.02
"""Behind k = 100 the rate is flat: the longest draft within 2 % of the best rate is taken, since
each pass also costs what no table shows (the loop, the display, waking the threads)."""
NARROW = 1.3
"""A pass that costs at most so many narrowest passes still counts as narrow."""
GAIN = 1.6
"""A row has to promise so many times what it costs: an accepted guess seldom saves a whole pass."""


class CostTable:
    """Milliseconds of a pass by its rows: linear between measured counts and beyond the last.

    >>> CostTable([(1, 80.0), (8, 100.0), (16, 140.0)])(12)
    120.0
    """

    def __init__(self, points: Sequence[tuple[int, float]] = DEFAULT_COST) -> None:
        merged = dict(sorted(points))
        if not merged or min(merged) < 1 or min(merged.values()) <= 0.0:
            raise ValueError("a cost table needs positive times for positive row counts")
        self._rows = list(merged)
        self._times: list[float] = []
        for time in merged.values():
            # A wider pass measured faster than a narrower one is noise (or a slow single-row
            # kernel that the engine pads away): the table must not reward it.
            self._times.append(max(time, self._times[-1] if self._times else 0.0))
        self._known: dict[int, float] = {}

    def __call__(self, rows: int) -> float:
        time = self._known.get(rows)
        if time is None:
            time = self._known[rows] = self._interpolate(rows)
        return time

    @property
    def free_rows(self) -> int:
        """How many rows a pass of guesses may have: 4 to 64, as far as it stays narrow."""
        most = NARROW * self(1)
        return max((rows for rows in range(4, 65) if self(rows) <= most), default=4)

    @property
    def row_price(self) -> float:
        """The chance of acceptance that pays for one more row of a narrow pass."""
        rows = self.free_rows
        slope = (self(rows) - self(1)) / (rows - 1)
        return min(0.5, max(0.01, GAIN * slope / self(1)))

    def _interpolate(self, rows: int) -> float:
        counts, times = self._rows, self._times
        if rows <= counts[0]:
            return times[0]
        if len(counts) == 1:
            return times[0] * rows / counts[0]
        index = min(bisect_left(counts, rows), len(counts) - 1)
        low, high = counts[index - 1], counts[index]
        slope = (times[index] - times[index - 1]) / (high - low)
        return times[index - 1] + slope * (rows - low)


def in_batch(cost: Sequence[tuple[int, float]], requests: int) -> Sequence[tuple[int, float]]:
    """What a pass costs each of so many requests that share it, all with as many rows.

    Fewer rows are free than alone: the narrow pass is divided among them.
    """
    if requests < 2:
        return cost
    table = CostTable(cost)
    return [(rows, table(rows * requests) / requests) for rows, _ in cost]


class FixedSchedule:
    """Always k tokens, whatever happened before."""

    def __init__(self, k: int) -> None:
        if k < 0:
            raise ValueError(f"k counts tokens, not {k}")
        self._k = k

    @property
    def limit(self) -> int:
        return self._k

    def choose(self, draft: Draft) -> int:
        return min(self._k, len(draft.tokens))

    def record(self, draft: Draft, accepted: int, seconds: float) -> None:
        """Nothing is learnt."""


class _History:
    """Rejections seen and rejections the curve expected in one region, old ones fading."""

    __slots__ = ("expected", "seen")

    def __init__(self) -> None:
        self.seen = 0.0
        self.expected = 0.0

    def add(self, seen: float, expected: float) -> None:
        self.seen = self.seen * DECAY + seen
        self.expected = self.expected * DECAY + expected

    def scale(self, prior: float) -> float:
        """Rejections per expected one, `prior` counting as `WEIGHT` expected rejections."""
        return (prior * WEIGHT + self.seen) / (WEIGHT + self.expected)


class AdaptiveSchedule:
    """The k with the most expected tokens per second, from measured costs and what was accepted.

    `costs` is (rows, milliseconds) per measured row count. `most` bounds k. `requests` says how
    many share the passes now, in a batch.
    """

    def __init__(
        self,
        costs: Sequence[tuple[int, float]] | None = None,
        *,
        most: int = 256,
        requests: Callable[[], int] = lambda: 1,
    ) -> None:
        self._costs = costs if costs else DEFAULT_COST
        self._requests = requests
        self._tables: dict[int, CostTable] = {}
        self._most = most
        self._everywhere = _History()
        self._regions: dict[int, _History] = {}

    @property
    def cost(self) -> CostTable:
        """What a pass costs as things are."""
        requests = self._requests()
        if requests not in self._tables:
            self._tables[requests] = CostTable(in_batch(self._costs, requests))
        return self._tables[requests]

    @property
    def limit(self) -> int:
        return self._most

    def scale(self, region: int) -> float:
        """How much more often than the curve says a draft falls in this region."""
        overall = self._everywhere.scale(1.0)
        history = self._regions.get(region)
        scale = history.scale(overall) if history else overall
        return min(MOST, max(LEAST, scale))

    def choose(self, draft: Draft) -> int:
        if not draft.tokens:
            return 0
        side = sum(len(branch.tokens) for branch in draft.branches if branch.fork == 0)
        scale, cost = self.scale(draft.region), self.cost
        alive, tokens = 1.0, 1.0
        best, best_rate = 0, 1.0 / cost(1 + side)
        for k in range(1, min(len(draft.tokens), self._most) + 1):
            alive *= survival(draft.match + k - 1, scale)
            tokens += alive
            rate = tokens / cost(1 + side + k)
            if rate > best_rate * (1.0 - SLACK if k > LONG else 1.0):
                best, best_rate = k, max(rate, best_rate)
        return best

    def record(self, draft: Draft, accepted: int, seconds: float) -> None:
        if not draft.tokens:
            return
        fell = accepted < len(draft.tokens)
        expected = sum(hazard(draft.match + i) for i in range(accepted + fell))
        self._everywhere.add(float(fell), expected)
        self._regions.setdefault(draft.region, _History()).add(float(fell), expected)


def hazard(match: int) -> float:
    """The chance that the token behind `match` agreeing ones falls, before any history."""
    return _CURVE[match] if match < len(_CURVE) else _CURVE[-1]


def survival(match: int, scale: float) -> float:
    """The chance that the token behind `match` agreeing ones holds, under a region's scale."""
    # (1-h)^scale, not 1 - scale·h: it stays a chance for every scale.
    return float((1.0 - hazard(match)) ** scale)


def _curve() -> tuple[float, ...]:
    values = []
    for (low, start), (high, end) in pairwise(HAZARD):
        step = (end / start) ** (1.0 / (high - low))
        values += [start * step**i for i in range(high - low)]
    return (*values, HAZARD[-1][1])


_CURVE = _curve()
