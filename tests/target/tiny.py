"""Tiny models in GGUF form, and wheels that carry them in slices, made on the spot."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from apply_edit.target.catalog import CatalogEntry, Part, Wheels

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
WIDTH, HIDDEN, LAYERS, HEADS, KV_HEADS = 64, 96, 2, 4, 2


def byte_alphabet() -> list[str]:
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return list(bytes_to_unicode().values())


def write_gguf(
    path: Path,
    arch: str = "llama",
    *,
    quant: str = "Q8_0",
    tied: bool = True,
    pre: str = "gpt-2",
    seed: int = 0,
    context: int = 512,
    extra: Callable[[object], None] | None = None,
) -> Path:
    """A random model of a family, with quantised matrices and a byte-level tokenizer."""
    from gguf import GGMLQuantizationType, GGUFWriter, TokenType, quantize

    random = np.random.default_rng(seed)
    tokens = SPECIAL + byte_alphabet() + ["Ġa", "re", "ret"]
    writer = GGUFWriter(str(path), arch)
    writer.add_name("tiny")
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    if arch == "llama":
        writer.add_rope_dimension_count(WIDTH // HEADS)
        writer.add_vocab_size(len(tokens))
    if arch == "qwen3":
        writer.add_key_length(128)
        writer.add_value_length(128)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    kinds = [TokenType.CONTROL] * len(SPECIAL) + [TokenType.NORMAL] * (len(tokens) - len(SPECIAL))
    writer.add_token_types(kinds)
    writer.add_token_merges(["Ġ a", "r e", "re t"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    if extra is not None:
        extra(writer)

    def matrix(name: str, rows: int, columns: int) -> None:
        values = random.standard_normal((rows, columns)).astype(np.float32)
        kind = GGMLQuantizationType[quant]
        if kind == GGMLQuantizationType.F32:
            writer.add_tensor(name, values)
        elif kind == GGMLQuantizationType.F16:
            writer.add_tensor(name, values.astype(np.float16))
        else:
            writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)

    def vector(name: str, size: int) -> None:
        writer.add_tensor(name, random.standard_normal(size).astype(np.float32))

    head = 128 if arch == "qwen3" else WIDTH // HEADS
    matrix("token_embd.weight", len(tokens), WIDTH)
    for i in range(LAYERS):
        vector(f"blk.{i}.attn_norm.weight", WIDTH)
        matrix(f"blk.{i}.attn_q.weight", HEADS * head, WIDTH)
        matrix(f"blk.{i}.attn_k.weight", KV_HEADS * head, WIDTH)
        matrix(f"blk.{i}.attn_v.weight", KV_HEADS * head, WIDTH)
        matrix(f"blk.{i}.attn_output.weight", WIDTH, HEADS * head)
        if arch == "qwen2":
            vector(f"blk.{i}.attn_q.bias", HEADS * head)
            vector(f"blk.{i}.attn_k.bias", KV_HEADS * head)
            vector(f"blk.{i}.attn_v.bias", KV_HEADS * head)
        if arch == "qwen3":
            vector(f"blk.{i}.attn_q_norm.weight", head)
            vector(f"blk.{i}.attn_k_norm.weight", head)
        vector(f"blk.{i}.ffn_norm.weight", WIDTH)
        matrix(f"blk.{i}.ffn_gate.weight", HIDDEN, WIDTH)
        matrix(f"blk.{i}.ffn_up.weight", HIDDEN, WIDTH)
        matrix(f"blk.{i}.ffn_down.weight", WIDTH, HIDDEN)
    vector("output_norm.weight", WIDTH)
    if not tied:
        matrix("output.weight", len(tokens), WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_wheel(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def cut(data: bytes, folder: Path, count: int = 4) -> CatalogEntry:
    """An entry whose file is `data`, and, in `folder`, the wheels that carry it."""
    folder.mkdir(parents=True, exist_ok=True)
    step = -(-len(data) // count)
    pieces = [data[i : i + step] for i in range(0, len(data), step)]
    for n, piece in enumerate(pieces, 1):
        write_wheel(
            folder / f"tiny_part{n}-1.0-py3-none-any.whl",
            {f"tiny_part{n}/__init__.py": b"", f"tiny_part{n}/data/part{n:02d}.bin": piece},
        )
    parts = tuple(Part(len(p), hashlib.sha256(p).hexdigest()) for p in pieces)
    return CatalogEntry(
        name="tiny",
        title="Tiny",
        licence="Apache-2.0",
        params=1,
        size=len(data),
        disk=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        context=512,
        note="for tests",
        wheels=Wheels("tiny-part{n}", "1.0", "tiny_part{n}/data/part{n:02d}.bin", parts),
    )


class FakeIndex:
    """A package index in a folder: `asked` lists the requirements, in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self.spoil: dict[str, list[Callable[[Path], None]]] = {}

    def __call__(self, requirement: str, folder: Path, watch: Callable[[int], None]) -> None:
        self.asked.append(requirement)
        name = requirement.replace("-", "_").replace("==", "-") + "-py3-none-any.whl"
        target = folder / name
        target.write_bytes((self.folder / name).read_bytes())
        watch(target.stat().st_size)
        if waiting := self.spoil.get(requirement):
            waiting.pop(0)(target)
