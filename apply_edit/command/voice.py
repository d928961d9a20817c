"""What the command says on standard error, one line at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apply_edit.command.streams import Streams, say
from apply_edit.config import Settings
from apply_edit.words import one_line

NAME = "apply-edit"


@dataclass(slots=True)
class Voice:
    """How much to say, and whether in colour."""

    color: bool = False
    quiet: bool = False
    verbose: bool = False

    def error(self, code: str, message: str) -> None:
        """The one line of a failure: ``apply-edit: error: SENTENCE [CODE]``."""
        word = "\x1b[1;31merror:\x1b[0m" if self.color else "error:"
        say(f"{NAME}: {word} {one_line(message)} [{code}]")

    def note(self, text: str) -> None:
        """Something worth knowing that is no failure."""
        if not self.quiet:
            say(f"{NAME}: {one_line(text)}")

    def detail(self, text: str) -> None:
        """A decision, for -v."""
        if self.verbose:
            say(f"{NAME}: {one_line(text)}")

    def plain(self, text: str) -> None:
        """A line of a summary or table, that may hold styles of ours, as it is."""
        say(text)


def voice_of(settings: Settings, streams: Streams, environ: Mapping[str, str]) -> Voice:
    """How the command speaks on standard error."""
    from apply_edit.show.terminal import wants_color

    color = wants_color(settings.color, environ, streams.is_terminal(2))
    return Voice(color, settings.quiet, settings.verbose)
