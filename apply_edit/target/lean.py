"""The target's own weights in 4 bits, for drafting a row at a time into the target's cache.

A pass of one row reads a quarter of the bytes; what is left is mostly the cost of calling small
operators, so the decoder is written out here with as few of them as there can be (query, key and
value in one product, gate and up in one). It follows Llama, Qwen2 and Qwen3. Numbers differ from
the target's in the last bits for that too: they make drafts, and drafts only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from apply_edit.decode.types import Branch
from apply_edit.target.engine import Engine, TorchScores
from apply_edit.target.linear import PackedLinear
from apply_edit.target.quantised import FourBitLinear, FourBits

FAMILIES = ("llama", "qwen2", "qwen3")
HEAD = "head"
FUSED = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "out": ("self_attn.o_proj",),
    "up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}
"""The matrices of a layer and the linear layers whose rows each one stacks."""

Linear = Callable[[Tensor], Tensor]


def parts(model: Any) -> dict[str, tuple[str, ...]] | None:
    """Matrix by name -> paths of the linear layers stacked in it; None for unknown structures."""
    config = model.config
    if config.model_type not in FAMILIES or config.hidden_act != "silu":
        return None
    found = {
        f"{index}.{name}": tuple(f"model.layers.{index}.{path}" for path in paths)
        for index in range(config.num_hidden_layers)
        for name, paths in FUSED.items()
    }
    found[HEAD] = ("lm_head",)
    modules = dict(model.named_modules())
    if all(isinstance(modules.get(p), _LINEAR) for paths in found.values() for p in paths):
        return found
    return None


_LINEAR = (PackedLinear, nn.Linear)


class LeanTarget:
    """A narrow `Target` on `engine`'s model with `weights` in 4 bits, in `engine`'s cache.

    Length and cache are the engine's own: `score` writes rows behind the committed positions
    and `keep` commits them, so whoever drafts must set the length back before the engine runs.
    The output layer is the engine's where `weights` has none. Takes no branches.
    """

    def __init__(self, engine: Engine, weights: Mapping[str, FourBits]) -> None:
        model = engine.model
        paths = parts(model)
        if paths is None:
            raise ValueError(f"models of type {model.config.model_type} have another structure")
        modules = dict(model.named_modules())
        self._engine = engine
        self._cache = engine.cache
        self._embed = model.get_input_embeddings()
        self._rotary = model.model.rotary_emb
        self._norm = _Norm(model.model.norm)
        self._head: Linear = (
            FourBitLinear(weights[HEAD], None) if HEAD in weights else model.lm_head
        )
        self._layers = []
        for index, layer in enumerate(model.model.layers):
            linears = {
                name: FourBitLinear(
                    weights[f"{index}.{name}"],
                    _bias([modules[p] for p in paths[f"{index}.{name}"]]),
                )
                for name in FUSED
            }
            self._layers.append(_Layer(layer, linears, engine.shape[:3]))

    @property
    def length(self) -> int:
        return self._engine.length

    @property
    def limit(self) -> int:
        return self._engine.limit

    def prefill(self, tokens: Sequence[int]) -> None:
        self._engine.prefill(tokens)

    def keep(self, rows: int, branch: int | None = None, branch_rows: int = 0) -> None:
        self._cache.length += rows

    def reset(self, length: int = 0) -> None:
        self._engine.reset(length)

    def score(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> TorchScores:
        if branches:
            raise ValueError("a draft is written as a chain")
        rows, past = len(tokens), self._cache.length
        end = past + rows
        self._cache.reserve(self._engine.widths.span(end))
        groups = self._engine.shape[1]
        repeats = self._engine.shape[0] // groups
        with torch.inference_mode():
            x = self._embed(torch.tensor(tokens))
            places = torch.arange(past, end)
            cos, sin = (t[0, :, None, :] for t in self._rotary(x[None], places[None]))
            half = sin.shape[-1] // 2
            # rotate_half(x) * sin is roll(x) * sin with the first half's sign turned.
            sin = torch.cat((-sin[..., :half], sin[..., half:]), -1)
            mask = None
            if rows > 1:
                hidden = torch.arange(end)[None, :] > places[:, None]
                mask = torch.zeros(rows, end, dtype=x.dtype).masked_fill_(hidden, float("-inf"))
                mask = mask.repeat(repeats, 1)
            for index, layer in enumerate(self._layers):
                keys, values = self._cache.layer(index)
                x = layer(x, cos, sin, keys[:, :end], values[:, :end], mask)
            logits = self._head(self._norm(x[first:]))
        return TorchScores(logits)


class _Norm:
    """Root mean square norm, y = x / rms(x) * weight, in three operators."""

    __slots__ = ("_epsilon", "_root", "_weight")

    def __init__(self, norm: Any) -> None:
        self._root = norm.weight.shape[0] ** 0.5
        self._weight = norm.weight.detach().float() * self._root
        self._epsilon = norm.variance_epsilon**0.5 * self._root

    def __call__(self, x: Tensor) -> Tensor:
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
        return (x * self._weight / length.clamp_min_(self._epsilon)).to(x.dtype)


class _Layer:
    """One layer: attention over the cache and the feed-forward part."""

    __slots__ = ("_down", "_first", "_heads", "_norms", "_out", "_qkv", "_second", "_up")

    def __init__(self, layer: Any, linears: Mapping[str, Linear], shape: Sequence[int]) -> None:
        self._heads = tuple(shape)
        self._first, self._second = (
            _Norm(layer.input_layernorm),
            _Norm(layer.post_attention_layernorm),
        )
        attention = layer.self_attn
        self._norms: tuple[_Norm, _Norm] | None = None
        if getattr(attention, "q_norm", None) is not None:
            self._norms = _Norm(attention.q_norm), _Norm(attention.k_norm)
        self._qkv, self._out = linears["qkv"], linears["out"]
        self._up, self._down = linears["up"], linears["down"]

    def __call__(
        self, x: Tensor, cos: Tensor, sin: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
    ) -> Tensor:
        """x: [rows, hidden]; cos, sin: [rows, 1, dim]; keys, values: [groups, end, dim], whose
        last rows are written; mask: additive [heads per group * rows, end]."""
        heads, groups, dim = self._heads
        rows = x.shape[0]
        mixed = self._qkv(self._first(x)).view(rows, heads + 2 * groups, dim)
        turned, value = mixed[:, : heads + groups], mixed[:, heads + groups :]
        if self._norms is not None:
            turned = torch.cat(
                (self._norms[0](turned[:, :heads]), self._norms[1](turned[:, heads:])), 1
            )
        turned = turned * cos + turned.roll(dim // 2, -1) * sin
        query = turned[:, :heads]
        start = keys.shape[1] - rows
        keys[:, start:] = turned[:, heads:].transpose(0, 1)
        values[:, start:] = value.transpose(0, 1)
        # The query heads of a group become rows, as in attention.py: no key is copied for them.
        folded = query.view(rows, groups, heads // groups, dim).permute(1, 2, 0, 3)
        seen = functional.scaled_dot_product_attention(
            folded.reshape(1, groups, -1, dim), keys[None], values[None], attn_mask=mask
        )
        seen = seen.view(groups, heads // groups, rows, dim).permute(2, 0, 1, 3)
        x = x + self._out(seen.reshape(rows, heads * dim))
        gate, up = self._up(self._second(x)).chunk(2, -1)
        return x + self._down(functional.silu(gate) * up)


def _bias(layers: Sequence[Any]) -> Tensor | None:
    """The stacked biases of stacked layers; zeros for a layer that has none beside some that do."""
    found = [layer.bias for layer in layers]
    given = next((bias for bias in found if bias is not None), None)
    if given is None:
        return None
    return torch.cat(
        [
            given.new_zeros(layer.out_features) if bias is None else bias.detach()
            for layer, bias in zip(layers, found, strict=True)
        ]
    )
