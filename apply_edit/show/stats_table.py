"""What past runs gained, by class of request: as figures, a table, a plot and a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from apply_edit import __version__
from apply_edit.history import SIZES, Past, Record
from apply_edit.show import charts
from apply_edit.show.escape import plain
from apply_edit.show.html import document, key, table
from apply_edit.show.look import Line, Look, clean, cut, width_of
from apply_edit.show.remaining import duration
from apply_edit.words import count

SCHEMA = 1
BY: dict[str, Callable[[Record], str]] = {
    "kind": lambda r: r.kind,
    "size": lambda r: f"{r.size} lines",
    "language": lambda r: r.language,
    "model": lambda r: r.model,
    "draft": lambda r: r.draft,
    "day": lambda r: r.day,
}
"""What runs can be grouped by."""
DEFAULT_BY = ("model", "kind", "size", "language")
HEAD = (
    "runs",
    "refused",
    "accepted",
    "tokens/pass",
    "first run p50",
    "p95",
    "last token p50",
    "p95",
    "total/floor",
)
PLOT = 40
"""Cells of the longest bar."""


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one class. Times in seconds, from the first prompt token; None: nothing to tell.

    Only runs that came out count for times and shares; `refused` counts all others.
    """

    names: tuple[str, ...]
    runs: int
    refused: int
    acceptance: float | None
    tokens_per_pass: float | None
    first_run: tuple[float, float] | None
    last_token: tuple[float, float] | None
    over_floor: float | None

    def as_dict(self, by: Sequence[str]) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            **dict(zip(by, self.names, strict=True)),
            "runs": self.runs,
            "refused": self.refused,
            "acceptance": _rounded(self.acceptance),
            "tokens_per_pass": _rounded(self.tokens_per_pass),
            "first_run_seconds": _pair(self.first_run),
            "last_token_seconds": _pair(self.last_token),
            "over_floor": _rounded(self.over_floor),
        }


def groups(records: Iterable[Record], by: Sequence[str] = DEFAULT_BY) -> list[Group]:
    """Records by class, the largest classes of sizes in their order."""
    found: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        found.setdefault(tuple(BY[name](record) for name in by), []).append(record)
    return [_group(names, found[names]) for names in sorted(found, key=_order)]


def _order(names: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """Sizes by their first line, all else by name."""
    firsts = ["1", *(str(high + 1) for high in SIZES)]
    places = []
    for name in names:
        first = name.partition("-")[0]
        sized = name.endswith(" lines") and first in firsts
        places.append((firsts.index(first) if sized else 0, name))
    return tuple(places)


def _group(names: tuple[str, ...], records: Sequence[Record]) -> Group:
    good = [r for r in records if r.status == "ok"]
    drafted, passes = sum(r.drafted for r in good), sum(r.passes for r in good)
    floors = [r.total_seconds / r.floor_seconds for r in good if r.floor_seconds]
    return Group(
        names=names,
        runs=len(records),
        refused=len(records) - len(good),
        acceptance=sum(r.accepted for r in good) / drafted if drafted else None,
        tokens_per_pass=sum(r.output_tokens for r in good) / passes if passes else None,
        first_run=_percentiles([r.first_run_seconds for r in good]),
        last_token=_percentiles([r.total_seconds for r in good]),
        over_floor=median(floors) if floors else None,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie, linear between neighbours."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _percentiles(values: Sequence[float]) -> tuple[float, float] | None:
    return (percentile(values, 0.5), percentile(values, 0.95)) if values else None


def as_dict(past: Past, by: Sequence[str]) -> dict[str, Any]:
    """What --json prints."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "runs": len(past.records),
        "skipped": past.skipped,
        "by": list(by),
        "groups": [group.as_dict(by) for group in groups(past.records, by)],
    }


def lines(past: Past, by: Sequence[str], look: Look, width: int | None) -> list[str]:
    """The tables and the plot for a terminal; `width` cuts them, None leaves them whole."""
    found = groups(past.records, by)
    rows = [(*group.names, *_cells(group)) for group in found]
    text = _aligned((*by, *HEAD), rows, len(by))
    if width is not None and any(width_of(line) >= width for line in text):
        text = [line for group in found for line in _block(group, look, width)]
    shown = [_painted(line, look, width) for line in text]
    timed = [(" ".join(g.names), g.last_token) for g in found if g.last_token is not None]
    if timed:
        shown += ["", *_plot(timed, look, width)]
    days = sorted(record.day for record in past.records)
    words = f"{count(len(days), 'run')}, {days[0]} to {days[-1]}"
    if past.skipped:
        words += f"; {count(past.skipped, 'line')} of the file could not be read"
    return [*shown, "", _painted([(words, "faint")], look, width)]


def _block(group: Group, look: Look, width: int) -> list[Line]:
    """The same as lines that fit where the table does not."""
    runs, refused, held, per_pass, first, first95, last, last95, floor = _cells(group)
    text: list[Line] = [[(clean(" ".join(group.names)), "title")], []]
    for part in (
        f"{runs} runs",
        f"{refused} refused",
        f"{held} accepted",
        f"{per_pass} tokens/pass",
        f"first run {first} (p95 {first95})",
        f"last token {last} (p95 {last95})",
        f"total/floor {floor}",
    ):
        more: Line = [(look.dot, "faint"), (part, "")]
        if not text[-1]:
            text[-1] = [("  ", ""), (part, "")]
        elif width_of([*text[-1], *more]) < width:
            text[-1] += more
        else:
            text.append([("  ", ""), (part, "")])
    return text


def _cells(group: Group) -> tuple[str, ...]:
    first, last = group.first_run, group.last_token
    return (
        f"{group.runs:,}",
        f"{group.refused:,}",
        "-" if group.acceptance is None else f"{100 * group.acceptance:.0f} %",
        "-" if group.tokens_per_pass is None else f"{group.tokens_per_pass:.1f}",
        *(("-", "-") if first is None else map(duration, first)),
        *(("-", "-") if last is None else map(duration, last)),
        "-" if group.over_floor is None else f"{group.over_floor:.2f}",
    )


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> list[Line]:
    """The table; its first `left` columns are texts."""
    cells = [head, *rows]
    rooms = [max(width_of([(clean(row[i]), "")]) for row in cells) for i in range(len(head))]
    text = []
    for number, row in enumerate(cells):
        line: Line = []
        for place, (cell, room) in enumerate(zip(map(clean, row), rooms, strict=True)):
            pad = " " * (room - width_of([(cell, "")]))
            shown = cell + pad if place < left else pad + cell
            gap = "  " if place else ""
            line.append((gap + shown, "title" if number == 0 else ""))
        text.append(line)
    return text


def _plot(
    timed: Sequence[tuple[str, tuple[float, float]]], look: Look, width: int | None
) -> list[str]:
    """Bars of the time to the last token: solid to p50, light on to p95."""
    solid, light = ("\u2588", "\u2591") if look.unicode else ("#", ".")
    longest = max(p95 for _, (_, p95) in timed) or 1.0
    names = max(width_of([(clean(name), "")]) for name, _ in timed)
    room = PLOT if width is None else max(8, min(PLOT, width - names - 24))
    head = f"time to the last token: {solid} half of the runs, {light} 95 in 100"
    text = [_painted([(head, "faint")], look, width)]
    for name, (p50, p95) in timed:
        full = max(1, round(room * p50 / longest))
        more = max(0, round(room * p95 / longest) - full)
        label = clean(name)
        label += " " * (names - width_of([(label, "")]))
        line: Line = [
            (f"{label}  ", ""),
            (solid * full, "bar"),
            (light * more, "faint"),
            (f" {duration(p50)}, {duration(p95)}", ""),
        ]
        text.append(_painted(line, look, width))
    return text


def _painted(line: Line, look: Look, width: int | None) -> str:
    kept = line if width is None else cut(line, width - 1)
    return (look.paint(kept) if look.color else "".join(text for text, _ in kept)).rstrip()


def page(past: Past, by: Sequence[str], now: datetime) -> str:
    """The same as a page. `now` carries its time zone."""
    found = groups(past.records, by)
    rows = [(" \u00b7 ".join(group.names), *_cells(group)) for group in found]
    timed = [(group, group.last_token) for group in found if group.last_token is not None]
    longest = max((pair[1] for _, pair in timed), default=0.0) or 1.0
    bars = []
    for group, (p50, p95) in timed:
        name = plain(" \u00b7 ".join(group.names))
        words = f"{name}: half within {duration(p50)}, 95 in 100 within {duration(p95)}"
        parts = [("s2", p50 / longest, words), ("s1", (p95 - p50) / longest, words)]
        bars.append(f"<p>{words}</p>{charts.share_bar(parts, words)}")
    days = sorted(record.day for record in past.records)
    lead = f"{count(len(days), 'run')} from {days[0]} to {days[-1]}." if days else "No runs yet."
    if past.skipped:
        lead += f" {count(past.skipped, 'line')} of the history could not be read."
    body = [
        "<h1>What past runs gained</h1>",
        f"<p>{plain(lead)}</p>",
        "<h2>By class of request</h2>",
        "<p class=say>Times count from the first prompt token. Total / floor is the median; the "
        "floor is the time to push every token through the model once.</p>",
        table((" \u00b7 ".join(by), *HEAD), rows, "past runs"),
        "<h2>Time to the last token</h2>",
        key([("s2", "half of the runs"), ("s1", "95 in 100")]),
        *bars,
    ]
    footer = f"<p>Made by apply-edit {plain(__version__)} on {now:%Y-%m-%d}.</p>"
    return document("apply-edit: past runs", "\n".join(body), footer)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _pair(values: tuple[float, float] | None) -> dict[str, float] | None:
    if values is None:
        return None
    return {"p50": round(values[0], 4), "p95": round(values[1], 4)}
