"""A model's weights in 4 bits: rounded once, kept in a file, read from there.

Rounding 1.5 billion weights takes some fifteen seconds of two cores; reading the file takes one.
Like the calibration it is made anew for other machines and builds of torch.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from apply_edit.events import Note, OnEvent, Stage, ignore
from apply_edit.target.engine import Engine
from apply_edit.target.lean import HEAD, LeanTarget, parts
from apply_edit.target.memory import available_bytes
from apply_edit.target.quantised import GROUP, KERNEL, FourBits, can_quantise, fits, quantise
from apply_edit.target.shards import open_shards
from apply_edit.target.tensors import keep

FORMAT = 1
ROOM = 500_000_000
"""Bytes to leave free: what rounding needs on the way, and the caches of a middling file."""
Shapes = Mapping[str, tuple[int, int]]


def lean(
    engine: Engine, folder: Path, kept: Path | None = None, on_event: OnEvent = ignore
) -> LeanTarget | None:
    """`engine`'s model in 4 bits, drafting into its cache; None where that cannot be had.

    `folder` holds the model's weights; `kept` is where the rounded ones are, or will be. They
    take five eighths of a byte each (1.0 GB for 1.5 billion). None on devices other than the
    CPU, without the operators of `quantised`, and for models of another structure.
    """
    paths = parts(engine.model)
    if paths is None or engine.shape[4].type != "cpu" or not can_quantise():
        return None
    shapes = _shapes(engine.model, paths)
    if not all(fits(*shape) for name, shape in shapes.items() if name != HEAD):
        return None
    shapes = {name: shape for name, shape in shapes.items() if fits(*shape)}
    size = sum(rows * columns for rows, columns in shapes.values()) * 5 // 8
    free = available_bytes()
    if free is not None and size + ROOM > free:
        on_event(Note(f"no room for {size / 1e9:.1f} GB of weights in 4 bits"))
        return None
    weights = None if kept is None else load(kept, shapes)
    if weights is None:
        weights = round_all(engine.model, folder, {n: paths[n] for n in shapes}, on_event)
        if kept is not None:
            save(kept, weights)
    on_event(Note(f"the weights in 4 bits for drafting: {size / 1e9:.1f} GB more"))
    return LeanTarget(engine, weights)


def _shapes(model: Any, paths: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[int, int]]:
    """[out, in] of every stacked matrix."""
    shapes = {}
    for name, stacked in paths.items():
        layers = [model.get_submodule(path) for path in stacked]
        shapes[name] = (sum(layer.out_features for layer in layers), layers[0].in_features)
    return shapes


def round_all(
    model: Any,
    folder: Path,
    paths: Mapping[str, tuple[str, ...]],
    on_event: OnEvent = ignore,
) -> dict[str, FourBits]:
    """The stacked matrices in 4 bits, read from the folder's shards one at a time."""
    home = {path: name for name, stacked in paths.items() for path in stacked}
    waiting: dict[str, dict[str, Tensor]] = {}
    weights: dict[str, FourBits] = {}
    for tensor, stored in open_shards(folder):
        path, _, leaf = tensor.rpartition(".")
        name = home.get(path)
        if name is None or leaf != "weight":
            continue
        found = waiting.setdefault(name, {})
        # Copied where it has to wait: its file is closed by then.
        found[path] = stored.clone() if len(paths[name]) > 1 else stored
        if len(found) == len(paths[name]):
            del waiting[name]
            whole = [found[part] for part in paths[name]]
            weights[name] = quantise(torch.cat(whole) if len(whole) > 1 else whole[0])
            on_event(Stage("load", len(weights), len(paths), "tensors", "4 bits"))
    if HEAD in paths and HEAD not in weights:
        # An output layer without weights of its own is the embedding.
        weights[HEAD] = quantise(model.get_input_embeddings().weight.detach())
        on_event(Stage("load", len(weights), len(paths), "tensors", "4 bits"))
    return weights


def machine() -> dict[str, str]:
    """What the order of packed weights depends on."""
    return {
        "torch": torch.__version__,
        "cpu": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "dtype": str(KERNEL),
        "group": str(GROUP),
        "format": str(FORMAT),
    }


def load(path: Path, shapes: Shapes) -> dict[str, FourBits] | None:
    """Kept weights; None unless the file is whole and made for this machine."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            if file.metadata() != machine():
                return None
            # Copied: a pass over the small pages of a mapped file takes twice the time.
            found = {
                name: FourBits(
                    file.get_tensor(f"{name}.packed").clone(),
                    file.get_tensor(f"{name}.scales").clone(),
                )
                for name in shapes
            }
    except (OSError, SafetensorError):
        return None
    for name, (rows, columns) in shapes.items():
        weight = found[name]
        if weight.packed.shape != (rows, columns // 2) or weight.scales.dtype != KERNEL:
            return None
    return found


def save(path: Path, weights: Mapping[str, FourBits]) -> bool:
    """Keep weights for the next run, whole or not at all; False where that cannot be done."""
    tensors = {}
    for name, weight in weights.items():
        tensors[f"{name}.packed"] = weight.packed
        tensors[f"{name}.scales"] = weight.scales
    return keep(path, tensors, machine())
