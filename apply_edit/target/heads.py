"""Draft heads: from the target's last hidden state to the tokens two, three, four ahead.

The target's pass gives a hidden state h and the token x that it decided on. A head turns both
into a guess of the hidden state behind x, whose logits the target's own output layer gives; with
the token guessed there it turns that state into the next, and so on. Each guess thus sees the
tokens drafted before it, which is what makes Hydra's heads (Ankner et al. 2024, arXiv 2402.05109)
accept more than Medusa's (Cai et al. 2024, arXiv 2401.10774); one head applied again and again in
place of one for each distance is the recurrent drafter's form (Cheng et al. 2024, arXiv
2403.09919), and takes less training, for every position teaches it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from apply_edit.errors import ModelError
from apply_edit.target.store import cache_root, heads_path, writing
from apply_edit.target.tensors import digest, put

FORMAT = "2"
DESIGN = "recurrent"
STEPS = 4
"""How far ahead the heads are trained to guess."""
WIDTH = 2
"""Width of the inner layer, in hidden sizes."""
EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class Shape:
    """What a heads file has to agree with: the target's hidden size and vocabulary."""

    hidden: int
    vocabulary: int


class Heads(nn.Module):
    """The step from one hidden state to the next, z' = z + s W2 SiLU(W1 [norm(z); norm(e)] + b).

    `scale` is s, the usual size of a state's entries. Before training z' = z.
    """

    scale: Tensor

    def __init__(self, hidden: int, width: int, scale: float = 1.0) -> None:
        super().__init__()
        self.mix = nn.Linear(2 * hidden, width)
        self.out = nn.Linear(width, hidden, bias=False)
        nn.init.zeros_(self.out.weight)
        self.register_buffer("scale", torch.tensor(scale))

    def forward(self, states: Tensor, embeddings: Tensor) -> Tensor:
        """states: [rows, hidden], embeddings: those of the tokens behind, [rows, hidden].
        Returns the states at these tokens, [rows, hidden]."""
        seen = torch.cat((_normed(states), _normed(embeddings)), -1)
        return states + self.scale * self.out(functional.silu(self.mix(seen)))


def _normed(x: Tensor) -> Tensor:
    return functional.rms_norm(x, x.shape[-1:], eps=EPSILON)


@dataclass(frozen=True, slots=True)
class Trained:
    """Heads and the tokens they choose among (ascending ids, int64 [n]), and for how many steps
    they were trained."""

    heads: Heads
    vocabulary: Tensor
    steps: int


def save(path: Path, trained: Trained, weights_id: str, facts: Mapping[str, str]) -> None:
    """Keep heads in a safetensors file, whole or not at all. `facts` go into its metadata, and a
    hash of the tensors.

    Raises `ModelError` ``cache-unwritable``, ``no-space``.
    """
    tensors = {
        name: tensor.detach().to(torch.bfloat16).contiguous() if tensor.dim() > 1 else tensor
        for name, tensor in trained.heads.state_dict().items()
    }
    tensors["vocabulary"] = trained.vocabulary.to(torch.int32)
    metadata = {
        "format": FORMAT,
        "design": DESIGN,
        "weights": weights_id,
        "steps": str(trained.steps),
        "sha256": digest(tensors),
        **facts,
    }
    with writing(path.parent):
        put(path, tensors, metadata)


def check_trained(name: str, weights_id: str) -> Path:
    """The file of a model's heads. Raises `ModelError` ``no-heads`` where there is none."""
    path = heads_path(weights_id)
    if not path.is_file():
        raise ModelError(
            "no-heads",
            f"no draft heads were trained for {name}; run apply-edit models train-heads {name}, "
            "or choose another --draft",
        )
    return path


def load(path: Path, name: str, weights_id: str, shape: Shape) -> Trained:
    """The heads in a file, checked against the model they are to draft for.

    Raises `ModelError` ``bad-heads`` for a file that is damaged, or made for other weights.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise _bad(path, name, "is no whole safetensors file") from error
    if metadata.get("format") != FORMAT or metadata.get("design") != DESIGN:
        raise _bad(path, name, "is of another version")
    if metadata.get("weights") != weights_id:
        raise _bad(path, name, "was made for other weights")
    if metadata.get("sha256") != digest(tensors):
        raise _bad(path, name, "is damaged")
    # A training that diverged is as useless, whatever its hash.
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise _bad(path, name, "is damaged")
    steps = metadata.get("steps", "")
    vocabulary = tensors.pop("vocabulary", torch.empty(0)).long()
    mix = tensors.get("mix.weight", torch.empty(0, 0))
    if not re.fullmatch(r"[1-9]\d?", steps) or mix.dim() != 2:
        raise _bad(path, name, "is damaged")
    heads = Heads(shape.hidden, mix.shape[0])
    wanted = {key: tensor.shape for key, tensor in heads.state_dict().items()}
    if {key: tensor.shape for key, tensor in tensors.items()} != wanted:
        raise _bad(path, name, "has other shapes than the model")
    if not _ascending(vocabulary, shape.vocabulary):
        raise _bad(path, name, "names tokens that the model does not have")
    heads.load_state_dict({key: tensor.float() for key, tensor in tensors.items()})
    heads.requires_grad_(False).eval()
    return Trained(heads, vocabulary, int(steps))


def _ascending(vocabulary: Tensor, size: int) -> bool:
    if vocabulary.dim() != 1 or vocabulary.numel() < 2:
        return False
    return (
        bool((vocabulary.diff() > 0).all())
        and int(vocabulary[0]) >= 0
        and (int(vocabulary[-1]) < size)
    )


def _bad(path: Path, name: str, what: str) -> ModelError:
    shown = path.relative_to(cache_root()) if path.is_relative_to(cache_root()) else path
    return ModelError(
        "bad-heads",
        f"the draft heads in {shown} cannot be used: the file {what}; "
        f"run apply-edit models train-heads {name}",
    )
