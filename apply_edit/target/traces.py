"""What the target thought while it wrote: hidden states and tokens, kept until heads are trained.

They are made from the user's files, so the folder is the user's alone (mode 0700, files 0600),
names are hashes, and all of it goes when the training is done.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from apply_edit.target.store import heads_path, writing

STATE = "state.json"
CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True, slots=True)
class Trace:
    """Consecutive positions: hidden states [n, hidden] of any float type, `tokens` int64 [n]
    (token i stands behind row i), `choices` int64 [n] (what row i predicted: the same token where
    the target wrote it), `weight` float32 [n]: how much the guess of the token behind token i
    matters."""

    hidden: Tensor
    tokens: Tensor
    choices: Tensor
    weight: Tensor


class Traces:
    """The traces of one set of weights on disk; each is written whole or not at all."""

    def __init__(self, weights_id: str) -> None:
        self.folder = heads_path(weights_id).with_suffix("")

    def open(self) -> None:
        """Make the folder, for this user alone, and drop what a killed run left half-written.

        Raises `ModelError` ``cache-unwritable``.
        """
        with writing(self.folder):
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self.folder.chmod(0o700)
            for path in self.folder.glob("*.part"):
                path.unlink(missing_ok=True)

    def __len__(self) -> int:
        return sum(1 for _ in self._files())

    def __contains__(self, key: str) -> bool:
        return self._path(key).is_file()

    def add(self, key: str, trace: Trace | None) -> None:
        """Keep a trace under a name of hexadecimal digits; None says that nothing came of it."""
        tensors = {}
        if trace is not None:
            tensors = {
                "hidden": trace.hidden.contiguous(),
                "tokens": trace.tokens.to(torch.int32),
                "choices": trace.choices.to(torch.int32),
                "weight": trace.weight,
            }
        self.write(self._path(key).name, tensors, {})

    def __iter__(self) -> Iterator[tuple[str, Trace]]:
        """All traces by name, in an order that does not depend on when they were made."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        for path in self._files():
            try:
                tensors = load_file(path)
                if not tensors:
                    continue
                tokens, choices = (tensors[name].long() for name in ("tokens", "choices"))
                trace = Trace(tensors["hidden"], tokens, choices, tensors["weight"])
            except (OSError, SafetensorError, KeyError):
                continue
            yield path.stem, trace

    def state(self) -> dict[str, float]:
        """What was noted with `note`: numbers by name."""
        try:
            found = json.loads((self.folder / STATE).read_text(encoding="utf-8"))
            return {str(key): float(value) for key, value in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def note(self, **numbers: float) -> None:
        """Remember numbers beside those noted before."""
        text = json.dumps({**self.state(), **numbers})
        with writing(self.folder):
            self._replace(STATE, text.encode())

    def write(self, name: str, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
        """Write one safetensors file of the folder, whole or not at all."""
        from safetensors.torch import save

        with writing(self.folder):
            self._replace(name, save(dict(tensors), metadata))

    def clear(self) -> None:
        """Delete everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _replace(self, name: str, data: bytes) -> None:
        aside = self.folder / f"{name}.{os.getpid()}.part"
        try:
            handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            aside.replace(self.folder / name)
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.safetensors"

    def _files(self) -> list[Path]:
        found = self.folder.glob("*.safetensors") if self.folder.is_dir() else ()
        return sorted(path for path in found if path.name != CHECKPOINT)
