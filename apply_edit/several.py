"""Several edits: in shared passes where that can be, else one after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from apply_edit.decode.batch import Batch, Share
from apply_edit.decode.rows import Asking
from apply_edit.drafting import AUTO
from apply_edit.edit import Asked, Edit, Request
from apply_edit.errors import ApplyEditError
from apply_edit.events import Note, OnEvent
from apply_edit.options import Options
from apply_edit.seats import Seats
from apply_edit.session import Session
from apply_edit.target.codec import Backend, Slotted

Result = Edit | ApplyEditError


class Editing(Protocol):
    """Whoever makes one edit: the editor."""

    @property
    def backend(self) -> Backend: ...

    @property
    def session(self) -> Session: ...

    def edit(
        self, data: bytes, request: Request, options: Options, on_event: OnEvent, /
    ) -> Edit: ...

    def ask(self, data: bytes, request: Request, options: Options) -> Asked: ...

    def editing(
        self,
        asked: Asked,
        options: Options,
        session: Session,
        on_event: OnEvent = ...,
        *,
        share: Share | None = None,
        others: Callable[[], Sequence[Session]] = ...,
    ) -> Asking[Edit]:
        """`edit`, asking for the scores of each pass."""
        ...


def edits(
    editor: Editing,
    items: Sequence[tuple[bytes, Request]],
    options: Options,
    listen: Callable[[int], OnEvent],
    batch: int,
) -> Generator[tuple[int, Result], None, None]:
    """Make all edits; index and result of each as it is there."""
    backend = editor.backend
    if min(batch, len(items)) > 1 and _copies(options) and isinstance(backend, Slotted):
        if options.draft == AUTO:
            options = replace(options, draft="copy")
        yield from _Several(editor, backend, items, options, listen, batch).results()
        return
    for index, (data, request) in enumerate(items):
        try:
            result: Result = editor.edit(data, request, options, listen(index))
        except ApplyEditError as error:
            result = error
        yield index, result


def _copies(options: Options) -> bool:
    """Whether drafts need no model: a learned drafter has one cache, for one request at a time.

    Where the choice is free, shared passes gain more than a drafter and cannot lose.
    """
    return options.draft in ("copy", "none", AUTO) or options.k == 0


class _Several:
    """Edits in a batch: some under way, some waiting for a seat."""

    def __init__(
        self,
        editor: Editing,
        backend: Slotted,
        items: Sequence[tuple[bytes, Request]],
        options: Options,
        listen: Callable[[int], OnEvent],
        most: int,
    ) -> None:
        self._editor = editor
        self._items = items
        self._options = options
        self._listen = listen
        self._waiting = deque(range(len(items)))
        self._next: Asked | None = None
        self._most = most
        self._batch: Batch[Result] = Batch(backend.together)
        self._seats = Seats(editor.session, backend, most)

    def results(self) -> Iterator[tuple[int, Result]]:
        """Index and result of each edit as it ends."""
        try:
            while self._waiting or len(self._batch):
                # One prompt is read at a time: the next one finds its beginning read by then,
                # and those that are being answered go on in the same passes.
                while self._waiting and not self._batch.reading:
                    ended = self._admit()
                    if ended is None:
                        break
                    yield from self._left(ended)
                if len(self._batch):
                    yield from self._left(self._batch.turn())
        finally:
            self._batch.close()
            self._seats.close()

    def _admit(self) -> list[tuple[int, Result]] | None:
        """Begin the next edit; what came of it if that is known at once, None without a seat."""
        index = self._waiting[0]
        if self._next is None:
            try:
                self._next = self._editor.ask(*self._items[index], self._options)
                positions = self._positions(self._next)
            except ApplyEditError as error:
                self._waiting.popleft()
                self._next = None
                return [(index, error)]
        else:
            positions = self._positions(self._next)
        session = self._seats.take(index, positions)
        if session is None:
            return None
        self._waiting.popleft()
        asked, self._next = self._next, None
        on_event = self._listen(index)
        requests = self._share(len(self._batch) + 1)
        if requests > 1:
            on_event(Note(f"up to {requests} edits share the passes; seconds are this one's share"))
        share = Share()
        editing = self._editor.editing(
            asked,
            self._options,
            session,
            on_event,
            share=share,
            others=self._seats.taken,
        )
        return self._batch.add(index, _caught(editing), share)

    def _positions(self, asked: Asked) -> int:
        """The most positions that prompt and answer of a question of an edit can have."""
        budget = self._editor.session.budget
        wanted = self._options.max_new_tokens
        return max(len(q.prompt.tokens) + budget(q.prompt, wanted) for q in asked.questions)

    def _left(self, ended: Sequence[tuple[int, Result]]) -> Iterator[tuple[int, Result]]:
        for index, _ in ended:
            self._seats.leave(index)
        if ended:
            self._share(len(self._batch))
        yield from ended

    def _share(self, live: int) -> int:
        """Let all who are under way, so many, know how many share the passes from now on."""
        requests = max(1, min(self._most, live + len(self._waiting)))
        for session in self._seats.taken():
            session.requests = requests
        return requests


def _caught(editing: Asking[Edit]) -> Asking[Result]:
    """The edit, or the error that it ended with."""
    try:
        return (yield from editing)
    except ApplyEditError as error:
        return error
