"""The safetensors files of a model's folder: what they hold, and their tensors one by one."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apply_edit.errors import ModelError

if TYPE_CHECKING:
    import torch

_MOST_HEADER = 100_000_000  # the limit of the safetensors format itself


@dataclass(frozen=True, slots=True)
class Stock:
    """How much a folder holds: values in all tensors, in the greatest one, and bytes on disk."""

    tensors: int
    values: int
    greatest: int
    bytes: int


def shard_files(folder: Path) -> list[Path]:
    """The shards of a model, in order.

    Raises `ModelError`: ``unsafe-weights`` (none, or only pickles), ``corrupt-model`` (the index
    names a file that is not there).
    """
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        single = folder / "model.safetensors"
        found = [single] if single.is_file() else sorted(folder.glob("*.safetensors"))
        # An adapter alone is not a model.
        found = [path for path in found if not path.name.startswith("adapter")]
        if not found:
            raise ModelError(
                "unsafe-weights",
                f"{folder} has no safetensors weights, and others are not loaded; save the model "
                "in safetensors form",
            )
        return found
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ModelError(
            "corrupt-model", f"{index} is not an index of weights ({error})"
        ) from error
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ModelError(
                "unsafe-weights", f"{index} names {name!r}, which is no safetensors file"
            )
        if not (folder / name).is_file():
            raise ModelError(
                "corrupt-model", f"{folder} lacks {name}, which its index names; fetch it again"
            )
    return [folder / name for name in names]


def stock(folder: Path) -> Stock:
    """Count what the shards hold, from their headers alone. Raises as `shard_files` does."""
    tensors = values = greatest = size = 0
    for path in shard_files(folder):
        for entry in _header(path).values():
            count = prod(entry["shape"])
            tensors += 1
            values += count
            greatest = max(greatest, count)
        size += path.stat().st_size
    return Stock(tensors, values, greatest, size)


def _header(path: Path) -> dict[str, Any]:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(size, _MOST_HEADER):
                raise ValueError("its header is longer than the file")
            entries: dict[str, Any] = json.loads(file.read(length))
        entries.pop("__metadata__", None)
        if 8 + length + max(e["data_offsets"][1] for e in entries.values()) != size:
            raise ValueError("it is cut off")
    except (OSError, struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _corrupt(path, error) from error
    return entries


def open_shards(folder: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor of a model, as stored, in the order of the files; each file is closed after use.

    A tensor may be a view of its file: copy or pack what is to be kept, and let go of the rest, so
    that one copy stays. Raises as `shard_files` does.
    """
    from safetensors import SafetensorError, safe_open

    for path in shard_files(folder):
        _header(path)
        try:
            with safe_open(path, framework="pt", device="cpu") as file:
                # In the order of the file a cold disk reads ahead.
                for name in file.offset_keys():
                    yield name, file.get_tensor(name)
        except SafetensorError as error:
            raise _corrupt(path, error) from error


def _corrupt(path: Path, error: Exception) -> ModelError:
    return ModelError(
        "corrupt-model", f"{path} is not a whole safetensors file ({error}); fetch it again"
    )
