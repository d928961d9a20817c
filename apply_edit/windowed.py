"""Files that the window cannot hold: ranges rewritten with what fits of the rest as context.

A range given by the caller is one part of the file; a sketch on a file that is too long names
several. Every part has a prompt and an answer of its own, and what lies outside all parts is never
touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from apply_edit.decode.stats import Stats, Tally
from apply_edit.errors import InputError
from apply_edit.events import Event, OnEvent, Wrote
from apply_edit.target.codec import Codec
from apply_edit.text.document import Document
from apply_edit.text.outline import indent_of

_CHUNK = 1 << 16  # characters that are tokenised at once to see how long a text is
_LEAST = 8  # characters per token of the window up to which a text is tokenised as a whole


@dataclass(frozen=True, slots=True)
class Part:
    """Lines `first` to `last` of a file (1-based), rewritten with the edit that belongs to them.

    `start` and `end` are their bytes in the file. `last` is `first - 1` in an empty file.
    """

    document: Document
    first: int
    last: int
    start: int
    end: int
    update: str | None = None

    @property
    def name(self) -> str:
        """What the part is called in a message."""
        return f"lines {self.first}:{self.last}"


def whole(document: Document, size: int, update: str | None) -> Part:
    """All of a file of `size` bytes."""
    return Part(document, 1, len(document.endings), 0, size, update)


def part(document: Document, first: int, last: int, update: str | None) -> Part:
    """Lines of a file. Raises `InputError` ``lines`` where there are none such."""
    before, middle, _ = document.slice(first, last)
    start = len(before)
    return Part(middle, first, last, start, start + len(middle.data), update)


def join(data: bytes, parts: Sequence[Part], texts: Sequence[bytes]) -> bytes:
    """The file with the parts, which ascend, given way to `texts`."""
    pieces = []
    at = 0
    for one, text in zip(parts, texts, strict=True):
        pieces += [data[at : one.start], text]
        at = one.end
    return b"".join([*pieces, data[at:]])


def nearest(
    codec: Codec, lines: Sequence[str], first: int, last: int, room: int
) -> tuple[str, str]:
    """The text before and behind lines `first` to `last` that `room` tokens hold.

    The nearest lines come first, whole, the same share on both sides; some room is left for the
    headers, further up, of the blocks around the range.
    """
    near = room - room // 8
    above, below = range(first - 2, -1, -1), range(last, len(lines))
    taken, spent, cost = [0, 0], [0, 0], 0
    sides = [0, 1]
    while sides:
        side = min(sides, key=lambda s: spent[s])
        if taken[side] == len((above, below)[side]):
            sides.remove(side)
            continue
        at = (above, below)[side][taken[side]]
        cost = len(codec.encode(lines[at] + "\n"))
        if spent[0] + spent[1] + cost > near:
            sides.remove(side)
            continue
        taken[side] += 1
        spent[side] += cost
    room -= spent[0] + spent[1]
    top = first - 1 - taken[0]
    heads: list[str] = []
    for at in _headers(lines, top, first - 1):
        cost = len(codec.encode(lines[at] + "\n"))
        if cost > room:
            break
        room -= cost
        heads.insert(0, lines[at])
    before = [*heads, *lines[top : first - 1]]
    behind = lines[last : last + taken[1]]
    return "".join(line + "\n" for line in before), "".join(line + "\n" for line in behind)


def _headers(lines: Sequence[str], top: int, at: int) -> Iterator[int]:
    """Lines above `top` that open the blocks in which line `at` stands, the innermost first."""
    depth = next((indent_of(line) for line in lines[at:] if line.strip()), 0)
    for above in range(at - 1, -1, -1):
        if not depth:
            return
        line = lines[above]
        if line.strip() and (column := indent_of(line)) < depth and line.strip()[0] not in ")]}":
            depth = column
            if above < top:
                yield above


def check_length(codec: Codec, text: str, window: int, what: str, *, sketch: bool) -> None:
    """Refuse a text that is far beyond `window` without tokenising all of it.

    Raises `InputError` ``too-long``.
    """
    if len(text) <= _LEAST * window:
        return
    tokens = read = 0
    while tokens <= window and read < len(text):
        chunk = text[read : read + _CHUNK]
        tokens += len(codec.encode(chunk))
        read += len(chunk)
    if tokens > window:
        tokens = tokens * len(text) // read
        lines = text.count("\n")
        raise too_long(what, lines, tokens, 0, 2 * tokens, window, sketch=sketch)


def too_long(
    what: str, lines: int, tokens: int, frame: int, needed: int, window: int, *, sketch: bool
) -> InputError:
    """The refusal of text of so many lines and tokens.

    The prompt without it and its edit has `frame` tokens, prompt and answer have `needed`.
    """
    fit = max(0, window - frame) * lines // (2 * tokens) if tokens else 0
    if what != "the file":
        advice = "make the sketch's pieces smaller" if sketch else "name fewer with --lines A:B"
    elif sketch:
        advice = "rewrite a part of it with --lines A:B"
    else:
        advice = (
            "rewrite a part of it with --lines A:B, or give the new code as a sketch (--update)"
        )
    verb = "has" if what == "the file" else "have"
    holds = "is one line" if lines == 1 else f"{verb} {lines:,} lines"
    most = f"about {fit:,} lines" if fit > 0 else "not one line"
    return InputError(
        "too-long",
        f"{what} {holds} and would take about {needed:,} tokens (prompt and answer), but the "
        f"model's window holds {window:,}, {most} of it; {advice}",
    )


def summed(parts: Sequence[Stats]) -> Stats:
    """The figures of several answers as those of one run."""
    if len(parts) == 1:
        return parts[0]
    total = replace(parts[0], by_source={})
    for name in _ADDED:
        setattr(total, name, sum(getattr(stats, name) for stats in parts))
    for stats in parts:
        for source, tally in stats.by_source.items():
            held = total.by_source.setdefault(source, Tally())
            held.drafted += tally.drafted
            held.accepted += tally.accepted
    floors = [stats.floor_seconds for stats in parts]
    total.floor_seconds = None if None in floors else sum(floor for floor in floors if floor)
    verified = [stats.verified for stats in parts]
    total.verified = None if None in verified else all(verified)
    total.batch = max(stats.batch for stats in parts)
    total.finish = next((s.finish for s in parts if s.finish != "stop"), "stop")
    return total


_ADDED = (
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "passes",
    "rows",
    "drafted",
    "accepted",
    "load_seconds",
    "prefill_seconds",
    "decode_seconds",
    "draft_seconds",
    "total_seconds",
)


def relayed(on_event: OnEvent, index: int, count: int, done: Sequence[Stats]) -> OnEvent:
    """A listener to the answer of one part of several, who tells `on_event` of the whole."""
    tokens = sum(stats.output_tokens for stats in done)
    seconds = sum(stats.total_seconds for stats in done)

    def relay(event: Event) -> None:
        if isinstance(event, Wrote) and count > 1:
            event = replace(
                event,
                position=(index + event.position) / count,
                tokens=tokens + event.tokens,
                seconds=seconds + event.seconds,
            )
        on_event(event)

    return relay
