"""A report as one page: the file by source, the passes, the costs and what they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from apply_edit import __version__
from apply_edit.show import charts, sections
from apply_edit.show.charts import bins
from apply_edit.show.escape import plain
from apply_edit.show.file_report import FileReport
from apply_edit.show.html import cards, details, document, heading, key, precise, ratio, table
from apply_edit.show.listing import listing
from apply_edit.show.remaining import duration
from apply_edit.show.sections import SOURCES
from apply_edit.words import count

LIMIT = 950_000
"""Bytes of a page, well below the megabyte at which phones and mail begin to mind."""
MOST_FILES = 20
"""Files shown in full."""


def page(files: Sequence[FileReport], now: datetime) -> str:
    """The whole page, less than a megabyte. `now` carries its time zone."""
    shown = files[:MOST_FILES]
    level = 2 if len(files) == 1 else 3
    most = max(40, charts.MOST // max(1, len(shown)))
    rest = [_sections(one, level, most) for one in shown]
    budget = LIMIT - 20_000 - sum(len(b.encode()) + len(e.encode()) for b, e in rest)
    share = max(4_000, budget // max(1, len(shown)))
    parts = []
    for number, (one, (begin, end)) in enumerate(zip(shown, rest, strict=True)):
        text = _file(one, level, listing(one, share))
        head = "" if level == 2 else f"<h2 id=f{number}>{plain(one.file)}</h2>\n"
        parts.append(f"<section>\n{head}{begin}\n{text}\n{end}\n</section>")
    if level == 2:
        title = f"apply-edit: {files[0].file}"
        top = f"<h1>{plain(files[0].file)}</h1>\n"
    else:
        title = f"apply-edit: {len(files)} files"
        top = f"<h1>{count(len(files), 'edit')}</h1>\n" + _overview(files)
    footer = (
        f"<p>Made by apply-edit {plain(__version__)} on {plain(f'{now:%Y-%m-%d %H:%M %Z}')}. "
        "This page holds the text of the file.</p>"
    )
    return document(title, top + "\n".join(parts), footer)


def _sections(one: FileReport, level: int, most: int) -> tuple[str, str]:
    """What stands before the listing, and what behind it."""
    groups = bins(one.passes, most)
    before = _summary(one, level)
    if not one.passes:
        return before, sections.settings(one, level)
    return before, "\n".join(
        [
            sections.timeline(one, level, groups),
            sections.along(one, level, groups),
            sections.costs(one, level),
            sections.sources(one, level),
            sections.settings(one, level),
        ]
    )


def _overview(files: Sequence[FileReport]) -> str:
    rows = [
        (
            one.file,
            one.code or one.status,
            "" if one.changed_lines is None else f"{one.changed_lines:,}",
            duration(one.stats.total_seconds),
            f"{one.stats.tokens_per_pass:.1f}",
            ratio(one.stats.over_floor),
        )
        for one in files
    ]
    head = ("file", "status", "changed lines", "total", "tokens per pass", "total / floor")
    text = table(head, rows, "all files")
    if len(files) > MOST_FILES:
        words = f"Only the first {MOST_FILES} are shown in full, to keep this page small."
        text += f"<p class=say>{words}</p>"
    return text


def _summary(one: FileReport, level: int) -> str:
    stats = one.stats
    if one.code is not None:
        word = "Refused" if one.status == "refused" else "Failed"
        lead = (
            f"<p class=bad><strong>{word}</strong> ({plain(one.code)}): "
            f"{plain(one.message or '')}. Nothing was written.</p>"
        )
    elif one.changed_lines:
        lead = f"<p>{count(one.changed_lines, 'line')} changed by {plain(stats.model)}.</p>"
    else:
        lead = f"<p>Nothing changed; {plain(stats.model)} wrote the file as it was.</p>"
    floor = stats.floor_seconds
    figures = [
        ("total", duration(stats.total_seconds), "from the first prompt token to the last"),
        ("floor", "unknown" if floor is None else duration(floor), "every token through once"),
        ("total / floor", ratio(stats.over_floor), "1 is the least"),
        ("tokens per pass", f"{stats.tokens_per_pass:.1f}", f"{stats.passes:,} passes"),
        ("drafts accepted", f"{100 * stats.acceptance:.0f} %", f"{stats.wasted:,} rows lost"),
        ("first run after", duration(stats.first_run_seconds), ""),
        ("output", f"{stats.output_tokens:,} tokens", f"prompt {stats.prompt_tokens:,}"),
    ]
    if one.speedup is not None:
        words = "as one token a pass, judged by this run's own passes"
        figures.insert(3, ("as fast", f"{one.speedup:.1f}\u00d7", words))
    return "\n".join([lead, cards(figures), _time(one, level)])


def _time(one: FileReport, level: int) -> str:
    """Where the time went, beside the floor."""
    stats = one.stats
    total = stats.total_seconds
    if total <= 0:
        return ""
    rest = max(0.0, total - stats.prefill_seconds - stats.decode_seconds - stats.draft_seconds)
    parts = [
        ("s1", "reading the prompt", stats.prefill_seconds),
        ("s2", "passes", stats.decode_seconds),
        ("s3", "drafting", stats.draft_seconds),
        ("bk", "the rest", rest),
    ]
    whole = max(total, sum(seconds for _, _, seconds in parts))
    bar = [(c, seconds / whole, f"{name}: {precise(seconds)}") for c, name, seconds in parts]
    legend = [(c, f"{name} {precise(seconds)}") for c, name, seconds in parts]
    text = [
        heading(level, "Where the time went"),
        charts.share_bar(bar, "where the time went"),
        key(legend),
    ]
    if stats.floor_seconds is not None:
        share = min(1.0, stats.floor_seconds / whole)
        words = f"the floor: {precise(stats.floor_seconds)}"
        text.append(charts.share_bar([("s4", share, words)], "the floor on the same scale"))
        text.append(key([("s4", words + ", on the same scale")]))
    rows = [
        (name, precise(seconds), f"{100 * seconds / whole:.1f} %") for _, name, seconds in parts
    ]
    if stats.floor_seconds is not None:
        rows.append(
            ("floor", precise(stats.floor_seconds), f"{100 * stats.floor_seconds / whole:.1f} %")
        )
    text.append(details("As a table", table(("", "seconds", "share"), rows, "time")))
    return "\n".join(text)


def _file(one: FileReport, level: int, text: str) -> str:
    shown = [s for s in SOURCES if any(p.source == s for each in one.passes for p in each.pieces)]
    items = []
    for source in shown:
        words = plain(SOURCES[source])
        sample = words if source == "copy" else f"<u class={source[0]}>{words}</u>"
        items.append(f"<li>{sample}")
    if any(each.rejected for each in one.passes):
        items.append("<li><b role=note aria-label='a mark'></b> a draft that was rejected here")
    where = ""
    if one.request["lines"] is not None:
        first, last = one.request["lines"]
        where = f" Only lines {first:,} to {last:,} were rewritten; the rest stayed as it was."
    return (
        f"{heading(level, 'The file by source')}\n"
        "<p class=say>A line at the left marks lines that differ from the file before. The crosses "
        f"say what was drafted and rejected: point at one, tap it, or go there with Tab."
        f"{where}</p>\n"
        f"<ul class=key>{''.join(items)}</ul>\n{text}"
    )
