"""The use case: bytes -> view -> prompt -> answer -> guard -> Edit."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from time import perf_counter

from apply_edit import windowed
from apply_edit.decode.batch import Share
from apply_edit.decode.rows import Asking, drive
from apply_edit.edit import Asked, Edit, Request, check_request, checked
from apply_edit.errors import ApplyEditError
from apply_edit.events import Event, Note, OnEvent, ignore
from apply_edit.judge import judge, judge_file, view_of
from apply_edit.options import BATCH
from apply_edit.question import Asker
from apply_edit.session import Answer, Options, Session
from apply_edit.several import edits
from apply_edit.stream import merged
from apply_edit.target.catalog import DEFAULT_MODEL
from apply_edit.target.codec import Backend
from apply_edit.text.loop_watch import LoopWatch

__all__ = ["Edit", "Editor", "Options", "Request", "check_request"]


def _ignored(_index: int, _event: Event) -> None:
    """The listener to several edits of callers that do not want to watch."""


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
        document, part = checked(data, request)
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
            view = view_of(self.backend.codec, answer, question, request.instruction)
            allowed += judge(view, question, answer, request)
            answers.append(answer)
            texts.append(question.part.document.restore(view.text, question.seen))
        output = windowed.join(asked.data, [question.part for question in questions], texts)
        document = asked.document
        if questions[0].part.document is not document:
            split = questions[0].part is not asked.part
            allowed += judge_file(document.view, output, request, document.encoding, split)
        return Edit(
            original=asked.data,
            output=output,
            stats=windowed.summed([answer.stats for answer in answers]),
            steps=tuple(step for answer in answers for step in answer.steps),
            pieces=tuple(merged([piece for answer in answers for piece in answer.pieces])),
            allowed=tuple(dict.fromkeys(allowed)),
        )
