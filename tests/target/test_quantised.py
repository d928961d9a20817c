"""Weights in 4 bits: how near they are, and that drafting with them changes no token."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from apply_edit.decode.accept import Greedy, Rule, Sampled
from apply_edit.decode.loop import decode
from apply_edit.decode.schedule import AdaptiveSchedule, FixedSchedule
from apply_edit.decode.types import Branch, Proposer
from apply_edit.draft.chain import ChainProposer
from apply_edit.draft.combine import CombinedProposer
from apply_edit.draft.lookup import CopyProposer
from apply_edit.draft.model import ModelDrafter
from apply_edit.draft.self import SelfDrafter
from apply_edit.events import Event, Note, Stage
from apply_edit.target import quantised, rounded
from apply_edit.target.engine import Engine
from apply_edit.target.lean import HEAD, LeanTarget, parts
from apply_edit.target.linear import can_pack
from apply_edit.target.quantised import GROUP, can_quantise, fits, quantise, restored
from tests.target.families import FAMILIES, SIZES, engine, save

BF16 = torch.bfloat16
needs_four_bits = pytest.mark.skipif(not can_quantise(), reason="this CPU has no 4-bit kernels")
PROMPT = [7 * i % 200 + 1 for i in range(90)]
PLAIN = AdaptiveSchedule([(1, 10.0), (8, 11.0), (64, 40.0)])


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(request.param, tmp_path_factory.mktemp(request.param))


def write(target: Engine, proposer: Proposer | None, rule: Rule, budget: int = 30) -> list[int]:
    target.reset(0)
    target.prefill(PROMPT[:-3])
    if proposer is None:
        proposer = ChainProposer(Never(), PROMPT, PLAIN.cost)
    steps = decode(
        target,
        proposer,
        proposer if isinstance(proposer, CombinedProposer) else FixedSchedule(256),
        tail=PROMPT[-3:],
        rule=rule,
        stop=set(),
        budget=budget,
    )
    return [token for step in steps for token in step.tokens]


class Never:
    def behind(self, tokens: object) -> int:
        return 0

    def begin(self, tokens: object) -> None:
        return None

    def more(self, token: int) -> None:
        return None

    def end(self) -> None:
        pass


@needs_four_bits
@pytest.mark.parametrize("steps", [15, 13, 10])
def test_weights_on_a_grid_come_back(steps: int) -> None:
    generator = torch.Generator().manual_seed(steps)
    levels = torch.randint(0, steps + 1, (32, 4 * GROUP), generator=generator)
    levels[:, ::GROUP], levels[:, 1::GROUP] = 0, steps
    scale = torch.rand(32, 1, generator=generator) + 0.1
    weight = ((levels - 5) * scale).to(BF16)
    error = (restored(quantise(weight)).float() - weight.float()).norm()
    assert error / weight.float().norm() < 0.01


@needs_four_bits
def test_other_weights_are_near() -> None:
    weight = torch.randn(64, 96, generator=torch.Generator().manual_seed(0)).to(BF16)
    weight[3] = 0.5  # a row without any range
    found = restored(quantise(weight)).float()
    assert (found - weight.float()).norm() / weight.float().norm() < 0.12
    assert torch.allclose(found[3], weight[3].float(), rtol=0.01)
    assert fits(64, 96)
    assert not fits(211, 64)
    assert not fits(64, 40)
    with pytest.raises(ValueError, match="211 x 64"):
        quantise(torch.zeros(211, 64))


@needs_four_bits
@pytest.mark.parametrize("dtype", [BF16, torch.float32])
def test_the_lean_decoder_says_nearly_what_the_target_says(
    folder: Path, dtype: torch.dtype
) -> None:
    target = engine(folder, dtype)
    narrow = rounded.lean(target, folder)
    assert narrow is not None
    target.prefill(PROMPT[:40])
    wanted = target.score(PROMPT[40:44]).logits.float()
    found = narrow.score(PROMPT[40:44], (), 0).logits.float()
    closeness = torch.cosine_similarity(wanted, found, dim=-1)
    assert closeness.min() > 0.7  # random weights are no grid: 4 bits cost something here
    # A row at a time is the same chain.
    alone = []
    for token in PROMPT[40:44]:
        alone.append(narrow.score([token]).logits[0].float())
        narrow.keep(1)
    narrow.reset(40)
    assert torch.cosine_similarity(found, torch.stack(alone), dim=-1).min() > 0.999
    with pytest.raises(ValueError, match="chain"):
        narrow.score([1], [Branch(0, (2,))])


def test_exact_weights_make_the_lean_decoder_the_target(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the target's own layers in place of rounded ones only the last bits may differ."""
    target = engine(folder, torch.float32, pack=False)
    stacked = {}
    for name, paths in (parts(target.model) or {}).items():
        weight = torch.cat([target.model.get_submodule(p).weight.detach() for p in paths])
        stacked[name] = weight
    monkeypatch.setattr(
        "apply_edit.target.lean.FourBitLinear",
        lambda weight, bias: lambda x: torch.nn.functional.linear(x, weight, bias),
    )
    narrow = LeanTarget(target, stacked)
    target.prefill(PROMPT[:40])
    wanted = target.score(PROMPT[40:46]).logits
    assert torch.allclose(narrow.score(PROMPT[40:46]).logits, wanted, rtol=1e-3, atol=1e-3)
    assert torch.allclose(
        narrow.score(PROMPT[40:46], (), 4).logits, wanted[4:], rtol=1e-3, atol=1e-3
    )


@needs_four_bits
@pytest.mark.parametrize("rule", [Greedy(), Sampled(0.8, 0.95, 0, 3)], ids=["greedy", "sampled"])
@pytest.mark.parametrize("dtype", [BF16, torch.float32])
def test_drafting_with_itself_changes_no_token(
    folder: Path, dtype: torch.dtype, rule: Rule
) -> None:
    if dtype == BF16 and not can_pack(BF16):
        pytest.skip("bf16 passes of different widths do not agree on this CPU")
    target = engine(folder, dtype)
    narrow = rounded.lean(target, folder)
    assert narrow is not None
    plain = write(target, None, rule)
    keys = [t[:, : target.length].clone() for t in target.cache.layer(1)]
    drafted = ChainProposer(SelfDrafter(narrow), PROMPT, PLAIN.cost, k=5)
    assert write(target, drafted, rule) == plain
    # Not a bit of what is committed is the draft's.
    for before, after in zip(keys, target.cache.layer(1), strict=True):
        held = after[:, : target.length]
        if target.widths.spans:
            assert torch.equal(before, held)
        else:  # passes of this width differ on this CPU without any draft, by so much
            assert torch.allclose(before, held, rtol=1e-4, atol=1e-4)
    both = CombinedProposer(
        CopyProposer([*plain[:12], 5, *plain[14:]]),
        ChainProposer(SelfDrafter(narrow), PROMPT, PLAIN.cost),
        PLAIN,
        PLAIN.cost,
        expected=(1e6, 0.0),
    )
    assert write(target, both, rule) == plain


@needs_four_bits
def test_another_model_drafts_in_its_own_cache(folder: Path, tmp_path: Path) -> None:
    target = engine(folder, torch.float32)
    other = engine(save("llama", tmp_path), torch.float32)
    drafter = ModelDrafter(other, SIZES["vocab_size"], rounded.lean(other, tmp_path))
    plain = write(target, None, Greedy())
    drafted = ChainProposer(drafter, PROMPT, PLAIN.cost, k=3)
    assert write(target, drafted, Greedy()) == plain
    assert other.length >= len(PROMPT) + 22


@needs_four_bits
def test_rounded_weights_are_kept_and_checked(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = engine(folder, torch.float32)
    kept = tmp_path / "four-bit" / "x.safetensors"
    events: list[Event] = []
    first = rounded.lean(target, folder, kept, events.append)
    assert any(isinstance(e, Stage) and e.label == "4 bits" for e in events)
    assert any(isinstance(e, Note) for e in events)
    assert [p.name for p in kept.parent.iterdir()] == ["x.safetensors"]
    events.clear()
    second = rounded.lean(target, folder, kept, events.append)
    assert not any(isinstance(e, Stage) for e in events)
    assert first is not None
    assert second is not None
    assert torch.equal(first.score([5]).logits, second.score([5]).logits)
    # A file that was cut off, or made elsewhere, is made anew.
    for damage in (kept.read_bytes()[:-100], b"", b"\xff" * 100):
        kept.write_bytes(damage)
        third = rounded.lean(target, folder, kept)
        assert third is not None
        assert torch.equal(first.score([5]).logits, third.score([5]).logits)
    assert rounded.load(kept, {"0.qkv": (1, 2)}) is None
    assert rounded.load(kept, {"nothing": (1, 2)}) is None
    monkeypatch.setattr(rounded, "FORMAT", rounded.FORMAT + 1)
    assert rounded.load(kept, {}) is None


def test_without_the_operators_there_is_no_draft(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = engine(folder, torch.float32)

    def missing(*_: object) -> None:
        raise NotImplementedError

    can_quantise.cache_clear()
    monkeypatch.setattr(quantised, "quantise", missing)
    assert not can_quantise()
    assert rounded.lean(target, folder) is None
    # Operators that answer wrongly are as good as none.
    can_quantise.cache_clear()
    monkeypatch.setattr(quantised, "quantise", lambda weight: quantise(weight * 1.5))
    assert not can_quantise()
    can_quantise.cache_clear()


def test_no_room_no_draft(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = engine(folder, torch.float32)
    monkeypatch.setattr(rounded, "available_bytes", lambda: 1000)
    assert rounded.lean(target, folder) is None


def test_unknown_structures_are_left_alone(folder: Path) -> None:
    target = engine(folder, torch.float32)
    names = parts(target.model)
    assert names is not None
    assert HEAD in names
    target.model.config.hidden_act = "gelu"
    try:
        assert parts(target.model) is None
        with pytest.raises(ValueError, match="structure"):
            LeanTarget(target, {})
    finally:
        target.model.config.hidden_act = "silu"
