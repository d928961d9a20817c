"""The parts of a report's page about the passes of one file, and what was asked of it."""

from __future__ import annotations

from collections.abc import Sequence

from apply_edit.show import charts
from apply_edit.show.charts import Bin
from apply_edit.show.escape import code, plain
from apply_edit.show.file_report import FileReport
from apply_edit.show.html import details, figure, heading, key, names, table

LONGEST_TEXT = 20_000
LONGEST_CELL = 60
MOST_NOTES = 100

SOURCES = {
    "copy": "copied from the file",
    "update": "taken from the edit",
    "output": "repeated from the output",
    "draft": "guessed by a draft",
    "target": "written by the model",
}


def timeline(one: FileReport, level: int, groups: Sequence[Bin]) -> str:
    chart = charts.timeline(groups, max(0.0, one.passes[0].began))
    legend = [
        ("pf", "reading the prompt"),
        ("ok", "tokens that the pass gave"),
        ("no", "drafted rows that fell"),
    ]
    rows = []
    for g in groups:
        text = one.passes[g.first].rejected if g.count == 1 else ""
        text = text if len(text) <= LONGEST_CELL else text[:LONGEST_CELL] + "\u2026"
        rows.append(
            (
                g.name,
                f"{g.began:.3f}",
                f"{1000 * (g.ended - g.began):.1f}",
                f"{1000 * g.draft_seconds:.2f}",
                f"{g.k:.3g}",
                f"{g.rows:,}",
                f"{g.drafted:,}",
                f"{g.accepted:,}",
                f"{g.tokens:,}",
                text,
            )
        )
    head = (
        "pass",
        "at s",
        "ms",
        "drafting ms",
        "k",
        "rows",
        "drafted",
        "held",
        "tokens",
        "rejected",
    )
    return "\n".join(
        [
            heading(level, "Passes on a time line"),
            "<p class=say>Each bar is "
            + ("one pass" if groups[0].count == 1 else f"{groups[0].count:,} passes, averaged")
            + ": as wide as its time, and on a square-root scale as high as its tokens.</p>",
            chart,
            key(legend),
            details("As a table", table(head, rows, "passes", texts=True)),
        ]
    )


def along(one: FileReport, level: int, groups: Sequence[Bin]) -> str:
    return "\n".join(
        [
            heading(level, "Draft length and acceptance along the file"),
            charts.along(groups, one.stats.output_tokens),
            key(
                [("o", "k, the draft length"), ("ok", "share that held"), ("bk", "share that fell")]
            ),
            "<p class=say>The table of the passes above has these numbers too.</p>",
        ]
    )


def costs(one: FileReport, level: int) -> str:
    known = one.costs or ()
    if known:
        best = max(rows / ms for rows, ms in known)
        words = (
            "The line is what passes cost when this machine was measured, the dots are passes of "
            f"this run. At its best the target does {1000 * best:.3g} rows a second: the floor."
        )
    else:
        words = "This target's passes were never measured; the dots are passes of this run."
    rows = [(f"{rows:,}", figure(ms), figure(1000 * rows / ms)) for rows, ms in known]
    seen = [
        (f"{rows:,}", f"{number:,}", figure(1000 * seconds / number))
        for rows, (number, seconds) in sorted(_by_rows(one).items())
    ]
    head = ("rows", "ms", "rows per second")
    return "\n".join(
        [
            heading(level, "What a pass costs"),
            f"<p class=say>{words}</p>",
            charts.costs(known, one.passes),
            table(head, rows, "cost of a pass") if rows else "",
            details("Passes of this run", table(("rows", "passes", "mean ms"), seen, "this run")),
        ]
    )


def _by_rows(one: FileReport) -> dict[int, tuple[int, float]]:
    found: dict[int, tuple[int, float]] = {}
    for each in one.passes:
        number, seconds = found.get(each.rows, (0, 0.0))
        found[each.rows] = (number + 1, seconds + each.seconds)
    return found


def sources(one: FileReport, level: int) -> str:
    chars: dict[str, int] = {}
    for each in one.passes:
        for piece in each.pieces:
            chars[piece.source] = chars.get(piece.source, 0) + len(piece.text)
    whole = sum(chars.values()) or 1
    parts = [(s[0], chars[s] / whole, SOURCES[s]) for s in SOURCES if s in chars]
    rows = []
    for source, words in SOURCES.items():
        tally = one.stats.by_source.get(source)
        if source not in chars and tally is None:
            continue
        drafted, held = (tally.drafted, tally.accepted) if tally is not None else (0, 0)
        share = f"{100 * held / drafted:.1f} %" if drafted else ""
        rows.append(
            (
                words,
                f"{100 * chars.get(source, 0) / whole:.1f} %",
                f"{drafted:,}",
                f"{held:,}",
                share,
            )
        )
    head = ("source", "of the text", "rows drafted", "held", "acceptance")
    return "\n".join(
        [
            heading(level, "Where the text came from"),
            charts.share_bar(parts, "text by source"),
            key([(kind, words) for kind, _, words in parts]),
            table(head, rows, "text by source"),
        ]
    )


def settings(one: FileReport, level: int) -> str:
    stats, options, request = one.stats, one.options, one.request
    verified = {None: "", True: "plain decoding gave the same tokens", False: "it did not hold"}
    greedy = options["temperature"] <= 0
    sampling = f"temperature {options['temperature']:g}, top-p {options['top_p']:g}"
    sampling += f", top-k {options['top_k']}, seed {options['seed']}"
    rows = [
        ("model", stats.model),
        ("dtype", stats.dtype),
        ("device", stats.device),
        ("threads", str(stats.threads) if stats.threads else ""),
        ("decoding", "greedy" if greedy else sampling),
        ("draft", options["draft"]),
        ("k", "auto" if options["k"] is None else str(options["k"])),
        ("budget", "" if options["max_new_tokens"] is None else f"{options['max_new_tokens']:,}"),
        ("timeout", "" if options["timeout"] is None else f"{options['timeout']:g} s"),
        ("encoding", request["encoding"]),
        ("let through", ", ".join(one.allowed)),
        ("finish", stats.finish),
        ("exactness", f"{stats.exact}: {one.promise}" if stats.exact else one.promise),
        ("verified", verified[stats.verified]),
        ("batch", f"up to {stats.batch} edits shared a pass; seconds are this one's share")
        if stats.batch > 1
        else ("batch", ""),
    ]
    asked = [_asked("Instruction", request["instruction"]), _asked("Sketch", request["update"])]
    notes = [f"<li>{plain(note)}" for note in one.notes[:MOST_NOTES]]
    text = [heading(level, "Settings and promise"), names(rows), *asked]
    if notes:
        text.append(details("What was decided, and why", f"<ul>{''.join(notes)}</ul>"))
    return "\n".join(filter(None, text))


def _asked(what: str, text: str | None) -> str:
    if text is None:
        return ""
    rest = len(text) - LONGEST_TEXT
    more = f"\n<i>{rest:,} more characters</i>" if rest > 0 else ""
    return details(what, f"<pre>\n{code(text[:LONGEST_TEXT])}{more}</pre>")
