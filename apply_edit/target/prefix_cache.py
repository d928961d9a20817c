"""A prompt's fixed beginning, its keys and values kept between runs: rows that no run computes.

Every prompt of a kind begins with the same words (the system's and the rules), which no user
wrote. Their keys and values are a function of the weights and the machine's arithmetic, and on a
machine whose passes agree bit for bit they are the bits that any run would compute.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from apply_edit.target.calibrate import machine

KEY = "keys_and_values"
FORMAT = 1


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
            digest = told.pop("sha256", "")
            if told != _facts(tokens):
                return None
            found: Tensor = file.get_tensor(KEY)
    except (OSError, SafetensorError):
        return None
    if found.shape != like.shape or found.dtype != like.dtype or _digest(found) != digest:
        return None
    return found


def save(path: Path, tokens: Sequence[int], found: Tensor) -> None:
    """Keep `found` whole or not at all; a folder that cannot be written costs later runs time."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    found = found.contiguous()
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({KEY: found}, aside, {**_facts(tokens), "sha256": _digest(found)})
        aside.replace(path)
    except (OSError, SafetensorError):
        with suppress(OSError):
            aside.unlink()


def _facts(tokens: Sequence[int]) -> dict[str, str]:
    """What the bits depend on, beside the weights that the file's name tells."""
    facts = {name: str(value) for name, value in machine().items()}
    return {**facts, "prefix": str(FORMAT), "tokens": ",".join(map(str, tokens))}


def _digest(found: Tensor) -> str:
    return hashlib.sha256(found.view(torch.uint8).numpy().tobytes()).hexdigest()
