"""One edit: what is asked of a file, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from apply_edit import windowed
from apply_edit.decode.stats import Stats
from apply_edit.decode.types import Step
from apply_edit.errors import UsageError
from apply_edit.events import Piece
from apply_edit.question import Question
from apply_edit.text import segments
from apply_edit.text.document import Document


@dataclass(frozen=True, slots=True)
class Request:
    """What to change: an `instruction` in words, an `update` sketch, or both.

    `name` is the file's, for its language. `lines` (1-based, inclusive) limits the rewriting to
    a range, the rest is context; `allow` names refusals accepted knowingly.
    """

    instruction: str | None = None
    update: str | None = None
    name: str = ""
    lines: tuple[int, int] | None = None
    encoding: str = "utf-8"
    allow: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Edit:
    """A finished edit: the bytes before and after, and how they came about."""

    original: bytes
    output: bytes
    stats: Stats
    steps: tuple[Step, ...] = ()
    pieces: tuple[Piece, ...] = ()
    allowed: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return self.output != self.original


@dataclass(frozen=True, slots=True)
class Asked:
    """An edit whose questions are put: a part of the file each, and nothing answered yet."""

    data: bytes
    request: Request
    document: Document
    part: windowed.Part
    questions: tuple[Question, ...]


def check_request(data: bytes, request: Request) -> None:
    """Every refusal that needs no model.

    Raises `UsageError` (no edit, an empty one), `InputError` (not text, impossible lines).
    """
    checked(data, request)


def checked(data: bytes, request: Request) -> tuple[Document, windowed.Part]:
    """The file, and the part of it that is to be rewritten."""
    if request.instruction is None and request.update is None:
        raise UsageError("no-edit", "say what to change with --instruction or --update")
    if request.instruction is not None and not request.instruction.strip():
        raise UsageError("empty-instruction", "the instruction is empty; say what to change")
    for text in (request.instruction, request.update):
        if text is not None and any("\ud800" <= c <= "\udfff" for c in text):
            raise UsageError("not-utf8", "the edit holds bytes that are not UTF-8; save it as such")
    document = Document.from_bytes(data, request.encoding)
    update = None if request.update is None else lines_as_lf(request.update)
    if update is not None:
        segments.parse(update, document.view)
    if request.lines is None:
        return document, windowed.whole(document, len(data), update)
    return document, windowed.part(document, *request.lines, update)


def lines_as_lf(text: str) -> str:
    """A sketch as a view: no BOM, LF line ends."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
