"""The live display of a run: a thread that draws the scene, at most ten times a second."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from time import monotonic
from types import FrameType, TracebackType

from apply_edit.events import Event, Note
from apply_edit.show.look import Look
from apply_edit.show.painter import SHOW, WRAP, Painter
from apply_edit.show.scene import Scene
from apply_edit.show.terminal import Terminal

FRAME_SECONDS = 0.1
IDLE_SECONDS = 0.25
"""A spinner and a clock move this often when nothing else does."""


class Live:
    """Shows events on a terminal while the block runs, and leaves the screen as it was.

    Call it with events from any thread: that only notes them, a thread of its own draws.

    >>> with Live(Terminal.open(2, os.environ, "auto", "utf-8"), "a.py") as live:   # doctest: +SKIP
    ...     editor.edit(data, request, on_event=live)
    """

    def __init__(
        self,
        terminal: Terminal,
        file: str,
        model: str = "",
        clock: Callable[[], float] = monotonic,
        *,
        files: int = 1,
    ) -> None:
        self._clock = clock
        self._look = Look(terminal.color, terminal.unicode)
        self._terminal = terminal
        self._painter = Painter(terminal, self._look)
        self._model = model
        self._files = files
        self._over = 0
        self._scenes: dict[int, Scene] = {}
        self._last = Scene(file, model, stage_since=clock())
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._dirty = True
        self._drawn = 0.0
        self._size = (0, 0)
        self._notes: list[str] = []
        self._thread = threading.Thread(target=self._run, name="display", daemon=True)
        self._tstp: object = None

    def __call__(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, Note):
                return
            self._shown().update(event, self._clock())
            self._dirty = True

    def begin(self, file: str, number: int = 0) -> Callable[[Event], None]:
        """The edit of a file begins, beside those that have not ended; its listener.

        Of several the first one is drawn, until it ends.
        """
        with self._lock:
            scene = self._last  # what has been going on may be for this file
            if self._scenes or scene.file != file or scene.passes:
                scene = Scene(file, self._model, stage_since=self._clock())
            self._scenes[number] = scene
            self._dirty = True

        def hear(event: Event) -> None:
            with self._lock:
                if not isinstance(event, Note):
                    scene.among = self._among()
                    scene.update(event, self._clock())
                    self._dirty = True

        return hear

    def end(self, number: int) -> None:
        """The edit of a file has ended; the last one stays drawn."""
        with self._lock:
            self._over += 1
            self._last = self._scenes.pop(number, self._last)
            self._dirty = True

    def _among(self) -> str:
        return f"{self._over} of {self._files} files done" if self._files > 1 else ""

    def _shown(self) -> Scene:
        """The first of the files that are under way, or else the last that was."""
        return self._scenes[min(self._scenes)] if self._scenes else self._last

    def say(self, text: str) -> None:
        """A line that stays on the terminal, above the display."""
        with self._lock:
            self._notes.append(text)
            self._dirty = True

    def draw(self) -> None:
        """One frame now, if there is anything new to see."""
        with self._lock:
            now = self._clock()
            columns, rows = self._terminal.size()
            idle = now - self._drawn < IDLE_SECONDS
            if not self._dirty and idle and (columns, rows) == self._size:
                return
            self._dirty = False
            self._drawn = now
            self._size = (columns, rows)
            notes, self._notes = self._notes, []
            scene = self._shown()
            scene.among = self._among()
            lines = scene.lines(columns, rows, self._look, now)
            for note in notes:
                self._painter.say(note)
            self._painter.draw(lines)

    def __enter__(self) -> Live:
        if threading.current_thread() is threading.main_thread():
            with contextlib.suppress(ValueError, AttributeError, OSError):
                if signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL:
                    self._tstp = signal.signal(signal.SIGTSTP, self._pause)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the display; once is enough, twice is harmless."""
        self._done.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2.0)
        if self._tstp is not None:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            self._tstp = None
        self._painter.erase()
        for note in self._notes:
            self._painter.say(note)
        self._notes = []

    def restore(self) -> None:
        """Make the cursor visible where there is no time for more."""
        self._terminal.write("\r\n" + WRAP + SHOW)

    def _run(self) -> None:
        # Runs of a tenth of a second, such as those of editor hooks, show nothing at all.
        while not self._done.wait(FRAME_SECONDS):
            self.draw()

    def _pause(self, number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: give the terminal back whole, stop, and draw again when continued."""
        held = self._lock.acquire(timeout=0.5)
        try:
            self._painter.erase()
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTSTP)
            signal.signal(signal.SIGTSTP, self._pause)
            self._dirty = True
        finally:
            if held:
                self._lock.release()
