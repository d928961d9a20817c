"""Sketches: new code in which marker lines stand for what stays.

The face of this folder's sketch modules: `parse`, `predict`, `regions`, `missing_lines`,
`replacements`, `is_marker`.
"""

from __future__ import annotations

from collections import Counter

from apply_edit.text.align import align
from apply_edit.text.markers import is_marker, looks_like_marker
from apply_edit.text.merge import Prediction, predict, regions
from apply_edit.text.place import Place
from apply_edit.text.replacements import replacements
from apply_edit.text.segments import Segment, Sketch, parse

__all__ = [
    "Place",
    "Prediction",
    "Segment",
    "Sketch",
    "is_marker",
    "looks_like_marker",
    "missing_lines",
    "parse",
    "predict",
    "regions",
    "replacements",
]


def missing_lines(update: str, original: str, output: str) -> list[str]:
    """The sketch's own lines that did not arrive in the output, stripped, in their order.

    Markers and blank lines do not count; indentation may differ and a line may be wrapped. A
    line that is out of place counts as there if the output has it more often than the original.
    """
    sketch = parse(update, original)
    lines: list[str] = []
    breaks = set()
    for segment in sketch.segments:
        breaks.add(len(lines))
        lines += [line for line in segment.lines if line.strip()]
    written = [line for line in output.split("\n") if line.strip()]
    arrived = {pair.sketch for pair in align(lines, frozenset(breaks), written)}
    absent = [line.strip() for row, line in enumerate(lines) if row not in arrived]
    if not absent:
        return []
    had = Counter(line.strip() for line in original.split("\n"))
    has = Counter(line.strip() for line in written)
    joined, before = "".join(output.split()), "".join(original.split())
    gone = []
    for line in absent:
        wrapped = "".join(line.split())
        if has[line] > had[line]:
            has[line] -= 1
        elif line in has and not any(map(str.isalnum, line)):
            continue
        elif line in has or len(wrapped) < 24 or joined.count(wrapped) <= before.count(wrapped):
            gone.append(line)
    return gone
