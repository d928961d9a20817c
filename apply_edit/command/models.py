"""`apply-edit models`: which models there are, fetching, removing, training heads for one."""

from __future__ import annotations

import json as json_text
import os
from dataclasses import dataclass

from apply_edit.command.signals import ending
from apply_edit.command.streams import Streams
from apply_edit.command.voice import Voice, voice_of
from apply_edit.command.watch import watching
from apply_edit.config import Settings, merge
from apply_edit.errors import ModelError
from apply_edit.target.catalog import CATALOG, DEFAULT_MODEL
from apply_edit.target.store import Stored, cache_root, remove, stored
from apply_edit.words import name, nearest, quote

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class ModelsOrder:
    """What to do: ``list``, ``pull``, ``rm`` or ``train-heads``; `names` are the models,
    `folders` where source files are, `minutes` how long the training may take, as it was said."""

    action: str
    names: tuple[str, ...] = ()
    json: bool = False
    flags: tuple[tuple[str, object], ...] = ()
    folders: tuple[str, ...] = ()
    minutes: str | None = None


def models(order: ModelsOrder, streams: Streams) -> int:
    """Run `apply-edit models`; returns the exit code."""
    settings = merge(dict(order.flags), None, os.environ)
    voice = voice_of(settings, streams, os.environ)
    if order.action == "list":
        streams.write(_listing(order.json, settings, streams))
        return 0
    ending.watch()
    streams.guard(2 if settings.verbose else None)
    for model in order.names:
        if order.action == "pull":
            _pull(model, settings, streams, voice)
        elif order.action == "train-heads":
            from apply_edit.command.train import train

            train(model, order.folders, order.minutes, settings, streams, voice)
        else:
            freed = remove(model)
            voice.note(
                f"removed {name(model)}, {_size(freed)} freed"
                if freed
                else f"{name(model)} was not in the cache"
            )
    return 0


def _pull(model: str, settings: Settings, streams: Streams, voice: Voice) -> None:
    """Fetch and convert one model of the catalog, with its progress shown."""
    from apply_edit.target.pull import pull

    if model not in CATALOG:
        near = nearest(model, CATALOG)
        message = f"the catalog has no model {quote(model)}{near or '; see apply-edit models'}"
        raise ModelError("unknown-model", message)
    with watching(streams, settings, voice, model, "") as watch:
        folder = pull(model, offline=settings.offline, on_event=watch)
    voice.note(f"{model} is at {name(str(folder))}")


def _listing(as_json: bool, settings: Settings, streams: Streams) -> bytes:
    rows = stored()
    if as_json:
        data = {
            "schema": SCHEMA,
            "cache": name(str(cache_root())),
            "default": settings.model or DEFAULT_MODEL,
            "models": [_as_dict(row) for row in rows],
        }
        return json_text.dumps(data, indent=1).encode() + b"\n"
    from apply_edit.show.models import table
    from apply_edit.show.terminal import wants_color

    terminal = streams.is_terminal(1)
    lines = table(
        rows,
        settings.model or DEFAULT_MODEL,
        cache_root(),
        color=wants_color(settings.color, os.environ, terminal),
        width=_width(streams) if terminal else None,
    )
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")


def _width(streams: Streams) -> int:
    try:
        return os.get_terminal_size(streams.answer_fd).columns or 80
    except OSError:
        return 80


def _as_dict(row: Stored) -> dict[str, object]:
    known = CATALOG.get(row.name)
    return {
        "name": row.name,
        "title": known.title if known else None,
        "licence": known.licence if known else None,
        "download_bytes": known.size if known else None,
        "disk_bytes": known.disk if known else row.bytes,
        "state": row.state,
        "heads": row.heads,
        "bytes": row.bytes,
        "folder": name(str(row.folder)),
        "note": known.note if known else None,
    }


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
