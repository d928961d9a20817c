"""Who watches an edit: the live display on a terminal, -v lines, or nobody."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from apply_edit.command.signals import ending
from apply_edit.command.streams import Streams
from apply_edit.command.voice import NAME, Voice
from apply_edit.config import Settings
from apply_edit.events import Event, Note, OnEvent
from apply_edit.words import name, one_line

if TYPE_CHECKING:
    from apply_edit.show.live import Live


class Watch:
    """Takes the events of a run; passes them to the display, and notes to -v.

    Called itself it hears what belongs to no FILE, such as the fetching of a model.
    """

    def __init__(self, voice: Voice, live: Live | None, files: int = 1) -> None:
        self._voice = voice
        self._live = live
        self._files = files

    def __call__(self, event: Event) -> None:
        if self._live is not None:
            self._live(event)
        self._note(event)

    def begin(self, number: int, file: str) -> OnEvent:
        """The edit of a FILE begins, perhaps beside others; who is to hear of it."""
        live = None if self._live is None else self._live.begin(name(file), number)
        # Of several at once a line has to say whose it is.
        whose = f"{name(file)}: " if self._files > 1 else ""

        def hear(event: Event) -> None:
            if live is not None:
                live(event)
            self._note(event, whose)

        return hear

    def end(self, number: int) -> None:
        """The edit of a FILE has ended."""
        if self._live is not None:
            self._live.end(number)

    def _note(self, event: Event, whose: str = "") -> None:
        if not isinstance(event, Note) or not self._voice.verbose:
            return
        if self._live is not None:
            self._live.say(f"{NAME}: {one_line(whose + event.text)}")
        else:
            self._voice.detail(whose + event.text)


@contextlib.contextmanager
def watching(
    streams: Streams, settings: Settings, voice: Voice, title: str, model: str, *, files: int = 1
) -> Iterator[Watch]:
    """A watch for the block. Without a terminal on standard error nothing is drawn.

    `title` heads the display at first: the first of so many `files`, or what else is done.
    """
    if settings.quiet or not settings.progress or not streams.is_terminal(2):
        yield Watch(voice, None, files)
        return
    from apply_edit.show.terminal import Terminal, can_draw

    if not can_draw(os.environ):
        yield Watch(voice, None, files)
        return
    from apply_edit.show.live import Live

    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    terminal = Terminal.open(2, os.environ, settings.color, encoding)
    live = Live(terminal, name(title), name(model), files=files)
    ending.at_once(live.restore)
    try:
        with live:
            yield Watch(voice, live, files)
    finally:
        # A signal between two lines of the display's own beginning or end.
        live.close()
        ending.forget(live.restore)
