"""Trained heads at work beside an engine: the tap's hidden state in, likely tokens out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from apply_edit.target.engine import Engine
from apply_edit.target.heads import Trained
from apply_edit.target.linear import PackedLinear, can_pack
from apply_edit.target.shards import open_shards

LIKELY = 4
"""Tokens named per guess."""
SPARE = 4096
"""Room for tokens of the prompt and the output that the heads' vocabulary lacks."""


class HeadsAhead:
    """Steps of `trained` heads from the last hidden state of `engine` (see draft/heads.py).

    The output layer is the target's, restricted to the tokens the heads were trained on and those
    that stand in the prompt and the output: a hundred thousand rows fewer to read, and what an
    edit writes is nearly always among them. `table` is the whole layer, [vocab, hidden].
    """

    def __init__(self, engine: Engine, trained: Trained, table: Tensor) -> None:
        self._dtype, device = engine.shape[3:]
        self._tap = engine.tap()
        self._trained = trained
        self._heads = trained.heads.to(device, self._dtype)
        self._embed = engine.model.get_input_embeddings()
        self._table = table
        rows = table[trained.vocabulary].to(device, self._dtype)
        packing = device.type == "cpu" and can_pack(self._dtype)
        # Packed, a narrow product takes a quarter of the time.
        self._base: Callable[[Tensor], Tensor] = (
            PackedLinear(rows, None) if packing else partial(functional.linear, weight=rows)
        )
        self._ids = torch.cat((trained.vocabulary, torch.zeros(SPARE, dtype=torch.long)))
        self._more = table.new_zeros(SPARE, table.shape[1], dtype=self._dtype, device=device)
        self._known = set(trained.vocabulary.tolist())
        self._met: set[int] = set()
        self._read: list[int] = []

    @property
    def steps(self) -> int:
        return self._trained.steps

    def start(self, tokens: Sequence[int]) -> Tensor | None:
        # The last decided token rides with the next pass: the tap's row stands before it.
        if self._tap.last is None or self._tap.position != len(tokens) - 2:
            return None
        self._meet(tokens)
        return self._tap.last[None].to(self._dtype)

    def step(self, state: Tensor, token: int) -> tuple[Tensor, list[tuple[int, float]]]:
        with torch.inference_mode():
            embedding = self._embed(torch.tensor([token], device=state.device)).to(self._dtype)
            state = self._heads(state, embedding)
            logits = self._base(state)
            if self._met:
                more = functional.linear(state, self._more[: len(self._met)])
                logits = torch.cat((logits, more), -1)
            count = min(LIKELY, logits.shape[-1])
            chances, places = torch.softmax(logits[0].float(), 0).topk(count)
            return state, list(zip(self._ids[places.cpu()].tolist(), chances.tolist(), strict=True))

    def _meet(self, tokens: Sequence[int]) -> None:
        """Let the guesses be among `tokens`, too: those of the prompt and the output so far."""
        if list(tokens[: len(self._read)]) != self._read:
            # Another prompt: its own tokens take the room of the last one's.
            self._met.clear()
            self._read = []
        behind = tokens[len(self._read) :]
        self._read.extend(behind)
        met = len(self._met)
        fresh = sorted({*behind} - self._known - self._met)[: SPARE - met]
        if fresh:
            ids = torch.tensor(fresh)
            place = len(self._known) + met
            self._ids[place : place + len(fresh)] = ids
            self._more[met : met + len(fresh)] = self._table[ids.to(self._table.device)].to(
                self._more
            )
            self._met.update(fresh)


def output_table(engine: Engine, folder: Path) -> Tensor:
    """The weights of the target's output layer, [vocab, hidden], as its folder holds them.

    A packed layer cannot be read by rows. Tied weights are the embedding's.
    """
    table: Tensor = engine.model.get_input_embeddings().weight.detach()
    if not getattr(engine.model.config, "tie_word_embeddings", False):
        for name, stored in open_shards(folder):
            if name == "lm_head.weight" and stored.shape == table.shape:
                return stored.clone()  # its file is closed after use
    return table
