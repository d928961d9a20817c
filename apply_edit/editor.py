"""The use case: bytes -> view -> prompt -> answer -> guard -> Edit."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from apply_edit import windowed
from apply_edit.decode.batch import Share
from apply_edit.decode.rows import Asking, drive
from apply_edit.decode.stats import Stats
from apply_edit.decode.types import Step
from apply_edit.errors import ApplyEditError, Refusal, UsageError
from apply_edit.events import Event, Note, OnEvent, Piece, ignore
from apply_edit.options import BATCH
from apply_edit.question import Asker, Question
from apply_edit.session import Answer, Options, Session
from apply_edit.several import edits
from apply_edit.stream import merged
from apply_edit.target.catalog import DEFAULT_MODEL
from apply_edit.target.codec import Backend
from apply_edit.target.prompt import body_of, read_answer
from apply_edit.text import guard, segments
from apply_edit.text.document import Document
from apply_edit.text.edges import keep_edges
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


@dataclass(frozen=True, slots=True)
class Asked:
    """An edit whose questions are put: a part of the file each, and nothing answered yet."""

    data: bytes
    request: Request
    document: Document
    part: windowed.Part
    questions: tuple[Question, ...]


def _ignored(_index: int, _event: Event) -> None:
    """The listener to several edits of callers that do not want to watch."""


def check_request(data: bytes, request: Request) -> None:
    """Every refusal that needs no model.

    Raises `UsageError` (no edit, an empty one), `InputError` (not text, impossible lines).
    """
    _checked(data, request)


def _checked(data: bytes, request: Request) -> tuple[Document, windowed.Part]:
    """The file, and the part of it that is to be rewritten."""
    if request.instruction is None and request.update is None:
        raise UsageError("no-edit", "say what to change with --instruction or --update")
    if request.instruction is not None and not request.instruction.strip():
        raise UsageError("empty-instruction", "the instruction is empty; say what to change")
    for text in (request.instruction, request.update):
        if text is not None and any("\ud800" <= c <= "\udfff" for c in text):
            raise UsageError("not-utf8", "the edit holds bytes that are not UTF-8; save it as such")
    document = Document.from_bytes(data, request.encoding)
    update = None if request.update is None else _lf(request.update)
    if update is not None:
        segments.parse(update, document.view)
    if request.lines is None:
        return document, windowed.whole(document, len(data), update)
    return document, windowed.part(document, *request.lines, update)


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
        options = options or Options()
        return drive(
            self.editing(self.ask(data, request, options), options, self.session, on_event)
        )

    def edit_all(
        self,
        items: Sequence[tuple[bytes, Request]],
        options: Options | None = None,
        on_event: Callable[[int, Event], None] = _ignored,
        *,
        batch: int = BATCH,
    ) -> list[Edit | ApplyEditError]:
        """Several edits, up to `batch` at a time in shared passes; each as `edit` makes it alone.

        `items` are pairs of bytes and requests; `on_event` is told the index of an item and what
        happens to it. An edit that fails stands as its error in the list, and hurts no other.

        >>> editor.edit_all([(a, Request(update=one)), (b, Request(update=two))])  # doctest: +SKIP
        [Edit(...), Refusal('truncated', ...)]
        """

        def listen(index: int) -> OnEvent:
            return lambda event: on_event(index, event)

        results = dict(self.edit_each(items, options, listen, batch=batch))
        return [results[index] for index in range(len(items))]

    def edit_each(
        self,
        items: Sequence[tuple[bytes, Request]],
        options: Options | None = None,
        listen: Callable[[int], OnEvent] = lambda index: ignore,
        *,
        batch: int = BATCH,
    ) -> Generator[tuple[int, Edit | ApplyEditError], None, None]:
        """As `edit_all`, giving each item's index and result as soon as it is there.

        `listen` is called with an item's index when its edit begins, for who is to hear of it.
        To stop early, close the generator.
        """
        return edits(self, items, options or Options(), listen, batch)

    def ask(self, data: bytes, request: Request, options: Options) -> Asked:
        """Put the questions of an edit. Raises what `edit` does before the model is needed."""
        document, part = _checked(data, request)
        asker = Asker(
            self.backend.codec,
            self.backend.window,
            document,
            request.instruction,
            options.max_new_tokens,
        )
        return Asked(data, request, document, part, tuple(asker.questions(part)))

    def editing(
        self,
        asked: Asked,
        options: Options,
        session: Session,
        on_event: OnEvent = ignore,
        *,
        share: Share | None = None,
        others: Callable[[], Sequence[Session]] = tuple,
    ) -> Asking[Edit]:
        """`edit`, asking for the scores of each pass. `share` and `others` are `Session`'s."""
        questions = asked.questions
        if len(questions) > 1:
            names = ", ".join(question.part.name for question in questions)
            on_event(Note(f"the file is longer than the model's window; rewriting {names}"))
        request = asked.request
        answers: list[Answer] = []
        texts: list[bytes] = []
        allowed: list[str] = []
        clock = perf_counter if share is None else share
        started = clock()
        for number, question in enumerate(questions):
            done = [answer.stats for answer in answers]
            watch = LoopWatch(question.seen)
            # A loop ends the answer unless that is let through.
            answer = yield from session.answering(
                question.prompt,
                options.after(clock() - started),
                predicted=question.predicted,
                watch=None if "looping" in request.allow else watch.feed,
                on_event=windowed.relayed(on_event, number, len(questions), done),
                share=share,
                others=others,
            )
            view = self._view(answer, question, request.instruction)
            allowed += _judge(view, question, answer, request)
            answers.append(answer)
            texts.append(question.part.document.restore(view.text, question.seen))
        output = windowed.join(asked.data, [question.part for question in questions], texts)
        document = asked.document
        if questions[0].part.document is not document:
            split = questions[0].part is not asked.part
            allowed += _judge_file(document.view, output, request, document.encoding, split)
        return Edit(
            original=asked.data,
            output=output,
            stats=windowed.summed([answer.stats for answer in answers]),
            steps=tuple(step for answer in answers for step in answer.steps),
            pieces=tuple(merged([piece for answer in answers for piece in answer.pieces])),
            allowed=tuple(dict.fromkeys(allowed)),
        )

    def _view(self, answer: Answer, question: Question, instruction: str | None) -> _View:
        """The new view that an answer holds."""
        whole = self.backend.codec.decode(answer.tokens)
        text, closed = read_answer(whole, question.prompt.closing_text)
        if not closed:
            text = text.removesuffix("\n")
        finished = closed or answer.stats.finish in ("stop", "loop")
        if text == body_of(question.seen):  # a file of one blank line has an empty body, too
            return _View(question.seen, finished)
        view = text + "\n" if text else ""
        return _View(keep_edges(question.seen, view, instruction), finished)


@dataclass(frozen=True, slots=True)
class _View:
    """The text an answer holds, and whether it ended otherwise than at its budget."""

    text: str
    finished: bool


def _judge(view: _View, question: Question, answer: Answer, request: Request) -> list[str]:
    """The codes of an answer's problems, if all may pass. Raises `Refusal` for one that may not."""
    seen = question.seen
    problems = []
    if "\0" in view.text or view.text.count("\ufffd") > seen.count("\ufffd"):
        problems.append(
            guard.Problem(
                "garbled", "the answer holds bytes that are not text; try again or another model"
            )
        )
    problems += guard.check(
        seen,
        view.text,
        finished=view.finished,
        instruction=request.instruction,
        update=question.update,
        name=request.name,
        first_line=question.part.first,
    )
    if answer.stats.finish == "loop" and not any(p.code == "looping" for p in problems):
        # Seen while it was written and no more now: still, it is not whole.
        problems.append(
            guard.Problem("looping", "the answer repeats itself to no end; try another model")
        )
    more = {}
    if answer.stats.finish == "length":
        more["truncated"] = f" (it stopped at its budget of {answer.budget:,} tokens)"
    return _let_through(problems, request, more)


def _judge_file(
    view: str, output: bytes, request: Request, encoding: str, split: bool
) -> list[str]:
    """As `_judge`, for the file of which parts were rewritten: what no part shows on its own."""
    update = None if request.update is None else _lf(request.update)
    # The parts of the sketch have been through the tokenizer, which may compose accents.
    before, after, edit = (
        unicodedata.normalize("NFC", text)
        for text in (view, Document.from_bytes(output, encoding).view, update or "")
    )
    problems = guard.check(
        before,
        after,
        finished=True,
        instruction=request.instruction,
        update=edit if update is not None else None,
        name=request.name,
    )
    # Outside a range that the caller named nothing can be lost; but it may no longer fit in, or
    # hold once more what stands around it.
    wanted = guard.CODES if split else ("duplicated", "unparsable")
    return _let_through([p for p in problems if p.code in wanted], request, {})


def _let_through(
    problems: list[guard.Problem], request: Request, more: dict[str, str]
) -> list[str]:
    for problem in problems:
        if problem.code not in request.allow:
            raise Refusal(problem.code, problem.message + more.get(problem.code, ""))
    return [problem.code for problem in problems]


def _lf(text: str) -> str:
    """A sketch as a view: no BOM, LF line ends."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
