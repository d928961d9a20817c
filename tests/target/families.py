"""Tiny randomly initialised models of several families, for the engine's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from apply_edit.target import attention
from apply_edit.target.backend import _cpu_has_bf16
from apply_edit.target.calibrate import usable_spans
from apply_edit.target.engine import STEP, Engine, Widths
from apply_edit.target.load import build_meta
from apply_edit.target.place import fill

BF16 = pytest.param(
    torch.bfloat16,
    marks=pytest.mark.skipif(not _cpu_has_bf16(), reason="no native bf16 on this CPU"),
)
DTYPES = [torch.float32, BF16]

SIZES: dict[str, Any] = {
    "vocab_size": 211,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "initializer_range": 0.3,
}
FAMILIES = {
    "llama": LlamaConfig(**SIZES),
    "llama-mha": LlamaConfig(**{**SIZES, "num_key_value_heads": 4}, tie_word_embeddings=True),
    "qwen2": Qwen2Config(**SIZES),
    "qwen3": Qwen3Config(**SIZES, head_dim=32),
}


def save(family: str, folder: Path) -> Path:
    """A model of a family with seeded weights, saved as transformers does."""
    torch.manual_seed(len(family))
    model = AutoModelForCausalLM.from_config(FAMILIES[family], dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0.0, 0.5)
    model.save_pretrained(folder, max_shard_size="100KB")
    return folder


def engine(folder: Path, dtype: torch.dtype, *, pack: bool = True, least: int = 8) -> Engine:
    """An engine on the folder's weights. `least=8` is safe on every CPU met so far."""
    attention.register()
    _, model = build_meta(folder, dtype, attention.NAME)
    fill(model, folder, dtype=dtype, device=torch.device("cpu"), pack=pack)
    target = Engine(model, window=2048)
    spans, chunk = usable_spans(target), 0
    if not spans:
        spans, chunk = usable_spans(target, STEP), STEP
    target.widths = Widths(least, spans, chunk)
    return target


def same(ours: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Bit for bit in bf16, closely in float32, whose kernels round by row count."""
    if ours.dtype == torch.bfloat16:
        return torch.equal(ours, wanted)
    return torch.allclose(ours, wanted, rtol=1e-4, atol=1e-4)
