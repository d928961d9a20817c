"""Files of tensors in the cache: written whole or not at all, and known by a hash."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor


def put(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file aside and rename it to `path`; makes the folder.

    Raises `OSError` and safetensors' `SafetensorError`; then nothing is left behind.
    """
    from safetensors.torch import save_file

    aside = path.with_name(f"{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        save_file(dict(tensors), aside, dict(metadata))
        aside.replace(path)
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def keep(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bool:
    """`put`, for what only costs the next run's time where it cannot be kept; False then."""
    from safetensors import SafetensorError

    try:
        put(path, tensors, metadata)
    except (OSError, SafetensorError):
        return False
    return True


def digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of names, dtypes, shapes and bytes, in the order of the names, in hex."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        found.update(memoryview(flat.view(torch.uint8).numpy()))
    return found.hexdigest()
