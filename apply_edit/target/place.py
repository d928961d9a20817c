"""Weights from a folder into an empty model, one tensor at a time, one copy of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from apply_edit.errors import ModelError
from apply_edit.events import OnEvent, Stage, ignore
from apply_edit.target.linear import PackedLinear, can_pack
from apply_edit.target.shards import open_shards, stock


def fill(
    model: Any,
    folder: Path,
    *,
    dtype: torch.dtype,
    device: torch.device,
    pack: bool = True,
    on_event: OnEvent = ignore,
) -> None:
    """Give every parameter of `model` (on the meta device) its values from the folder's shards.

    On CPUs that can, linear weights are packed. An embedding table on the CPU stays a view of
    its file where the dtype allows, so only the rows of tokens that occur are ever read; with
    tied weights the output layer gets a packed copy of its own.

    Raises `ModelError` ``corrupt-model`` where a weight is missing or has another shape.
    """
    packing = pack and device.type == "cpu" and can_pack(dtype)
    total = stock(folder).tensors
    biases = {
        f"{path}.bias": module
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear) and module.bias is not None
    }
    waiting: dict[str, dict[str, Tensor]] = {}
    for count, (name, stored) in enumerate(open_shards(folder), 1):
        path, _, leaf = name.rpartition(".")
        module = _module(model, path)
        if module is None:
            continue  # e.g. a rotary table that older checkpoints store
        _check_shape(name, stored, module, leaf)
        if isinstance(module, nn.Linear) and packing:
            parts = waiting.setdefault(path, {})
            # A bias is small and may wait for its weight; a weight is packed when both are there.
            parts[leaf] = stored.to(dtype) if leaf == "weight" else stored.to(dtype, copy=True)
            if "weight" in parts and (f"{path}.bias" not in biases or "bias" in parts):
                _replace(model, path, PackedLinear(parts["weight"], parts.get("bias")))
                del waiting[path], parts
        elif isinstance(module, nn.Embedding) and device.type == "cpu":
            _set(module, leaf, stored.to(dtype))
        else:
            _set(module, leaf, stored.to(device, dtype, copy=True))
        if count % 16 == 0 or count == total:
            on_event(Stage("load", count, total, "tensors"))
    for path, parts in waiting.items():
        raise ModelError("corrupt-model", f"the weights lack a part of {path} ({set(parts)} given)")
    _tie(model, packing)
    _check_complete(model)
    for module in model.modules():
        for key, buffer in module.named_buffers(recurse=False):
            setattr(module, key, buffer.to(device))


def _module(model: Any, path: str) -> nn.Module | None:
    try:
        module: nn.Module = model.get_submodule(path)
    except AttributeError:
        return None
    return module


def _check_shape(name: str, stored: Tensor, module: nn.Module, leaf: str) -> None:
    wanted = getattr(module, leaf, None)
    if isinstance(wanted, Tensor) and wanted.shape != stored.shape:
        raise ModelError(
            "corrupt-model",
            f"{name} is {tuple(stored.shape)} and the model wants {tuple(wanted.shape)}",
        )


def _set(module: nn.Module, leaf: str, value: Tensor) -> None:
    if leaf in module._parameters:
        module._parameters[leaf] = nn.Parameter(value, requires_grad=False)
    elif leaf in module._buffers:
        module._buffers[leaf] = value


def _replace(model: Any, path: str, module: nn.Module) -> None:
    parent, _, leaf = path.rpartition(".")
    setattr(model.get_submodule(parent), leaf, module)


def _tie(model: Any, packing: bool) -> None:
    """Give an output layer without weights of its own the embedding's."""
    head = model.get_output_embeddings()
    if not isinstance(head, nn.Linear) or not head.weight.is_meta:
        return
    table = model.get_input_embeddings().weight
    if packing:
        path = next(path for path, module in model.named_modules() if module is head)
        _replace(model, path, PackedLinear(table.detach(), None))
    else:
        head._parameters["weight"] = table


def _check_complete(model: Any) -> None:
    missing = [name for name, p in model.named_parameters() if p.is_meta]
    if missing:
        raise ModelError(
            "corrupt-model", f"the folder lacks {len(missing)} weights, {missing[0]} among them"
        )
