"""A finished run as plain data: what --report writes as JSON, and what the page is drawn from.

The shape of the data is documented in docs/report.schema.json. A report holds the text of the
file, so it is written only where it is asked for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from apply_edit.errors import UsageError
from apply_edit.show.file_report import FileReport, report
from apply_edit.text.save import write_new
from apply_edit.words import quote

SUFFIXES = (".html", ".htm", ".json")


def check_place(path: str, inputs: Sequence[str] = (), output: str | None = None) -> None:
    """Refuse a place for the report while that has cost nothing yet.

    `inputs` are files that are read, `output` is one that will be written. Raises UsageError
    `bad-report`.
    """
    if Path(path).suffix.lower() not in SUFFIXES:
        message = f"--report takes a name that ends in .html or .json, not {quote(path)}"
        raise UsageError("bad-report", message)
    if Path(path).is_dir() or not Path(path).absolute().parent.is_dir():
        message = (
            f"the report {quote(path)} cannot be written there; name a file in a folder that exists"
        )
        raise UsageError("bad-report", message)
    real = os.path.realpath(path)
    for other in (*inputs, *(() if output is None else (output,))):
        if other != "-" and os.path.realpath(other) == real:
            message = f"the report would replace {quote(other)}; give it a name of its own"
            raise UsageError("bad-report", message)


def write(path: str, files: Sequence[FileReport], now: datetime) -> None:
    """Write the report at `path`, as a page or as JSON by its suffix.

    Raises SaveError where it cannot be written.
    """
    if Path(path).suffix.lower() == ".json":
        # ASCII: a lone surrogate of a file name cannot break it.
        data = json.dumps(report(files, now), ensure_ascii=True, indent=1).encode("ascii") + b"\n"
    else:
        from apply_edit.show.page import page

        data = page(files, now).encode("utf-8", "replace")
    write_new(path, data, force=True)
