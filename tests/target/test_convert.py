from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from apply_edit.errors import ModelError
from apply_edit.events import Event, Stage, ignore
from apply_edit.target import convert as convert_module
from apply_edit.target.convert import convert
from apply_edit.target.gguf_header import read_header
from apply_edit.target.gguf_model import llama3_factors
from apply_edit.target.load import load_tokenizer
from apply_edit.target.shards import open_shards, shard_files
from tests.target.tiny import SPECIAL, WIDTH, write_gguf


def run(tmp_path: Path, gguf: Path, events: list[Event] | None = None) -> Path:
    folder = tmp_path / "made"
    folder.mkdir()
    convert(gguf, folder, events.append if events is not None else ignore, "tiny")
    return folder


def theirs(gguf: Path) -> Any:
    """The same file as transformers reads it."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(
        str(gguf.parent), gguf_file=gguf.name, dtype=torch.bfloat16
    )


@pytest.mark.parametrize(
    ("arch", "quant", "tied"),
    [
        ("llama", "Q8_0", True),
        ("llama", "F16", False),
        ("qwen2", "Q4_0", False),
        ("qwen2", "F32", True),
        ("qwen3", "Q5_0", True),
    ],
)
def test_weights_and_shape_are_those_transformers_reads(
    tmp_path: Path, arch: str, quant: str, tied: bool
) -> None:
    gguf = write_gguf(tmp_path / "tiny.gguf", arch, quant=quant, tied=tied)
    model = theirs(gguf)
    ours = dict(open_shards(run(tmp_path, gguf)))
    expected = dict(model.state_dict())
    if tied:
        expected.pop("lm_head.weight", None)
    assert ours.keys() == expected.keys()
    for name, tensor in ours.items():
        assert tensor.dtype == torch.bfloat16
        assert torch.equal(tensor, expected[name]), name

    made = json.loads((tmp_path / "made" / "config.json").read_text())
    for key in (
        *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
        *("num_key_value_heads", "rms_norm_eps", "vocab_size", "max_position_embeddings"),
        *("tie_word_embeddings", "rope_parameters", "model_type", "hidden_act"),
    ):
        assert made[key] == getattr(model.config, key), key


@pytest.mark.parametrize("arch", ["llama", "qwen2", "qwen3"])
def test_the_folder_runs_like_the_file(tmp_path: Path, arch: str) -> None:
    from transformers import AutoModelForCausalLM

    gguf = write_gguf(tmp_path / "tiny.gguf", arch)
    ours = AutoModelForCausalLM.from_pretrained(run(tmp_path, gguf), dtype=torch.bfloat16)
    ids = torch.arange(40)[None]
    with torch.inference_mode():
        assert torch.equal(ours(ids).logits, theirs(gguf)(ids).logits)


def test_chunks_of_rows_make_the_same_tensor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gguf = write_gguf(tmp_path / "tiny.gguf", "llama")
    whole = {n: t.clone() for n, t in open_shards(run(tmp_path, gguf))}
    monkeypatch.setattr(convert_module, "_CHUNK_VALUES", 5 * WIDTH)
    (tmp_path / "more").mkdir()
    cut = dict(open_shards(run(tmp_path / "more", gguf)))
    assert whole.keys() == cut.keys()
    assert all(torch.equal(whole[n], cut[n]) for n in whole)


def test_shards_stay_below_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert_module, "SHARD_BYTES", 40_000)
    folder = run(tmp_path, write_gguf(tmp_path / "tiny.gguf", "qwen2"))
    files = shard_files(folder)
    assert len(files) > 2
    assert {p.name for p in files} == {p.name for p in folder.glob("*.safetensors")}
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    assert len(dict(open_shards(folder))) == len(index["weight_map"])
    for path in files:
        assert path.stat().st_size < 40_000 + 4_000


def test_the_tokenizer_is_that_of_the_file(tmp_path: Path) -> None:
    folder = run(tmp_path, write_gguf(tmp_path / "tiny.gguf", "qwen2"))
    tokenizer = load_tokenizer(folder)
    text = "return a\r\n\té e\u0301 \u2028\x0c 日本"
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text
    assert tokenizer.convert_ids_to_tokens(ids)[0] == "ret"
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.encode("<|im_end|>") == [SPECIAL.index("<|im_end|>")]
    assert tokenizer.chat_template


def test_every_end_of_turn_is_listed(tmp_path: Path) -> None:
    folder = run(tmp_path, write_gguf(tmp_path / "tiny.gguf", "qwen2"))
    made = json.loads((folder / "generation_config.json").read_text())
    assert made["eos_token_id"] == [2, 0]


def test_digits_stand_alone_where_the_vocabulary_wants_it(tmp_path: Path) -> None:
    folder = run(tmp_path, write_gguf(tmp_path / "tiny.gguf", "llama", pre="smollm"))
    parts = load_tokenizer(folder).backend_tokenizer.pre_tokenizer.pre_tokenize_str("x12 34")
    assert [text for text, _ in parts] == ["x", "1", "2", "Ġ", "3", "4"]


def test_llama3_stretch_is_recognised(tmp_path: Path) -> None:
    rope = {
        "rope_theta": 10000.0, "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }  # fmt: skip
    factors = torch.tensor(llama3_factors(rope, 16), dtype=torch.float32).numpy()
    assert factors[0] == 1.0
    assert factors[-1] == 32.0

    def add(writer: Any) -> None:
        writer.add_tensor("rope_freqs.weight", factors)

    folder = run(tmp_path, write_gguf(tmp_path / "tiny.gguf", "llama", extra=add))
    made = json.loads((folder / "config.json").read_text())
    assert made["rope_parameters"] == {"rope_type": "llama3", **rope}
    assert "rope_freqs.weight" not in dict(open_shards(folder))


def test_the_stretch_is_that_of_transformers() -> None:
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    rope = {
        "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
    }  # fmt: skip
    config = LlamaConfig(hidden_size=512, num_attention_heads=4, rope_parameters=rope)
    stretched, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    plain = 1 / (500000.0 ** (torch.arange(0, 128, 2).float() / 128))
    assert torch.allclose(plain / stretched, torch.tensor(llama3_factors(rope, 128)), rtol=1e-4)


def test_unknown_stretch_is_refused(tmp_path: Path) -> None:
    def add(writer: Any) -> None:
        writer.add_tensor("rope_freqs.weight", torch.linspace(1, 7, 8).numpy())

    with pytest.raises(ModelError) as caught:
        run(tmp_path, write_gguf(tmp_path / "tiny.gguf", "llama", extra=add))
    assert caught.value.code == "unsupported-gguf"


@pytest.mark.parametrize(
    ("kind", "code"), [("yarn", None), ("linear", None), ("longrope", "unsupported-gguf")]
)
def test_rotary_scaling(tmp_path: Path, kind: str, code: str | None) -> None:
    def add(writer: Any) -> None:
        writer.add_string("qwen2.rope.scaling.type", kind)
        writer.add_rope_scaling_factor(4.0)
        writer.add_rope_scaling_orig_ctx_len(128)

    gguf = write_gguf(tmp_path / "tiny.gguf", "qwen2", extra=add)
    if code is not None:
        with pytest.raises(ModelError) as caught:
            run(tmp_path, gguf)
        assert caught.value.code == code
        return
    rope = json.loads((run(tmp_path, gguf) / "config.json").read_text())["rope_parameters"]
    assert (rope["rope_type"], rope["factor"]) == (kind, 4.0)


def test_a_mixture_of_experts_is_refused(tmp_path: Path) -> None:
    def add(writer: Any) -> None:
        writer.add_tensor("blk.0.ffn_gate_inp.weight", torch.zeros(4, WIDTH).numpy())

    with pytest.raises(ModelError) as caught:
        run(tmp_path, write_gguf(tmp_path / "tiny.gguf", "llama", extra=add))
    assert caught.value.code == "unsupported-gguf"
    assert "ffn_gate_inp" in caught.value.message


def test_an_unknown_family_is_refused_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ModelError) as caught:
        run(tmp_path, write_gguf(tmp_path / "tiny.gguf", "deci"))
    assert caught.value.code == "unsupported-gguf"
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("keep", [0, 3, 20, 24, 400, 5000, -100])
def test_a_cut_file_is_an_error(tmp_path: Path, keep: int) -> None:
    gguf = write_gguf(tmp_path / "tiny.gguf", "llama")
    gguf.write_bytes(gguf.read_bytes()[:keep])
    with pytest.raises(ModelError) as caught:
        run(tmp_path, gguf)
    assert caught.value.code in {"not-gguf", "corrupt-gguf"}


def test_another_file_is_not_gguf(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"PK\x03\x04 something else altogether")
    with pytest.raises(ModelError) as caught:
        read_header(path)
    assert caught.value.code == "not-gguf"


def test_nothing_is_printed_and_progress_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    events: list[Event] = []
    run(tmp_path, write_gguf(tmp_path / "tiny.gguf", "qwen2"), events)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    stages = [e for e in events if isinstance(e, Stage)]
    assert {s.name for s in stages} == {"convert"}
    assert stages[-1].done == stages[-1].total
