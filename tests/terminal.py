"""The real command on a pseudo-terminal, with an emulator that shows what a person would see."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable

import pyte

from tests.command import TIMEOUT, Command


class Seen:
    """What a person sees of an emulated terminal, `screen`."""

    screen: pyte.Screen

    @property
    def lines(self) -> list[str]:
        """The screen without trailing blanks and empty last lines."""
        lines = [line.rstrip() for line in self.screen.display]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def cursor_visible(self) -> bool:
        return not self.screen.cursor.hidden


class Session(Seen):
    """A command whose three streams are one terminal of the given size.

    `shell` is a script that runs it as ``"$@"``.
    """

    def __init__(
        self,
        command: Command,
        *args: str,
        columns: int = 80,
        rows: int = 24,
        code: str = "",
        stdout: int | None = None,
        shell: str = "",
        **env: str,
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.sent = b""
        self.master, slave = os.openpty()
        self._size(rows, columns)
        argv = command.argv(*args, code=code)
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *argv] if shell else argv,
            stdin=slave,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            cwd=command.folder,
            env={**command.env, **env},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def _size(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size."""
        self._size(rows, columns)
        fewer = self.screen.lines - rows
        if fewer > 0:
            # pyte cuts the lines at the top, and leaves its cursor outside; terminals cut those
            # below the cursor first. So blank lines are put there for it to cut.
            place = self.screen.cursor.y
            above = max(0, place - (rows - 1))
            self.screen.cursor.y = 0
            self.screen.delete_lines(above)
            self.screen.insert_lines(fewer)
            self.screen.cursor.y = place - above
        self.screen.resize(rows, columns)

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.master, keys)

    def read(self, wait: float = 0.05) -> bool:
        """Take in what came; False once the command's side is closed."""
        if not select.select([self.master], [], [], wait)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.sent += data
        self.stream.feed(data)
        return bool(data)

    def until(self, seen: Callable[[list[str]], bool]) -> list[str]:
        """Read until the screen satisfies `seen`; the screen."""
        deadline = time.monotonic() + TIMEOUT
        while not seen(self.lines):
            assert self.read(), f"it ended with {self.lines}"
            assert time.monotonic() < deadline, f"never seen: {self.lines}"
        return self.lines

    def end(self) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + TIMEOUT
        while self.read():
            assert time.monotonic() < deadline, f"it never ended: {self.lines}"
        os.close(self.master)
        return self.process.wait(TIMEOUT)
