"""The three standard streams as bytes: closed ones, guarded ones, whole writes."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path

from apply_edit.errors import InputError, SaveError


@dataclass(slots=True)
class Streams:
    """Standard input, output and error of this process, by file descriptor.

    `closed` holds the numbers that were closed when the process began. After `guard()` only
    `write()` reaches standard output: whatever libraries print goes elsewhere. `begun` says
    whether some of the answer may be out already.
    """

    closed: frozenset[int] = frozenset()
    answer_fd: int = 1
    begun: bool = False
    _stdin: bytes | None = field(default=None, repr=False)

    @classmethod
    def open(cls) -> Streams:
        """Make 0, 1 and 2 usable and harmless, whatever the caller closed or set.

        A closed one is put on the null device: else the next file opened would take its number,
        and what is printed would go into that file.
        """
        closed = set()
        for fd in (0, 1, 2):
            try:
                os.fstat(fd)
            except OSError:  # noqa: PERF203
                closed.add(fd)
                null = os.open(os.devnull, os.O_RDONLY if fd == 0 else os.O_WRONLY)
                if null != fd:
                    os.dup2(null, fd)
                    os.close(null)
        for fd, name in ((1, "stdout"), (2, "stderr")):
            stream = getattr(sys, name)
            if stream is None:
                raw = io.FileIO(fd, "w", closefd=False)
                stream = io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8")
                setattr(sys, name, stream)
                setattr(sys, f"__{name}__", stream)
            stream.reconfigure(errors="backslashreplace", line_buffering=fd == 2)
        return cls(frozenset(closed))

    def guard(self, stray: int | None = None) -> None:
        """Keep standard output for `write()`; what else is printed goes to `stray` or nowhere."""
        if self.answer_fd != 1:
            return
        sys.stdout.flush()
        self.answer_fd = os.dup(1)
        if stray is not None:
            os.dup2(stray, 1)
            return
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)

    def write(self, data: bytes) -> None:
        """All of `data` on standard output.

        Raises BrokenPipeError when the reader is gone, SaveError `stdout` for any other failure
        (a full disk, a closed stream).
        """
        if not data:
            return
        if 1 in self.closed:
            raise SaveError("stdout", "standard output is closed, so the result went nowhere")
        self.begun = True
        try:
            write_all(self.answer_fd, data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise no_more(error) from error

    def read(self) -> bytes:
        """All of standard input, read once and kept. Raises InputError `stdin`."""
        if self._stdin is None:
            if 0 in self.closed:
                raise InputError("stdin", "standard input is closed; name a file instead of -")
            try:
                with os.fdopen(0, "rb", closefd=False) as stream:
                    self._stdin = stream.read() or b""
            except OSError as error:
                message = f"standard input cannot be read: {error.strerror}"
                raise InputError("stdin", message) from error
        return self._stdin

    @property
    def received(self) -> bytes | None:
        """What standard input held, if it has been read to its end."""
        return self._stdin

    def is_terminal(self, fd: int) -> bool:
        """Whether `fd` was open and is a terminal."""
        if fd in self.closed:
            return False
        return os.isatty(self.answer_fd if fd == 1 else fd)

    def answers_into(self, path: str) -> bool:
        """Whether standard output is the regular file at `path` (``cmd F > F``); - is stdin."""
        if 1 in self.closed:
            return False
        try:
            there = os.fstat(0) if path == "-" else Path(path).stat()
            out = os.fstat(self.answer_fd)
        except OSError:
            return False
        return stat.S_ISREG(out.st_mode) and os.path.samestat(there, out)


def no_more(error: OSError) -> SaveError:
    """The failure of standard output in words."""
    message = f"standard output took no more: {error.strerror}; what came out is not whole"
    return SaveError("stdout", message)


def write_all(fd: int, data: bytes) -> None:
    """Write `data` to `fd` to the last byte, also where it does not block or takes little."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view[: 1 << 20]) :]
        except BlockingIOError:  # noqa: PERF203
            select.select([], [fd], [])
        except OSError as error:
            if error.errno != errno.EINTR:
                raise


def say(text: str) -> None:
    """One line on standard error. A reader that is gone is no reason to fail."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        _silence()


def _silence() -> None:
    # What is left in the buffer would be tried again, and complained about, at exit.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)


def close_output() -> bool:
    """Flush ``sys.stdout`` (help, tables); False where the reader was gone."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
        return False
    return True
