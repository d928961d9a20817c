"""Files on their way to a name: without one for as long as the system allows.

Where it can (Linux, most file systems), new content goes into a file that has no name
(O_TMPFILE), so that a process killed while it writes leaves nothing behind. Only to take the
place of another file does it need a name, between two system calls; elsewhere it has one while
it is written. A kill at that moment leaves ``.apply-edit-PID-….tmp``, which holds a lock while
its process lives and is swept by the next save into the folder.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import signal
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

__all__ = [
    "Temporary",
    "adopt",
    "read_all",
    "remove_temporaries",
    "signals_held",
    "sweep",
    "temporary",
    "write_all",
]

_NAME = re.compile(r"\.apply-edit-(\d+)-[0-9a-f]{16}\.tmp")
_HELD = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
)
_FRESH = 60.0  # seconds in which a file may lack its lock because it was only just made
_UNLOCKABLE = 3600.0  # seconds after which a file on a system without locks counts as left behind
_NOT_COPIED = ("security.capability", "security.ima", "security.evm")  # of the old content
_named: set[Path] = set()


class Temporary:
    """An open file in `folder` that has no name yet, or one that no one looks for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name: str | None = None
        self._folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.fd = self._open()
        except BaseException:
            self._forget()
            os.close(self._folder_fd)
            raise

    def _open(self) -> int:
        unnamed = getattr(os, "O_TMPFILE", 0)
        if unnamed and Path("/proc/self/fd").is_dir():
            # Not every file system has them; those that lack them say so in several ways.
            with suppress(OSError):
                return _locked(os.open(self.folder, unnamed | os.O_RDWR | os.O_CLOEXEC, 0o666))
        return self._open_named()

    def _open_named(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        return _locked(os.open(self._take_name(), flags, 0o666, dir_fd=self._folder_fd))

    def _take_name(self) -> str:
        if self.name is not None:
            _named.discard(self.folder / self.name)
        self.name = f".apply-edit-{os.getpid()}-{secrets.token_hex(8)}.tmp"
        _named.add(self.folder / self.name)
        return self.name

    def show(self) -> str:
        """Give the file a name, if it has none; the name."""
        if self.name is None:
            self._link(self._take_name())
        assert self.name is not None
        return self.name

    def replace(self, name: str) -> None:
        """Take the place of the file `name` in the folder, at once."""
        own = self.show()
        os.replace(own, name, src_dir_fd=self._folder_fd, dst_dir_fd=self._folder_fd)
        self._forget(gone=True)
        self.sync_folder()

    def create(self, name: str) -> None:
        """Become the file `name` in the folder; FileExistsError if there is one."""
        if self.name is None:
            self._link(name)
        if self.name is not None:
            try:
                os.link(self.name, name, src_dir_fd=self._folder_fd, dst_dir_fd=self._folder_fd)
            except FileExistsError:
                raise
            except OSError:  # a file system without hard links
                os.close(os.open(name, os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._folder_fd))
                self.replace(name)
        self.sync_folder()

    def sync_folder(self) -> None:
        """Make names durable, where the file system can."""
        with suppress(OSError):
            os.fsync(self._folder_fd)

    def close(self) -> None:
        """Close the file, and remove it if it still has its passing name."""
        self._forget()
        os.close(self.fd)
        os.close(self._folder_fd)

    def _link(self, name: str) -> None:
        source = f"/proc/self/fd/{self.fd}"
        try:
            os.link(source, name, dst_dir_fd=self._folder_fd, follow_symlinks=True)
        except FileExistsError:
            raise
        except OSError:  # some sandboxes make such files and then cannot name them
            self._copy()

    def _copy(self) -> None:
        """Go on as a file with a passing name."""
        named = self._open_named()
        try:
            write_all(named, read_all(self.fd, 2**62))
            adopt(named, self.fd)
        finally:
            os.close(self.fd)
            self.fd = named

    def _forget(self, *, gone: bool = False) -> None:
        if self.name is not None:
            if not gone:
                with suppress(OSError):
                    os.unlink(self.name, dir_fd=self._folder_fd)
            _named.discard(self.folder / self.name)
            self.name = None


@contextmanager
def temporary(folder: Path) -> Iterator[Temporary]:
    """A new file in `folder`, gone at the end unless it took a name of its own."""
    file = Temporary(folder)
    try:
        yield file
    finally:
        file.close()


def remove_temporaries() -> None:
    """Remove what this process has under passing names: for a handler that ends the process."""
    for path in list(_named):
        with suppress(OSError):
            path.unlink()
        _named.discard(path)


def sweep(folder: Path) -> None:
    """Remove what killed processes left in `folder`; what lives is left alone."""
    with suppress(OSError), os.scandir(folder) as entries:
        for name in [entry.name for entry in entries if _NAME.fullmatch(entry.name)]:
            with suppress(OSError):
                if _left_behind(folder / name):
                    (folder / name).unlink()


def _left_behind(path: Path) -> bool:
    match = _NAME.fullmatch(path.name)
    assert match is not None
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        age = time.time() - os.fstat(fd).st_mtime
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return age > _UNLOCKABLE
    finally:
        os.close(fd)
    return age > _FRESH or not _alive(int(match[1]))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return pid != os.getpid()


def _locked(fd: int) -> int:
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return fd


def read_all(fd: int, most: int) -> bytes:
    """The bytes from the start of an open file, up to `most`."""
    parts, at = [], 0
    while at < most and (part := os.pread(fd, min(most - at, 2**20), at)):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def adopt(fd: int, source: int) -> bool:
    """Give a file the owner, mode and extended attributes of another; False if not the owner."""
    own, other = os.fstat(fd), os.fstat(source)
    if (own.st_uid, own.st_gid) != (other.st_uid, other.st_gid):
        try:
            os.fchown(fd, other.st_uid, other.st_gid)
        except OSError:
            return False
    os.fchmod(fd, stat.S_IMODE(other.st_mode))
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for attribute in os.listxattr(source):
                if attribute not in _NOT_COPIED:
                    with suppress(OSError):
                        os.setxattr(fd, attribute, os.getxattr(source, attribute))
    return True


def write_all(fd: int, data: bytes) -> None:
    """Write `data` from the start of the file, and have it on the disk before returning."""
    at, view = 0, memoryview(data)
    while at < len(data):
        at += os.pwrite(fd, view[at:], at)
    os.fsync(fd)


@contextmanager
def signals_held() -> Iterator[None]:
    """Signals that end the process wait until the block is done, then take their usual course.

    Only the main thread handles signals; elsewhere there is nothing to hold.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []

    def hold(number: int, _: FrameType | None) -> None:
        waiting.append(number)

    usual = {number: signal.getsignal(number) for number in _HELD}
    usual = {n: h for n, h in usual.items() if h is not None and h is not signal.SIG_IGN}
    try:
        for number in usual:
            signal.signal(number, hold)
        yield
    finally:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, usual)
        for number, handler in usual.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(waiting):
            signal.raise_signal(number)  # blocked: delivered by the next line, in one go
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
