"""A GGUF file made into a folder that transformers can load: bf16 safetensors, config, tokenizer.

Tensors are dequantised a few rows at a time and written as they come, so the memory this takes
does not depend on the size of the model.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apply_edit.errors import ModelError
from apply_edit.events import OnEvent, Stage
from apply_edit.target import gguf_model
from apply_edit.target.gguf_header import GgufHeader, TensorInfo, read_header
from apply_edit.target.quiet import quiet

if TYPE_CHECKING:
    import numpy
    import torch

SHARD_BYTES = 200_000_000
"""Shards stay below this, unless one tensor alone is greater."""

_CHUNK_VALUES = 1 << 19  # values dequantised at once: what the processor's caches hold

_END_OF_TURN = (
    *("<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|end|>", "</s>"),
    *("<|eom_id|>", "<end_of_turn>"),
)
"""Tokens that end an answer whatever single one the file names, as in llama.cpp."""

_SINGLE_DIGITS = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell"})
"""Vocabularies (llama.cpp's names) whose digits stand alone; transformers' reader forgets that."""


def convert(source: Path, folder: Path, on_event: OnEvent, label: str) -> None:
    """Write the model of the GGUF file `source` into the empty `folder`.

    Raises `ModelError`: ``not-gguf``, ``corrupt-gguf``, ``unsupported-gguf``.
    """
    header = read_header(source)
    if header.architecture in gguf_model.KNOWN:
        _write_weights(header, source, folder, on_event, label)
        made = gguf_model.config(header, lambda info: _values(info, source).tolist())
        _write_json(folder / "config.json", made)
    else:
        on_event(Stage("convert", 0, None, "tensors", label))
        _leave_to_transformers(source, folder)
        made = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    _write_tokenizer(header, source, folder, made)
    total = len(header.tensors) + 1  # the tokenizer is the last
    on_event(Stage("convert", total, total, "tensors", label))


def size_after(header: GgufHeader) -> int:
    """About how many bytes the converted folder takes."""
    return 2 * sum(prod(info.shape) for info in header.tensors) + 32_000_000


def _write_weights(
    header: GgufHeader, source: Path, folder: Path, on_event: OnEvent, label: str
) -> None:
    import numpy as np

    tensors = gguf_model.sources(header)
    data = np.memmap(source, mode="r", dtype=np.uint8)
    shards = _shards(tensors)
    index: dict[str, str] = {}
    done = 0
    for number, shard in enumerate(shards, 1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        with (folder / name).open("wb") as out:
            out.write(_shard_header(shard))
            for tensor in shard:
                for block in _blocks(tensor, data):
                    out.write(block)
                index[tensor.name] = name
                done += 1
                on_event(Stage("convert", done, len(header.tensors) + 1, "tensors", label))
    total = sum(2 * prod(tensor.info.shape) for tensor in tensors)
    _write_json(
        folder / "model.safetensors.index.json",
        {"metadata": {"total_size": total}, "weight_map": dict(sorted(index.items()))},
    )


def _shards(tensors: list[gguf_model.Source]) -> list[list[gguf_model.Source]]:
    shards: list[list[gguf_model.Source]] = [[]]
    room = SHARD_BYTES
    for tensor in tensors:
        size = 2 * prod(tensor.info.shape)
        if shards[-1] and size > room:
            shards.append([])
            room = SHARD_BYTES
        shards[-1].append(tensor)
        room -= size
    return shards


def _shard_header(shard: list[gguf_model.Source]) -> bytes:
    """The head of a safetensors file (https://github.com/huggingface/safetensors#format)."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    start = 0
    for tensor in shard:
        end = start + 2 * prod(tensor.info.shape)
        shape = list(tensor.info.shape)
        entries[tensor.name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
        start = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _blocks(tensor: gguf_model.Source, data: numpy.memmap[Any, Any]) -> Iterator[bytes]:
    """The tensor's bf16 bytes, a few rows at a time."""
    info = tensor.info
    if tensor.order is not None and len(info.shape) == 1:
        values = _dequantised(data[info.start : info.start + info.row].reshape(1, -1), info.kind)
        yield _rounded(values.reshape(-1)[list(tensor.order)])
        return
    rows = data[info.start : info.start + info.rows * info.row].reshape(info.rows, info.row)
    step = max(1, _CHUNK_VALUES // info.shape[-1])
    for start in range(0, info.rows, step):
        if tensor.order is None:
            some = rows[start : start + step]
        else:
            # Quantised blocks lie within rows, so rows can be put in order as they are.
            some = rows[list(tensor.order[start : start + step])]
        yield _rounded(_dequantised(some, info.kind))


def _rounded(values: numpy.ndarray[Any, Any]) -> bytes:
    """float32 to the bytes of bf16, to nearest even."""
    import torch

    rounded: torch.Tensor = torch.from_numpy(values).to(torch.bfloat16)
    return rounded.view(torch.int16).numpy().tobytes()


def _dequantised(rows: numpy.ndarray[Any, Any], kind: int) -> numpy.ndarray[Any, Any]:
    import numpy as np
    from gguf.constants import GGMLQuantizationType
    from gguf.quants import dequantize

    try:
        values = dequantize(np.ascontiguousarray(rows), GGMLQuantizationType(kind))
    except NotImplementedError as error:
        name = GGMLQuantizationType(kind).name
        raise ModelError(
            "unsupported-gguf", f"the GGUF file is quantised as {name}; choose Q4_K_M or Q8_0"
        ) from error
    # Plain floats come as a view of the read-only file, which torch does not like.
    return np.require(values, dtype=np.float32, requirements=["C", "W"])


def _values(info: TensorInfo, source: Path) -> numpy.ndarray[Any, Any]:
    """A small tensor as float32, flat."""
    import numpy as np

    data = np.memmap(source, mode="r", dtype=np.uint8)
    rows = data[info.start : info.start + info.rows * info.row].reshape(info.rows, info.row)
    return _dequantised(rows, info.kind).reshape(-1)


def _write_tokenizer(header: GgufHeader, source: Path, folder: Path, made: dict[str, Any]) -> None:
    from transformers import PreTrainedTokenizerFast

    with quiet():
        try:
            tokenizer = PreTrainedTokenizerFast.from_pretrained(
                str(source.parent), gguf_file=source.name, local_files_only=True
            )
        except (ValueError, KeyError, OSError) as error:
            raise ModelError(
                "unsupported-gguf", f"the tokenizer of {source.name} cannot be read ({error})"
            ) from error
        if header.metadata.get("tokenizer.ggml.pre") in _SINGLE_DIGITS:
            from tokenizers import pre_tokenizers as pre

            tokenizer.backend_tokenizer.pre_tokenizer = pre.Sequence(
                [pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False)]
            )
        tokenizer.save_pretrained(str(folder))
    control = tokenizer.get_added_vocab()
    ends = [made["eos_token_id"]] if "eos_token_id" in made else []
    ends += [control[t] for t in _END_OF_TURN if t in control and control[t] not in ends]
    named: dict[str, Any] = {k: made[k] for k in ("bos_token_id", "pad_token_id") if k in made}
    _write_json(folder / "generation_config.json", {**named, "eos_token_id": ends})


def _leave_to_transformers(source: Path, folder: Path) -> None:
    """The slow way, for families not known here: the whole model in memory, and out again."""
    import torch
    from transformers import AutoModelForCausalLM

    with quiet(stderr=True):
        try:
            model = AutoModelForCausalLM.from_pretrained(
                str(source.parent),
                gguf_file=source.name,
                dtype=torch.bfloat16,
                local_files_only=True,
            )
            # save_pretrained refuses what it believes to be quantised; these weights no longer are.
            model.hf_quantizer = None
            model.is_quantized = False
            if hasattr(model.config, "quantization_config"):
                del model.config.quantization_config
            model.save_pretrained(str(folder), max_shard_size=SHARD_BYTES)
        except (ValueError, KeyError, NotImplementedError, ImportError, RuntimeError) as error:
            line = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
            raise ModelError(
                "unsupported-gguf", f"transformers cannot read {source.name} ({line})"
            ) from error


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
