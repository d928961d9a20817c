"""The object that --json prints. Its shape is documented in docs/cli.md and has a version."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from apply_edit import __version__
from apply_edit.errors import ApplyEditError, Refusal
from apply_edit.words import name

if TYPE_CHECKING:
    from apply_edit.edit import Edit

SCHEMA = 1


def entry(
    file: str,
    edit: Edit | None = None,
    error: ApplyEditError | None = None,
    diff: bytes | None = None,
    output: bytes | None = None,
    written: str | None = None,
) -> dict[str, Any]:
    """What became of one FILE. Bytes that are not UTF-8 go as base64, and a field says so."""
    answer: dict[str, Any] = {
        "status": "ok" if error is None else "refused" if isinstance(error, Refusal) else "error",
        "code": error.code if error else None,
        "message": error.message if error else None,
        "file": name(file),
        "changed": edit.changed if edit and error is None else None,
        **_bytes("output", output),
        **_bytes("diff", diff),
        "written": None if written is None else name(written),
        "allowed": list(edit.allowed) if edit else [],
        "stats": edit.stats.as_dict() if edit else None,
    }
    if name(file) != file:
        answer["file_base64"] = base64.b64encode(os.fsencode(file)).decode("ascii")
    return answer


def _bytes(key: str, data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {key: None}
    try:
        return {key: data.decode("utf-8"), f"{key}_encoding": "utf-8"}
    except UnicodeDecodeError:
        return {key: base64.b64encode(data).decode("ascii"), f"{key}_encoding": "base64"}


def encode(entries: Sequence[dict[str, Any]]) -> bytes:
    """One object: the entry itself for one FILE, a list of them under ``files`` for several."""
    head = {"schema": SCHEMA, "version": __version__}
    if len(entries) == 1:
        whole = {**head, **entries[0]}
    else:
        bad = next((e for e in entries if e["status"] != "ok"), None)
        first = {key: bad[key] if bad else None for key in ("code", "message")}
        status = bad["status"] if bad else "ok"
        whole = {**head, "status": status, **first, "files": list(entries)}
    # ASCII: safe in every locale, and a lone surrogate of a file name cannot break it.
    return json.dumps(whole, ensure_ascii=True, indent=1).encode("ascii") + b"\n"
