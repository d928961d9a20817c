"""Training of draft heads on what the target wrote: cross entropy to its own next tokens.

Each position is unrolled for `STEPS` steps with the true tokens (teacher forcing); what is to be
guessed is what the target chose there, also where source text goes on otherwise. The output layer
is the target's own, frozen, and restricted in each batch to the batch's tokens and some others: its
share of the work would be ten times the rest. (Drawing the guessed states to the target's true ones
besides, as EAGLE does, gained nothing in the same time.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

import torch
from torch import Tensor
from torch.nn import functional

from apply_edit.errors import ModelError
from apply_edit.events import OnEvent, Stage, ignore
from apply_edit.target.heads import STEPS, WIDTH, Heads, Shape, Trained
from apply_edit.target.traces import CHECKPOINT, Trace, Traces

VOCABULARY = 16384
"""Tokens the heads choose among, beside those of the prompt: the frequent ones."""
BATCH = 256
NEGATIVES = 2048
"""Tokens of the vocabulary that a batch's own are told from."""
RATE, WARM = 1e-3, 20
"""Learning rate of AdamW, and the steps in which it is reached."""
LEAST_RATE = 0.05
DECAY = 0.05
"""Weight decay: there are few positions for as many parameters."""
FADING = 0.8
"""What a further step's loss keeps of the one before it (as in Medusa)."""
HELD_OUT = 10
"""One trace in so many is not trained on, but measured with."""
PASSES = 12.0
"""How often each position is seen at most, by weight: more of it is learnt by heart."""
SAVED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Fit:
    """How a training went: positions seen, the loss at its begin and end, and on traces held out
    how often each step guessed right given the true tokens before it, and the mean length of the
    guesses that would have been accepted."""

    seen: int
    first_loss: float
    last_loss: float
    right: tuple[float, ...]
    accepted: float


@dataclass(frozen=True, slots=True)
class Positions:
    """Traces one behind another: hidden [n, hidden], tokens [n], choices [n], weight [n]; `ends`
    [n] is the place behind the trace that a position belongs to."""

    hidden: Tensor
    tokens: Tensor
    choices: Tensor
    weight: Tensor
    ends: Tensor

    @classmethod
    def of(cls, traces: Sequence[Trace]) -> Positions:
        ends, stop = [], 0
        for trace in traces:
            stop += trace.tokens.numel()
            ends.append(torch.full((trace.tokens.numel(),), stop))
        return cls(
            torch.cat([trace.hidden for trace in traces]),
            torch.cat([trace.tokens for trace in traces]),
            torch.cat([trace.choices for trace in traces]),
            torch.cat([trace.weight for trace in traces]),
            torch.cat(ends),
        )

    def ahead(self, places: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        """The tokens at `places` and those behind, [n, steps], and what the target chose one
        further on each, [n, steps]; -1 past a trace's end."""
        index = places[:, None] + torch.arange(steps + 1)
        inside = index < self.ends[places][:, None]
        index.clamp_(max=self.tokens.numel() - 1)
        tokens = torch.where(inside, self.tokens[index], -1)
        return tokens[:, :-1], torch.where(inside, self.choices[index], -1)[:, 1:]


class Fitting:
    """Heads being trained on `traces`, of the target's `embedding` and `output` [vocab, hidden].

    `stored` keeps a checkpoint, from which a killed training goes on.
    """

    def __init__(
        self,
        traces: Sequence[tuple[str, Trace]],
        embedding: Tensor,
        output: Tensor,
        *,
        stored: Traces | None = None,
        batch: int = BATCH,
        passes: float = PASSES,
    ) -> None:
        held, taken = _split(traces)
        if not taken:
            raise ModelError(
                "no-practice", "the model wrote nothing to learn from; name more source files"
            )
        self._data = Positions.of([trace for _, trace in taken])
        self._test = Positions.of([trace for _, trace in held]) if held else self._data
        self._embedding, self._output = embedding, output
        self._stored = stored
        self._batch = batch
        self._passes = passes
        counts = torch.bincount(self._data.choices, minlength=output.shape[0]).float()
        self._vocabulary = _vocabulary(counts)
        self._place = torch.full((output.shape[0],), -1)
        self._place[self._vocabulary] = torch.arange(self._vocabulary.numel())
        # In bf16 where the target runs in it: there the CPU is fast at it. (The output layer may be
        # a view of the file, of any type.)
        self._fast = embedding.dtype == torch.bfloat16
        self._rows = output[self._vocabulary].to(torch.bfloat16 if self._fast else torch.float32)
        # As word2vec draws them, rarer ones more often than they occur.
        self._noise = (counts[self._vocabulary] + 0.1).pow(0.75)
        hidden = self._data.hidden
        scale = float(hidden[:4096].float().square().mean().sqrt())
        torch.manual_seed(0)
        self.heads = Heads(hidden.shape[1], WIDTH * hidden.shape[1], scale)
        self._optimiser = torch.optim.AdamW(
            self.heads.parameters(), RATE, betas=(0.9, 0.95), weight_decay=DECAY
        )
        self.steps = 0
        self.spent = 0.0
        self._losses: list[float] = []

    @property
    def shape(self) -> Shape:
        """What a file of heads for this target has to agree with."""
        return Shape(self._output.shape[1], self._output.shape[0])

    @property
    def trained(self) -> Trained:
        return Trained(self.heads, self._vocabulary, STEPS)

    def run(
        self, seconds: float, on_event: OnEvent = ignore, clock: Callable[[], float] = monotonic
    ) -> Fit:
        """Train for `seconds`, those of a run before that was killed included, or until every
        position was seen as often as `passes` says, by weight."""
        self._resume()
        weight = self._data.weight
        most = math.ceil(self._passes * float(weight.sum()) / self._batch)
        last = saved = clock()
        while self.steps < most and self.spent < seconds:
            share = max(self.steps / most, self.spent / seconds)
            self._step(share)
            now = clock()
            self.spent += now - last
            last = now
            share = max(self.steps / most, self.spent / seconds)
            on_event(Stage("train", round(100 * min(1.0, share)), 100, "%", self._said()))
            if now - saved > SAVED_SECONDS:
                self._save()
                saved = now
        self._save()
        right, accepted = self.measure()
        seen = self.steps * self._batch
        first, final = self._ends()
        return Fit(seen, first, final, right, accepted)

    def _step(self, share: float) -> None:
        """One batch, `share` of the whole training being done."""
        # A batch belongs to its number, so that a training taken up again sees what it would have.
        chance = torch.Generator().manual_seed(self.steps)
        places = torch.multinomial(self._data.weight, self._batch, True, generator=chance)
        rate = RATE * max(LEAST_RATE, 0.5 + 0.5 * math.cos(math.pi * min(1.0, share)))
        for group in self._optimiser.param_groups:
            group["lr"] = rate * min(1.0, (self.steps + 1) / WARM)
        loss = self._loss(places, chance)
        if loss.requires_grad:  # there were tokens to learn
            self._optimiser.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(self.heads.parameters(), 1.0)
            if bool(norm.isfinite()):  # a batch that overflows must not spoil what was learnt
                self._optimiser.step()
        self._losses.append(float(loss.detach()))
        self.steps += 1

    def _loss(self, places: Tensor, chance: torch.Generator) -> Tensor:
        data = self._data
        tokens, choices = data.ahead(places, STEPS)
        wanted = torch.where(choices >= 0, self._place[choices.clamp(min=0)], -1)
        count = min(NEGATIVES, self._vocabulary.numel())
        others = torch.multinomial(self._noise, count, generator=chance)
        choice = torch.unique(torch.cat((wanted[wanted >= 0], others)))
        place = torch.full((self._vocabulary.numel(),), -1)
        place[choice] = torch.arange(choice.numel())
        rows = self._rows[choice]
        states = data.hidden[places].float()
        total = states.new_zeros(())
        for step in range(STEPS):
            with torch.autocast("cpu", torch.bfloat16, enabled=self._fast):
                states = self.heads(states, self._embed(tokens[:, step]))
            kept = wanted[:, step] >= 0
            if bool(kept.any()):
                logits = functional.linear(states[kept].to(rows.dtype), rows).float()
                lost = functional.cross_entropy(logits, place[wanted[kept, step]])
                total = total + FADING**step * lost
        return total

    def measure(self, trained: Trained | None = None) -> tuple[tuple[float, ...], float]:
        """On traces held out, where the guess matters most: how often each step of the heads
        (those being trained, if no others are given) is right, and the mean length of a chain of
        guesses that holds."""
        data = self._test
        heads, vocabulary = self.heads, self._vocabulary
        if trained is not None:
            heads, vocabulary = trained.heads, trained.vocabulary
        output = self._output[vocabulary].to(self._rows.dtype)
        inside = (data.weight >= data.weight.max()) & (
            torch.arange(data.tokens.numel()) + STEPS < data.ends
        )
        places = torch.nonzero(inside).flatten()[: 16 * BATCH]
        if not places.numel():
            return (0.0,) * STEPS, 0.0
        hits = []
        with torch.inference_mode():
            for start in range(0, places.numel(), BATCH):
                part = places[start : start + BATCH]
                tokens, choices = data.ahead(part, STEPS)
                states = data.hidden[part].float()
                found = []
                for step in range(STEPS):
                    states = heads(states, self._embed(tokens[:, step]))
                    logits = functional.linear(states.to(output.dtype), output)
                    found.append(vocabulary[logits.argmax(-1)] == choices[:, step])
                hits.append(torch.stack(found, 1))
        hit = torch.cat(hits).float()
        right = tuple(float(share) for share in hit.mean(0))
        return right, float(hit.cumprod(1).sum(1).mean())

    def _embed(self, tokens: Tensor) -> Tensor:
        return functional.embedding(tokens.clamp(min=0), self._embedding).float()

    def _said(self) -> str:
        recent = self._losses[-20:]
        return f"loss {sum(recent) / len(recent):.2f}"

    def _ends(self) -> tuple[float, float]:
        """The mean losses of the first and the last batches."""
        some = max(1, min(20, len(self._losses) // 4))
        if not self._losses:
            return 0.0, 0.0
        first, last = self._losses[:some], self._losses[-some:]
        return sum(first) / len(first), sum(last) / len(last)

    def _save(self) -> None:
        if self._stored is None:
            return
        tensors = {f"heads.{key}": value for key, value in self.heads.state_dict().items()}
        for number, state in self._optimiser.state_dict()["state"].items():
            tensors |= {f"state.{number}.{key}": value for key, value in state.items()}
        tensors["losses"] = torch.tensor(self._losses)
        tensors["vocabulary"] = self._vocabulary
        metadata = {"steps": str(self.steps), "spent": str(self.spent)}
        self._stored.write(CHECKPOINT, tensors, metadata)

    def _resume(self) -> None:
        """Take up a checkpoint, if there is one of the same shapes."""
        from safetensors import SafetensorError, safe_open

        if self._stored is None:
            return
        path = self._stored.folder / CHECKPOINT
        try:
            with safe_open(path, framework="pt", device="cpu") as file:
                metadata = file.metadata() or {}
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            heads = {k.removeprefix("heads."): v for k, v in tensors.items() if k[:6] == "heads."}
            if not torch.equal(tensors["vocabulary"], self._vocabulary):
                return  # of other traces
            self.heads.load_state_dict(heads)
            moments: dict[int, dict[str, Tensor]] = {}
            for key, value in tensors.items():
                if key.startswith("state."):
                    _, number, name = key.split(".")
                    moments.setdefault(int(number), {})[name] = value
            groups = self._optimiser.state_dict()["param_groups"]
            self._optimiser.load_state_dict({"state": moments, "param_groups": groups})
            self._losses = tensors["losses"].tolist()
            self.steps, self.spent = int(metadata["steps"]), float(metadata["spent"])
        except (OSError, SafetensorError, KeyError, ValueError, RuntimeError):
            return


def _split(
    traces: Sequence[tuple[str, Trace]],
) -> tuple[list[tuple[str, Trace]], list[tuple[str, Trace]]]:
    """Traces to measure with and traces to learn from, told apart by name."""
    used = [(key, trace) for key, trace in traces if trace.tokens.numel() > 1]
    held = used[::HELD_OUT] if len(used) >= HELD_OUT else []
    names = {key for key, _ in held}
    return held, [(key, trace) for key, trace in used if key not in names]


def _vocabulary(counts: Tensor) -> Tensor:
    """The tokens that occurred, most frequent first, filled up with the lowest ids: byte-pair
    vocabularies are in the order in which pairs were merged, frequent ones first."""
    size = min(VOCABULARY, counts.numel())
    order = torch.arange(counts.numel(), dtype=torch.float32)
    worth = counts + 0.5 * (1.0 - order / counts.numel())
    return worth.topk(size).indices.sort().values
