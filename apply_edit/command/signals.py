"""Signals that end a run: the first one unwinds, the second one exits at once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Signalled(KeyboardInterrupt):
    """A signal asked the run to end. `number` is the signal; the exit code is 128 + number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Ending:
    """What this process knows about being asked to end."""

    def __init__(self) -> None:
        self._first = 0
        self._seen = 0
        self._held = 0
        self._late: list[Callable[[], None]] = []

    def install(self) -> None:
        """Turn ending signals into `Signalled`; those the parent had ignored stay ignored."""
        for number in ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._handle)

    def watch(self) -> None:
        """Let a second signal end the process even while native code keeps Python waiting."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(reader,), daemon=True).start()

    def at_once(self, restore: Callable[[], None]) -> None:
        """Also call `restore` before the process exits without unwinding."""
        self._late.append(restore)

    def forget(self, restore: Callable[[], None]) -> None:
        """`restore` is no longer needed."""
        self._late = [known for known in self._late if known != restore]

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let a short last stretch (the saves) finish: a signal then comes too late to matter."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._held:
            return
        if self._first:
            self._exit(number)
        self._first = number
        raise Signalled(number)

    def _watch(self, reader: int) -> None:
        while True:
            for number in os.read(reader, 64):
                if number in ENDING:
                    self._seen += 1
                if self._seen > 1 and not self._held:
                    self._exit(number)

    def _exit(self, number: int) -> None:
        for restore in self._late:
            with contextlib.suppress(Exception):
                restore()
        os._exit(128 + number)


ending = Ending()
"""The one instance: signals belong to the process."""
