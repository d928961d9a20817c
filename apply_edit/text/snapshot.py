"""A file's bytes at one moment, and the refusal of what is no plain file."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from apply_edit.errors import InputError
from apply_edit.text.gitname import shown
from apply_edit.text.inplace import recover
from apply_edit.text.temporary import read_all

__all__ = ["LIMIT", "Snapshot", "snapshot"]

LIMIT = 16 * 2**20
"""The most bytes a file may have."""

_PATIENCE = 1.0  # seconds
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What `path` held. `target` is the file itself, at the end of any chain of links."""

    path: Path
    target: Path
    data: bytes = field(repr=False)
    mode: int


def snapshot(path: str | os.PathLike[str], limit: int = LIMIT) -> Snapshot:
    """Read a file once, at most `limit` bytes of it.

    Raises InputError `no-such-file`, `link-loop`, `is-a-directory`, `not-a-file`, `unreadable`
    or `too-large`. Nothing but a plain file is ever opened: opening a device may do things.
    """
    path = Path(path)
    name = shown(path)
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise InputError("is-a-directory", f"{name} is a folder; name a file in it")
        if not stat.S_ISREG(found.st_mode):
            kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no plain file")
            raise InputError(
                "not-a-file", f"{name} is {kind}; name a file, or send its text to '-'"
            )
        if found.st_size > limit:
            raise _too_large(name, found.st_size, limit)
        target = Path(os.path.realpath(path, strict=True))
        fd = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):  # swapped since it was looked at
                raise InputError("not-a-file", f"{name} is no plain file; name a file")
            _settle(target, fd)
            data = read_all(fd, limit + 1)
        finally:
            os.close(fd)
    except (OSError, ValueError) as error:
        raise _unreadable(name, path, error) from error
    if len(data) > limit:
        raise _too_large(name, len(data), limit)
    return Snapshot(path, target, data, stat.S_IMODE(found.st_mode))


def _settle(target: Path, fd: int) -> None:
    """Wait a while for a run that overwrites the file, and mend what a killed one left."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(0.005)
        except OSError:
            break
    with suppress(OSError):
        recover(target, fd)


def _too_large(name: str, size: int, limit: int) -> InputError:
    return InputError(
        "too-large",
        f"{name} holds {size / 2**20:.1f} MiB and at most {limit / 2**20:.0f} MiB can be edited;"
        " split it first",
    )


def _unreadable(name: str, path: Path, error: OSError | ValueError) -> InputError:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ELOOP:
        return InputError("link-loop", f"{name} is a link that leads back to itself; mend the link")
    if number in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG) or number is None:
        if os.path.islink(path):  # noqa: PTH114 - Path's raises for a name that is too long
            return InputError("no-such-file", f"{name} is a link to nothing; mend the link")
        return InputError("no-such-file", f"{name} does not exist; check the name")
    reason = (error.strerror or "input/output error") if isinstance(error, OSError) else str(error)
    return InputError("unreadable", f"{name} cannot be read ({reason}); check its permissions")
