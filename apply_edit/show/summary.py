"""The words after a run: one summary line, and the figures of --stats."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import SequenceMatcher
from statistics import median

from apply_edit.decode.stats import Stats
from apply_edit.decode.types import Step
from apply_edit.edit import Edit
from apply_edit.show.look import Line, Look, cut, width_of
from apply_edit.show.remaining import duration
from apply_edit.show.terminal import Terminal, can_draw

NARROW_ROWS = 8
"""Passes of up to this many rows cost about what a pass of one row costs."""


def changed_lines(before: bytes, after: bytes) -> int:
    """Lines changed, added or removed (a changed line counts once)."""
    old, new = before.split(b"\n"), after.split(b"\n")
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if not old or not new:
        return max(len(old), len(new))
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in blocks if tag != "equal")


def speedup(steps: Sequence[Step]) -> float | None:
    """How many times faster than one token a pass the decoding was; None if nothing shows it.

    A pass of one token is taken to cost the median of this run's narrow passes or, where all
    were wide, the cheapest one of them, which a single token cannot exceed.
    """
    tokens = sum(len(step.tokens) for step in steps)
    spent = sum(step.seconds + step.draft_seconds for step in steps)
    # The first pass carries the tail of the prompt.
    later = steps[1:]
    narrow = [step.seconds for step in later if step.rows <= NARROW_ROWS]
    if not later or spent <= 0:
        return None
    single = median(narrow) if narrow else min(step.seconds for step in later)
    return tokens * single / spent


def summary(lines: int, stats: Stats, steps: Sequence[Step], look: Look, columns: int) -> Line:
    """``changed 3 lines · 8.4 s · 13.2 tokens/pass · 6.1× as fast as one token a pass``."""
    what = "no changes" if not lines else f"changed {lines:,} line{'s' if lines > 1 else ''}"
    seconds = duration(stats.total_seconds)
    parts = [what, seconds, f"{stats.tokens_per_pass:.1f} tokens/pass"]
    # A share of a pass does not say what a pass of one token would cost.
    faster = speedup(steps) if stats.batch == 1 else None
    if faster is not None and faster >= 1.05:
        parts.append(f"{faster:.1f}{look.times} as fast as one token a pass")
    line: Line = [(parts[0], "title")]
    for part in parts[1:]:
        more: Line = [(look.dot, "faint"), (part, "")]
        if width_of(line) + width_of(more) < columns:
            line += more
    return cut(line, max(1, columns - 1))


def figures(stats: Stats) -> list[tuple[str, str]]:
    """The rows of --stats: (what, how much)."""
    rows = [
        ("model", stats.model),
        ("dtype, device", ", ".join(filter(None, (stats.dtype, stats.device)))),
        ("threads", str(stats.threads) if stats.threads else ""),
        ("exactness", stats.exact),
        ("draft", stats.draft),
        ("prompt tokens", f"{stats.prompt_tokens:,}"),
        ("output tokens", f"{stats.output_tokens:,}"),
        ("passes", f"{stats.passes:,} ({stats.tokens_per_pass:.2f} tokens each)"),
        ("rows", f"{stats.rows:,} ({stats.wasted:,} drafted and lost)"),
    ]
    for source, tally in sorted(stats.by_source.items()):
        if tally.drafted:
            share = 100 * tally.accepted / tally.drafted
            words = f"{tally.accepted:,} of {tally.drafted:,} accepted ({share:.1f} %)"
            rows.append((f"drafted by {source}", words))
    if stats.batch > 1:
        rows.append(("batch", f"up to {stats.batch} edits; seconds are this one's share"))
    rows += [
        ("load", f"{stats.load_seconds:.2f} s"),
        ("prefill", f"{stats.prefill_seconds:.2f} s"),
        ("decode", f"{stats.decode_seconds:.2f} s, drafting {stats.draft_seconds:.3f} s"),
        ("first run after", f"{stats.first_run_seconds:.2f} s"),
        ("total", f"{stats.total_seconds:.2f} s"),
    ]
    if stats.floor_seconds is not None and stats.over_floor is not None:
        rows.append(
            ("floor", f"{stats.floor_seconds:.2f} s (total / floor {stats.over_floor:.2f})")
        )
    if stats.verified is not None:
        rows.append(
            ("verified", "same tokens as plain decoding" if stats.verified else "DIFFERENT")
        )
    return [row for row in rows if row[1]]


def columns(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    """Rows of cells as aligned text; the last column is not padded."""
    if not rows:
        return []
    widths = [max(width_of([(row[i], "")]) for row in rows) for i in range(len(rows[0]) - 1)]
    return [
        gap.join(
            [
                *(
                    cell + " " * (w - width_of([(cell, "")]))
                    for cell, w in zip(row, widths, strict=False)
                ),
                row[-1],
            ]
        ).rstrip()
        for row in rows
    ]


def summary_text(edit: Edit, title: str, color: bool) -> str:
    """The summary line as text for the terminal on standard error."""
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    terminal = Terminal(2, color, encoding)
    look = Look(color, terminal.unicode)
    head: Line = [(f"{title}: ", "")] if title else []
    room = terminal.size()[0] - width_of(head)
    lines = changed_lines(edit.original, edit.output)
    line = [*head, *summary(lines, edit.stats, edit.steps, look, room)]
    # A terminal that knows no codes would print even those of bold and faint.
    return look.paint(line) if color or can_draw(os.environ) else "".join(t for t, _ in line)


def figure_lines(stats: Stats, title: str) -> list[str]:
    """The table of --stats."""
    lines = columns(figures(stats))
    return [f"{title}:", *("  " + line for line in lines)] if title else lines
