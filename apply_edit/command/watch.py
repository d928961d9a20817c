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
from apply_edit.events import Event, Note
from apply_edit.words import name, one_line

if TYPE_CHECKING:
    from apply_edit.show.live import Live


class Watch:
    """Takes the events of a run; passes them to the display, and notes to -v."""

    def __init__(self, voice: Voice, live: Live | None) -> None:
        self._voice = voice
        self._live = live

    def __call__(self, event: Event) -> None:
        if self._live is not None:
            self._live(event)
        if isinstance(event, Note) and self._voice.verbose:
            if self._live is not None:
                self._live.say(f"{NAME}: {one_line(event.text)}")
            else:
                self._voice.detail(event.text)

    def begin(self, file: str) -> None:
        """Another file comes."""
        if self._live is not None:
            self._live.begin(name(file))


@contextlib.contextmanager
def watching(
    streams: Streams, settings: Settings, voice: Voice, file: str, model: str
) -> Iterator[Watch]:
    """A watch for the block. Without a terminal on standard error nothing is drawn."""
    if settings.quiet or not settings.progress or not streams.is_terminal(2):
        yield Watch(voice, None)
        return
    from apply_edit.show.terminal import Terminal, can_draw

    if not can_draw(os.environ):
        yield Watch(voice, None)
        return
    from apply_edit.show.live import Live

    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    terminal = Terminal.open(2, os.environ, settings.color, encoding)
    live = Live(terminal, name(file), name(model))
    ending.at_once(live.restore)
    try:
        with live:
            yield Watch(voice, live)
    finally:
        # A signal between two lines of the display's own beginning or end.
        live.close()
        ending.forget(live.restore)
