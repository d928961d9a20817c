"""Lines of a sketch found again in the file: a chain of equal lines, in order, of most weight.

A sparse dynamic programme over pairs of equal lines (Fenwick trees for the best predecessor), so
the time grows with the pairs and not with sketch × file; lines that occur all over the file count
only beside others that agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from apply_edit.text.fresh import fresh, openers
from apply_edit.text.outline import defined_name, indent_of

COMMON = 24
"""A line that occurs more often than this anchors only together with a neighbour."""
_STEP = 0.04  # cost of a line of the file that the sketch drops between two anchors
_LEAP = 1.6  # most that such a gap costs
_APART = 0.12  # cost of any break in a run of equal lines
_BESIDE = 0.25  # gain of following its neighbour without a break
_HEADER = 0.3  # further cost where such a line begins a definition
_EDGE = 3.0  # lines of the sketch beside a marker are context more often than not
_MOVED = 0.4  # worth of an equal line that stands at another depth than its segment
_VOID = 0.3  # cost of a marker that would stand for nothing


@dataclass(frozen=True, slots=True)
class Pair:
    """Line `sketch` of the sketch is line `original` of the file; `exact`: equal but for blanks."""

    sketch: int
    original: int
    exact: bool


class _Best:
    """Prefix maximum over line numbers (a Fenwick tree), with the node that gave it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._tree: dict[int, tuple[float, int]] = {}

    def add(self, line: int, score: float, node: int) -> None:
        at = line + 1
        while at <= self._size:
            if at not in self._tree or self._tree[at][0] < score:
                self._tree[at] = (score, node)
            at += at & -at

    def before(self, line: int) -> tuple[float, int] | None:
        """The best of all lines below `line`."""
        best, at = None, line
        while at > 0:
            here = self._tree.get(at)
            if here is not None and (best is None or here[0] > best[0]):
                best = here
            at -= at & -at
        return best


def weight(line: str) -> float:
    """How much an equal line says: blank lines and lone brackets little, words much."""
    text = line.strip()
    if not text:
        return 0.06
    letters = sum(map(str.isalnum, text[:60]))
    if letters == 0:
        return 0.2
    if text[0] == "@" and text[1:].isalnum():
        return 0.3
    if letters <= 5:
        return 0.5
    return 1.0


def align(
    sketch: Sequence[str],
    breaks: frozenset[int],
    original: Sequence[str],
    same_definition: Mapping[int, Sequence[int]] | None = None,
) -> list[Pair]:
    """The best chain of pairs, ascending in both.

    `breaks` holds the sketch lines before which a marker stands (any stretch of the file may
    lie there), and the length of the sketch if one ends it; `same_definition` names, per
    sketch line, file lines that define the same name.
    """
    nodes = _nodes(sketch, breaks, original, same_definition or {})
    size = len(original)
    cost = _costs(original)
    score: list[float] = []
    back: list[int] = []
    flat: list[Pair] = []
    near, far, gone = _Best(size), _Best(size), _Best(size)
    waiting: list[int] = []
    previous: dict[int, int] = {}
    for row, pairs in enumerate(nodes):
        if row in breaks:
            for node in waiting:
                gone.add(flat[node].original, score[node], node)
            near, far, waiting, previous = _Best(size), _Best(size), [], {}
        fresh: list[int] = []
        current: dict[int, int] = {}
        for pair, value in pairs:
            line = pair.original
            best, source = 0.0, -1
            if (found := near.before(line)) and found[0] - cost[line] - _APART > best:
                best, source = found[0] - cost[line] - _APART, found[1]
            if (found := far.before(line)) and found[0] - _LEAP - _APART > best:
                best, source = found[0] - _LEAP - _APART, found[1]
            if found := gone.before(line):
                gain = found[0] - (_VOID if flat[found[1]].original == line - 1 else 0.0)
                if gain > best:
                    best, source = gain, found[1]
            beside = previous.get(line - 1)
            if beside is not None and score[beside] + _BESIDE > best:
                best, source = score[beside] + _BESIDE, beside
            flat.append(pair)
            score.append(best + value)
            back.append(source)
            current[line] = len(flat) - 1
            fresh.append(len(flat) - 1)
        for node in fresh:
            line = flat[node].original
            near.add(line, score[node] + cost[line + 1], node)
            far.add(line, score[node], node)
        waiting += fresh
        previous = current
    if not flat:
        return []
    node = max(range(len(flat)), key=lambda n: (score[n], -n))
    chain = []
    while node >= 0:
        chain.append(flat[node])
        node = back[node]
    return chain[::-1]


def _costs(original: Sequence[str]) -> list[float]:
    """What dropping all lines above each line would cost (a running sum)."""
    total = [0.0]
    for line in original:
        step = _STEP if line.strip() else _STEP / 4
        total.append(total[-1] + step + (_HEADER if defined_name(line) else 0.0))
    return total


def _shifts(
    sketch: Sequence[str], breaks: frozenset[int], original: Sequence[str], spots: list[list[int]]
) -> list[int]:
    """Per sketch line, how far right its segment would move to stand as it does in the file."""
    votes: list[Counter[int]] = []
    group: list[int] = []
    for row, line in enumerate(sketch):
        if row in breaks or not votes:
            votes.append(Counter())
        group.append(len(votes) - 1)
        if len(spots[row]) <= 4 and weight(line) >= 0.5:
            for at in spots[row]:
                votes[-1][indent_of(original[at]) - indent_of(line)] += 1
    best = [max(v, key=lambda k, v=v: (v[k], k == 0), default=0) if v else 0 for v in votes]  # type: ignore[misc]
    for index, vote in enumerate(votes):
        if 2 * vote[0] >= vote[best[index]]:
            best[index] = 0  # a piece that was wrapped, not a sketch written further left
    return [best[g] for g in group]


def _nodes(
    sketch: Sequence[str],
    breaks: frozenset[int],
    original: Sequence[str],
    same: Mapping[int, Sequence[int]],
) -> list[list[tuple[Pair, float]]]:
    where: dict[str, list[int]] = {}
    for index, line in enumerate(original):
        where.setdefault(line.strip(), []).append(index)
    spots = [where.get(line.strip(), []) for line in sketch]
    shifts = _shifts(sketch, breaks, original, spots)
    weak = [weight(line) < 0.5 and bool(line.strip()) for line in sketch]
    for row, line in enumerate(sketch):
        if weak[row]:
            column = indent_of(line) + shifts[row]
            spots[row] = [at for at in spots[row] if indent_of(original[at]) == column]
    new, ends = _new(sketch, breaks, original, spots, same)
    rare = [
        0 < len(spots[row]) <= COMMON
        and bool(line.strip())
        and row not in ends
        and (row not in new or (len(spots[row]) == 1 and weight(line) >= 1.0))
        for row, line in enumerate(sketch)
    ]
    alone = breaks | {row + 1 for row in ends | new if row + 1 not in new}
    backed = _backed(frozenset(alone), spots, rare)
    edges = _edges(sketch, breaks)
    nodes: list[list[tuple[Pair, float]]] = []
    held: set[int] = set()
    for row, line in enumerate(sketch):
        if row in breaks:
            held = set()
        here = set(spots[row]) if held or backed[row] else set()
        if rare[row]:
            chosen = spots[row]
        elif spots[row]:
            chosen = sorted(({at + 1 for at in held} | backed[row]) & here)
            common = len(spots[row]) > 8 * COMMON or not line.strip() or row in new or row in ends
            if not chosen and not common:
                chosen = spots[row]
        else:
            chosen = []
        base = weight(line)
        uncommon = 1.0 if len(spots[row]) == 1 else 0.85
        row_nodes = []
        for at in chosen:
            value = base * uncommon * (_EDGE if row in edges else 1.0)
            if base >= 0.5 and indent_of(original[at]) - indent_of(line) != shifts[row]:
                value *= _MOVED
            elif original[at] == line:
                value *= 1.05
            row_nodes.append((Pair(row, at, True), value))
        if not chosen:
            row_nodes += [(Pair(row, at, False), 0.7) for at in same.get(row, ())]
        held = set(chosen)
        nodes.append(row_nodes)
    return nodes


def _edges(sketch: Sequence[str], breaks: frozenset[int]) -> set[int]:
    """The two outermost lines that are not blank at either side of every marker."""
    edges: set[int] = set()
    for at in breaks:
        for rows in (range(at, len(sketch)), range(at - 1, -1, -1)):
            edges.update(islice((row for row in rows if sketch[row].strip()), 2))
    return edges


def _new(
    sketch: Sequence[str],
    breaks: frozenset[int],
    original: Sequence[str],
    spots: list[list[int]],
    same: Mapping[int, Sequence[int]],
) -> tuple[set[int], set[int]]:
    """The lines of definitions and blocks that are new to the file, and the blocks' closers.

    They anchor on their own only where they are unique, closers never, and no line below the
    block speaks for its last one.
    """
    found = [row not in same and not spots[row] for row in range(len(sketch))]
    heads = {row for row, line in enumerate(sketch) if found[row] and defined_name(line)}
    known = {defined_name(line) for line in original} if heads else set()
    new: set[int] = set()
    ends: set[int] = set()
    cuts = sorted({0, *breaks, len(sketch)})
    for start, end in pairwise(cuts):
        rows = sketch[start:end]
        if heads:
            for stretch in fresh(rows, known):
                if start + stretch[0] in heads:
                    new.update(start + row for row in stretch)
        outer = end
        for row, head in reversed(openers(rows).items()):  # a block before those inside it
            if found[start + head]:
                ends.add(start + row)
                if start + row < outer:
                    outer = start + head
                    new.update(range(outer, start + row))
    return new, ends


def _backed(alone: frozenset[int], spots: list[list[int]], rare: list[bool]) -> list[set[int]]:
    """Per common line, the places where the next line agrees as well, if that is not `alone`."""
    backed: list[set[int]] = [set() for _ in spots]
    for row in range(len(spots) - 2, -1, -1):
        if not rare[row] and spots[row] and row + 1 not in alone:
            after = spots[row + 1] if rare[row + 1] else backed[row + 1]
            if after:
                backed[row] = {at - 1 for at in after} & set(spots[row])
    return backed
