"""Calibration: what it finds is kept, and used only where it was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from apply_edit.target import calibrate
from apply_edit.target.engine import Widths
from apply_edit.target.linear import PackedLinear, can_pack
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
        assert found.widths.least <= 64
        assert found.widths.spans == tuple(sorted(found.widths.spans))
        assert found.widths.spans


def test_the_least_agreeing_width() -> None:
    assert calibrate._least({1: False, 2: True, 8: True, 64: True}) == 2
    assert calibrate._least({1: False, 2: True, 3: False, 8: True, 64: True}) == 8
    assert calibrate._least({1: True, 64: True, 128: False}) is None
    assert calibrate._least({1: False, 32: False, 64: True}) == 64
    assert calibrate._least({1: False, 64: False, 96: True}) is None


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


class Mixing:
    """Attention on a machine where one key length sums in another order."""

    def __init__(self, odd: int) -> None:
        self._odd = odd

    def __call__(self, query: torch.Tensor, key: torch.Tensor, *others: object) -> torch.Tensor:
        result = query.transpose(0, 1)
        return result + 1e-3 if key.shape[1] == self._odd else result


def test_spans_that_disagree_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = engine(save("qwen2", tmp_path), torch.float32)
    monkeypatch.setattr(calibrate, "attend", Mixing(1024))
    spans = calibrate.usable_spans(target)
    assert spans == tuple(s for s in range(256, 2049, 256) if s != 1024)
    assert Widths(2, spans).span(1000) == 1280
    # What is not tried behaves as the longest that is, or nobody knows.
    monkeypatch.setattr(calibrate, "attend", Mixing(2048))
    assert calibrate.usable_spans(target) == ()


@pytest.fixture
def tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that sums in another order from 33 rows on, and again from 128 on."""
    real = PackedLinear._product

    def product(self: PackedLinear, x: torch.Tensor) -> torch.Tensor:
        way = (x.shape[-2] > 32) + (x.shape[-2] > 127)
        return real(self, x) * (1.0 + way / 64.0)

    monkeypatch.setattr(PackedLinear, "_product", product)


@pytest.mark.usefixtures("tiles")
def test_blocks_bring_machines_with_tiles_to_agree(tmp_path: Path) -> None:
    dtype = torch.bfloat16 if can_pack(torch.bfloat16) else torch.float32
    target = engine(save("qwen2", tmp_path), dtype)
    prompt = [1 + i % 50 for i in range(300)]

    def scores() -> tuple[torch.Tensor, torch.Tensor]:
        target.reset(0)
        target.prefill(prompt[:100])
        wide = target.score(prompt[100:]).logits.clone()
        return wide, torch.cat([target.score(prompt[100:102]).logits, wide[2:]])

    wide, narrow = scores()
    assert not torch.equal(wide, narrow)
    found = calibrate.calibrate(target, vocab=SIZES["vocab_size"])
    if found.exact != "bit":
        assert dtype == torch.float32  # whose kernels round by row count on some CPUs
        pytest.skip("this CPU's own kernels disagree at every width")
    assert set(found.most.values()) <= {32, 127}
    path = tmp_path / "kept.json"
    calibrate.save(path, found)
    assert calibrate.load(path) == found
    wide, narrow = scores()
    assert torch.equal(wide, narrow)


def test_the_kernels_a_machine_has_are_part_of_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    here = calibrate.machine()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf99": True, "avx512_bw": 0})
    other = calibrate.machine()
    assert "amx_bf99" in str(other["cpu"])
    assert "avx512_bw" not in str(other["cpu"])
    assert here != other
