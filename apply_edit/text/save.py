"""Writing the result: all of it or nothing, and never over someone else's change.

The file is replaced by renaming a finished one over it, so that a reader, a crash or a signal
meets the old bytes or the new ones. A file that has several names (hard links), whose owner
could not be kept, or that is mounted alone is overwritten in place under a journal instead.

What is not promised: a program that writes the file between the last comparison and the rename
(microseconds), or that keeps it open across the rename, without taking its lock, loses that
write. After SIGKILL or a crash within these microseconds a ``.apply-edit-….tmp`` (or, in place,
``.undo``) stays; the next save into the folder removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apply_edit.errors import SaveError
from apply_edit.text.gitname import shown
from apply_edit.text.inplace import overwrite, recover
from apply_edit.text.snapshot import Snapshot, snapshot
from apply_edit.text.temporary import (
    Temporary,
    adopt,
    read_all,
    remove_temporaries,
    signals_held,
    sweep,
    temporary,
    write_all,
)

__all__ = ["Snapshot", "check_room", "remove_temporaries", "save", "snapshot", "write_new"]

_PATIENCE = 5.0  # seconds to wait for another run that is just writing the file
_IN_PLACE = (errno.EBUSY, errno.EPERM, errno.EACCES)


def save(path: str | os.PathLike[str], data: bytes, expected: Snapshot) -> bool:
    """Make `data` the content of the file that `expected` was read from; False if it already is.

    Mode, owner and extended attributes stay, as do links to the file of either kind. Signals
    that would end the process wait for the moment that this takes.

    Raises SaveError `changed-on-disk` when the content is no longer the expected one (by content,
    not by time), `read-only`, `read-only-folder`, `locked`, `disk-full`, `file-limit` or
    `not-written`; the file is then what it was.
    """
    name = shown(path)
    with _explained(name):
        target = _resolved(Path(path), name)
        if target != expected.target:
            raise _changed(name)
        with _locked(target, name) as fd, signals_held():
            recover(target, fd)
            if _content(fd, data) == data:
                return False
            if _content(fd, expected.data) != expected.data:
                raise _changed(name)
            _writable(target, os.fstat(fd), name)
            sweep(target.parent)
            _write(target, fd, data, expected, name)
    return True


def write_new(path: str | os.PathLike[str], data: bytes, *, force: bool = False) -> bool:
    """Write `data` to `path`, for ``--output``; False if it already holds it.

    A new file appears at once with its content. An existing plain file is replaced only with
    `force`, as `save` does it; a pipe or a device is written to.

    Raises SaveError `exists`, `no-such-folder`, `is-a-directory` and what `save` raises.
    """
    name = shown(path)
    path = Path(path)
    with _explained(name):
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            with signals_held():
                return _create(Path(os.path.realpath(path)), data, name, force=force)
        if stat.S_ISDIR(mode):
            raise SaveError("is-a-directory", f"{name} is a folder; name a file in it")
        if not stat.S_ISREG(mode) or path.parts[:2] in (("/", "dev"), ("/", "proc")):
            with path.open("wb", buffering=0) as stream:
                _stream(stream.fileno(), data)
            return True
        if not force:
            raise _exists(name)
        target = Path(os.path.realpath(path))
        with _locked(target, name) as fd, signals_held():
            recover(target, fd)
            if _content(fd, data) == data:
                return False
            _writable(target, os.fstat(fd), name)
            sweep(target.parent)
            now = Snapshot(path, target, read_all(fd, 2**62), stat.S_IMODE(mode))
            _write(target, fd, data, now, name)
    return True


def check_room(path: str | os.PathLike[str]) -> None:
    """Raise what `save` or `write_new` at `path` would for a folder that cannot be written.

    To be asked before a result that takes minutes is made. Raises SaveError `read-only-folder`.
    """
    target = Path(os.path.realpath(path))
    plain = target.is_file() or not target.exists()
    if plain and target.parent.is_dir() and not os.access(target.parent, os.W_OK | os.X_OK):
        raise _folder(shown(path))


def _create(target: Path, data: bytes, name: str, *, force: bool) -> bool:
    folder = target.parent
    if not folder.is_dir():
        raise SaveError("no-such-folder", f"the folder of {name} does not exist; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _folder(name)
    sweep(folder)
    with temporary(folder) as file:
        write_all(file.fd, data)
        try:
            file.create(target.name)
        except FileExistsError:
            if not force:
                raise _exists(name) from None
            file.replace(target.name)
    return True


def _write(target: Path, fd: int, data: bytes, expected: Snapshot, name: str) -> None:
    """Replace the locked `target`, open as `fd`, or overwrite it where that would lose a link."""
    if os.fstat(fd).st_nlink == 1:
        with temporary(target.parent) as file:
            write_all(file.fd, data)
            if adopt(file.fd, fd):
                try:
                    _replace(file, target, expected, name)
                    return
                except OSError as error:
                    if error.errno not in _IN_PLACE:
                        raise
    if _content(fd, expected.data) != expected.data:
        raise _changed(name)
    overwrite(target, expected.data, data)


def _replace(file: Temporary, target: Path, expected: Snapshot, name: str) -> None:
    os.fsync(file.fd)
    file.show()
    try:
        fd = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _changed(name) from error
    try:
        same = _content(fd, expected.data) == expected.data
    finally:
        os.close(fd)
    if not same:
        raise _changed(name)
    file.replace(target.name)


def _content(fd: int, like: bytes) -> bytes:
    """The file's bytes, or enough of them to differ from `like`."""
    return read_all(fd, len(like) + 1)


def _resolved(path: Path, name: str) -> Path:
    try:
        return Path(os.path.realpath(path, strict=True))
    except OSError as error:
        raise _changed(name) from error


@contextmanager
def _locked(target: Path, name: str) -> Iterator[int]:
    """`target`, open and locked against other runs of this tool; the lock is advisory."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fd = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise _changed(name) from error
        try:
            busy = False
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                busy = True
            except OSError:
                pass  # a file system without locks: the comparison is all there is
            if not busy and _is(target, fd):
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise _changed(name)
                yield fd
                return
        finally:
            os.close(fd)
        if time.monotonic() > deadline:
            raise SaveError("locked", f"another program holds {name} locked; try again")
        time.sleep(0.005)


def _is(target: Path, fd: int) -> bool:
    """Whether the file open as `fd` still has its name (another run may have replaced it)."""
    try:
        return os.path.samestat(target.lstat(), os.fstat(fd))
    except FileNotFoundError:
        return False


def _writable(target: Path, found: os.stat_result, name: str) -> None:
    # A rename needs no leave of the file itself, and root none at all: the bits say what is meant.
    if not found.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise SaveError("read-only", f"{name} is read-only; make it writable (chmod u+w) first")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise _folder(name)


def _stream(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _changed(name: str) -> SaveError:
    return SaveError(
        "changed-on-disk",
        f"{name} changed on disk while the edit was made, so it was left alone; run the edit again",
    )


def _exists(name: str) -> SaveError:
    return SaveError("exists", f"{name} exists already; name another file or remove it first")


def _folder(name: str) -> SaveError:
    return SaveError(
        "read-only-folder",
        f"the folder of {name} is not writable, and a safe save needs room beside the file;"
        " make the folder writable or write elsewhere with --output",
    )


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
            code, hint = "disk-full", "free some space and run the edit again"
        elif error.errno == errno.EFBIG:
            code, hint = "file-limit", "raise the limit on file sizes (ulimit -f)"
        elif error.errno == errno.EROFS:
            code, hint = "read-only", "use --output to write elsewhere"
        else:
            code, hint = "not-written", "check the file and its folder"
        if isinstance(error.filename, str) and error.filename.endswith(".undo"):
            hint = f"its old content is in {shown(error.filename)}"
        raise SaveError(code, f"{name} could not be written ({reason}); {hint}") from error
