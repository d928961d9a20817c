"""What an answer changed: the line diff between the original and the output, blanks aside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from apply_edit.text.lcs import common


@dataclass(frozen=True, slots=True)
class Hunk:
    """`old[a:b]` gave way to `new[c:d]` (indices into a Change's lines)."""

    a: int
    b: int
    c: int
    d: int


@dataclass(frozen=True, slots=True)
class Loss:
    """`line` is the 1-based number in the original of the first line lost; `what` names it.

    `tail` when the output ends there: it was cut off.
    """

    line: int
    count: int
    what: str
    tail: bool = False


class Change:
    """Original and output as stripped lines that are not blank, and the hunks between them.

    `old_at` and `new_at` give each line's 0-based number in its text. Lines that only moved to
    another depth are equal here.
    """

    def __init__(self, original: str, output: str) -> None:
        self.old_text = original.split("\n")
        self.new_text = output.split("\n")
        self.old_at = [i for i, line in enumerate(self.old_text) if line.strip()]
        self.new_at = [i for i, line in enumerate(self.new_text) if line.strip()]
        self.old = [self.old_text[i].strip() for i in self.old_at]
        self.new = [self.new_text[i].strip() for i in self.new_at]

    @cached_property
    def hunks(self) -> list[Hunk]:
        """In order; neither side of the texts between two hunks is empty."""
        return list(_hunks(self.old, self.new))

    @cached_property
    def inserted(self) -> Counter[str]:
        """All lines of the output that the diff puts in."""
        return Counter(line for h in self.hunks for line in self.new[h.c : h.d])

    def lost(self, hunk: Hunk) -> list[int]:
        """Indices of the hunk's old lines that are nowhere among the inserted ones."""
        return [i for i in range(hunk.a, hunk.b) if not self.inserted[self.old[i]]]


def _hunks(old: Sequence[str], new: Sequence[str]) -> list[Hunk]:
    hunks = []
    a = c = 0
    for i, j, length in [*common(old, new), (len(old), len(new), 0)]:
        if i > a or j > c:
            hunks.append(Hunk(a, i, c, j))
        a, c = i + length, j + length
    return hunks
