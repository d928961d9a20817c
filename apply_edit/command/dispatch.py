"""Which command is meant, and what becomes of its failures: one line, one code, one echo."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Sequence

from apply_edit.command.order import Order, asked_of
from apply_edit.command.signals import Signalled, ending
from apply_edit.command.streams import Streams, close_output
from apply_edit.command.voice import Voice
from apply_edit.errors import ApplyEditError, UsageError

PIPE = 141
"""128 + SIGPIPE: what a shell reports for cat or git when the reader goes away."""
COMPLETE = "_APPLY_EDIT_COMPLETE"
LATER = ("serve",)
"""Words that will be commands: taken already, so that no script comes to rely on such a FILE."""


def dispatch(argv: Sequence[str], streams: Streams) -> int:
    """Run the command that `argv` names; returns the exit code."""
    order = asked_of(list(argv))
    try:
        if COMPLETE in os.environ:
            _complete()
            return 0
        first = argv[0] if argv else ""
        if first in LATER:
            raise UsageError(
                "not-available",
                f"this version has no `{first}` command; a file of that name is ./{first}",
            )
        if first == "models":
            from apply_edit.command.arguments_models import parse_models
            from apply_edit.command.models import models

            wanted = parse_models(argv[1:])
            code = 0 if wanted is None else models(wanted, streams)
        elif first == "stats":
            from apply_edit.command.arguments_stats import parse_stats
            from apply_edit.command.stats import stats

            asked = parse_stats(argv[1:])
            code = 0 if asked is None else stats(asked, streams)
        else:
            from apply_edit.command.arguments import parse

            parsed = parse(argv)
            code = 0
            if parsed is not None:
                order = parsed
                ending.watch()
                from apply_edit.command.run import run

                code = run(order, streams)
        return code if close_output() else PIPE
    except ApplyEditError as error:
        return _fail(error, order, argv, streams)
    except BrokenPipeError:
        close_output()
        return PIPE
    except KeyboardInterrupt as signalled:
        with contextlib.suppress(ApplyEditError, OSError):
            _echo(order, streams, only_if_read=True)
        return 128 + (signalled.number if isinstance(signalled, Signalled) else 2)
    except Exception as error:
        return _fail(_internal(error, argv), order, argv, streams)


def _complete() -> None:
    """Answer the shell that is completing a command line: the environment holds it."""
    from apply_edit.command.arguments import call, edit_app

    environ = os.environ
    key = "COMP_WORDS" if "COMP_WORDS" in environ else "_TYPER_COMPLETE_ARGS"
    # bash joins the words with line feeds, the others with blanks.
    behind = re.match(r"\s*\S+\s+((models|stats)\s.*)", environ.get(key, ""), re.DOTALL)
    if behind is None:
        call(edit_app, [], "apply-edit", complete_var=COMPLETE)
        return
    if behind[2] == "stats":
        from apply_edit.command.arguments_stats import stats_app as app
    else:
        from apply_edit.command.arguments_models import models_app as app

    # To such an app that word is the program.
    environ[key] = behind[1]
    if "COMP_CWORD" in environ:
        environ["COMP_CWORD"] = str(int(environ["COMP_CWORD"]) - 1)
    call(app, [], behind[2], complete_var=COMPLETE)


def _internal(error: Exception, argv: Sequence[str]) -> ApplyEditError:
    if isinstance(error, FileNotFoundError) and not _stands_somewhere():
        return UsageError("no-such-folder", "the working folder was removed; change to another one")
    if _verbose(argv):
        import traceback

        traceback.print_exception(error, file=sys.stderr)
        hint = "please report it with the lines above"
    else:
        hint = "run it again with -v and report what that prints"
    if isinstance(error, MemoryError):
        return ApplyEditError("memory", "there is not enough memory; use a smaller model or file")
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ApplyEditError("internal", f"this should not happen ({what}); {hint}")


def _stands_somewhere() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - the call that fails
    except OSError:
        return False
    return True


def _verbose(argv: Sequence[str]) -> bool:
    return any(
        word in ("-v", "--verbose") or (word[:1] == "-" and word[1:2] != "-" and "v" in word[1:4])
        for word in argv
    ) or os.environ.get("APPLY_EDIT_VERBOSE", "") not in ("", "0", "false", "no", "off")


def _fail(error: ApplyEditError, order: Order, argv: Sequence[str], streams: Streams) -> int:
    """Say it in one line, answer in JSON if that was asked, give a filter its input back."""
    Voice(_color(argv, streams)).error(error.code, error.message)
    with contextlib.suppress(ApplyEditError, OSError):
        if order.json and not streams.begun:
            from apply_edit.command.answer import encode, entry

            file = order.shown(order.files[0]) if order.files else ""
            streams.write(encode([entry(file, error=error)]))
        else:
            _echo(order, streams)
    close_output()
    return 2


def _color(argv: Sequence[str], streams: Streams) -> bool:
    """Whether the error may be coloured, told without a configuration that may be the error."""
    from apply_edit.show.terminal import wants_color

    choice = "auto"
    for number, word in enumerate(argv):
        if word == "--color" and number + 1 < len(argv):
            choice = argv[number + 1]
        elif word.startswith("--color="):
            choice = word.partition("=")[2]
    choice = choice if choice in ("always", "never") else "auto"
    return wants_color(choice, os.environ, streams.is_terminal(2))


def _echo(order: Order, streams: Streams, only_if_read: bool = False) -> None:
    """Give a filter its input back, unless some of an answer is out already."""
    if not order.filters or streams.begun:
        return
    if streams.received is None and (only_if_read or streams.is_terminal(0)):
        return
    streams.write(streams.read())
