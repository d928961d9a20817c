"""Lines of a sketch that arrived, but not where the sketch puts them.

A sketch states an order, and of lines that stand side by side in it that nothing lies between
them. Where one of two such lines is new to the file, the answer has to keep to both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from apply_edit.text.change import Change
from apply_edit.text.comments import comment_lines
from apply_edit.text.imports import IMPORT
from apply_edit.text.merge import predict
from apply_edit.text.outline import defined_name
from apply_edit.text.segments import parse

_PASSES = re.compile(
    r"^(?:@|#\[|(?:super|this)\(|(?:[rbuf]?\"[^\"]*\"|[rbuf]?'[^']*');?$|pass$)", re.IGNORECASE
)
"""Lines behind a header that a new line may well follow: annotations, the call of the constructor
above, which some languages want first, a docstring or directive on one line."""


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A new line of the sketch, its 1-based line in the output, and the line it should stand by.

    `behind`: the sketch has it behind `neighbour`, else before; `directly`: with nothing between.
    """

    line: int
    text: str
    neighbour: str
    behind: bool
    directly: bool


@dataclass(frozen=True, slots=True)
class _Stated:
    """`two` comes behind `one`, `directly` or with code between them."""

    one: str
    two: str
    directly: bool


def misplaced(change: Change, update: str) -> Iterator[Misplaced]:
    """New lines on the wrong side of a line of the file that stands in the sketch, or parted by
    code of the file from a line that is beside them there; in the sketch's order.

    Only lines that cannot be mistaken are judged: those that stand once in the answer and at most
    once in the file. What the predicted merge does not keep to is not stated clearly enough to be
    held against an answer. Raises UsageError `empty-sketch` like `parse`.
    """
    original = "\n".join(change.old_text)
    old = Counter(change.old)
    answer = _Text(change.new_text)
    stated = list(_stated(update, original, old, answer))
    if not stated:
        return
    expected = _Text(predict(original, update).text.split("\n"))
    foreign = {line for line in old if any(map(str.isalnum, line))}
    foreign -= {line.strip() for line in update.split("\n")}
    for each in stated:
        if answer.keeps(each, foreign) or not expected.keeps(each, foreign):
            continue
        behind = not old[each.two]
        new, neighbour = (each.two, each.one) if behind else (each.one, each.two)
        yield Misplaced(answer.number(new) + 1, new, neighbour, behind, each.directly)


def _stated(update: str, original: str, old: Counter[str], answer: _Text) -> Iterator[_Stated]:
    """What the sketch says of its new lines: each with its neighbours, and with the nearest
    lines of the file above and below."""

    def plain(line: str) -> bool:
        return old[line] <= 1 and answer.count[line] == 1 and any(map(str.isalnum, line))

    rows: list[tuple[str, int]] = []
    for number, segment in enumerate(parse(update, original).segments):
        rows += [(line.strip(), number) for line in segment.lines if line.strip()]
    anchor: str | None = None
    waiting: list[str] = []
    for at, (line, number) in enumerate(rows):
        if not plain(line):
            continue
        if at and rows[at - 1][1] == number:
            above = rows[at - 1][0]
            if plain(above) and not (old[above] and old[line]):
                yield _Stated(above, line, True)
        if old[line]:
            yield from (_Stated(new, line, False) for new in waiting)
            anchor, waiting = line, []
        else:
            waiting.append(line)
            if anchor is not None:
                yield _Stated(anchor, line, False)


class _Text:
    """A text's lines, and where each of them stands."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = [line.strip() for line in lines]
        self.count = Counter(self.lines)
        self._at = {line: number for number, line in enumerate(self.lines)}

    @cached_property
    def _comments(self) -> set[int]:
        return comment_lines(self.lines)

    def number(self, line: str) -> int:
        """Where a line stands, counted from 0; the last place if there are several."""
        return self._at[line]

    def keeps(self, stated: _Stated, foreign: set[str]) -> bool:
        """Whether the text has the two lines as stated. `foreign` is the code of the file that
        the sketch does not show; of it, comments and what may open a body part no two lines."""
        one, two = stated.one, stated.two
        if self.count[one] != 1 or self.count[two] != 1:
            return False
        start, end = self._at[one], self._at[two]
        between = [
            self.lines[at]
            for at in range(min(start, end) + 1, max(start, end))
            if self.lines[at] in foreign and at not in self._comments
        ]
        if IMPORT.match(one) and IMPORT.match(two):  # whoever writes imports may sort them
            return not any(defined_name(line) for line in between)
        if start > end or not stated.directly:
            return start < end
        return all(_PASSES.match(line) for line in between)
