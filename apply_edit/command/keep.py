"""What is kept of the edits of a call beside their answer: the report, and figures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from apply_edit.command.order import Order
from apply_edit.command.read import Job
from apply_edit.command.voice import Voice
from apply_edit.config import Settings
from apply_edit.edit import Edit
from apply_edit.errors import ApplyEditError, Refusal, SaveError
from apply_edit.events import Event, OnEvent
from apply_edit.options import Options
from apply_edit.target.codec import Backend
from apply_edit.words import name

if TYPE_CHECKING:
    from apply_edit.show.file_report import FileReport
    from apply_edit.show.recording import Recorder


class Keep:
    """Hears the edits of one call and what came of them. Keeps nothing that was not asked for."""

    def __init__(self, report: str | None, history: bool, voice: Voice) -> None:
        self._report = report
        self._history = history
        self._voice = voice
        self._recorders: dict[int, Recorder] = {}
        self._files: dict[int, FileReport] = {}

    def listening(self, number: int, watch: OnEvent) -> OnEvent:
        """A listener for the edit of FILE `number` that tells `watch` everything."""
        if self._report is None and not self._history:
            return watch
        from apply_edit.show.recording import Recorder

        recorder = self._recorders[number] = Recorder()

        def both(event: Event) -> None:
            recorder(event)
            watch(event)

        return both

    def ended(
        self,
        number: int,
        job: Job,
        options: Options,
        result: Edit | ApplyEditError,
        backend: Backend,
    ) -> None:
        """The edit of FILE `number`, `job`, came out, or failed."""
        recorder = self._recorders.pop(number, None)
        if recorder is None:
            return
        if self._history:
            self._append(job, options, recorder, result, backend)
        if self._report is not None:
            from apply_edit.show.explain import explain
            from apply_edit.show.file_report import file_report

            if isinstance(result, Edit):
                recorder.notes += explain(result.stats, result.steps, backend.costs())
            shown = name(job.shown)
            self._files[number] = file_report(
                shown, job.data, job.request, options, recorder, result, backend
            )

    def _append(
        self,
        job: Job,
        options: Options,
        recorder: Recorder,
        result: Edit | ApplyEditError,
        backend: Backend,
    ) -> None:
        """Add a line to the history; that it cannot be written is no reason to lose an edit."""
        from apply_edit.history import Record, append

        status, code = "ok", ""
        if isinstance(result, Edit):
            stats = result.stats
        else:
            status, code = "refused" if isinstance(result, Refusal) else "error", result.code
            stats = recorder.stats(options.draft, backend.facts())
        try:
            append(Record.of(job.request, job.data, stats, status=status, code=code))
        except OSError as error:
            self._voice.note(f"the history cannot be written: {error.strerror or error}")

    def write(self) -> None:
        """Write the report, if one was asked for and an edit was made."""
        if self._report is None or not self._files:
            return
        from apply_edit.show.report import write

        try:
            files = [self._files[number] for number in sorted(self._files)]
            write(self._report, files, datetime.now().astimezone())
        except SaveError as error:
            # The answer has taken longer to make, and is still to come.
            self._voice.note(f"the report was not written: {error.message}")


@contextlib.contextmanager
def keeping(order: Order, settings: Settings, voice: Voice) -> Iterator[Keep]:
    """For the edits of one call. A refused answer is reported, too; an interrupted one is not."""
    keep = Keep(order.report, settings.history, voice)
    try:
        yield keep
    except ApplyEditError:
        keep.write()
        raise
    keep.write()


def check_report(order: Order) -> None:
    """Refuse a place for the report while that has cost nothing yet. Raises UsageError."""
    if order.report is None:
        return
    from apply_edit.show.report import check_place

    read = [*order.files, order.update or "-", order.instruction_file or "-"]
    check_place(order.report, read, order.output)
