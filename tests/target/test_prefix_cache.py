"""A prompt's beginning kept between runs: the same bits as computed, or none at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

from apply_edit.decode.rows import Rows
from apply_edit.decode.types import Scores
from apply_edit.editor import Editor
from apply_edit.session import Options
from apply_edit.target import calibrate, prefix_cache
from apply_edit.target.calibrate import Calibration
from apply_edit.target.engine import Engine, Widths
from apply_edit.target.prompt import build
from tests.target.families import SIZES, engine, save
from tests.target.tiny import write_gguf

TOKENS = [5, 9, 2, 200, 7]


@pytest.fixture
def found() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, 3, 2, len(TOKENS), 16, generator=generator).to(torch.bfloat16)


def test_what_is_kept_comes_back(tmp_path: Path, found: torch.Tensor) -> None:
    path = prefix_cache.path_of(tmp_path / "new", "m", TOKENS)
    prefix_cache.save(path, TOKENS, found)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    back = prefix_cache.load(path, TOKENS, torch.empty_like(found))
    assert back is not None
    assert torch.equal(back, found)


def test_it_is_for_these_tokens_shapes_and_dtypes_alone(
    tmp_path: Path, found: torch.Tensor
) -> None:
    path = prefix_cache.path_of(tmp_path, "m", TOKENS)
    prefix_cache.save(path, TOKENS, found)
    assert prefix_cache.load(path, [*TOKENS[:-1], 8], found) is None
    assert prefix_cache.load(path, TOKENS, found[:, :2]) is None
    assert prefix_cache.load(path, TOKENS, found.float()) is None
    assert prefix_cache.path_of(tmp_path, "m", TOKENS[:-1]) != path
    assert prefix_cache.path_of(tmp_path, "n", TOKENS) != path


def test_another_machine_computes_its_own(
    tmp_path: Path, found: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = prefix_cache.path_of(tmp_path, "m", TOKENS)
    prefix_cache.save(path, TOKENS, found)
    monkeypatch.setattr(prefix_cache, "machine", lambda: {**calibrate.machine(), "torch": "9.9"})
    assert prefix_cache.load(path, TOKENS, found) is None


@pytest.mark.parametrize("place", [0, 40, -1], ids=["header", "facts", "values"])
def test_a_damaged_file_is_no_file(tmp_path: Path, found: torch.Tensor, place: int) -> None:
    path = prefix_cache.path_of(tmp_path, "m", TOKENS)
    prefix_cache.save(path, TOKENS, found)
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    assert prefix_cache.load(path, TOKENS, found) is None
    path.write_bytes(data[: len(data) // 2])
    assert prefix_cache.load(path, TOKENS, found) is None


def test_where_nothing_can_be_kept_nothing_is_left(tmp_path: Path, found: torch.Tensor) -> None:
    (tmp_path / "file").write_text("not a folder")
    path = prefix_cache.path_of(tmp_path / "file", "m", TOKENS)
    prefix_cache.save(path, TOKENS, found)
    assert prefix_cache.load(path, TOKENS, found) is None


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_rows_behind_what_was_written_are_those_behind_what_was_computed(
    tmp_path: Path, family: str
) -> None:
    folder = save(family, tmp_path)
    ids = [i * 37 % SIZES["vocab_size"] for i in range(90)]
    first, second = engine(folder, torch.float32), engine(folder, torch.float32)
    first.prefill(ids[:50])
    wanted = first.score(ids[50:]).logits.clone()
    second.prefill(ids[50:])  # anything: it is forgotten
    second.reset(0)
    second.cache.write(first.cache.read(50))
    assert second.length == 50
    assert torch.equal(second.score(ids[50:]).logits, wanted)


@pytest.mark.usefixtures("one_thread")
def test_a_pass_without_scores_fills_what_a_scored_one_fills(tmp_path: Path) -> None:
    """Nothing of the last layer but its keys and values is computed, and nothing else misses."""
    target = engine(save("qwen3", tmp_path), torch.float32)
    ids = [i * 53 % SIZES["vocab_size"] for i in range(70)]
    target.score(ids)
    target.keep(70)
    wanted = target.cache.read(70)
    target.reset(0)
    for layer in range(SIZES["num_hidden_layers"]):
        for buffer in target.cache.layer(layer):
            buffer.zero_()
    target.prefill(ids[:30])
    target.prefill(ids[30:])
    assert torch.allclose(target.cache.read(70), wanted, atol=1e-5)


@pytest.fixture
def model(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A tiny model whose passes are said to agree, whatever this machine's do."""

    def agreed(engine: Engine, **_: object) -> Calibration:
        return Calibration(((1, 1.0), (8, 2.0), (320, 60.0)), Widths(8, (256, 512)), "bit")

    monkeypatch.setattr(calibrate, "calibrate", agreed)
    return write_gguf(tmp_path / "tiny.gguf", context=2048)


def one_run(model: Path) -> tuple[int, int]:
    """Prompt rows that a run computed, and those that were held, in a process of its own as far
    as the model knows."""
    editor = Editor.load(str(model), device="cpu", dtype="float32")
    rows = 0
    together = Engine.together

    def counting(engine: Engine, wanted: Sequence[Rows]) -> Sequence[Scores | None]:
        nonlocal rows
        rows += sum(len(one.tokens) for one in wanted if one.first is None)
        return together(engine, wanted)

    prompt = build(editor.backend.codec, "a = 1\n", instruction="b")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "together", counting)
        answer = editor.session.answer(prompt, Options(max_new_tokens=4))
    return rows, answer.stats.cached_tokens


@pytest.mark.usefixtures("one_thread")
def test_the_second_run_computes_the_prompts_own_part_only(model: Path, cache: Path) -> None:
    cold, held = one_run(model)
    assert held == 0
    kept = list((cache / "prefix").iterdir())
    assert len(kept) == 1
    warm, held = one_run(model)
    assert held > 300
    assert warm == cold - held
    # Damaged, it is computed and kept anew.
    kept[0].write_bytes(b"no tensors")
    assert one_run(model) == (cold, 0)
    assert one_run(model) == (warm, held)
