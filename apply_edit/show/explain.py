"""What -v says after a run: what was promised, what passes cost, how drafts went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apply_edit.decode.stats import Stats
from apply_edit.decode.types import Step
from apply_edit.show.file_report import PROMISES

SHOWN = 24
"""Passes that are listed one by one; longer runs are thinned out evenly."""


def explain(
    stats: Stats, steps: Sequence[Step], costs: Sequence[tuple[int, float]] | None
) -> Iterator[str]:
    """Lines in plain words. `costs` is (rows, milliseconds) of a pass, as measured."""
    ran = [stats.model, stats.dtype, f"on {stats.device}" if stats.device else ""]
    threads = f", {stats.threads} threads" if stats.threads > 1 else ""
    yield f"ran {' '.join(filter(None, ran))}{threads}"
    if stats.exact:
        yield PROMISES.get(stats.exact, f"exactness here: {stats.exact}")
    if costs:
        table = ", ".join(f"{rows}: {ms:.0f}" for rows, ms in costs)
        yield f"a pass costs, in milliseconds by its rows: {table}"
    if steps:
        yield f"draft length over the passes (accepted/drafted): {drafts(steps)}"
    if stats.draft_seconds and stats.decode_seconds:
        share = 100 * stats.draft_seconds / (stats.decode_seconds + stats.draft_seconds)
        yield f"finding drafts took {share:.1f} % of the decoding"
    over = stats.over_floor
    if over is not None and stats.floor_seconds is not None:
        yield (
            f"pushing the same tokens through the model once would take {stats.floor_seconds:.1f} s"
            f" at least; this run took {over:.2f} times that"
        )


def drafts(steps: Sequence[Step]) -> str:
    """``16/16 31/32 0/8 …``: how far each pass's draft held."""
    every = -(-len(steps) // SHOWN)
    words = [f"{step.accepted}/{step.drafted}" for step in steps[::every]]
    thinned = f" (every {every}th of {len(steps)})" if every > 1 else ""
    return " ".join(words) + thinned
