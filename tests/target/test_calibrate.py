"""Calibration: what it finds is kept, and used only where it was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from apply_edit.target import calibrate
from apply_edit.target.engine import Widths
from tests.target.families import SIZES, engine, save

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> calibrate.Calibration:
    folder = save("llama", tmp_path_factory.mktemp("llama"))
    target = engine(folder, torch.float32)
    result = calibrate.calibrate(target, vocab=SIZES["vocab_size"])
    assert target.length == 0
    return result


def test_costs_rise_with_rows(found: calibrate.Calibration) -> None:
    rows = [r for r, _ in found.costs]
    times = [ms for _, ms in found.costs]
    assert rows == list(calibrate.ROWS)
    assert times == sorted(times)
    assert times[0] > 0


def test_exact_says_what_was_seen(found: calibrate.Calibration) -> None:
    assert found.exact in ("bit", "margin")
    assert (found.noise > 0.0) == (found.exact == "margin")
    if found.exact == "bit":
        assert found.widths.least <= 32
        assert found.widths.spans == tuple(sorted(found.widths.spans))
        assert found.widths.spans


def test_the_least_agreeing_width() -> None:
    assert calibrate._least({1: False, 2: True, 8: True, 64: True}) == 2
    assert calibrate._least({1: False, 2: True, 3: False, 8: True, 64: True}) == 8
    assert calibrate._least({1: True, 64: True, 128: False}) is None
    assert calibrate._least({1: False, 32: False, 64: True}) is None


def test_narrow_passes_are_padded_to_the_cheapest_width() -> None:
    costs = [(1, 130.0), (2, 145.0), (3, 114.0), (4, 110.0), (8, 146.0), (16, 100.0)]
    assert calibrate._cheapest(costs, 2) == 4
    assert calibrate._cheapest([(1, 50.0), (2, 51.0), (4, 50.5), (8, 60.0)], 1) == 1
    assert calibrate._cheapest([(2, 52.0), (4, 50.9), (8, 50.0)], 2) == 4
    assert calibrate._cheapest(costs, 16) == 16


def test_noise_never_makes_a_wider_pass_cheaper() -> None:
    assert calibrate._rising([(1, 5.0), (2, 3.0), (4, 4.0)]) == ((1, 3.0), (2, 3.0), (4, 4.0))
    # Nor one pass dearer than two of half its rows.
    table = calibrate._rising([(64, 3.0), (96, 9.0), (128, 40.0), (256, 900.0)])
    assert table == ((64, 3.0), (96, 6.0), (128, 6.0), (256, 12.0))


def test_a_table_measured_on_a_busy_machine_is_outdated() -> None:
    table = calibrate.Calibration(((1, 100.0), (8, 120.0), (64, 900.0)), Widths(), "bit")
    usual = [(1, 95.0), (5, 130.0), (64, 800.0), (30, 700.0), (1, 300.0)]
    assert not calibrate.outdated(table, usual)
    assert not calibrate.outdated(table, [(rows, ms * 9) for rows, ms in usual])
    assert calibrate.outdated(table, [(rows, ms / 3) for rows, ms in usual])
    assert not calibrate.outdated(table, [(1, 1.0)])
    assert not calibrate.outdated(table, [(500, 1.0)] * 9)


def test_kept_and_read_back(tmp_path: Path, found: calibrate.Calibration) -> None:
    path = tmp_path / "deep" / "kept.json"
    calibrate.save(path, found)
    assert calibrate.load(path) == found
    assert [p.name for p in path.parent.iterdir()] == ["kept.json"]


@pytest.mark.parametrize("damage", ["machine", "old", "torn", "shape"])
def test_stale_foreign_or_torn_is_measured_anew(
    tmp_path: Path, found: calibrate.Calibration, damage: str
) -> None:
    path = tmp_path / "kept.json"
    calibrate.save(path, found)
    kept = json.loads(path.read_text())
    if damage == "machine":
        kept["machine"]["torch"] = "0.1"
    elif damage == "old":
        kept["time"] -= (calibrate.STALE_DAYS + 1) * 86_400
    elif damage == "shape":
        kept["costs"] = [["a", None]]
    text = json.dumps(kept)
    path.write_text(text[:-9] if damage == "torn" else text)
    assert calibrate.load(path) is None


def test_a_folder_that_cannot_be_written_is_no_error(
    tmp_path: Path, found: calibrate.Calibration
) -> None:
    (tmp_path / "file").write_text("")
    calibrate.save(tmp_path / "file" / "kept.json", found)
    assert calibrate.load(tmp_path / "file" / "kept.json") is None


def test_spans_that_disagree_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which one key length sums in another order: that length must not be used."""
    target = engine(save("qwen2", tmp_path), torch.float32)
    real = calibrate.attend

    def odd(*args: torch.Tensor) -> torch.Tensor:
        result = real(*args)
        return result + 1e-3 if args[1].shape[1] == 1024 else result

    monkeypatch.setattr(calibrate, "attend", odd)
    spans = calibrate.usable_spans(target)
    assert 1024 not in spans
    assert {768, 1280} <= set(spans)
    assert Widths(2, spans).span(1000) == 1280
