from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from apply_edit.errors import ModelError, UsageError
from apply_edit.events import ignore
from apply_edit.target import hub, memory
from apply_edit.target.backend import TorchBackend
from apply_edit.target.catalog import CATALOG
from apply_edit.target.convert import convert
from apply_edit.target.load import (
    build_meta,
    check_memory,
    load_tokenizer,
    open_shards,
    resolve,
)
from apply_edit.target.shards import stock
from tests.target.tiny import FakeIndex, cut, write_gguf


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A local model in safetensors form."""
    gguf = write_gguf(tmp_path / "tiny.gguf", "qwen2")
    made = tmp_path / "org" / "model"
    made.mkdir(parents=True)
    convert(gguf, made, lambda event: None, "tiny")
    return made


def refusal(model: str, **more: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        resolve(model, **more)
    assert "\n" not in caught.value.message
    return caught.value


def test_a_catalog_name(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gguf = write_gguf(tmp_path / "tiny.gguf", "llama")
    entry = cut(gguf.read_bytes(), tmp_path / "index")
    monkeypatch.setitem(CATALOG, "tiny", entry)
    assert refusal("tiny", offline=True).code == "offline"
    from apply_edit.target.pull import pull

    pull(entry, download=FakeIndex(tmp_path / "index"))
    found = resolve("tiny", offline=True)
    assert (found.name, found.source) == ("tiny", "catalog")
    assert found.weights_id == f"tiny-{entry.sha256[:8]}"
    assert (found.folder / "config.json").is_file()


def test_a_folder(cache: Path, folder: Path) -> None:
    found = resolve(str(folder))
    assert (found.folder, found.source) == (folder, "folder")
    assert resolve(str(folder)).weights_id == found.weights_id
    assert "/" not in found.weights_id


def test_new_weights_in_a_folder_are_another_id(cache: Path, folder: Path) -> None:
    import os

    before = resolve(str(folder)).weights_id
    shard = next(folder.glob("*.safetensors"))
    stat = shard.stat()
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))
    assert resolve(str(folder)).weights_id != before


def test_a_folder_named_like_a_hub_id_wins(
    cache: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent.parent)
    assert resolve("org/model").source == "folder"
    assert resolve("./org/model").source == "folder"
    monkeypatch.chdir(folder.parent)
    assert "./model" in refusal("model").message


def test_a_gguf_file(cache: Path, tmp_path: Path) -> None:
    found = resolve(str(write_gguf(tmp_path / "tiny.gguf", "qwen3")))
    assert found.source == "gguf"
    assert found.folder.parent == cache / "models"
    assert found.weights_id == found.folder.name


@pytest.mark.parametrize("model", ["./nothing", "nothing.gguf", "/nowhere/at/all", "~/no-such"])
def test_a_path_that_is_not_there(cache: Path, model: str) -> None:
    assert refusal(model).code == "unknown-model"


@pytest.mark.parametrize(
    ("model", "near"),
    [
        ("qwen2.5-coder", "qwen2.5-coder"),
        ("smolm2", "smollm2-135m"),
        ("???", "Hub id"),
        ("", "Hub"),
    ],
)
def test_an_unknown_name_brings_near_ones(cache: Path, model: str, near: str) -> None:
    error = refusal(model)
    assert error.code == "unknown-model"
    assert near in error.message


def test_a_revision_wants_a_hub_id(cache: Path, folder: Path) -> None:
    for model in (next(iter(CATALOG)), str(folder)):
        with pytest.raises(UsageError) as caught:
            resolve(model, revision="main")
        assert caught.value.code == "no-revision"


def test_only_pickles_are_refused_and_not_opened(cache: Path, folder: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path(folder / "exploded").touch, ())

    for path in folder.glob("model*"):
        path.unlink()
    for name in ("pytorch_model.bin", "model.pt"):
        (folder / name).write_bytes(pickle.dumps(Bomb()))
    assert refusal(str(folder)).code == "unsafe-weights"
    assert not (folder / "exploded").exists()


def edit_json(path: Path, **more: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}))


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_code_of_the_model_is_refused(cache: Path, folder: Path, name: str) -> None:
    edit_json(folder / name, auto_map={"AutoModelForCausalLM": "modeling.Evil"})
    (folder / "modeling.py").write_text("raise SystemExit('ran')")
    assert refusal(str(folder)).code == "remote-code"


def test_quantised_weights_are_refused(cache: Path, folder: Path) -> None:
    edit_json(folder / "config.json", quantization_config={"quant_method": "gptq"})
    assert refusal(str(folder)).code == "unsupported-model"


def test_a_shard_that_is_missing(cache: Path, folder: Path) -> None:
    next(folder.glob("*.safetensors")).unlink()
    assert refusal(str(folder)).code == "corrupt-model"


@pytest.mark.parametrize("name", ["../other.safetensors", "model.bin", "/etc/passwd"])
def test_an_index_that_points_elsewhere(cache: Path, folder: Path, name: str) -> None:
    edit_json(folder / "model.safetensors.index.json", weight_map={"x": name})
    assert refusal(str(folder)).code == "unsafe-weights"


@pytest.mark.parametrize("text", ["{", "[]", "\xff"])
def test_a_damaged_configuration(cache: Path, folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text, encoding="latin-1")
    assert refusal(str(folder)).code == "corrupt-model"


def test_a_folder_without_configuration(cache: Path, tmp_path: Path) -> None:
    assert refusal(str(tmp_path)).code == "corrupt-model"


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_cut_shard(folder: Path, keep: int) -> None:
    shard = next(folder.glob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:keep])
    with pytest.raises(ModelError) as caught:
        dict(open_shards(folder))
    assert caught.value.code == "corrupt-model"


def test_an_unknown_kind_of_model(folder: Path) -> None:
    edit_json(folder / "config.json", model_type="no-such-kind")
    with pytest.raises(ModelError) as caught:
        build_meta(folder)
    assert caught.value.code == "unsupported-model"


@pytest.mark.parametrize("arch", ["llama", "qwen2", "qwen3"])
def test_meta_and_shards_make_the_model_of_transformers(
    tmp_path: Path, arch: str, capfd: pytest.CaptureFixture[str]
) -> None:
    from transformers import AutoModelForCausalLM

    made = tmp_path / "made"
    made.mkdir()
    convert(write_gguf(tmp_path / "t.gguf", arch), made, lambda event: None, "t")
    capfd.readouterr()
    config, model = build_meta(made)
    assert all(p.is_meta for p in model.parameters())
    assert not [n for n, b in model.named_buffers() if b.is_meta]
    model.load_state_dict(dict(open_shards(made)), strict=False, assign=True)
    model.tie_weights()
    load_tokenizer(made)
    assert capfd.readouterr() == ("", "")
    assert not [n for n, p in model.named_parameters() if p.is_meta]
    assert config.tie_word_embeddings
    theirs = AutoModelForCausalLM.from_pretrained(made, dtype=torch.bfloat16)
    ids = torch.arange(50)[None]
    with torch.inference_mode():
        assert torch.equal(model(ids).logits, theirs(ids).logits)


def test_rotary_frequencies_follow_the_configuration(folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    rope = {
        "rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0,
        "original_max_position_embeddings": 128,
    }  # fmt: skip
    edit_json(folder / "config.json", rope_parameters=rope)
    _, model = build_meta(folder)
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    ours, expected = model.model.rotary_emb, theirs.model.rotary_emb
    assert ours.inv_freq.dtype == torch.float32
    assert torch.equal(ours.inv_freq, expected.inv_freq)
    assert ours.attention_scaling == expected.attention_scaling


def test_our_way_to_the_tokenizer_is_theirs(folder: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    theirs = PreTrainedTokenizerFast.from_pretrained(folder)
    (folder / "complete.json").write_text("{}")  # as if in the cache: the short way
    ours = load_tokenizer(folder)
    text = "return a <|im_end|> e\u0301"
    assert ours.encode(text) == theirs.encode(text)
    assert ours.encode(text, split_special_tokens=True) == theirs.encode(
        text, split_special_tokens=True
    )
    assert ours.special_tokens_map == theirs.special_tokens_map
    assert ours.chat_template == theirs.chat_template


def test_a_folder_without_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(ModelError) as caught:
        load_tokenizer(folder)
    assert caught.value.code == "unsupported-model"


def test_memory_is_counted_from_the_headers(folder: Path) -> None:
    held = stock(folder)
    tensors = dict(open_shards(folder))
    assert held.tensors == len(tensors)
    assert held.values == sum(t.numel() for t in tensors.values())
    assert held.greatest == max(t.numel() for t in tensors.values())
    narrow, wide = memory.needed_bytes(folder, "bfloat16"), memory.needed_bytes(folder, "float32")
    assert wide - narrow == 2 * (held.values + held.greatest)
    assert memory.needed_bytes(folder, torch.bfloat16) == narrow


def test_a_model_that_does_not_fit(folder: Path) -> None:
    needed = memory.needed_bytes(folder, "bf16")
    check_memory(folder, "bf16", available=needed)
    with pytest.raises(ModelError) as caught:
        check_memory(folder, "bf16", available=needed - 1)
    assert caught.value.code == "no-memory"
    assert "GiB" in caught.value.message


def control_group(root: Path, place: str, limit: str, used: int, cached: int) -> None:
    folder = root / place
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(limit + "\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {cached}\n")


def test_the_tightest_control_group_counts(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    own = tmp_path / "own"
    control_group(root, "a", "1000", 700, 100)
    control_group(root, "a/b", "max", 300, 0)
    own.write_text("0::/a/b\n")
    assert memory._cgroup(root, own) == 400
    own.write_text("0::/not/here\n")
    assert memory._cgroup(root, own) is None
    control_group(root, ".", "900", 100, 0)
    assert memory._cgroup(root, own) == 800
    assert memory._cgroup(root, tmp_path / "none") is None


def test_a_limit_on_the_address_space_counts() -> None:
    import subprocess

    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from apply_edit.target.memory import available_bytes; print(available_bytes())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert 0 < int(done.stdout) < 1 << 30


class FakeHub:
    """The calls of huggingface_hub that a snapshot makes."""

    def __init__(self, files: list[str], folder: Path) -> None:
        self.files = files
        self.folder = folder
        self.asked: list[dict[str, Any]] = []

    def list_repo_files(self, repo: str, revision: str | None = None) -> list[str]:
        return self.files

    def snapshot_download(self, repo: str, **more: Any) -> str:
        self.asked.append(more)
        return str(self.folder)


def on_hub(
    monkeypatch: pytest.MonkeyPatch, files: list[str], folder: Path, there: bool = True
) -> FakeHub:
    import huggingface_hub

    fake = FakeHub(files, folder)
    monkeypatch.setattr(hub, "reachable", lambda: there)
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda **more: fake)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", fake.snapshot_download)
    return fake


def test_a_hub_id(cache: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = on_hub(monkeypatch, ["config.json", "model.safetensors", "pytorch_model.bin"], folder)
    found = resolve("some/model", revision="v1")
    assert found.source == "hub"
    assert found.weights_id == "some--model-model"
    (asked,) = fake.asked
    assert asked["revision"] == "v1"
    assert not asked["local_files_only"]
    import fnmatch

    for name in ("pytorch_model.bin", "model.pt", "modeling.py", "x.pkl", "model.gguf"):
        assert not any(fnmatch.fnmatch(name, p) for p in asked["allow_patterns"])
    for name in ("model-00001-of-00002.safetensors", "tokenizer.json", "config.json"):
        assert any(fnmatch.fnmatch(name, p) for p in asked["allow_patterns"])


def test_a_hub_model_without_safetensors_is_not_fetched(
    cache: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = on_hub(monkeypatch, ["config.json", "pytorch_model.bin"], folder)
    assert refusal("some/model").code == "unsafe-weights"
    assert fake.asked == []
    on_hub(monkeypatch, ["a-q4.gguf"], folder)
    assert "GGUF" in refusal("some/model").message


def test_a_hub_model_with_code_is_refused(
    cache: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit_json(folder / "config.json", auto_map={"AutoConfig": "evil.Config"})
    on_hub(monkeypatch, ["model.safetensors"], folder)
    assert refusal("some/model").code == "remote-code"


def test_a_hub_id_with_neither_network_nor_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(hub, "reachable", lambda: False)
    assert refusal("some/model").code == "no-weights"
    assert refusal("some/model", offline=True).code == "offline"


@pytest.mark.model
def test_the_smallest_model_of_the_catalog_end_to_end() -> None:
    """The real path: fetched once into the user's cache, then loaded offline."""
    from transformers import AutoModelForCausalLM

    found = resolve("smollm2-135m")
    again = resolve("smollm2-135m", offline=True)
    assert again == found
    check_memory(found.folder, "bfloat16")
    config, model = build_meta(found.folder)
    model.load_state_dict(dict(open_shards(found.folder)), strict=False, assign=True)
    model.tie_weights()
    tokenizer = load_tokenizer(found.folder)
    text = "def area(width, height):\n    return width *"
    ids = torch.tensor([tokenizer.encode(text)])
    theirs = AutoModelForCausalLM.from_pretrained(found.folder, dtype=torch.bfloat16)
    with torch.inference_mode():
        logits = model(ids).logits
        assert torch.equal(logits, theirs(ids).logits)
    assert tokenizer.decode([int(logits[0, -1].argmax())]) == " height"
    assert config.num_hidden_layers == 30


def test_weights_are_given_huge_pages_unless_the_user_says_no(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened() -> str | None:
        options = {"revision": None, "device": "cpu", "dtype": "float32", "offline": True}
        TorchBackend.open(str(folder), **options, on_event=ignore)  # type: ignore[arg-type]
        return os.environ.get("THP_MEM_ALLOC_ENABLE")

    monkeypatch.delenv("THP_MEM_ALLOC_ENABLE", raising=False)
    assert opened() == "1"
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")
    assert opened() == "0"
