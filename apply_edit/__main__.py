"""Entry point: streams and signals first, then the command, and one place for failures."""

from __future__ import annotations

import sys

from apply_edit.command.signals import Signalled, ending
from apply_edit.command.streams import Streams


def main() -> int:
    """Run the command of ``sys.argv``; returns the exit code."""
    streams = Streams.open()
    ending.install()
    try:
        from apply_edit.command.dispatch import dispatch

        return dispatch(sys.argv[1:], streams)
    except Signalled as signalled:
        return 128 + signalled.number
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
