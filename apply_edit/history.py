"""What past runs gained, kept in a file of the user's, if the user wants it: figures only.

No name, path, instruction or content of any file is stored, nor anything from which one could be
told: a request is described by its kind, the size of the file in steps, and a language from a
fixed list.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

from apply_edit import __version__
from apply_edit.decode.stats import Stats
from apply_edit.edit import Request
from apply_edit.target.catalog import CATALOG

FORMAT = 1
CAP = 1 << 20
"""Bytes after which the file is put aside; the one put aside before goes. About 4,000 runs each."""
PATIENCE = 1.0
"""Seconds to wait for another run that is writing."""

SIZES = (50, 200, 500, 1000, 2000)
"""Lines of a file, in steps."""

LANGUAGES = {
    "python": ("py", "pyi", "pyx"),
    "javascript": ("js", "jsx", "mjs", "cjs"),
    "typescript": ("ts", "tsx", "mts", "cts"),
    "c": ("c", "h"),
    "c++": ("cc", "cpp", "cxx", "hh", "hpp", "hxx"),
    "c#": ("cs",),
    "java": ("java",),
    "kotlin": ("kt", "kts"),
    "scala": ("scala",),
    "swift": ("swift",),
    "go": ("go",),
    "rust": ("rs",),
    "ruby": ("rb",),
    "php": ("php",),
    "perl": ("pl", "pm"),
    "lua": ("lua",),
    "r": ("r",),
    "julia": ("jl",),
    "haskell": ("hs",),
    "elixir": ("ex", "exs"),
    "shell": ("sh", "bash", "zsh"),
    "sql": ("sql",),
    "html": ("html", "htm", "vue", "svelte"),
    "css": ("css", "scss", "less"),
    "xml": ("xml", "svg"),
    "json": ("json",),
    "yaml": ("yaml", "yml"),
    "toml": ("toml", "ini", "cfg"),
    "markdown": ("md", "rst", "txt"),
}
_BY_SUFFIX = {suffix: name for name, suffixes in LANGUAGES.items() for suffix in suffixes}

HOW = (
    "turn it on with APPLY_EDIT_HISTORY=1, with --history, or with `history = true` in "
    "~/.config/apply-edit/config.toml; only figures are kept, never names or contents of files"
)


@dataclass(frozen=True, slots=True)
class Record:
    """One run. Seconds count from the first prompt token; `code` says why a run was refused."""

    day: str
    version: str
    kind: str
    size: str
    language: str
    model: str
    dtype: str
    device: str
    exact: str
    draft: str
    status: str
    code: str
    finish: str
    prompt_tokens: int
    output_tokens: int
    passes: int
    drafted: int
    accepted: int
    first_run_seconds: float
    total_seconds: float
    floor_seconds: float | None

    @classmethod
    def of(
        cls,
        request: Request,
        original: bytes,
        stats: Stats,
        *,
        status: str = "ok",
        code: str = "",
        today: date | None = None,
    ) -> Record:
        """The record of an edit. `status` is ok, refused or error; `code` is the error's."""
        floor = stats.floor_seconds
        return cls(
            day=(today or date.today()).isoformat(),
            version=__version__,
            kind=kind_of(request),
            size=size_of(original),
            language=language_of(request.name),
            model=stats.model if stats.model in (*CATALOG, "replay") else "custom",
            dtype=stats.dtype,
            device=stats.device.partition(":")[0],
            exact=stats.exact,
            # A draft model may be named by its path.
            draft=stats.draft.partition(":")[0],
            status=status,
            code=code,
            finish=stats.finish,
            prompt_tokens=stats.prompt_tokens,
            output_tokens=stats.output_tokens,
            passes=stats.passes,
            drafted=stats.drafted,
            accepted=stats.accepted,
            first_run_seconds=round(stats.first_run_seconds, 4),
            total_seconds=round(stats.total_seconds, 4),
            floor_seconds=None if floor is None else round(floor, 4),
        )


@dataclass(frozen=True, slots=True)
class Past:
    """What the file holds, oldest first; `skipped` counts lines that are no records."""

    records: tuple[Record, ...] = ()
    skipped: int = 0


def kind_of(request: Request) -> str:
    """instruction, sketch or both."""
    if request.update is None:
        return "instruction"
    return "sketch" if request.instruction is None else "both"


def size_of(original: bytes) -> str:
    """The number of lines, in steps: ``1-50``, ``51-200``, ..., ``2001-``."""
    lines = original.count(b"\n") + (not original.endswith(b"\n"))
    low = 1
    for high in SIZES:
        if lines <= high:
            return f"{low}-{high}"
        low = high + 1
    return f"{low}-"


def language_of(name: str) -> str:
    """The language by the name's suffix, from a fixed list; ``other`` for the rest."""
    return _BY_SUFFIX.get(Path(name).suffix.lower().removeprefix("."), "other")


def place(environ: Mapping[str, str] | None = None) -> Path | None:
    """The file, or None where there is no home. A relative XDG_STATE_HOME is ignored."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_STATE_HOME", "")
    home = environ.get("HOME", "")
    if os.path.isabs(base):  # noqa: PTH117 - a str that may be empty
        return Path(base) / "apply-edit" / "history.jsonl"
    return Path(home) / ".local" / "state" / "apply-edit" / "history.jsonl" if home else None


def append(record: Record, path: Path | None = None) -> None:
    """Add one line, whole or not at all as far as other runs can see. Raises OSError."""
    path = path or place()
    if path is None:
        raise FileNotFoundError(errno.ENOENT, "there is no home folder to keep the history in")
    line = json.dumps({"v": FORMAT, **asdict(record)}, separators=(",", ":")).encode() + b"\n"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(path):
        fd = _open(path)
        try:
            size = os.fstat(fd).st_size
            if size and size + len(line) > CAP:
                path.replace(_older(path))
                os.close(fd)
                fd = _open(path)
                size = 0
            # A run that was killed, or a full disk, may have left half a line.
            if size and os.pread(fd, 1, size - 1) != b"\n":
                line = b"\n" + line
            if os.write(fd, line) != len(line):
                raise OSError(errno.ENOSPC, "the record could not be written whole")
        finally:
            os.close(fd)


def read(path: Path | None = None) -> Past:
    """All records that are kept. Lines that are damaged or of another version are skipped."""
    path = path or place()
    if path is None:
        return Past()
    records = []
    skipped = 0
    for each in (_older(path), path):
        try:
            lines = each.read_bytes().split(b"\n")
        except OSError:
            continue
        for line in filter(None, lines):
            record = _record(line)
            if record is None:
                skipped += 1
            else:
                records.append(record)
    return Past(tuple(records), skipped)


def clear(path: Path | None = None) -> int:
    """Remove the history; returns how many records there were. Raises OSError."""
    path = path or place()
    if path is None or not path.parent.is_dir():
        return 0
    with _locked(path):
        count = len(read(path).records)
        for each in (_older(path), path):
            each.unlink(missing_ok=True)
    return count


def _older(path: Path) -> Path:
    return path.with_suffix(".1.jsonl")


def _open(path: Path) -> int:
    # O_NONBLOCK: a pipe of that name would wait for a reader for ever.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    fd = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a plain file", str(path))
    return fd


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock. Its file stays: removing it would let two runs hold one each."""
    import fcntl

    fd = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        yield
    finally:
        os.close(fd)


def _record(line: bytes) -> Record | None:
    """The record a line holds, or None."""
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or data.pop("v", None) != FORMAT:
        return None
    if set(data) != {field.name for field in fields(Record)}:
        return None
    if not all(_fits(str(field.type), data[field.name]) for field in fields(Record)):
        return None
    return Record(**data)


def _fits(kind: str, value: object) -> bool:
    if kind == "str":
        return isinstance(value, str)
    if isinstance(value, bool):
        return False
    if kind == "int":
        return isinstance(value, int) and value >= 0
    if value is None:
        return kind == "float | None"
    return isinstance(value, (int, float)) and 0.0 <= value < float("inf")
