"""What a report says of one file: the run, its passes and figures, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from apply_edit import __version__
from apply_edit.decode.stats import Stats
from apply_edit.edit import Edit, Request
from apply_edit.errors import ApplyEditError, Refusal
from apply_edit.options import Options
from apply_edit.show.recording import Pass, Recorder, lines_of, passes_of
from apply_edit.show.summary import changed_lines, speedup
from apply_edit.target.codec import Backend

SCHEMA = 1

PROMISES = {
    "bit": "On this machine, passes of the widths that were used give the same logits, bit for "
    "bit, as passes over one token. So the tokens are those of plain decoding, one at a time.",
    "margin": "On this machine, passes of different widths differ by a known noise. Choices "
    "closer than that noise were decided by a pass over a single token, so the tokens are those "
    "of plain decoding as far as that noise was measured.",
    "none": "On this machine, passes of different widths give slightly different logits. Where "
    "two tokens are nearly tied the output may differ from that of plain decoding; --verify "
    "compares them.",
}
"""What stands behind the word in `Stats.exact`."""


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of one FILE.

    The model rewrites a file in one part, or one that its window cannot hold in several:
    `first_lines` are the numbers of their first lines in the result, `new_lines` those of all lines
    that differ from the file before. `speedup` says how many times faster the decoding was than
    one token a pass.
    """

    file: str
    status: str
    code: str | None
    message: str | None
    changed_lines: int | None
    first_lines: tuple[int, ...]
    new_lines: tuple[int, ...]
    request: dict[str, Any]
    options: dict[str, Any]
    allowed: tuple[str, ...]
    stats: Stats
    speedup: float | None
    costs: tuple[tuple[int, float], ...] | None
    passes: tuple[Pass, ...]
    notes: tuple[str, ...]

    @property
    def promise(self) -> str:
        """The exactness promise in words."""
        return PROMISES.get(self.stats.exact, "Nothing was promised about this run.")

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON; docs/report.schema.json says what is what."""
        data: dict[str, Any] = {
            "file": self.file,
            "status": self.status,
            "code": self.code,
            "message": self.message,
            "changed_lines": self.changed_lines,
            "first_lines": list(self.first_lines),
            "new_lines": list(self.new_lines),
            "request": self.request,
            "options": self.options,
            "allowed": list(self.allowed),
            "promise": self.promise,
            "stats": self.stats.as_dict(),
            "speedup": self.speedup,
            "costs": None
            if self.costs is None
            else [{"rows": rows, "ms": ms} for rows, ms in self.costs],
            "notes": list(self.notes),
            "passes": [],
        }
        for one in self.passes:
            row = asdict(one)
            row["pieces"] = [asdict(piece) for piece in one.pieces]
            data["passes"].append(row)
        return data


def file_report(
    file: str,
    original: bytes,
    request: Request,
    options: Options,
    recorder: Recorder,
    result: Edit | ApplyEditError,
    backend: Backend,
) -> FileReport:
    """Put together what `recorder` heard of one edit and what came of it."""
    edit = result if isinstance(result, Edit) else None
    error = result if isinstance(result, ApplyEditError) else None
    status = "ok" if error is None else "refused" if isinstance(error, Refusal) else "error"
    stats = edit.stats if edit is not None else recorder.stats(options.draft, backend.facts())
    costs = backend.costs()
    asked = {
        "instruction": request.instruction,
        "update": request.update,
        "lines": None if request.lines is None else list(request.lines),
        "encoding": request.encoding,
        "allow": sorted(request.allow),
    }
    passes = tuple(passes_of(recorder.wrote, edit))
    first_lines, new_lines = lines_of(original, request, edit, passes)
    return FileReport(
        file=file,
        status=status,
        code=None if error is None else error.code,
        message=None if error is None else error.message,
        changed_lines=None if edit is None else changed_lines(edit.original, edit.output),
        first_lines=first_lines,
        new_lines=new_lines,
        request=asked,
        options=asdict(options),
        allowed=() if edit is None else edit.allowed,
        stats=stats,
        speedup=speedup([e.step for e in recorder.wrote]) if stats.batch == 1 else None,
        costs=None if costs is None else tuple((rows, ms) for rows, ms in costs),
        passes=passes,
        notes=tuple(recorder.notes),
    )


def report(files: Sequence[FileReport], now: datetime) -> dict[str, Any]:
    """The whole report as data. `now` carries its time zone."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "created": now.isoformat(timespec="seconds"),
        "files": [one.as_dict() for one in files],
    }
