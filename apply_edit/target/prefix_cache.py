"""A prompt's fixed beginning, its keys and values kept between runs: rows that no run computes.

Every prompt of a kind begins with the same words (the system's and the rules), which no user
wrote. Their keys and values are a function of the weights and the machine's arithmetic, and on a
machine whose passes agree bit for bit they are the bits that any run would compute.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from apply_edit.target.calibrate import machine
from apply_edit.target.tensors import digest, keep

KEY = "keys_and_values"
FORMAT = 2


def path_of(folder: Path, model: str, tokens: Sequence[int]) -> Path:
    """Where the beginning `tokens` of prompts of `model` is kept."""
    name = hashlib.sha256(",".join(map(str, tokens)).encode()).hexdigest()[:16]
    return folder / f"{model}-{name}.safetensors"


def load(path: Path, tokens: Sequence[int], like: Tensor) -> Tensor | None:
    """Kept keys and values, of the shape and dtype of `like`: [2, layers, groups, tokens, dim].

    None unless the file is whole, undamaged, and made by this machine for these tokens.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            told = dict(file.metadata() or {})
            wanted = told.pop("sha256", "")
            if told != _facts(tokens):
                return None
            found: Tensor = file.get_tensor(KEY)
    except (OSError, SafetensorError):
        return None
    if found.shape != like.shape or found.dtype != like.dtype or digest({KEY: found}) != wanted:
        return None
    return found


def save(path: Path, tokens: Sequence[int], found: Tensor) -> None:
    """Keep `found` whole or not at all; a folder that cannot be written costs later runs time."""
    tensors = {KEY: found.contiguous()}
    keep(path, tensors, {**_facts(tokens), "sha256": digest(tensors)})


def _facts(tokens: Sequence[int]) -> dict[str, str]:
    """What the bits depend on, beside the weights that the file's name tells."""
    facts = {name: str(value) for name, value in machine().items()}
    return {**facts, "prefix": str(FORMAT), "tokens": ",".join(map(str, tokens))}
