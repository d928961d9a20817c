"""Ragged passes on tiny random models: every request has the bits of its run alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

from apply_edit.decode.rows import Rows
from apply_edit.decode.types import Branch
from apply_edit.editor import Edit, Editor, Options, Request
from apply_edit.errors import ApplyEditError
from apply_edit.target import attention
from apply_edit.target.backend import _cpu_has_bf16
from apply_edit.target.calibrate import usable_spans
from apply_edit.target.engine import Engine, TorchScores, Widths
from apply_edit.target.load import build_meta
from apply_edit.target.place import fill
from apply_edit.text import guard
from tests.slotted import VOCAB, TinyBackend
from tests.target.families import DTYPES, FAMILIES, SIZES, engine, same, save

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(request.param, tmp_path_factory.mktemp(request.param.replace("-", "_")))


class Script:
    """One request's life: a prompt, then passes of any length, some with branches.

    Says what it wants next, is told the logits, and commits what the script says.
    """

    def __init__(self, seed: int, target: Engine) -> None:
        rng = self.rng = random.Random(seed)
        self.target = target
        self.logits: list[torch.Tensor] = []
        vocab = SIZES["vocab_size"]
        self.prompt = [rng.randrange(vocab) for _ in range(rng.choice([5, 60, 250, 330]))]
        self.passes = []
        for _ in range(rng.randrange(2, 7)):
            tokens = [rng.randrange(vocab) for _ in range(rng.choice([1, 1, 2, 3, 7, 16, 40]))]
            branches = [
                Branch(
                    rng.randrange(len(tokens)),
                    tuple(rng.randrange(vocab) for _ in range(rng.randrange(1, 5))),
                )
                for _ in range(rng.choice([0, 0, 1, 2]))
            ]
            self.passes.append((tokens, branches))

    def wants(self) -> Iterator[Rows]:
        target = self.target
        cut = len(self.prompt) // 2
        for chunk in (self.prompt[:cut], self.prompt[cut:]):
            yield Rows(target, chunk, first=None)
        for tokens, branches in self.passes:
            first = self.rng.randrange(len(tokens)) if not branches else 0
            yield Rows(target, tokens, branches, first)
            # Keep a whole branch, or some of the main rows.
            if branches and self.rng.random() < 0.5:
                number = self.rng.randrange(len(branches))
                branch = branches[number]
                target.keep(first + 1 + branch.fork, number, len(branch.tokens))
            else:
                target.keep(first + self.rng.randrange(1, len(tokens) - first + 1))

    def told(self, scores: TorchScores | None) -> None:
        if scores is not None:
            self.logits.append(scores.logits.clone())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_ragged_passes_have_the_bits_of_single_ones(folder: Path, dtype: torch.dtype) -> None:
    first = engine(folder, dtype)
    single = []
    for seed in range(6):
        script = Script(seed, first.beside(1500))
        for rows in script.wants():
            if rows.first is None:
                script.target.prefill(rows.tokens)
            else:
                script.told(script.target.score(rows.tokens, rows.branches, rows.first))
        single.append(script.logits)
    assert all(torch.isfinite(logits).all() for run in single for logits in run)
    rng = random.Random(7)
    for most in (2, 6):
        waiting = list(range(6))
        rng.shuffle(waiting)
        live: list[tuple[int, Script, Iterator[Rows], Rows]] = []
        found: dict[int, list[torch.Tensor]] = {}
        while waiting or live:
            while waiting and len(live) < most and rng.random() < 0.7:
                # The first is reused by one after another, as a session does.
                seed = waiting.pop()
                slot = first if all(s.target is not first for _, s, _, _ in live) else None
                if slot is not None:
                    slot.reset(0)
                script = Script(seed, slot or first.beside(300))  # too small: it has to grow
                wants = script.wants()
                live.append((seed, script, wants, next(wants)))
            if not live:
                continue
            rng.shuffle(live)
            turn, live = live[:], []
            scores = first.together([rows for *_, rows in turn])
            for (seed, script, wants, _), got in zip(turn, scores, strict=True):
                script.told(got)
                following = next(wants, None)
                if following is None:
                    found[seed] = script.logits
                else:
                    live.append((seed, script, wants, following))
        for seed in range(6):
            assert len(found[seed]) == len(single[seed])
            for ours, wanted in zip(found[seed], single[seed], strict=True):
                assert same(ours, wanted), (most, seed)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_scores_of_rows_that_are_not_in_a_row(folder: Path, dtype: torch.dtype) -> None:
    """Few enough to be padded, with rows that ask for nothing before and between them."""
    first = engine(folder, dtype)
    slots = [first, first.beside(50), first.beside(50)]
    tails = [(1, 2, 3), (4, 5), (6, 7)]
    for slot in slots:
        slot.prefill([9, 8, 7])
    wanted = [s.score(t, first=len(t) - 1).logits for s, t in zip(slots, tails, strict=True)]
    rows = [Rows(s, t, first=len(t) - 1) for s, t in zip(slots, tails, strict=True)]
    rows[1] = Rows(slots[1], tails[1], first=None)
    one, nothing, other = first.together(rows)
    assert nothing is None
    assert one is not None
    assert other is not None
    assert same(one.logits, wanted[0])
    assert same(other.logits, wanted[2])
    assert [slot.length for slot in slots] == [3, 5, 3]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_copied_beginning_is_as_good_as_one_read(folder: Path, dtype: torch.dtype) -> None:
    first = engine(folder, dtype)
    rng = random.Random(0)
    ids = [rng.randrange(SIZES["vocab_size"]) for _ in range(340)]
    first.prefill(ids[:320])
    wanted = first.score(ids[320:]).logits.clone()
    slot = first.beside(340)
    slot.prefill(ids[40:90])
    slot.take(first, 300)
    assert slot.length == 300
    first.reset(0)
    first.prefill(ids[100:200])  # what was copied is the slot's own
    slot.prefill(ids[300:320])
    assert same(slot.score(ids[320:]).logits, wanted)
    assert slot.cache.nbytes == first.bytes_for(340)


def test_rows_of_another_model_are_refused(folder: Path) -> None:
    one, other = engine(folder, torch.float32), engine(folder, torch.float32)
    with pytest.raises(TypeError):
        one.together([Rows(one, [1, 2]), Rows(other, [1, 2])])


WIDE = {**SIZES, "vocab_size": VOCAB, "max_position_embeddings": 4096}
KINDS = {"llama": LlamaConfig(**WIDE), "qwen2": Qwen2Config(**WIDE)}
FILES = [
    b"def a():\n    return 1\n",
    b"x = 1\n",
    b"# nothing\n" * 9,
    b"y = [\n    1,\n    2,\n]\n",
    "ä = 'ö'\n".encode(),
]


@pytest.fixture(scope="module", params=sorted(KINDS))
def backend(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> TinyBackend:
    torch.manual_seed(3)
    path = tmp_path_factory.mktemp(request.param)
    AutoModelForCausalLM.from_config(KINDS[request.param]).save_pretrained(path)
    attention.register()
    dtype = torch.bfloat16 if _cpu_has_bf16() else torch.float32
    _, model = build_meta(path, dtype, attention.NAME)
    fill(model, path, dtype=dtype, device=torch.device("cpu"), pack=True)
    target = Engine(model, window=4096)
    target.widths = Widths(8, usable_spans(target))
    return TinyBackend(target)


def shown(results: list[Edit | ApplyEditError]) -> list[object]:
    """What must be alike: bytes and tokens, or the error."""
    return [
        (r.output, [t for s in r.steps for t in s.tokens], r.stats.finish)
        if isinstance(r, Edit)
        else (r.code, r.message)
        for r in results
    ]


@pytest.mark.skipif(not _cpu_has_bf16(), reason="no native bf16 on this CPU")
@pytest.mark.parametrize(
    "options",
    [
        Options(max_new_tokens=30),
        Options(max_new_tokens=25, temperature=0.8, top_p=0.9, seed=5),
        Options(max_new_tokens=12, draft="none", verify=True),
        Options(max_new_tokens=12, k=3, verify=True),
    ],
    ids=["greedy", "sampled", "plain", "k=3"],
)
def test_edits_in_a_batch_are_those_made_alone(backend: TinyBackend, options: Options) -> None:
    allow = frozenset({*guard.CODES, "garbled"})
    items = [
        (data, Request(instruction=f"Make it {n}", name="f.py", allow=allow))
        for n, data in enumerate(FILES)
    ]
    items.insert(2, (b"\0", Request(instruction="not text")))
    editor = Editor(backend)
    alone = shown(editor.edit_all(items, options, batch=1))
    assert sum(isinstance(entry[0], bytes) for entry in alone) >= 4  # type: ignore[index]
    for batch in (2, 6):
        backend.most = 0
        together = editor.edit_all(items, options, batch=batch)
        assert shown(together) == alone
        # The batch was one: and never of more than was said.
        assert backend.most == min(batch, 5)
        edits = [r for r in together if isinstance(r, Edit)]
        assert max(r.stats.batch for r in edits) == backend.most
        assert all(r.stats.verified is True for r in edits) or not options.verify
