"""`apply-edit models train-heads`: draft heads for a model, from edits of the user's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from apply_edit.command.streams import Streams
from apply_edit.command.voice import Voice
from apply_edit.command.watch import watching
from apply_edit.config import Settings
from apply_edit.errors import InputError, UsageError
from apply_edit.text.sources import source_files
from apply_edit.words import count, name, quote

if TYPE_CHECKING:
    from apply_edit.distil import Report

MOST_MINUTES = 7 * 24 * 60.0


def train(
    model: str,
    folders: Sequence[str],
    said: str | None,
    settings: Settings,
    streams: Streams,
    voice: Voice,
) -> None:
    """Train heads for `model` on the source files in `folders`, for `said` minutes.

    Raises `UsageError` ``bad-value``, `InputError` ``not-found`` and ``no-sources`` before
    anything slow.
    """
    minutes = _minutes(said)
    files = source_files([Path(folder) for folder in folders])
    if not files:
        shown = ", ".join(quote(folder) for folder in folders)
        raise InputError("no-sources", f"there are no source files in {shown}; name another folder")
    voice.detail(f"practising on {count(len(files), 'source file')}")
    from apply_edit.distil import MINUTES, train_heads
    from apply_edit.target.backend import TorchBackend

    with watching(streams, settings, voice, f"draft heads for {model}", "") as watch:
        backend = TorchBackend.open(
            model,
            revision=None,
            device=settings.device,
            dtype=settings.dtype,
            offline=settings.offline,
            on_event=watch,
        )
        budget = MINUTES if minutes is None else minutes
        report = train_heads(backend, files, minutes=budget, on_event=watch)
    voice.note(_said(model, report))


def _minutes(said: str | None) -> float | None:
    if said is None:
        return None
    try:
        minutes = float(said)
    except ValueError:
        minutes = -1.0
    if not 0.0 < minutes <= MOST_MINUTES:
        raise UsageError("bad-value", f"--minutes takes a number above 0, not {quote(said)}")
    return minutes


def _said(model: str, report: Report) -> str:
    if report.before is not None:
        return (
            f"the draft heads for {name(model)} stay as they were: they accept "
            f"{report.before:.2f} tokens a guess on edits held out, the new ones "
            f"{report.fit.accepted:.2f}; give more --minutes or more files"
        )
    spent = (report.collecting_seconds + report.training_seconds) / 60.0
    return (
        f"draft heads for {name(model)} are trained: {report.edits:,} edits, "
        f"{report.inside:,} tokens inside them, {spent:.0f} min, {report.bytes / 1e6:.0f} MB; "
        f"{report.fit.accepted:.2f} tokens a guess on edits held out; use --draft heads"
    )
