"""The target on torch: rows in, logits out, a cache that is cut back. One pass, one forward."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from apply_edit.decode.rows import Rows
from apply_edit.decode.types import Branch
from apply_edit.errors import ModelError
from apply_edit.target.attention import Filled, PassPlan, Side
from apply_edit.target.cache import KeyValueCache
from apply_edit.target.hidden import Tap
from apply_edit.target.sample import draw, likely

STEP = 256
"""Key lengths come in steps: each new length would cost the CPU library a new kernel."""


@dataclass(frozen=True, slots=True)
class Widths:
    """What `calibrate` found to agree bit for bit: passes of at least `least` rows, at key
    lengths `spans` (ascending), values mixed `chunk` keys at a time (0: all at once). Empty
    `spans` means every multiple of `STEP`."""

    least: int = 2
    spans: tuple[int, ...] = field(default=())
    chunk: int = 0

    def span(self, keys: int) -> int:
        """The smallest usable key length that holds `keys`."""
        place = bisect.bisect_left(self.spans, keys)
        if place < len(self.spans):
            return self.spans[place]
        return -(-keys // STEP) * STEP


class TorchScores:
    """Logits of the scored rows: [rows, vocab] in the model's dtype."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits
        self._greedy: list[int] | None = None

    def __len__(self) -> int:
        return self.logits.shape[0]

    def greedy(self) -> list[int]:
        if self._greedy is None:
            # The index `max` gives is the first of equals, as argmax's, at a fifth of its time.
            self._greedy = self.logits.max(dim=-1).indices.tolist()
        return self._greedy

    def row(self, index: int) -> Sequence[float]:
        row: list[float] = self.logits[index].float().tolist()
        return row

    def top(self, index: int, count: int) -> list[int]:
        best: list[int] = self.logits[index].topk(count).indices.tolist()
        return best

    def draw(self, row: int, temperature: float, top_p: float, top_k: int, point: float) -> int:
        return draw(self.logits[row], temperature, top_p, top_k, point)

    def margin(self, index: int) -> float:
        best, second = self.logits[index].float().topk(2).values.tolist()
        return float(best - second)

    def likely(self, index: int, count: int) -> list[tuple[int, float]]:
        return likely(self.logits[index], count)


class Engine:
    """A causal language model of transformers as a `Target` (see decode/types.py).

    `model` must run on the attention interface of `target/attention.py`. Raises `ModelError`
    ``not-supported`` for models whose cache cannot be cut back (sliding windows, recurrent
    state) or that are no plain decoder.
    """

    def __init__(
        self, model: Any, *, window: int, widths: Widths | None = None, capacity: int = 1024
    ) -> None:
        config = model.config
        check_supported(config)
        self._model = model
        self._decoder = model.base_model
        self._window = window
        self.widths = widths or Widths()
        heads = config.num_attention_heads
        groups = getattr(config, "num_key_value_heads", None) or heads
        dim = getattr(config, "head_dim", None) or config.hidden_size // heads
        embedding = model.get_input_embeddings().weight
        dtype, device = embedding.dtype, embedding.device
        self._shape = (heads, groups, dim, dtype, device)
        self._layers = config.num_hidden_layers
        self._cache = KeyValueCache(
            config.num_hidden_layers,
            groups,
            dim,
            dtype=dtype,
            device=device,
            capacity=capacity,
        )
        self._first = 0
        self._sides: tuple[Side, ...] = ()
        self._tap: Tap | None = None

    def tap(self) -> Tap:
        """Hidden states of the scored rows, taken from now on."""
        if self._tap is None:
            self._tap = Tap(self._model)
        return self._tap

    @property
    def model(self) -> Any:
        """The model of transformers, its linear layers packed where the machine can."""
        return self._model

    @property
    def cache(self) -> KeyValueCache:
        """Keys and values; a draft may write behind the committed positions, where the next
        pass of this engine writes its own rows over it."""
        return self._cache

    @property
    def shape(self) -> tuple[int, int, int, torch.dtype, torch.device]:
        """Heads, key/value groups, head dimension, dtype and device of the attention."""
        return self._shape

    @property
    def length(self) -> int:
        return self._cache.length

    @property
    def limit(self) -> int:
        return self._window

    def beside(self, positions: int) -> Engine:
        """Another engine on the same weights: a cache of its own, for `positions` positions."""
        capacity = self.widths.span(min(positions, self._window))
        return Engine(self._model, window=self._window, widths=self.widths, capacity=capacity)

    def bytes_for(self, positions: int) -> int:
        """Bytes of the keys and values of so many positions, as `beside` reserves them."""
        _, groups, dim, dtype, _ = self._shape
        span = self.widths.span(min(positions, self._window))
        return 2 * self._model.config.num_hidden_layers * groups * span * dim * dtype.itemsize

    def take(self, other: Engine, length: int) -> None:
        """Commit the first `length` positions of `other`, on the same weights, in place of all."""
        with torch.inference_mode():
            self._cache.take(other.cache, length)

    def prefill(self, tokens: Sequence[int]) -> None:
        if tokens:
            self.together([Rows(self, tokens, (), None)])

    def score(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> TorchScores:
        scores = self.together([Rows(self, tokens, branches, first)])[0]
        assert scores is not None
        return scores

    def together(self, wanted: Sequence[Rows]) -> list[TorchScores | None]:
        """One pass over the rows of several engines on these weights, of one each.

        Commits rows that ask for no scores, and gives None for them.
        """
        ids: list[int] = []
        positions: list[int] = []
        plan: list[PassPlan] = []
        asked: list[int] = []
        with torch.inference_mode():
            for rows in wanted:
                engine = rows.target
                if not isinstance(engine, Engine) or engine._model is not self._model:
                    raise TypeError("rows of another model cannot share a pass")
                plan.append(engine._plan(rows, ids, positions))
                if rows.first is not None:
                    asked += range(plan[-1].offset + rows.first, len(ids))
            missing = self.widths.least - len(ids)
            if missing > 0:
                ids += [ids[-1]] * missing
                positions += [positions[-1]] * missing
            inputs = self._inputs(ids, positions, plan)
            if asked:
                scores, seen = self._scores(inputs, asked, len(ids))
            else:
                with suppress(Filled):
                    self._decoder(**inputs, last=self._layers - 1)
        result: list[TorchScores | None] = []
        done = 0
        for rows, one in zip(wanted, plan, strict=True):
            if rows.first is None:
                one.cache.length += one.main
                result.append(None)
                continue
            count = one.stop - one.offset - rows.first
            result.append(TorchScores(scores[done : done + count]))
            tap = rows.target._tap if isinstance(rows.target, Engine) else None
            if tap is not None:
                tap.scored(seen + done, seen + done + count)
            done += count
        return result

    def _scores(self, inputs: dict[str, Any], asked: list[int], total: int) -> tuple[Tensor, int]:
        """Logits [asked, vocab] of the rows `asked`, which ascend, of a pass of `total` rows; and
        which row of those that the output layer saw is the first of them.

        The output layer sees as few rows as the caller asked for, but never so few that its
        kernel would round differently.
        """
        least = min(self.widths.least, total)
        in_a_row = asked[-1] - asked[0] + 1 == len(asked)
        if in_a_row and total - asked[0] <= max(least, len(asked)):
            start = min(asked[0], total - least)
            logits = self._model(**inputs, logits_to_keep=total - start).logits[0]
            return logits[asked[0] - start :][: len(asked)], asked[0] - start
        kept = asked + [asked[-1]] * (least - len(asked))
        picked = torch.tensor(kept, device=self._shape[4])
        logits = self._model(**inputs, logits_to_keep=picked).logits[0]
        return logits[: len(asked)], 0

    def keep(self, rows: int, branch: int | None = None, branch_rows: int = 0) -> None:
        if self._tap is not None:
            side = None if branch is None else self._sides[branch]
            self._tap.kept(self._cache.length, rows, side, branch_rows, self._first)
        self._cache.length += rows
        if branch is not None and branch_rows:
            with torch.inference_mode():
                self._cache.adopt(self._sides[branch].start, branch_rows)
        self._cache.forget()

    def reset(self, length: int = 0) -> None:
        self._cache.length = min(self._cache.length, length)
        self._cache.forget()
        if self._tap is not None:
            self._tap.forget()

    def _plan(self, rows: Rows, ids: list[int], positions: list[int]) -> PassPlan:
        """Put this engine's part of a pass behind `ids` and `positions`; the plan for it."""
        past, offset, main = self._cache.length, len(ids), len(rows.tokens)
        first = self._first = rows.first or 0
        ids += rows.tokens
        positions += range(past, past + main)
        sides = []
        end = past + main
        for branch in rows.branches:
            position = past + first + 1 + branch.fork
            start, count = len(ids) - offset, len(branch.tokens)
            sides.append(Side(start, start + count, position))
            ids += branch.tokens
            positions += range(position, position + count)
            end = max(end, position + count)
        self._sides = tuple(sides)
        span = self.widths.span(end)
        self._cache.reserve(span)
        dtype, device = self._shape[3:]
        columns = torch.arange(past, span, device=device)

        def mask(position: int, rows: int) -> Tensor:
            places = torch.arange(position, position + rows, device=device)
            hidden = columns[None, :] > places[:, None]
            return torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill_(
                hidden, float("-inf")
            )

        return PassPlan(
            cache=self._cache,
            past=past,
            main=main,
            span=span,
            sides=sides,
            mask=mask(past, main),
            side_masks=[mask(s.position, s.stop - s.start) for s in sides],
            offset=offset,
            chunk=self.widths.chunk,
        )

    def _inputs(
        self, ids: list[int], positions: list[int], plan: Sequence[PassPlan]
    ) -> dict[str, Any]:
        device = self._shape[4]
        return {
            "input_ids": torch.tensor([ids], device=device),
            "position_ids": torch.tensor([positions], device=device),
            # A 4-D mask is taken as it is, so transformers builds none; the plan's are used.
            "attention_mask": plan[0].mask.new_zeros(1, 1, 1, 1),
            "use_cache": False,
            "plan": plan,
        }


def check_supported(config: Any) -> None:
    """Refuse models whose cache cannot be cut back or whose attention is not causal and full.

    Raises `ModelError` ``not-supported``.
    """
    kind = getattr(config, "model_type", "?")
    types = set(getattr(config, "layer_types", None) or ["full_attention"])
    reason = ""
    if types != {"full_attention"}:
        reason = f"it has {', '.join(sorted(types - {'full_attention'}))} layers"
    elif getattr(config, "is_encoder_decoder", False):
        reason = "it is an encoder-decoder"
    elif not getattr(config, "num_attention_heads", None) or not hasattr(
        config, "num_hidden_layers"
    ):
        reason = "it is no plain decoder"
    elif getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True):
        reason = "it attends through a sliding window"
    if reason:
        raise ModelError(
            "not-supported",
            f"models of type {kind!r} cannot be used: {reason}, so rejected tokens could not be "
            "taken back exactly; use a full-attention Llama, Qwen2 or Qwen3 type model",
        )
