"""Where one segment of a sketch goes in the file: by equal lines, else by the blocks around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass

from apply_edit.text.align import Pair, align, weight
from apply_edit.text.extent import grow_down, grow_up, whole_block
from apply_edit.text.fresh import added, parted
from apply_edit.text.outline import block_end, defined_name, indent_of, outline
from apply_edit.text.segments import Segment


@dataclass(frozen=True, slots=True)
class Place:
    """Lines `start` <= line < `end` of the original give way to the lines `text`.

    `segment` is the index of the segment of the sketch; `confidence` as in `Prediction`.
    """

    start: int
    end: int
    text: tuple[str, ...]
    segment: int
    confidence: float


def anchored(
    segment: Segment, pairs: list[Pair], lines: list[str], low: int, high: int, index: int
) -> Place:
    """The place of a segment of which some lines stand in the file."""
    text = list(segment.lines)
    pairs = _nearby(segment, _closed(text, pairs, lines, high), lines, low, high)
    pairs = _closed(text, pairs, lines, high)
    first, last = pairs[0], pairs[-1]
    head, tail = text[: first.sketch], text[last.sketch + 1 :]
    start, end = first.original, last.original + 1
    sure = 1.0
    opening = segment.before is None and index == 0
    if any(line.strip() for line in head):
        sure -= 0.25
        if opening and _renews(head, lines[low:start]):
            start = low
        else:
            start = grow_up(segment, first.sketch, lines, low, start)
    elif opening and segment.after is not None and 0 < start <= 3:
        start = 0  # markers elsewhere, none here: the file begins like this
    if any(line.strip() for line in tail):
        sure -= 0.25
        whole = whole_block(segment, pairs, lines, high)
        end = whole if whole is not None else grow_down(segment, last.sketch + 1, lines, end, high)
    if segment.after is None and segment.before is not None and high == len(lines):
        rest = lines[end:]
        if len(rest) <= max(3, 2 * len(tail)) and not defines(rest, tail) and not _closes(rest):
            end = len(lines)  # markers elsewhere, none here: the file ends like this
    fitted = _fitted(text, pairs, lines)
    if head:
        at = start
        while at > low and len(fitted) > 1 and not fitted[0].strip() and not lines[at - 1].strip():
            at, fitted = at - 1, fitted[1:]
    if head and low < start == first.original and parted(lines[start - 1], fitted, lines[start]):
        start -= 1
        fitted.insert(0, lines[start].rstrip() + ",")
    if tail:
        at = end
        while at < high and len(fitted) > 1 and not fitted[-1].strip() and not lines[at].strip():
            at, fitted = at + 1, fitted[:-1]
    strength = sum(weight(lines[p.original]) for p in pairs if p.exact)
    return Place(start, end, tuple(fitted), index, sure if strength >= 0.9 else 0.3)


def _nearby(
    segment: Segment, pairs: list[Pair], lines: Sequence[str], low: int, high: int
) -> list[Pair]:
    """The pairs, and those of lines too common to anchor that stand just beside the outermost."""
    text = segment.lines
    first, last = pairs[0], pairs[-1]
    head, tail = text[: first.sketch], text[last.sketch + 1 :]
    above = lines[max(low, first.original - 2 * len(head) - 10) : first.original]
    below = lines[last.original + 1 : min(high, last.original + 2 * len(tail) + 11)]
    near = list(pairs)
    names = {None, *map(defined_name, head), *map(defined_name, tail)}
    if segment.before is not None:
        head = _without(head, added(text, above, first.sketch))
    if segment.after is not None:
        tail = _without(tail, added(tail, below, len(tail)))
    if any(weight(line) >= 0.5 for line in head):
        cut = [at for at, line in enumerate(above) if defined_name(line) not in names]
        above = above[cut[-1] + 1 :] if cut else above
        found = align(head, frozenset({0} if segment.before is not None else ()), above)
        if any(weight(head[p.sketch]) >= 0.5 for p in found):
            offset = first.original - len(above)
            near = [Pair(p.sketch, p.original + offset, True) for p in found] + near
    if any(weight(line) >= 0.5 for line in tail):
        cut = [at for at, line in enumerate(below) if defined_name(line) not in names]
        below = below[: _led(below, cut[0])] if cut else below
        found = align(tail, frozenset({len(tail)} if segment.after is not None else ()), below)
        if any(weight(tail[p.sketch]) >= 0.5 for p in found):
            row, line = last.sketch + 1, last.original + 1
            near += [Pair(p.sketch + row, p.original + line, True) for p in found]
    return near


def _without(text: Sequence[str], rows: Container[int]) -> tuple[str, ...]:
    """The lines, those of `rows` blank."""
    return tuple("" if row in rows else line for row, line in enumerate(text))


def _led(lines: Sequence[str], header: int) -> int:
    """The first of the decorators and annotations above a header line."""
    while header > 0 and lines[header - 1].lstrip().startswith(("@", "#[")):
        header -= 1
    return header


def _closed(text: Sequence[str], pairs: list[Pair], lines: Sequence[str], high: int) -> list[Pair]:
    """The pairs, and the closers that end the blocks around the last of them.

    Where the new lines after the last pair leave its block, the line that does so is the file's
    next line at that depth, however far, if the two are equal.
    """
    found = list(pairs)
    while True:
        last = found[-1]
        inner = indent_of(text[last.sketch])
        row = next(
            (
                r
                for r in range(last.sketch + 1, len(text))
                if text[r].strip() and indent_of(text[r]) < inner
            ),
            None,
        )
        if row is None:
            return found
        depth = indent_of(text[row])
        at = next(
            (
                a
                for a in range(last.original + 1, high)
                if lines[a].strip() and indent_of(lines[a]) <= depth
            ),
            None,
        )
        if at is None or lines[at].strip() != text[row].strip() or indent_of(lines[at]) != depth:
            return found
        found.append(Pair(row, at, True))


def _renews(head: Sequence[str], old: Sequence[str]) -> bool:
    """Whether a sketch that begins without a marker replaces the file's first lines."""
    if len(old) > max(3, 2 * len(head)):
        return False
    names = [name for line in old if (name := defined_name(line))]
    new = [name for line in head if (name := defined_name(line))]
    return len(names) <= len(new)


def _closes(rest: Sequence[str]) -> bool:
    """Whether the lines left below are the closers of a block that the segment leaves open."""
    words = [line.strip() for line in rest if line.strip()]
    return bool(words) and all(word[0] in ")]}" or word in ("end", "fi", "done") for word in words)


def _fitted(text: list[str], pairs: list[Pair], lines: Sequence[str]) -> list[str]:
    """The segment's lines, moved to the file's indentation when all of it is shifted alike."""
    exact = [p for p in pairs if p.exact and text[p.sketch].strip()]
    moves = Counter(indent_of(lines[p.original]) - indent_of(text[p.sketch]) for p in exact)
    out = list(text)
    if len(moves) == 1 and 0 not in moves:
        move = next(iter(moves))
        tabs = lines[exact[0].original].startswith("\t")
        out = [_moved(line, move, tabs) for line in text]
    for pair in exact:
        old = lines[pair.original]
        if old.rstrip() == out[pair.sketch]:
            out[pair.sketch] = old  # blanks at the end that the sketch's writer did not see
    return out


def _moved(line: str, move: int, tabs: bool) -> str:
    if not line.strip():
        return line
    column = max(0, indent_of(line) + move)
    head = "\t" * (column // 4) + " " * (column % 4) if tabs else " " * column
    return head + line.lstrip()


def defines(lines: Sequence[str], new: Sequence[str]) -> bool:
    """Whether the lines hold a definition that the new lines do not define again."""
    again = {defined_name(line) for line in new}
    return any((name := defined_name(line)) and name not in again for line in lines)


def unanchored(
    segments: list[Segment],
    by_segment: list[list[Pair]],
    index: int,
    lines: list[str],
    low: int,
    high: int,
) -> Place:
    """Where a segment of new lines alone goes: by the block around it, else by its markers."""
    segment = segments[index]
    body = list(segment.lines)
    while body and not body[-1].strip():
        body.pop()
    gap_above = 0
    while body and not body[0].strip():
        body.pop(0)
        gap_above += 1
    depth = min(indent_of(line) for line in body if line.strip())
    at: int | None = None
    if segment.before is None and index == 0:
        at = 0
    else:
        for other in range(index - 1, -1, -1):
            for pair in reversed(by_segment[other]):
                if indent_of(segments[other].lines[pair.sketch]) < depth:
                    at = _before_closer(lines, pair.original, block_end(lines, pair.original))
                    break
            if at is not None:
                break
    if at is None and depth > 0 and index == len(segments) - 1:
        at = _deep_end(lines, low, high, depth)
    if at is None:
        at = (
            high
            if high < len(lines) or segment.after is None or segment.before is not None
            else low
        )
        while at > low and not lines[at - 1].strip():
            at -= 1
        if high < len(lines) and at < high:
            at = high if not gap_above else at
    at = min(max(at, low), high)
    start, end = at, at
    text = body
    if depth == 0 or gap_above:
        if at > 0 and lines[at - 1].strip() and (gap_above or defined_name(body[0])):
            text = [""] * max(1, gap_above) + text
        spaced = defined_name(body[0]) or not segment.lines[-1].strip()
        if spaced and at < len(lines) and lines[at].strip()[:1] not in ("", ")", "]", "}"):
            text = [*text, ""]
    return Place(start, end, tuple(text), index, 0.1)


def _before_closer(lines: Sequence[str], start: int, end: int) -> int:
    """The line, inside the block from `start` to `end`, before its closing line."""
    last = end - 1
    if last > start and indent_of(lines[last]) <= indent_of(lines[start]):
        end = last
    while end - 1 > start and not lines[end - 1].strip():
        end -= 1
    return end


def _deep_end(lines: Sequence[str], low: int, high: int, depth: int) -> int | None:
    """The end of the last block of the file that holds lines of this depth."""
    for found in reversed(outline(lines)):
        if found.start >= low and found.end <= high and found.indent < depth:
            return _before_closer(lines, found.start, found.end)
    return None
