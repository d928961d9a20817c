"""Refusals: what is wrong with an answer, before anything of it is shown or written.

Codes: `empty`, `looping`, `truncated`, `fenced`, `elided`, `duplicated`, `incomplete`, `misplaced`,
`lost`, `unparsable`. Each can be let through by the caller (``--allow CODE``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from apply_edit.text.change import Change
from apply_edit.text.doubled import doubled
from apply_edit.text.loop_watch import LoopWatch
from apply_edit.text.lost import lost
from apply_edit.text.misplaced import misplaced
from apply_edit.text.sketch import missing_lines
from apply_edit.text.syntax import fault, language_of
from apply_edit.text.wrapping import elided, wrapped

__all__ = ["CODES", "Problem", "check"]

CODES = (
    "empty",
    "looping",
    "truncated",
    "fenced",
    "elided",
    "duplicated",
    "incomplete",
    "misplaced",
    "lost",
    "unparsable",
)
"""All codes of `check`, in the order in which problems are reported."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: a stable `code`, one sentence, and the 1-based line it is about.

    `line` is a line of the output; for `lost` and `truncated` one of the original; or None.
    """

    code: str
    message: str
    line: int | None = None


def check(
    original: str,
    output: str,
    *,
    finished: bool,
    instruction: str | None,
    update: str | None,
    language: str = "",
    name: str = "",
    first_line: int = 1,
) -> list[Problem]:
    """All problems of an answer, the gravest first; empty when it may be used.

    `finished` is whether the model ended its answer itself. `language` or the suffix of the
    file's `name` say how the text may be parsed. `first_line` is the line of the file (1-based)
    at which both texts begin, where they are a part of it: lines are named as the file's.

    >>> [p.code for p in check("a = 1\\n", "", finished=True, instruction="Add b", update=None)]
    ['empty']
    """
    if output == original and finished and update is None:
        return []
    kind = language_of(name, language)
    found = list(_problems(original, output, finished, instruction, update, kind, first_line))
    first: dict[str, Problem] = {}
    for problem in found:
        first.setdefault(problem.code, problem)
    return sorted(first.values(), key=lambda p: CODES.index(p.code))


def _problems(
    original: str,
    output: str,
    finished: bool,
    instruction: str | None,
    update: str | None,
    language: str,
    first_line: int,
) -> Iterator[Problem]:
    offset = first_line - 1
    where = "of the edited file" if offset else "of the answer"
    if not finished:
        yield Problem(
            "truncated", "the answer did not end; allow more tokens or edit a smaller part"
        )
    if original.strip() and not output.strip():
        yield Problem("empty", "the answer is empty; try again or say the edit in other words")
        return
    watch = LoopWatch(original)
    if watch.feed(output + "\n"):
        line = (watch.line or 1) + offset
        yield Problem(
            "looping",
            f"line {line} {where} repeats to no end; try again or another model",
            line,
        )
        return
    change = Change(original, output)
    for line, what in wrapped(change, language):
        yield Problem(
            "fenced",
            f"line {line + offset} {where} is {what} and not of the file; try again",
            line + offset,
        )
    for line, text in elided(change, language):
        yield Problem(
            "elided",
            f"line {line + offset} {where}, {_short(text)}, stands for code left out; try again "
            "or edit a smaller part",
            line + offset,
        )
    for line, what in doubled(change, instruction, update, language):
        yield Problem(
            "duplicated",
            f"the answer has {what} twice, again at line {line + offset}; try again",
            line + offset,
        )
    if update is not None:
        gone = missing_lines(update, original, output)
        if gone:
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            yield Problem(
                "incomplete",
                f"the sketch's line {_short(gone[0])}{more} did not arrive in the answer; try "
                "again or give the sketch more context",
            )
        for found in misplaced(change, update):
            side = "directly " * found.directly + ("behind" if found.behind else "before")
            yield Problem(
                "misplaced",
                f"the sketch has {_short(found.text)} {side} {_short(found.neighbour)}, but line "
                f"{found.line + offset} {where} has it elsewhere; try again or another model",
                found.line + offset,
            )
    for loss in lost(change, instruction, update):
        line = loss.line + offset
        if loss.tail:
            yield Problem(
                "truncated",
                f"the answer ends before line {line} of the file; try again or edit a smaller part",
                line,
            )
        else:
            yield Problem(
                "lost",
                f"{loss.what} (line {line} of the file, {loss.count} in all) is gone and the "
                "edit gives no reason; try again or say that it should go",
                line,
            )
    wrong = fault(output, language)
    if wrong is not None and fault(original, language) is None:
        line, what = wrong[0] + offset, _moved(wrong[1], offset)
        yield Problem(
            "unparsable",
            f"the answer no longer parses at line {line} ({what}); try again or another model",
            line,
        )


def _moved(what: str, offset: int) -> str:
    """What a parser says, the lines that it speaks of `offset` further down."""
    return re.sub(r"\bline (\d+)", lambda found: f"line {int(found[1]) + offset}", what)


def _short(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")
