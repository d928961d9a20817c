"""What a GGUF file means to transformers: the configuration, and each tensor's name and order.

Three families are known here and checked against transformers' own reading of the same file:
llama, qwen2 and qwen3. All others are left to transformers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from apply_edit.errors import ModelError
from apply_edit.target.gguf_header import GgufHeader, TensorInfo

KNOWN = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
"""Architectures of llama.cpp that this module reads, and the class that runs them."""

ROPE_FACTORS = "rope_freqs.weight"
"""The one tensor that is configuration: Llama 3.1's stretch of each rotary frequency."""

_OUTSIDE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_INSIDE = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


@dataclass(frozen=True, slots=True)
class Source:
    """One tensor of the model: its name there, its data here, and the order of its rows.

    `order` is None for the order of the file.
    """

    name: str
    info: TensorInfo
    order: tuple[int, ...] | None


def sources(header: GgufHeader) -> list[Source]:
    """The model's tensors, in the file's order.

    Raises `ModelError` ``unsupported-gguf`` for a tensor that has no place in the model.
    """
    found = []
    for info in header.tensors:
        if info.name == ROPE_FACTORS:
            continue
        name = _name(info.name)
        if name is None:
            raise ModelError(
                "unsupported-gguf",
                f"the GGUF file holds the tensor {info.name}, which a {header.architecture} model "
                "here does not have; choose a dense model",
            )
        found.append(Source(name, info, _order(header, info)))
    return found


def _name(gguf: str) -> str | None:
    if gguf in _OUTSIDE:
        return _OUTSIDE[gguf]
    parts = gguf.split(".")
    if len(parts) != 4 or parts[0] != "blk" or parts[2] not in _INSIDE:
        return None
    return f"model.layers.{parts[1]}.{_INSIDE[parts[2]]}.{parts[3]}"


def _order(header: GgufHeader, info: TensorInfo) -> tuple[int, ...] | None:
    """llama.cpp pairs the rotary halves of Llama's queries and keys; undo that, head by head."""
    leaf = info.name.split(".")[-2]
    if header.architecture != "llama" or leaf not in ("attn_q", "attn_k"):
        return None
    key = "head_count" if leaf == "attn_q" else "head_count_kv"
    heads = int(_value(header, f"attention.{key}", _value(header, "attention.head_count")))
    rows = info.shape[0]
    half = rows // heads // 2
    return tuple(
        head * 2 * half + 2 * place + side
        for head in range(heads)
        for side in range(2)
        for place in range(half)
    )


def config(header: GgufHeader, read: Callable[[TensorInfo], Sequence[float]]) -> dict[str, Any]:
    """The contents of ``config.json``. `read` gives the values of a small tensor.

    Raises `ModelError` ``unsupported-gguf`` for rotary scaling that cannot be told from the file,
    ``corrupt-gguf`` for a missing key.
    """
    names = {info.name: info for info in header.tensors}
    heads = int(_value(header, "attention.head_count"))
    width = int(_value(header, "embedding_length"))
    head_dim = int(
        _value(
            header,
            "attention.key_length",
            _value(header, "rope.dimension_count", width // heads),
        )
    )
    if int(_value(header, "rope.dimension_count", head_dim)) != head_dim:
        raise ModelError(
            "unsupported-gguf", "the GGUF file rotates a part of each head; choose another model"
        )
    vocabulary = header.metadata.get("tokenizer.ggml.tokens", 0)
    made: dict[str, Any] = {
        "architectures": [KNOWN[header.architecture]],
        "model_type": header.architecture,
        "dtype": "bfloat16",
        "vocab_size": int(_value(header, "vocab_size", vocabulary)),
        "hidden_size": width,
        "intermediate_size": int(_value(header, "feed_forward_length")),
        "num_hidden_layers": int(_value(header, "block_count")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(_value(header, "attention.head_count_kv", heads)),
        "head_dim": head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": int(_value(header, "context_length")),
        "rms_norm_eps": float(_value(header, "attention.layer_norm_rms_epsilon")),
        "rope_parameters": _rope(header, head_dim, names.get(ROPE_FACTORS), read),
        "tie_word_embeddings": "output.weight" not in names,
        "attention_bias": "blk.0.attn_q.bias" in names,
        "attention_dropout": 0.0,
        "use_cache": True,
    }
    for role in ("bos", "eos", "padding", "unknown"):
        token = header.metadata.get(f"tokenizer.ggml.{role}_token_id")
        short = {"padding": "pad", "unknown": "unk"}.get(role, role)
        if token is not None:
            made[f"{short}_token_id"] = int(token)
    if header.architecture == "qwen2":
        del made["attention_bias"]  # always there for queries, keys and values; not a setting
    return made


def _rope(
    header: GgufHeader,
    head_dim: int,
    factors: TensorInfo | None,
    read: Callable[[TensorInfo], Sequence[float]],
) -> dict[str, Any]:
    """The rotary settings: plain, linear, YaRN, or Llama 3.1's."""
    theta = float(_value(header, "rope.freq_base", 10_000.0))
    base: dict[str, Any] = {"rope_theta": theta, "rope_type": "default"}
    if factors is not None:
        wanted = list(read(factors))
        guess = {
            **base,
            "rope_type": "llama3",
            "factor": max(wanted),
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        }
        if not _same(wanted, llama3_factors(guess, head_dim)):
            raise ModelError(
                "unsupported-gguf",
                "the GGUF file stretches rotary frequencies in an unknown way; pass the model's "
                "safetensors folder or hub id",
            )
        return guess
    kind = str(_value(header, "rope.scaling.type", "none"))
    if kind == "none":
        return base
    scaled = {**base, "rope_type": kind, "factor": float(_value(header, "rope.scaling.factor"))}
    if kind == "yarn":
        trained = _value(header, "rope.scaling.original_context_length")
        scaled["original_max_position_embeddings"] = int(trained)
    elif kind != "linear":
        raise ModelError(
            "unsupported-gguf",
            f"the GGUF file scales rotary embeddings by {kind!r}; choose another",
        )
    return scaled


def llama3_factors(rope: dict[str, Any], head_dim: int) -> list[float]:
    """How much each rotary frequency is stretched (Llama 3.1), as llama.cpp writes it."""
    low = rope["original_max_position_embeddings"] / rope["low_freq_factor"]
    high = rope["original_max_position_embeddings"] / rope["high_freq_factor"]
    made = []
    for i in range(0, head_dim, 2):
        length = 2 * math.pi * rope["rope_theta"] ** (i / head_dim)
        if length < high:
            made.append(1.0)
        elif length > low:
            made.append(float(rope["factor"]))
        else:
            share = rope["original_max_position_embeddings"] / length - rope["low_freq_factor"]
            smooth = share / (rope["high_freq_factor"] - rope["low_freq_factor"])
            made.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return made


def _same(left: Sequence[float], right: Sequence[float]) -> bool:
    return len(left) == len(right) and all(
        math.isclose(a, b, rel_tol=1e-3) for a, b in zip(left, right, strict=True)
    )


_MISSING: Any = object()


def _value(header: GgufHeader, key: str, default: Any = _MISSING) -> Any:
    found = header.metadata.get(f"{header.architecture}.{key}", default)
    if found is _MISSING:
        raise ModelError(
            "corrupt-gguf", f"the GGUF file does not say its {header.architecture}.{key}"
        )
    if isinstance(found, list):
        raise ModelError(
            "unsupported-gguf", f"the GGUF file's {key} differs by layer; choose another model"
        )
    return found
