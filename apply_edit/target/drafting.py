"""Drafters for a loaded target: its own weights in 4 bits, trained heads, or a smaller model."""

from __future__ import annotations

from pathlib import Path

import torch

from apply_edit.draft.heads import HeadsDrafter
from apply_edit.draft.model import ModelDrafter, check_vocabulary
from apply_edit.draft.self import SelfDrafter
from apply_edit.events import Note, OnEvent
from apply_edit.target.ahead import HeadsAhead, output_table
from apply_edit.target.engine import Engine
from apply_edit.target.heads import Shape, check_trained, load
from apply_edit.target.load import Resolved
from apply_edit.target.quantised import KERNEL
from apply_edit.target.rounded import lean
from apply_edit.target.store import cache_root
from apply_edit.target.tokenizer import HubCodec


def self_drafter(engine: Engine, resolved: Resolved, on_event: OnEvent) -> SelfDrafter | None:
    """The target's own weights in 4 bits; None, with a note, where this machine has none."""
    narrow = lean(engine, resolved.folder, rounded_path(resolved), on_event)
    if narrow is None:
        on_event(Note("no weights in 4 bits on this machine or for this model: copying alone"))
        return None
    return SelfDrafter(narrow)


def heads_drafter(engine: Engine, resolved: Resolved, on_event: OnEvent) -> HeadsDrafter:
    """The heads that were trained for the target.

    Raises `ModelError` ``no-heads`` and ``bad-heads``.
    """
    path = check_trained(resolved.name, resolved.weights_id)
    table = output_table(engine, resolved.folder)
    shape = Shape(table.shape[1], table.shape[0])
    trained = load(path, resolved.name, resolved.weights_id, shape)
    on_event(Note(f"draft heads from {path.name}: {path.stat().st_size / 1e6:.0f} MB more"))
    return HeadsDrafter(HeadsAhead(engine, trained, table))


def model_drafter(
    name: str,
    target: str,
    codec: HubCodec,
    *,
    device: torch.device,
    dtype: torch.dtype,
    offline: bool,
    on_event: OnEvent,
) -> ModelDrafter:
    """Model `name` as the draft of `target`, whose tokenizer is `codec`.

    Raises `ModelError` ``vocab-mismatch``, and whatever finding and loading a model raises.
    """
    from apply_edit.target.backend import TorchBackend

    backend = TorchBackend.open(
        name,
        revision=None,
        device=str(device),
        dtype=str(dtype).removeprefix("torch."),
        offline=offline,
        on_event=on_event,
    )
    known = check_vocabulary(codec.vocabulary, backend.codec.vocabulary, target, name)
    wide = backend.target(on_event)
    resolved = backend.resolved
    narrow = lean(wide, resolved.folder, rounded_path(resolved), on_event)
    return ModelDrafter(wide, known, narrow)


def rounded_path(resolved: Resolved) -> Path:
    """Where a model's weights in 4 bits are kept."""
    kind = str(KERNEL).removeprefix("torch.")
    return cache_root() / "four-bit" / f"{resolved.weights_id}-{kind}.safetensors"
