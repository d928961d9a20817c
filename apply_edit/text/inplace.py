"""Overwriting a file that must stay the same file: one with several names, or mounted alone.

Nothing can make that atomic, so it is made recoverable: a journal beside the file holds the old
and the new content, on the disk, before the first byte is overwritten. A failure writes the old
content back; after a kill in between, the next look at the file does (`recover`).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import struct
from contextlib import suppress
from pathlib import Path

from apply_edit.text.temporary import read_all, temporary, write_all

__all__ = ["overwrite", "recover"]

_MAGIC = b"apply-edit undo 1\n"
_SIZES = struct.Struct(">QQ")
_DIGEST = hashlib.sha256().digest_size


def overwrite(target: Path, old: bytes, new: bytes) -> None:
    """Make the content of `target` from `old` to `new` in place.

    Raises OSError with the old content back in its place; if even that failed, the journal
    stays and its name is in the error.
    """
    fd = os.open(target, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        journal = _journal(target, os.fstat(fd).st_ino, old, new)
        try:
            _put(fd, new)
        except BaseException:
            try:
                _put(fd, old)
            except OSError as error:
                error.filename = str(journal)
                raise
            journal.unlink()
            raise
        journal.unlink()
    finally:
        os.close(fd)


def recover(target: Path, fd: int) -> None:
    """Write the old content back if a killed process left `target` half overwritten.

    `fd` is open on `target`. Does nothing while another process holds the file's lock, and
    nothing to a file whose content is neither old, new, nor part of each.
    """
    inode = os.fstat(fd).st_ino
    for journal in _journals(target.parent, inode):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        texts = _read(journal)
        if texts is None:
            continue
        old, new = texts
        now = read_all(fd, 2**62)
        if now not in texts:
            both = zip(now, new, strict=False)
            shorter = min(len(now), len(new))
            cut = next((at for at, (a, b) in enumerate(both) if a != b), shorter)
            if now[cut:] != old[cut:]:
                continue
            out = os.open(target, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if os.fstat(out).st_ino != inode:
                    return
                _put(out, old)
            finally:
                os.close(out)
        with suppress(OSError):
            journal.unlink()


def _put(fd: int, data: bytes) -> None:
    write_all(fd, data)
    os.ftruncate(fd, len(data))
    os.fsync(fd)


def _journal(target: Path, inode: int, old: bytes, new: bytes) -> Path:
    body = _MAGIC + _SIZES.pack(len(old), len(new)) + old + new
    with temporary(target.parent) as file:
        os.fchmod(file.fd, 0o600)
        write_all(file.fd, body + hashlib.sha256(body).digest())
        name = f".apply-edit-{inode:x}-{os.getpid()}.undo"
        with suppress(FileNotFoundError):
            (target.parent / name).unlink()  # of a process that had this number before
        file.create(name)
    return target.parent / name


def _journals(folder: Path, inode: int) -> list[Path]:
    name = re.compile(rf"\.apply-edit-{inode:x}-\d+\.undo")
    try:
        with os.scandir(folder) as entries:
            return [folder / entry.name for entry in entries if name.fullmatch(entry.name)]
    except OSError:
        return []


def _read(journal: Path) -> tuple[bytes, bytes] | None:
    """The old and the new content; None unless the journal is whole."""
    try:
        data = journal.read_bytes()
    except OSError:
        return None
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    start = len(_MAGIC) + _SIZES.size
    if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
        return None
    size, _ = _SIZES.unpack(body[len(_MAGIC) : start])
    return body[start : start + size], body[start + size :]
