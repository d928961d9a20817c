"""What one edit did, kept while it happens: its passes, and where their text stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from apply_edit.decode.stats import Stats, Tally
from apply_edit.edit import Edit, Request
from apply_edit.errors import InputError, UsageError
from apply_edit.events import Event, Note, Piece, Stage, Wrote
from apply_edit.text.document import Document

_FRAME = re.compile(r"\n?</updated-code(?:-\d+)?>\s*\Z")


@dataclass(slots=True)
class Recorder:
    """Listens to one edit and keeps what it did: an `OnEvent`."""

    wrote: list[Wrote] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    prompt_tokens: int = 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Wrote):
            self.wrote.append(event)
        elif isinstance(event, Stage):
            if event.name == "prefill" and event.done == event.total:
                self.prompt_tokens += int(event.done)
        elif isinstance(event, Note):
            self.notes.append(event.text)

    def stats(self, draft: str = "", facts: Mapping[str, str | int] | None = None) -> Stats:
        """The figures of the passes so far, for an edit that gave no `Edit`.

        `facts` are the backend's.
        """
        stats = Stats(draft=draft, prompt_tokens=self.prompt_tokens)
        for key, value in (facts or {}).items():
            setattr(stats, key, value)
        for event in self.wrote:
            stats.add(event.step)
        if self.wrote:
            stats.first_run_seconds = self.wrote[0].seconds
            stats.total_seconds = self.wrote[-1].seconds
            stats.prefill_seconds = max(0.0, _began(self.wrote[0]))
        return stats


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of the target. Seconds count from the first prompt token.

    `part` is the part of the file that it wrote, `start` the index of its first output token among
    all, `fallen` the number of tokens in `rejected`.
    """

    part: int
    start: int
    tokens: int
    rows: int
    drafted: int
    accepted: int
    k: int
    context: int
    began: float
    seconds: float
    draft_seconds: float
    position: float
    sources: dict[str, Tally]
    pieces: tuple[Piece, ...]
    rejected: str
    fallen: int


def lines_of(
    original: bytes, request: Request, edit: Edit | None, passes: Sequence[Pass]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The first line of each part, and the lines that are new."""
    bodies = [""] * (passes[-1].part + 1 if passes else 0)
    for each in passes:
        bodies[each.part] += "".join(piece.text for piece in each.pieces)
    first = 1 if request.lines is None else request.lines[0]
    old = _view(original, request)
    if edit is None:
        # There is no result to find the answer in; what follows it is no loss.
        end = None if request.lines is None else request.lines[1]
        body = "".join(bodies[:1])
        new = new_lines(old[first - 1 : end], body.split("\n")) if body else ()
        return (first,) * len(bodies), tuple(first + number for number in new)
    after = _view(edit.output, request)
    starts = []
    line = first - 1
    for body in bodies:
        found = _find(after, body.split("\n"), line)
        starts.append((line if found is None else found) + 1)
        line = starts[-1] + body.count("\n")
    return tuple(starts), tuple(number + 1 for number in new_lines(old, after))


def _view(data: bytes, request: Request) -> list[str]:
    """The lines of a file as the model sees them; none where it could not be read."""
    try:
        return Document.from_bytes(data, request.encoding).view.removesuffix("\n").split("\n")
    except (InputError, UsageError):
        return []


def _find(lines: Sequence[str], body: list[str], start: int) -> int | None:
    """Where `body` stands in `lines`, from `start` on."""
    for place in range(start, len(lines) - len(body) + 1):
        if lines[place] == body[0] and list(lines[place : place + len(body)]) == body:
            return place
    return None


def new_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[int]:
    """Indices of lines of `new` that are not lines of `old` in their place."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    blocks = SequenceMatcher(
        None, old[start : len(old) - end], new[start : len(new) - end], autojunk=False
    ).get_opcodes()
    for tag, _, _, first, last in blocks:
        if tag != "equal":
            yield from range(start + first, start + last)


def passes_of(wrote: Sequence[Wrote], edit: Edit | None) -> list[Pass]:
    """The passes with their text, frames taken off."""
    pieces = [list(event.pieces) for event in wrote]
    text = "".join(piece.text for texts in pieces for piece in texts)
    whole = "" if edit is None else "".join(piece.text for piece in edit.pieces)
    if pieces and whole.startswith(text) and len(whole) > len(text):
        # Bytes that form no character came in no event.
        pieces[-1].append(Piece("target", whole[len(text) :]))
    places = []
    start = part = begun = 0
    for number, event in enumerate(wrote):
        places.append((part, start))
        start += len(event.step.tokens)
        if event.step.finish is not None or number + 1 == len(wrote):
            _unframe(pieces[begun : number + 1], edit)
            begun = number + 1
            part += 1
    return [
        Pass(
            part=part,
            start=start,
            tokens=len(event.step.tokens),
            rows=event.step.rows,
            drafted=event.step.drafted,
            accepted=event.step.accepted,
            k=event.step.k,
            context=event.step.context,
            began=_began(event),
            seconds=event.step.seconds,
            draft_seconds=event.step.draft_seconds,
            position=event.position,
            sources={s: Tally(*counts) for s, counts in event.step.sources.items()},
            pieces=tuple(texts),
            rejected=event.rejected,
            fallen=len(event.step.rejected),
        )
        for (part, start), event, texts in zip(places, wrote, pieces, strict=True)
    ]


def _began(event: Wrote) -> float:
    return max(0.0, event.seconds - event.step.seconds)


def _unframe(pieces: Sequence[list[Piece]], edit: Edit | None) -> None:
    """Take the frame's closing tag off the end of an answer."""
    frame = _FRAME.search("".join(piece.text for texts in pieces for piece in texts))
    if frame is None:
        return
    # Unframed answers of a replay may end with such a tag because the file does.
    if edit is not None and edit.output.rstrip().endswith(frame[0].strip().encode()):
        return
    surplus = len(frame[0])
    for texts in reversed(pieces):
        while texts and surplus:
            last = texts.pop()
            kept = last.text[: max(0, len(last.text) - surplus)]
            surplus -= len(last.text) - len(kept)
            if kept:
                texts.append(Piece(last.source, kept))
