"""What an answer has twice that the original has once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from apply_edit.text.change import Change
from apply_edit.text.extent import alike
from apply_edit.text.loop_watch import Periods, repeats
from apply_edit.text.outline import defined_name, indent_of, outline

_BLOCK = 8  # equal lines in a row, blanks aside, from which a copy is no coincidence
_BESIDE = 3  # the same for a copy that stands right after its twin
_ALIKE = 0.6  # tokens in common from which one text is a version of the other
_ONE_OF_A_NAME = frozenset(["python", "javascript", "lua", "bash"])  # no overloading
_OVERLOADS = re.compile(r"@.*(?:overload|setter|getter|deleter|register|dispatch|route|\()")
_COPY = re.compile(
    r"\b(?:copy|copies|duplicat\w*|clone\w*|twice|repeat\w*|again|second|another|kopie\w*|dupli\w*"
    r"|verdopp\w*|doppelt)\b|复制|重复|копи|複製",
    re.IGNORECASE,
)


def doubled(
    change: Change, instruction: str | None, update: str | None, language: str = ""
) -> Iterator[tuple[int, str]]:
    """Copies as (1-based line of the output, what is there twice), the worst first."""
    new = change.new
    wanted = Counter(line.strip() for line in update.split("\n")) if update else Counter()
    half = len(new) // 2
    if half and new[:half] == new[half:] and any(any(map(str.isalpha, x)) for x in new[:half]):
        was = len(change.old) // 2
        if not (was and change.old[:was] == change.old[was:]) and not _meant(new[:half], wanted):
            yield change.new_at[half] + 1, "all of it"
            return
    if again := _version_again(change, wanted) or _whole_again(change, wanted):
        yield again, "the file"
        return
    yield from _definitions(change, wanted, language in _ONE_OF_A_NAME)
    asked = instruction is not None and _COPY.search(instruction) is not None
    yield from _blocks(change, wanted, asked)


def _meant(lines: list[str], wanted: Counter[str]) -> bool:
    """Whether the sketch itself has the lines twice."""
    return bool(wanted) and all(wanted[line] > 1 for line in lines)


def _whole_again(change: Change, wanted: Counter[str]) -> int | None:
    """Where the file begins for the second time, if most of its lines are there twice."""
    old, new = Counter(change.old), Counter(change.new)
    telling = [line for line in old if any(map(str.isalpha, line)) and wanted[line] < 2]
    if len(telling) < 3:
        return None
    twice = sum(1 for line in telling if new[line] >= 2 * old[line])
    if twice < 0.7 * len(telling):
        return None
    first = telling[0]
    spots = [at for at, line in enumerate(change.new) if line == first]
    return change.new_at[spots[len(spots) // 2]] + 1 if spots else 1


def _version_again(change: Change, wanted: Counter[str]) -> int | None:
    """Where the original, or a version of it, follows a version of itself."""
    old, new = change.old, change.new
    more = len(new) - len(old)
    if not old or 2 * more < len(old) or _meant(old, wanted):
        return None
    names = {defined_name(line) for line in old} | {None}
    for other, at in ((new[:more], more), (new[len(old) :], len(old))):
        same = new[more:] if at == more else new[: len(old)]
        others = {defined_name(line) for line in other} | {None}
        if same != old or not (others <= names or (names <= others and len(names) > 1)):
            continue
        if alike("\n".join(other), "\n".join(old)) >= _ALIKE:
            return change.new_at[at] + 1
    return None


def _definitions(
    change: Change, wanted: Counter[str], one_of_a_name: bool
) -> Iterator[tuple[int, str]]:
    """Definitions with one header in one block, more often than in the original."""
    had: Counter[str] = Counter()
    for (_, header), count in Counter(_headers(change.old_text, one_of_a_name).values()).items():
        had[header] = max(had[header], count)
    seen: Counter[tuple[int, str]] = Counter()
    for line, (scope, header) in _headers(change.new_text, one_of_a_name).items():
        seen[scope, header] += 1
        if seen[scope, header] > max(1, had[header], wanted[change.new_text[line].strip()]):
            yield line + 1, f"the definition of '{defined_name(change.new_text[line])}'"


def _headers(text: list[str], one_of_a_name: bool) -> dict[int, tuple[int, str]]:
    """Per definition's line: the line of the block around it (-1: none), and its whole header.

    Where a block holds one definition of a name, the name stands for the header, unless a
    decorator above says otherwise.
    """
    found: dict[int, tuple[int, str]] = {}
    around: list[tuple[int, int]] = []
    starts = {d.start for d in outline(text)}
    for index, line in enumerate(text):
        if not line.strip():
            continue
        depth = indent_of(line)
        if line.lstrip().startswith(("#if", "#el", "#endif")):
            around.append((index, -1))  # either branch of a conditional may define it
            continue
        while around and around[-1][1] >= depth:
            around.pop()
        if index in starts:
            header = line.strip()
            above = text[index - 1].strip() if index else ""
            name = defined_name(line)
            if one_of_a_name and name and not _OVERLOADS.match(above):
                found[index] = (around[-1][0] if around else -1, name)
                around.append((index, depth))
                continue
            for more in text[index + 1 : index + 6]:
                if header.endswith(("{", ":", "}", ";", ")")) or not more.strip():
                    break
                header += " " + more.strip()
            found[index] = (around[-1][0] if around else -1, header)
        around.append((index, depth))
    return found


def _blocks(change: Change, wanted: Counter[str], asked: bool) -> Iterator[tuple[int, str]]:
    """Runs of the original's lines that the output has once more."""
    new, old = change.new, change.old
    for hunk in change.hunks:
        size = hunk.d - hunk.c
        block = new[hunk.c : hunk.d]
        if hunk.a == hunk.b and size >= _BESIDE and _telling(block) >= 2:
            again = all(
                new[i] in (new[i - size] if i >= size else "", *new[i + size : i + size + 1])
                for i in range(hunk.c, hunk.d)
            )
            if again and not _meant(block, wanted):
                yield change.new_at[hunk.c] + 1, f"{size} lines"
                return
    twin = _twin(new, old)
    if twin is not None and not _meant(new[twin[0] : twin[0] + twin[1]], wanted):
        yield change.new_at[twin[0]] + 1, f"{twin[1]} lines"
        return
    if asked:
        return
    before = Counter(tuple(old[i : i + _BLOCK]) for i in range(len(old) - _BLOCK + 1))
    after: Counter[tuple[str, ...]] = Counter()
    for i in range(len(new) - _BLOCK + 1):
        rows = tuple(new[i : i + _BLOCK])
        after[rows] += 1
        more = after[rows] > before[rows] >= 1
        if more and _telling(rows) >= _BLOCK - 3 and not _meant(list(rows), wanted):
            yield change.new_at[i] + 1, f"{_BLOCK} lines"
            return


def _twin(new: list[str], old: list[str]) -> tuple[int, int] | None:
    """Where a block stands right after its equal, and its size; None if the file has it too."""
    known = repeats(old)
    periods = Periods()
    for line in new:
        periods.add(line)
        size = periods.period
        if size >= _BESIDE and periods.copies > max(1, known.get(periods.block, 0)):
            end = len(periods.keys)
            if _telling(new[end - size : end]) >= 2:
                return end - size, size
    return None


def _telling(lines: Iterable[str]) -> int:
    """How many of the lines hold a word."""
    return sum(1 for line in lines if any(map(str.isalpha, line)))
