"""Reports for tests: of real edits by the replay target, and made up."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from apply_edit.editor import Editor, Options, Request
from apply_edit.errors import ApplyEditError
from apply_edit.show.file_report import FileReport, file_report
from apply_edit.show.recording import Recorder

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=timezone.utc)


def edited(
    folder: Path,
    before: str,
    after: str,
    *,
    name: str = "f.py",
    raw: bool = False,
    costs: tuple[tuple[int, float], ...] | None = None,
    allow: frozenset[str] = frozenset(),
    options: Options | None = None,
    lines: tuple[int, int] | None = None,
) -> FileReport:
    """The report of an edit that the replay target makes of `before`."""
    (folder / "after").write_bytes(after.encode())
    editor = Editor.load(f"replay{'-raw' if raw else ''}:{folder / 'after'}")
    backend = editor.backend
    backend.costs = lambda: costs  # type: ignore[method-assign]
    request = Request(instruction="change it", name=name, allow=allow, lines=lines)
    options = options or Options()
    recorder = Recorder()
    try:
        result = editor.edit(before.encode(), request, options, recorder)
    except ApplyEditError as error:
        return file_report(name, before.encode(), request, options, recorder, error, backend)
    return file_report(name, before.encode(), request, options, recorder, result, backend)


def source(lines: int, changed: range = range(0)) -> str:
    """A Python file; the `changed` lines return something else."""
    return "".join(
        f"def function_{n}(value): return value + {n * (1000 if n in changed else 1)}\n"
        for n in range(lines)
    )
