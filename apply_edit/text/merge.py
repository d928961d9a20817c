"""The merge of a sketch into a file, predicted by structure and context.

A draft for speculative decoding and a yardstick for the guards: the model still decides every
token, so this is always a best guess and says how sure it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from apply_edit.text.align import Pair, align, weight
from apply_edit.text.fresh import openers
from apply_edit.text.outline import block_end, defined_name, indent_of
from apply_edit.text.place import Place, anchored, defines, unanchored
from apply_edit.text.segments import Segment, Sketch, parse

_ASSIGNED = re.compile(r"^\s*([\w$.\"'@\[\]<>, \-]*[\w\"'\]>])\s*(?:=(?![=>])|:(?![:=])|:=)\s*\S")


@dataclass(frozen=True, slots=True)
class Prediction:
    """The merged text; `confidence` 0 (a guess) to 1 (every segment anchored at both ends)."""

    text: str
    confidence: float
    places: tuple[Place, ...]


def predict(original: str, update: str) -> Prediction:
    """Merge a sketch into a file.

    Takes time near-linear in the file. Raises UsageError `empty-sketch` like `parse`.

    >>> predict("a = 1\\nb = 2\\nc = 3\\n", "# ... existing code ...\\nb = 5\\nc = 3\\n").text
    'a = 1\\nb = 5\\nc = 3\\n'
    """
    lines = original.split("\n")
    ending = [""] if lines[-1] == "" else []
    if ending:
        lines.pop()
    places = _places(parse(update, original), lines)
    out: list[str] = []
    at = 0
    for place in places:
        out += lines[at : place.start]
        out += place.text
        at = place.end
    out += lines[at:]
    confidence = sum(p.confidence for p in places) / len(places)
    text = "\n".join(out + ending) if out or not original else ""
    return Prediction(text, round(confidence, 3), tuple(places))


def regions(update: str, original: str) -> list[tuple[int, int]]:
    """Line ranges (start, end) of the original, ascending, that the sketch touches.

    An insertion gives an empty range at its line; ranges that meet are joined.
    """
    joined: list[tuple[int, int]] = []
    for place in predict(original, update).places:
        if joined and place.start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], place.end))
        else:
            joined.append((place.start, place.end))
    return joined


def _places(sketch: Sketch, lines: list[str]) -> list[Place]:
    rows: list[str] = []
    breaks = set()
    offsets = []
    for segment in sketch.segments:
        if segment.before is not None:
            breaks.add(len(rows))
        offsets.append(len(rows))
        rows += segment.lines
        if segment.after is not None:
            breaks.add(len(rows))
    pairs = align(rows, frozenset(breaks), lines, _same_definitions(rows, lines))
    pairs = _matched(rows, pairs, lines)
    segments = list(sketch.segments)
    by_segment = [
        [
            Pair(p.sketch - offset, p.original, p.exact)
            for p in pairs
            if offset <= p.sketch < offset + len(segment.lines)
        ]
        for offset, segment in zip(offsets, segments, strict=True)
    ]
    by_segment = [_told(segment, own) for segment, own in zip(segments, by_segment, strict=True)]
    if sketch.markers == 0:
        segments, by_segment = _implicit(segments[0], by_segment[0], lines)
    places: list[Place] = []
    low = 0
    for index, (segment, own) in enumerate(zip(segments, by_segment, strict=True)):
        later = [p.original for group in by_segment[index + 1 :] for p in group[:1]]
        high = later[0] if later else len(lines)
        if own:
            place = anchored(segment, own, lines, low, high, index)
        else:
            place = unanchored(segments, by_segment, index, lines, low, high)
        places.append(place)
        low = place.end
    return places


def _matched(rows: Sequence[str], pairs: list[Pair], lines: Sequence[str]) -> list[Pair]:
    """The pairs, closing lines that are alike told apart: each ends the block that its opening
    line, paired too, begins in the file."""
    found = {pair.sketch: pair for pair in pairs}
    for row, opener in openers(rows).items():
        if row not in found or opener not in found or not found[opener].exact:
            continue
        last = block_end(lines, found[opener].original) - 1
        above = max(p.original for p in found.values() if p.sketch < row)
        below = min((p.original for p in found.values() if p.sketch > row), default=len(lines))
        if above < last < below and lines[last].strip() == rows[row].strip():
            found[row] = Pair(row, last, True)
    return [found[row] for row in sorted(found)]


def _told(segment: Segment, pairs: list[Pair]) -> list[Pair]:
    """The pairs without the blank lines at their ends, which say nothing of where to go."""
    rows = [index for index, pair in enumerate(pairs) if segment.lines[pair.sketch].strip()]
    return pairs[rows[0] : rows[-1] + 1] if rows else []


def _same_definitions(rows: Sequence[str], lines: Sequence[str]) -> dict[int, list[int]]:
    """Per line of the sketch that defines a name, the lines of the file that define it too.

    An assignment or a key counts where the file has it once.
    """
    named = {row: key for row, line in enumerate(rows) if (key := _key(line))}
    if not named:
        return {}
    wanted = set(named.values())
    where: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        key = _key(line)
        if key in wanted and key is not None:
            where.setdefault(key, []).append(index)
    same = {}
    for row, key in named.items():
        spots = where.get(key, [])
        if 0 < len(spots) <= (24 if key.startswith("def ") else 1):
            same[row] = spots
    return same


def _key(line: str) -> str | None:
    """What a line defines: a function or class, or what it assigns to or is the key of."""
    name = defined_name(line)
    if name is not None:
        return "def " + name
    found = _ASSIGNED.match(line)
    return found[1] if found else None


def _implicit(
    segment: Segment, pairs: list[Pair], lines: list[str]
) -> tuple[list[Segment], list[list[Pair]]]:
    """A sketch without markers: the whole file anew, or pieces of a longer one."""
    if not pairs:
        if len(lines) <= 2 * len(segment.lines) + 10:
            return [segment], [_ends(segment, lines)]
        return [Segment(segment.lines, "", "", segment.line)], [[]]
    first, last = pairs[0].original, pairs[-1].original
    outside = lines[:first] + lines[last + 1 :]
    rest = sum(1 for line in outside if weight(line) >= 0.5)
    full = sum(1 for line in lines if weight(line) >= 0.5)
    foreign = _names(outside) - _names(segment.lines)
    fresh = _names(segment.lines) - _names(lines)
    if len(foreign) <= len(fresh) and (rest <= 0.35 * full or full <= 12 or rest <= 2):
        return [segment], [_ends(segment, lines)]
    cuts = [0]
    for one, two in pairwise(pairs):
        between = lines[one.original + 1 : two.original]
        new = segment.lines[one.sketch + 1 : two.sketch]
        if len(between) > 3 and defines(between, segment.lines) and not any(n.strip() for n in new):
            cuts.append(two.sketch)
    cuts.append(len(segment.lines))
    parts, owned = [], []
    for one_cut, two_cut in pairwise(cuts):
        body = segment.lines[one_cut:two_cut]
        depth = " " * min(indent_of(line) for line in body if line.strip())
        parts.append(Segment(body, depth, depth, segment.line + one_cut))
        owned.append(
            [
                Pair(p.sketch - one_cut, p.original, p.exact)
                for p in pairs
                if one_cut <= p.sketch < two_cut
            ]
        )
    return parts, owned


def _names(lines: Sequence[str]) -> set[str]:
    return {name for line in lines if (name := defined_name(line))}


def _ends(segment: Segment, lines: list[str]) -> list[Pair]:
    """Pairs that make a segment stand for the whole file."""
    if not lines:
        return []
    return [Pair(0, 0, False), Pair(len(segment.lines) - 1, len(lines) - 1, False)]
