"""What past runs gained: the figures, the table, the plot and the page."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from apply_edit.history import Past
from apply_edit.show.look import Look, width_of
from apply_edit.show.stats_table import DEFAULT_BY, as_dict, groups, lines, page, percentile
from tests.test_history import record

NOW = datetime(2026, 11, 30, tzinfo=timezone.utc)


def past() -> Past:
    times = range(1, 21)
    runs = [record(total_seconds=float(n), first_run_seconds=n / 10) for n in times]
    sketch = record(kind="sketch", size="201-500", language="rust")
    runs += [
        replace(sketch, total_seconds=40.0),
        replace(sketch, status="refused", code="lost", total_seconds=999.0, drafted=0),
        record(size="51-200", floor_seconds=None, drafted=0, accepted=0),
    ]
    return Past(tuple(runs), 2)


def test_figures_of_each_class() -> None:
    small, middle, sketch = groups(past().records)
    assert small.names == ("qwen2.5-coder-1.5b", "instruction", "1-50 lines", "python")
    assert (small.runs, small.refused) == (20, 0)
    assert small.acceptance == pytest.approx(0.81)
    assert small.tokens_per_pass == pytest.approx(10)
    assert small.last_token == (10.5, pytest.approx(19.05))
    assert small.first_run == (pytest.approx(1.05), pytest.approx(1.905))
    assert small.over_floor == pytest.approx(5.25)
    assert middle.acceptance is None
    assert middle.over_floor is None
    assert (sketch.runs, sketch.refused) == (2, 1)
    assert sketch.last_token == (40.0, 40.0)


def test_sizes_stand_in_their_order() -> None:
    sizes = ["2001-", "51-200", "1-50", "1001-2000", "501-1000", "201-500"]
    found = groups([record(size=size) for size in sizes], ("size",))
    firsts = [int(group.names[0].split("-")[0]) for group in found]
    assert firsts == sorted(firsts)


def test_only_refused_runs_have_no_times() -> None:
    (group,) = groups([record(status="refused", code="lost")], ("kind",))
    assert (group.runs, group.refused) == (1, 1)
    assert group.last_token is None
    assert group.acceptance is None
    assert lines(Past((record(status="error", code="memory"),)), ("kind",), Look(), 80)


@pytest.mark.parametrize(
    ("values", "share", "wanted"),
    [([3.0], 0.95, 3.0), ([1.0, 2.0], 0.5, 1.5), ([4.0, 1.0, 3.0, 2.0, 5.0], 0.5, 3.0)],
)
def test_percentiles(values: list[float], share: float, wanted: float) -> None:
    assert percentile(values, share) == pytest.approx(wanted)


def test_table_and_plot() -> None:
    text = lines(past(), ("kind", "language"), Look(color=False), None)
    assert text[0].split()[:3] == ["kind", "language", "runs"]
    assert text[1].startswith("instruction  python")
    assert "total/floor" in text[0]
    bars = [line for line in text if "\u2588" in line and not line.startswith("time")]
    assert len(bars) == 2
    assert bars[1].count("\u2588") == 40
    assert bars[0].count("\u2588") < bars[0].count("\u2588") + bars[0].count("\u2591") < 40
    assert text[-1] == "23 runs, 2026-11-30 to 2026-11-30; 2 lines of the file could not be read"


def test_no_unicode_and_no_colour() -> None:
    text = "\n".join(lines(past(), DEFAULT_BY, Look(color=False, unicode=False), None))
    assert text.isascii()
    assert "####" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_it_fits_the_terminal(width: int) -> None:
    for line in lines(past(), DEFAULT_BY, Look(color=False), width):
        assert width_of([(line, "")]) < width


def test_a_narrow_terminal_loses_no_figure() -> None:
    text = " ".join(lines(past(), DEFAULT_BY, Look(color=False), 60))
    for words in ("20 runs", "0 refused", "81 % accepted", "last token 10 s (p95 19 s)", "5.25"):
        assert words in text


def test_json() -> None:
    data = as_dict(past(), ("kind",))
    assert data["runs"] == 23
    assert data["skipped"] == 2
    assert [group["kind"] for group in data["groups"]] == ["instruction", "sketch"]
    assert data["groups"][1]["last_token_seconds"] == {"p50": 40.0, "p95": 40.0}


def test_the_page_has_the_same_figures() -> None:
    text = page(past(), DEFAULT_BY, NOW)
    assert text.startswith("<!doctype html>")
    assert "instruction \u00b7 1-50 lines" in text
    assert "5.25" in text
    assert "No runs yet" in page(Past(), DEFAULT_BY, NOW)
