"""The line and the table after a run."""

from __future__ import annotations

import pytest

from apply_edit.decode.stats import Stats
from apply_edit.decode.types import Run, Step
from apply_edit.show.diff import painted
from apply_edit.show.explain import drafts, explain
from apply_edit.show.look import Look
from apply_edit.show.summary import changed_lines, columns, figures, speedup, summary


def step(tokens: int, rows: int, seconds: float) -> Step:
    """A pass that gave `tokens`."""
    runs = (Run("copy", tuple(range(tokens)), 0, 0),)
    drafted = rows - 1
    accepted = tokens - 1
    sources = {"copy": (drafted, accepted)} if drafted else {}
    return Step(runs, rows, drafted, accepted, (), drafted, 0, seconds, 0.0, None, sources)


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        (b"a\nb\n", b"a\nb\n", 0),
        (b"a\nb\nc\n", b"a\nB\nc\n", 1),
        (b"a\nb\n", b"a\nx\ny\nb\n", 2),
        (b"a\nx\ny\nb\n", b"a\nb\n", 2),
        (b"1\n2\n3\n4\n5\n", b"1\nX\n3\nY\nZ\n5\n", 3),
        (b"", b"a\nb\n", 2),
        (b"a\n", b"a", 1),
        (b"a\r\nb\r\n", b"a\nb\r\n", 1),
        (b"a\na\na\n", b"a\na\n", 1),
    ],
)
def test_changed_lines(before: bytes, after: bytes, count: int) -> None:
    assert changed_lines(before, after) == count


def test_speedup_is_measured_against_the_narrow_passes_of_the_run() -> None:
    # 33 tokens in 0.5 s; one at a time they would take 33 passes of 0.1 s.
    steps = [step(1, 200, 0.1), step(1, 1, 0.1), step(30, 32, 0.2), step(1, 1, 0.1)]
    assert speedup(steps) == pytest.approx(33 * 0.1 / 0.5)


def test_speedup_without_narrow_passes_takes_the_cheapest_as_bound() -> None:
    steps = [step(1, 200, 0.1), step(64, 65, 0.4), step(64, 65, 0.5)]
    assert speedup(steps) == pytest.approx(129 * 0.4 / 1.0)


def test_speedup_of_nothing_is_not_known() -> None:
    assert speedup([]) is None
    assert speedup([step(1, 1, 0.0)]) is None


def made(*steps: Step) -> Stats:
    """The figures of a run."""
    stats = Stats(model="m", draft="copy", total_seconds=8.4)
    for one in steps:
        stats.add(one)
    return stats


def test_the_summary_line() -> None:
    steps = [step(1, 1, 0.1), step(33, 40, 0.4), step(1, 1, 0.1)]
    line = summary(3, made(*steps), steps, Look(), 120)
    text = "".join(text for text, _ in line)
    assert text == "changed 3 lines · 8.4 s · 11.7 tokens/pass · 5.8× as fast as one token a pass"
    short = "".join(text for text, _ in summary(1, made(*steps), steps, Look(unicode=False), 40))
    assert short == "changed 1 line | 8.4 s"
    nothing = summary(0, made(*steps), steps, Look(), 120)
    assert nothing[0][0] == "no changes"


def test_a_share_of_passes_is_not_called_fast() -> None:
    steps = [step(1, 1, 0.1), step(33, 40, 0.4), step(1, 1, 0.1)]
    stats = made(*steps)
    stats.batch = 3
    text = "".join(text for text, _ in summary(3, stats, steps, Look(), 120))
    assert text == "changed 3 lines · 8.4 s · 11.7 tokens/pass"
    assert dict(figures(stats))["batch"] == "up to 3 edits; seconds are this one's share"
    assert "batch" not in dict(figures(made(*steps)))


def test_the_table_of_figures() -> None:
    stats = made(step(1, 1, 0.1), step(33, 40, 0.4))
    stats.floor_seconds = 4.2
    stats.verified = True
    rows = dict(figures(stats))
    assert rows["passes"] == "2 (17.00 tokens each)"
    assert rows["rows"] == "41 (7 drafted and lost)"
    assert rows["drafted by copy"] == "32 of 39 accepted (82.1 %)"
    assert rows["floor"] == "4.20 s (total / floor 2.00)"
    assert rows["verified"] == "same tokens as plain decoding"
    assert "threads" not in rows


def test_columns_line_up() -> None:
    assert columns([("a", "x"), ("long", "y"), ("漢", "")]) == ["a     x", "long  y", "漢"]
    assert columns([]) == []


def test_a_painted_diff_is_the_diff_with_styles() -> None:
    patch = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\xff\n+b\n\\ No newline\n"
    text = painted(patch)
    assert b"\x1b[31m-\xff\x1b[m\n\x1b[32m+b\x1b[m\n" in text
    assert b"\x1b[1m--- a/x\x1b[m\n" in text
    import re

    assert re.sub(rb"\x1b\[[0-9;]*m", b"", text) == patch


def test_what_verbose_runs_explain() -> None:
    steps = [step(1, 1, 0.1), step(33, 40, 0.4)]
    stats = made(*steps)
    stats.exact, stats.dtype, stats.device, stats.threads = "bit", "bfloat16", "cpu", 2
    stats.floor_seconds = 4.2
    text = "\n".join(explain(stats, steps, [(1, 84.0), (64, 540.4)]))
    assert "ran m bfloat16 on cpu, 2 threads" in text
    assert "bit for bit" in text
    assert "1: 84, 64: 540" in text
    assert "0/0 32/39" in text
    assert "2.00 times that" in text


def test_long_runs_are_thinned_out() -> None:
    text = drafts([step(1, 1, 0.1)] * 100)
    assert text.count("0/0") == 20
    assert text.endswith("(every 5th of 100)")
