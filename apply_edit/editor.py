"""The use case: bytes -> view -> prompt -> answer -> guard -> Edit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from apply_edit.decode.stats import Stats
from apply_edit.decode.types import Step
from apply_edit.errors import InputError, Refusal, UsageError
from apply_edit.events import OnEvent, Piece, ignore
from apply_edit.session import Answer, Options, Session
from apply_edit.target.catalog import DEFAULT_MODEL
from apply_edit.target.codec import Backend
from apply_edit.target.prompt import Prompt, body_of, build, read_answer
from apply_edit.text import guard, merge, segments
from apply_edit.text.document import Document
from apply_edit.text.loop_watch import LoopWatch

__all__ = ["Edit", "Editor", "Options", "Request", "check_request"]


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


def check_request(data: bytes, request: Request) -> None:
    """Every refusal that needs no model.

    Raises `UsageError` (no edit, an empty one), `InputError` (not text, impossible lines).
    """
    _parts(data, request)


def _parts(data: bytes, request: Request) -> tuple[bytes, Document, bytes]:
    """The bytes before, the document to rewrite, and the bytes behind."""
    if request.instruction is None and request.update is None:
        raise UsageError("no-edit", "say what to change with --instruction or --update")
    if request.instruction is not None and not request.instruction.strip():
        raise UsageError("empty-instruction", "the instruction is empty; say what to change")
    for text in (request.instruction, request.update):
        if text is not None and any("\ud800" <= c <= "\udfff" for c in text):
            raise UsageError("not-utf8", "the edit holds bytes that are not UTF-8; save it as such")
    document = Document.from_bytes(data, request.encoding)
    if request.update is not None:
        segments.parse(_lf(request.update), document.view)
    if request.lines is None:
        return b"", document, b""
    return document.slice(*request.lines)


class Editor:
    """A model ready to edit files. What a prompt begins with like the last one is kept.

    >>> editor = Editor.load("replay:after.py")                               # doctest: +SKIP
    >>> editor.edit(b"x = 1\\n", Request(instruction="make x two")).output     # doctest: +SKIP
    b'x = 2\\n'
    """

    def __init__(self, backend: Backend, load_seconds: float = 0.0) -> None:
        self.backend = backend
        self.session = Session(backend, load_seconds)

    @classmethod
    def load(
        cls,
        model: str = DEFAULT_MODEL,
        *,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        offline: bool = False,
        on_event: OnEvent = ignore,
    ) -> Editor:
        """Find the model, fetch it where it is missing, and load its tokenizer; weights follow
        at the first edit, after the checks that need only tokens.

        Raises `ModelError`: unknown model, no weights, no memory, a model that cannot be run.
        """
        started = perf_counter()
        for prefix, raw in (("replay:", False), ("replay-raw:", True)):
            if model.startswith(prefix):
                from apply_edit.target.replay import ReplayBackend

                return cls(ReplayBackend(Path(model.removeprefix(prefix)), raw=raw))
        from apply_edit.target.backend import TorchBackend

        backend = TorchBackend.open(
            model,
            revision=revision,
            device=device,
            dtype=dtype,
            offline=offline,
            on_event=on_event,
        )
        return cls(backend, perf_counter() - started)

    def edit(
        self,
        data: bytes,
        request: Request,
        options: Options | None = None,
        on_event: OnEvent = ignore,
    ) -> Edit:
        """Let the model make the edit; whole or nothing.

        Raises `UsageError`, `InputError`, `ModelError`, and `Refusal` for a damaged answer.
        """
        before, document, behind = _parts(data, request)
        prompt, seen = self.prompt(before, document, behind, request)
        watch = LoopWatch(seen)
        answer = self.session.answer(
            prompt,
            options or Options(),
            predicted=_predicted(seen, request),
            watch=None if "looping" in request.allow else watch.feed,
            on_event=on_event,
        )
        view = self._view(answer, prompt)
        allowed = _judge(view, seen, answer, request)
        return Edit(
            original=data,
            output=before + document.restore(view.text, seen) + behind,
            stats=answer.stats,
            steps=tuple(answer.steps),
            pieces=tuple(answer.pieces),
            allowed=allowed,
        )

    def prompt(
        self, before: bytes, document: Document, behind: bytes, request: Request
    ) -> tuple[Prompt, str]:
        """The prompt that asks for the edit, and the document's view as the tokenizer shows it."""
        prompt = build(
            self.backend.codec,
            document.view,
            instruction=request.instruction,
            update=None if request.update is None else _lf(request.update),
            before=_context(before, request.encoding),
            behind=_context(behind, request.encoding),
        )
        self.backend.frame(prompt.closing_text)
        return prompt, prompt.seen + document.view[len(body_of(document.view)) :]

    def _view(self, answer: Answer, prompt: Prompt) -> _View:
        """The new view that an answer holds."""
        whole = self.backend.codec.decode(answer.tokens)
        text, closed = read_answer(whole, prompt.closing_text)
        return _View(text + "\n" if text else "", closed or answer.stats.finish == "stop")


@dataclass(frozen=True, slots=True)
class _View:
    """The text an answer holds and whether the model ended it itself."""

    text: str
    finished: bool


def _judge(view: _View, seen: str, answer: Answer, request: Request) -> tuple[str, ...]:
    """The codes of problems that were let through; raises `Refusal` for the first that is not."""
    problems: list[tuple[str, str]] = []
    if view.text.count("\ufffd") > seen.count("\ufffd"):
        problems.append(
            ("garbled", "the answer holds bytes that are not text; try again or another model")
        )
    for problem in guard.check(
        seen,
        view.text,
        finished=view.finished,
        instruction=request.instruction,
        update=None if request.update is None else _lf(request.update),
        name=request.name,
    ):
        message = problem.message
        if problem.code == "truncated" and answer.stats.finish == "length":
            message += f" (it stopped at its budget of {answer.budget:,} tokens)"
        problems.append((problem.code, message))
    for code, message in problems:
        if code not in request.allow:
            raise Refusal(code, message)
    return tuple(code for code, _ in problems)


def _predicted(seen: str, request: Request) -> str | None:
    """The file as the sketch is expected to make it."""
    if request.update is None:
        return None
    return body_of(merge.predict(seen, _lf(request.update)).text)


def _lf(text: str) -> str:
    """A sketch as a view: no BOM, LF line ends."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _context(data: bytes, encoding: str) -> str:
    """Bytes around a range as text for the model to read."""
    try:
        return Document.from_bytes(data, encoding).view if data else ""
    except InputError:
        return ""
