"""`apply-edit stats`: what past runs gained, from the history the user turned on."""

from __future__ import annotations

import json as json_text
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime

from apply_edit import history
from apply_edit.command.streams import Streams
from apply_edit.command.voice import voice_of
from apply_edit.config import merge
from apply_edit.errors import SaveError, UsageError
from apply_edit.history import HOW, Past
from apply_edit.words import count, nearest, quote


@dataclass(frozen=True, slots=True)
class StatsOrder:
    """What to show and how: `by` names what runs are grouped by, `since` the first day."""

    by: str | None = None
    since: str | None = None
    json: bool = False
    html: str | None = None
    clear: bool = False
    color: str | None = None


def stats(order: StatsOrder, streams: Streams) -> int:
    """Run `apply-edit stats`; returns the exit code."""
    settings = merge({"color": order.color}, None, os.environ)
    voice = voice_of(settings, streams, os.environ)
    by = _by(order.by)
    _check_sense(order)
    if order.clear:
        try:
            removed = history.clear()
        except OSError as error:
            message = f"the history cannot be removed: {error.strerror}; see to its folder"
            raise SaveError("unwritable", message) from error
        voice.note(f"removed {count(removed, 'run')} from the history")
        return 0
    past = _since(history.read(), order.since)
    if not past.records:
        _say_none(order, voice.note)
    if order.json:
        from apply_edit.show.stats_table import as_dict

        streams.write(json_text.dumps(as_dict(past, by), indent=1).encode("ascii") + b"\n")
    if order.html is not None:
        _page(order.html, past, by, streams)
    elif past.records and not order.json:
        streams.write(_table(past, by, settings.color, streams))
    return 0


def _check_sense(order: StatsOrder) -> None:
    page = order.html
    if page not in (None, "-") and not str(page).lower().endswith((".html", ".htm")):
        raise UsageError("bad-value", f"--html takes a name that ends in .html, not {quote(page)}")
    if order.json and page == "-":
        raise UsageError("conflict", "--json and --html - both go to standard output; keep one")
    if not order.clear:
        return
    if order.json or order.html is not None or order.since is not None:
        message = "--clear shows nothing and removes all of it; give it alone"
        raise UsageError("conflict", message)


def _by(words: str | None) -> tuple[str, ...]:
    from apply_edit.show.stats_table import BY, DEFAULT_BY

    if words is None:
        return DEFAULT_BY
    by = tuple(dict.fromkeys(word.strip() for word in words.split(",") if word.strip()))
    for word in by:
        if word not in BY:
            near = nearest(word, BY) or f"; it takes {', '.join(BY)}"
            raise UsageError("bad-value", f"--by knows no {quote(word)}{near}")
    if not by:
        raise UsageError("bad-value", f"--by takes a list of {', '.join(BY)}")
    return by


def _since(past: Past, words: str | None) -> Past:
    if words is None:
        return past
    try:
        day = date.fromisoformat(words).isoformat()
    except ValueError as error:
        message = f"--since takes a day such as 2026-01-31, not {quote(words)}"
        raise UsageError("bad-value", message) from error
    return Past(tuple(record for record in past.records if record.day >= day), past.skipped)


def _say_none(order: StatsOrder, note: Callable[[str], None]) -> None:
    if order.since is not None and history.read().records:
        note(f"there are no runs since {order.since}")
    else:
        note(f"there is no history yet; {HOW}")


def _page(path: str, past: Past, by: tuple[str, ...], streams: Streams) -> None:
    from apply_edit.show.stats_table import page
    from apply_edit.text.save import write_new

    data = page(past, by, datetime.now().astimezone()).encode("utf-8", "replace")
    if path == "-":
        streams.write(data)
    else:
        write_new(path, data, force=True)


def _table(past: Past, by: tuple[str, ...], color: str, streams: Streams) -> bytes:
    import sys

    from apply_edit.show.look import Look
    from apply_edit.show.stats_table import lines
    from apply_edit.show.terminal import Terminal, wants_color

    terminal = streams.is_terminal(1)
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    painted = wants_color(color, os.environ, terminal)
    shown = Terminal(streams.answer_fd, painted, encoding)
    look = Look(painted, shown.unicode)
    text = lines(past, by, look, shown.size()[0] if terminal else None)
    return "".join(line + "\n" for line in text).encode(encoding, "replace")
