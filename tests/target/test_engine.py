"""The engine on tiny random models: blocks, branches, rewinding give the bits of single steps.

Bit equality is promised, and tested, where the CPU multiplies bf16 natively; in float32 its
library rounds by row count, which calibration finds out, and results agree closely.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, GemmaConfig, MistralConfig

from apply_edit.decode.accept import Greedy
from apply_edit.decode.loop import decode
from apply_edit.decode.types import Branch
from apply_edit.errors import ModelError
from apply_edit.target.engine import Engine, Widths, check_supported
from tests.decode.fake import Fixed, Scripted, Silent
from tests.target.families import DTYPES, FAMILIES, SIZES, engine, same, save

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(request.param, tmp_path_factory.mktemp(request.param.replace("-", "_")))


def tokens(count: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(SIZES["vocab_size"]) for _ in range(count)]


def blocks(target: Engine, ids: list[int], start: int, sizes: list[int]) -> torch.Tensor:
    """Logits of ids[start:], scored in blocks of the given sizes in turn."""
    target.reset(start)
    rows = []
    place = start
    while place < len(ids):
        size = min(sizes[len(rows) % len(sizes)], len(ids) - place)
        rows.append(target.score(ids[place : place + size]).logits.clone())
        target.keep(size)
        place += size
    return torch.cat(rows)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("pack", [True, False], ids=["packed", "plain"])
def test_blocks_are_bit_equal_to_single_steps(folder: Path, dtype: torch.dtype, pack: bool) -> None:
    target = engine(folder, dtype, pack=pack)
    ids = tokens(330)
    target.prefill(ids[:200])
    single = blocks(target, ids, 200, [1])
    assert torch.isfinite(single).all()
    for sizes in ([2], [7], [16], [130], [3, 1, 40, 9]):
        assert same(blocks(target, ids, 200, sizes), single), sizes


def test_logits_are_those_of_transformers(folder: Path) -> None:
    target = engine(folder, torch.float32)
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = tokens(60)
    with torch.inference_mode():
        wanted = theirs(torch.tensor([ids])).logits[0]
    target.prefill(ids[:20])
    ours = target.score(ids[20:], first=5).logits
    assert ours.shape == (35, SIZES["vocab_size"])
    torch.testing.assert_close(ours, wanted[25:], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_branches_are_scored_as_if_alone_and_adopted(folder: Path, dtype: torch.dtype) -> None:
    target = engine(folder, dtype)
    ids = tokens(80)
    target.prefill(ids[:50])
    alone = blocks(target, ids, 50, [1])
    target.reset(50)
    wrong = tokens(3, seed=1)
    scores = target.score(
        [*ids[50:54], *wrong], [Branch(0, (wrong[0],)), Branch(1, tuple(ids[54:60]))], first=2
    )
    # Rows: main 52.. (5), the branch of one, the branch of six below ids[53].
    assert len(scores) == 5 + 1 + 6
    assert same(scores.logits[:2], alone[2:4])
    assert target.length == 50
    assert same(scores.logits[6:12], alone[4:10])
    target.keep(4, 1, 6)
    assert target.length == 60
    rest = torch.cat([target.score(ids[60:70]).logits])
    assert same(rest, alone[10:20])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_many_positions_grow_the_cache(folder: Path, dtype: torch.dtype) -> None:
    target = engine(folder, dtype)
    ids = tokens(1400)
    for start in range(0, 1390, 256):
        target.prefill(ids[start : min(start + 256, 1390)])
    late = target.score(ids[1390:]).logits.clone()
    target.reset(0)
    for start in range(0, 1390, 139):
        target.prefill(ids[start : start + 139])
    assert same(target.score(ids[1390:]).logits, late)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_drafted_decoding_gives_the_tokens_of_plain(folder: Path, dtype: torch.dtype) -> None:
    target = engine(folder, dtype)
    prompt = tokens(40)

    def run(proposer: Scripted | Silent, k: int) -> list[int]:
        target.reset(0)
        target.prefill(prompt[:-3])
        steps = decode(
            target, proposer, Fixed(k), tail=prompt[-3:], rule=Greedy(), stop=(), budget=60
        )
        return [t for s in steps for t in s.tokens]

    plain = run(Silent(), 0)
    assert len(plain) == 60
    assert run(Scripted(plain), 16) == plain
    assert run(Scripted(plain, wrong=True), 5) == plain
    halves = [*plain[:25], *tokens(5, seed=3), *plain[30:]]
    assert run(Scripted(halves), 7) == plain


def test_widths_round_up_to_usable_lengths() -> None:
    widths = Widths(2, (256, 512, 768, 1280))
    assert [widths.span(n) for n in (1, 256, 257, 769, 1280, 1281)] == [
        256,
        256,
        512,
        1280,
        1280,
        1536,
    ]
    assert Widths().span(1000) == 1024


@pytest.mark.parametrize(
    "config",
    [
        MistralConfig(**SIZES, sliding_window=128),
        AutoConfig.for_model("gemma2", **{**SIZES, "num_hidden_layers": 2}),
        AutoConfig.for_model("mamba", hidden_size=32, num_hidden_layers=2, vocab_size=99),
    ],
    ids=lambda c: c.model_type,
)
def test_caches_that_cannot_be_cut_back_are_refused(config: object) -> None:
    with pytest.raises(ModelError) as refused:
        check_supported(config)
    assert refused.value.code == "not-supported"


def test_full_attention_is_not_refused() -> None:
    check_supported(MistralConfig(**SIZES, sliding_window=None))
    check_supported(GemmaConfig(**SIZES, head_dim=16))
