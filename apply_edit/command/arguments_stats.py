"""Arguments of `apply-edit stats`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated

import typer

from apply_edit.command.arguments import call, new_app
from apply_edit.command.complete import one_of
from apply_edit.command.stats import StatsOrder

# Its completion is installed with the whole command's; it is needed only to answer the shell.
stats_app = new_app(add_completion="_APPLY_EDIT_COMPLETE" in os.environ)


@stats_app.command()
def stats(
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="LIST",
            help="group by some of model, kind, size, language, draft, day "
            "[model,kind,size,language]",
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DAY", help="only runs of that day and later")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
    html: Annotated[
        str | None, typer.Option("--html", metavar="PATH", help="write a page there (-: stdout)")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="remove the history")] = False,
    color: Annotated[
        str | None,
        typer.Option(
            "--color",
            metavar="WHEN",
            autocompletion=one_of("auto", "always", "never"),
            help="auto, always or never [auto]",
        ),
    ] = None,
) -> StatsOrder:
    """Show what past runs gained: for each class of request how many there were, the share of
    drafted rows that held, tokens per pass, the time to the first run and to the last token, and
    the total over the floor.

    The history is off until you turn it on (--history of the edit, APPLY_EDIT_HISTORY=1, or
    history = true in your own configuration). It keeps figures, never names or contents of files.
    """
    return StatsOrder(by=by, since=since, json=json, html=html, clear=clear, color=color)


def parse_stats(argv: Sequence[str]) -> StatsOrder | None:
    """The order that the arguments give; None when help was printed. Raises UsageError."""
    result = call(stats_app, argv, "apply-edit stats")
    return result if isinstance(result, StatsOrder) else None
