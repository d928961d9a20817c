"""The terminal on standard error: its size, its abilities, and bytes to it."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic

REFLOWING = ("VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "ALACRITTY_WINDOW_ID", "TMUX")
"""Set by terminals that wrap lines anew when they are made narrower."""
REFLOWING_PROGRAMS = ("iTerm.app", "WezTerm", "ghostty", "vscode", "Apple_Terminal")


@dataclass(slots=True)
class Terminal:
    """Where the display is drawn. It writes bytes itself: `sys.stderr` may be redirected."""

    fd: int = 2
    color: bool = True
    encoding: str = "utf-8"
    reflows: bool = False
    gone: bool = False

    @classmethod
    def open(cls, fd: int, environ: Mapping[str, str], color: str, encoding: str) -> Terminal:
        """The terminal at `fd`; `color` is auto, always or never."""
        reflows = any(environ.get(name) for name in REFLOWING)
        reflows = reflows or environ.get("TERM_PROGRAM", "") in REFLOWING_PROGRAMS
        return cls(fd, wants_color(color, environ, terminal=True), encoding, reflows)

    @property
    def unicode(self) -> bool:
        """Whether the locale can show the marks and bars we like best."""
        try:
            "━─»×·…✗".encode(self.encoding)
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    def size(self) -> tuple[int, int]:
        """(columns, rows) now."""
        try:
            columns, rows = os.get_terminal_size(self.fd)
        except OSError:
            columns, rows = 80, 24
        return columns or 80, rows or 24

    def write(self, text: str) -> None:
        """Send `text`; a terminal that is gone or stuck is no reason to fail or to wait long."""
        data = memoryview(text.encode(self.encoding, "replace"))
        deadline = monotonic() + 2.0
        while data and not self.gone:
            try:
                data = data[os.write(self.fd, data) :]
            except BlockingIOError:  # noqa: PERF203
                with contextlib.suppress(OSError):
                    select.select([], [self.fd], [], 0.1)
                self.gone = monotonic() > deadline
            except OSError:
                self.gone = True


def can_draw(environ: Mapping[str, str]) -> bool:
    """Whether the terminal understands cursor movements."""
    return environ.get("TERM", "dumb").lower() not in ("", "dumb", "unknown", "emacs")


def wants_color(choice: str, environ: Mapping[str, str], terminal: bool) -> bool:
    """Colour or not. A flag beats NO_COLOR beats FORCE_COLOR beats what the terminal can do."""
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0", "false"):
        return True
    return terminal and can_draw(environ)
