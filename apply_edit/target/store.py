"""The weights cache: where models live on disk, who may write there, and what counts as whole.

Layout below the root::

    models/NAME-HASH8/          a converted model; `complete.json` was written last
    work/NAME-HASH8/            what the run that holds the lock is making
    locks/NAME-HASH8.lock
    heads/NAME-HASH8.safetensors    draft heads trained for these weights

A folder under ``models`` appears by one rename of a finished folder, and its manifest lists every
file with its size, so a run that was killed at any moment leaves either nothing there or all.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from apply_edit.errors import ModelError
from apply_edit.events import Note, OnEvent, Stage, ignore
from apply_edit.target.catalog import CATALOG

MANIFEST = "complete.json"
FORMAT = 1
"""Raised when the converted form changes; folders of another format are made anew."""

_POLL = 0.4  # seconds between two looks whether another run is done

MADE = ("calibration", "four-bit", "heads", "prefix")
"""Folders of the cache for what is made of weights; names there begin with the weights' id."""

State = Literal["present", "partial", "absent"]


def cache_root() -> Path:
    """Where weights are kept: $APPLY_EDIT_CACHE, else the platform's folder for caches."""
    if named := os.environ.get("APPLY_EDIT_CACHE"):
        return Path(named).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "apply-edit"
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules: a relative path is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "apply-edit"


def heads_path(weights_id: str) -> Path:
    """Where the draft heads of some weights are kept."""
    return cache_root() / "heads" / f"{weights_id}.safetensors"


@contextlib.contextmanager
def locked(name: str, label: str, whose: str, on_event: OnEvent = ignore) -> Iterator[None]:
    """Hold the lock `name`; waits for another run (`whose` says which), and says so.

    The lock is the operating system's, so it ends with the process that holds it.
    """
    from filelock import FileLock, Timeout

    path = cache_root() / "locks" / f"{name}.lock"
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        held = FileLock(path)
        try:
            held.acquire(timeout=0)
        except Timeout:
            on_event(Stage("wait", 0, None, "passes", label))
            on_event(Note(f"waiting for another run {whose}"))
            while not held.is_locked:
                try:
                    held.acquire(timeout=_POLL, poll_interval=_POLL / 2)
                except Timeout:  # noqa: PERF203 - how a look ends
                    on_event(Stage("wait", 0, None, "passes", label))
    try:
        yield
    finally:
        held.release()


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one set of weights in the cache, found by name and hash."""

    name: str
    sha256: str

    @property
    def id(self) -> str:
        """Ties other caches to these weights: another hash is another id."""
        return f"{self.name}-{self.sha256[:8]}"

    @property
    def folder(self) -> Path:
        """The converted model, if `present`."""
        return cache_root() / "models" / self.id

    @property
    def work(self) -> Path:
        """Half-made things; only the holder of the lock touches them."""
        return cache_root() / "work" / self.id

    @property
    def present(self) -> bool:
        """Whether the converted model is there, whole, and of this format."""
        return read_manifest(self.folder, self.sha256) is not None

    @contextlib.contextmanager
    def lock(self, on_event: OnEvent = ignore) -> Iterator[None]:
        """Hold these weights for writing; waits for another run, and says so."""
        with locked(self.id, self.name, f"that is preparing {self.name}", on_event):
            yield

    def clean(self, keep: str = "") -> None:
        """Drop what dead runs left in the work folder, except the file named `keep`."""
        with writing(self.work):
            self.work.mkdir(parents=True, exist_ok=True)
            for path in self.work.iterdir():
                if path.name != keep:
                    _drop(path)

    def publish(self, made: Path, source_bytes: int) -> None:
        """Give the finished folder `made` its manifest, and then its final place."""
        with writing(made):
            files = {p.name: p.stat().st_size for p in sorted(made.iterdir()) if p.is_file()}
            manifest = {
                "format": FORMAT,
                "source": {"name": self.name, "sha256": self.sha256, "bytes": source_bytes},
                "files": files,
                "libraries": _libraries(),
            }
            text = json.dumps(manifest, indent=1, sort_keys=True)
            with (made / MANIFEST).open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            if self.folder.exists():
                # It holds no valid manifest, or nobody would have made this one.
                stale = self.work / "stale"
                _drop(stale)
                self.folder.replace(stale)
                _drop(stale)
            made.replace(self.folder)


def read_manifest(folder: Path, sha256: str) -> dict[str, Any] | None:
    """The manifest of a converted folder; None where it or a file it lists is not as it says."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        whole = (
            manifest["format"] == FORMAT
            and manifest["source"]["sha256"] == sha256
            and all((folder / n).stat().st_size == size for n, size in manifest["files"].items())
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return manifest if whole else None


@dataclass(frozen=True, slots=True)
class Stored:
    """What the cache holds of one model. `bytes` counts what is on disk, whole or not; `heads`
    says whether draft heads were trained for it."""

    name: str
    state: State
    bytes: int
    folder: Path
    heads: bool = False


def slot_of(name: str) -> Slot:
    """The slot of a catalog name, or of the id of a converted file already in the cache."""
    if entry := CATALOG.get(name):
        return Slot(entry.name, entry.sha256)
    for slot in _converted():
        if name in (slot.name, slot.id):
            return slot
    raise ModelError("unknown-model", f"the cache knows no model {name!r}; see apply-edit models")


def status(name: str) -> Stored:
    """Whether a model is in the cache, how much room it takes, and where."""
    slot = slot_of(name)
    size = _size(slot.folder) + _size(slot.work)
    state: State = "present" if slot.present else "partial" if size else "absent"
    return Stored(slot.name, state, size, slot.folder, heads_path(slot.id).is_file())


def stored() -> tuple[Stored, ...]:
    """All models of the catalog, then every converted file the cache holds besides."""
    names = [*CATALOG, *(slot.id for slot in _converted())]
    return tuple(status(name) for name in names)


def remove(name: str, on_event: OnEvent = ignore) -> int:
    """Delete a model from the cache, whole or half-made; returns the bytes freed."""
    slot = slot_of(name)
    made = _made_of(slot.id)
    freed = sum(_size(path) for path in (slot.folder, slot.work, *made))
    with slot.lock(on_event), writing(slot.folder):
        # The manifest goes first: a removal cut short leaves nothing that looks whole.
        (slot.folder / MANIFEST).unlink(missing_ok=True)
        for path in (slot.folder, slot.work, *made):
            _drop(path)
    return freed


def _made_of(weights_id: str) -> list[Path]:
    """What else the cache holds that was made of these weights: what an unfinished training had
    collected is among it."""
    root = cache_root()
    return [
        path
        for folder in MADE
        for mark in "-."
        for path in sorted((root / folder).glob(f"{glob.escape(weights_id)}{mark}*"))
    ] + [path for path in [heads_path(weights_id).with_suffix("")] if path.exists()]


def require_space(folder: Path, needed: int, what: str) -> None:
    """Refuse with code ``no-space`` where the disk of `folder` has no room for `needed` bytes."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelError(
            "no-space",
            f"{what} needs {_gb(needed)} on the disk of {folder} but {_gb(free)} are free; "
            "make room or set APPLY_EDIT_CACHE to a folder on another disk",
        )


_UNWRITABLE = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.ENOENT,  # where the system itself makes the folders, as below /proc
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.EIO,
)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn the operating system's refusals to write below `folder` into model errors."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise ModelError(
                "no-space",
                f"the disk is full while writing to {folder}; make room or set APPLY_EDIT_CACHE "
                "to a folder on another disk",
            ) from error
        if error.errno in _UNWRITABLE:
            raise ModelError(
                "cache-unwritable",
                f"cannot write to the weights cache at {folder} ({error.strerror}); set "
                "APPLY_EDIT_CACHE to a folder of yours",
            ) from error
        raise


def _converted() -> Iterator[Slot]:
    """Slots of converted folders that are not of the catalog."""
    root = cache_root() / "models"
    known = {Slot(entry.name, entry.sha256).id for entry in CATALOG.values()}
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        try:
            source = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["source"]
            slot = Slot(str(source["name"]), str(source["sha256"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if folder.name == slot.id and slot.id not in known:
            yield slot


def _libraries() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("apply-edit", "transformers", "tokenizers", "gguf", "torch"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _size(folder: Path) -> int:
    if folder.is_file():
        return folder.stat().st_size
    if not folder.is_dir():
        return 0
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _drop(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
