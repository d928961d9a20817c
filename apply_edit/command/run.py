"""An edit from the command line: read, check, load, edit, and only then answer."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping

from apply_edit.command.answer import encode, entry
from apply_edit.command.deliver import Done, Written, check_places, deliver, diff_of, write
from apply_edit.command.keep import Keep, check_report, keeping
from apply_edit.command.order import Order
from apply_edit.command.read import Job, named, read_jobs
from apply_edit.command.streams import Streams
from apply_edit.command.voice import Voice, voice_of
from apply_edit.command.watch import Watch, watching
from apply_edit.config import Settings, differing, merge
from apply_edit.deadline import Deadline
from apply_edit.editor import Editor, Options
from apply_edit.errors import ApplyEditError, UsageError
from apply_edit.events import Note, OnEvent
from apply_edit.options import BATCH
from apply_edit.target.catalog import DEFAULT_MODEL
from apply_edit.words import count, name, nearest, quote


def run(order: Order, streams: Streams, environ: Mapping[str, str] | None = None) -> int:
    """Do what `order` says; returns the exit code. Raises ApplyEditError for what goes wrong.

    With --json and several FILEs, the failures of single ones are in the answer, not raised.
    """
    environ = os.environ if environ is None else environ
    order.check_sense()
    settings = _settings(order, environ)
    _check_values(settings)
    voice = voice_of(settings, streams, environ)
    _explain(settings, voice)
    # Where -v has the user's eye, what libraries print may be of use; else it is noise.
    streams.guard(2 if settings.verbose else None)
    jobs = read_jobs(order, settings, streams, voice)
    check_places(order, [job.before for job in jobs if job.before is not None])
    check_report(order)
    model = settings.model or DEFAULT_MODEL
    with (
        keeping(order, settings, voice) as keep,
        watching(streams, settings, voice, jobs[0].shown, model, files=len(jobs)) as watch,
    ):
        done = _edit_all(order, settings, model, jobs, watch, keep)
    _look_back(done, settings, streams, voice)
    if order.json:
        return _answer_json(order, done, streams, voice)
    return deliver(order, done, streams, voice)


def _settings(order: Order, environ: Mapping[str, str]) -> Settings:
    """One configuration for the whole call."""
    settings = merge(order.flags, order.folder, environ)
    seen = {order.folder}
    for file in order.files[1:]:
        folder = order.folder_of(file)
        if folder in seen:
            continue
        seen.add(folder)
        names = differing(settings, merge(order.flags, folder, environ))
        if names:
            raise UsageError(
                "mixed-config",
                f"{quote(order.files[0])} and {quote(file)} belong to projects that set "
                f"{', '.join(names)} differently; call once for each",
            )
    return settings


def _check_values(settings: Settings) -> None:
    """Values whose fault would else be met only after torch is loaded, or after the edit."""
    from apply_edit.command.complete import refusals

    known = refusals()
    for code in settings.allow:
        if code not in known:
            hint = nearest(code, known) or f"; it takes {', '.join(known)}"
            said = settings.said("allow")
            raise UsageError("bad-value", f"{said} knows no code {quote(code)}{hint}")
    for setting, value, pattern, right in (
        (
            "device",
            settings.device,
            r"auto|cpu|mps|cuda(:\d+)?",
            "auto, cpu, cuda, cuda:N or mps",
        ),
        (
            "draft",
            settings.draft,
            r"auto|copy|self|heads|none|model:.+",
            "auto, copy, self, heads, model:NAME or none",
        ),
    ):
        if not re.fullmatch(pattern, value):
            said = settings.said(setting)
            raise UsageError("bad-value", f"{said} takes {right}, not {quote(value)}")


def _explain(settings: Settings, voice: Voice) -> None:
    for setting, origin in settings.origins.items():
        value = getattr(settings, setting.replace("-", "_"))
        shown = ", ".join(value) if isinstance(value, tuple) else value
        voice.detail(f"{setting} is {'auto' if shown is None else shown}, from {origin}")


def _edit_all(
    order: Order, settings: Settings, model: str, jobs: list[Job], watch: Watch, keep: Keep
) -> list[Done]:
    """Every edit. Without --json the first failure ends it, since nothing will be written."""
    wrong = {
        number: Done(job.file, job.shown, job.before, job.error)
        for number, job in enumerate(jobs)
        if job.error is not None
    }
    if len(wrong) == len(jobs):
        return list(wrong.values())
    editor = Editor.load(
        model,
        revision=settings.revision,
        device=settings.device,
        dtype=settings.dtype,
        offline=settings.offline,
        on_event=Deadline(settings.timeout).listening(watch),
    )
    options = Options(
        max_new_tokens=settings.max_new_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        seed=settings.seed,
        draft=settings.draft,
        k=settings.k,
        verify=settings.verify,
        timeout=settings.timeout,
    )
    done = dict(wrong)
    numbers = [number for number in range(len(jobs)) if number not in wrong]
    told: dict[int, OnEvent] = {}

    def listen(index: int) -> OnEvent:
        number = numbers[index]
        told[number] = watch.begin(number, jobs[number].shown)
        return keep.listening(number, told[number])

    items = [(jobs[number].data, jobs[number].request) for number in numbers]
    each = editor.edit_each(items, options, listen, batch=settings.batch or BATCH)
    with contextlib.closing(each):
        for index, result in each:
            number = numbers[index]
            job = jobs[number]
            if isinstance(result, ApplyEditError):
                if len(jobs) > 1:
                    named(result, job.shown)
            elif settings.verbose:
                from apply_edit.show.explain import explain

                for line in explain(result.stats, result.steps, editor.backend.costs()):
                    told[number](Note(line))
            keep.ended(number, job, options, result, editor.backend)
            watch.end(number)
            if isinstance(result, ApplyEditError) and (not order.json or len(jobs) == 1):
                raise result
            done[number] = Done(job.file, job.shown, job.before, result)
    return [done[number] for number in range(len(jobs))]


def _look_back(done: list[Done], settings: Settings, streams: Streams, voice: Voice) -> None:
    """The summary line on a terminal, and the figures of --stats."""
    summarised = streams.is_terminal(2) and not settings.quiet
    for one in done:
        if isinstance(one.result, ApplyEditError):
            continue
        for code in one.result.allowed:
            voice.detail(f"{name(one.shown)}: let through, as --allow {code} says")
        if not (summarised or settings.stats):
            continue
        from apply_edit.show.summary import figure_lines, summary_text

        title = name(one.shown) if len(done) > 1 else ""
        if summarised:
            voice.plain(summary_text(one.result, title, voice.color))
        if settings.stats:
            for line in figure_lines(one.result.stats, title):
                voice.plain(line)


def _answer_json(order: Order, done: list[Done], streams: Streams, voice: Voice) -> int:
    """One object for all files; nothing is written unless every edit came out."""
    failed = sum(isinstance(one.result, ApplyEditError) for one in done)
    written = write(order, done) if order.saves and not failed else Written({})
    entries = []
    for one in done:
        if isinstance(one.result, ApplyEditError):
            voice.error(one.result.code, one.result.message)
            entries.append(entry(one.shown, error=one.result))
            continue
        if one is written.failed and written.error is not None:
            voice.error(written.error.code, written.error.message)
            entries.append(entry(one.shown, one.result, error=written.error))
            continue
        plain = not (order.check or order.saves or order.diff)
        entries.append(
            entry(
                one.shown,
                one.result,
                diff=diff_of(one) if order.diff else None,
                output=one.result.output if plain else None,
                written=written.paths.get(one.file),
            )
        )
    streams.write(encode(entries))
    if failed:
        if order.saves:
            voice.note(f"{count(failed, 'file')} of {len(done)} failed, so nothing was written")
        return 2
    if written.failed is not None:
        return 2
    return 1 if order.check and any(one.changed for one in done) else 0
