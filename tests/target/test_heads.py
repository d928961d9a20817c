"""Draft heads on tiny models: the states they read, their files, their training, their drafts."""

from __future__ import annotations

import json
import math
import stat
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from apply_edit.decode.accept import Greedy, Rule, Sampled
from apply_edit.decode.loop import decode
from apply_edit.decode.schedule import AdaptiveSchedule, FixedSchedule
from apply_edit.decode.types import Branch, Proposer, Schedule, Step
from apply_edit.draft.chain import ChainProposer
from apply_edit.draft.combine import CombinedProposer
from apply_edit.draft.heads import HeadsDrafter
from apply_edit.draft.lookup import CopyProposer
from apply_edit.errors import ModelError
from apply_edit.events import Event
from apply_edit.target.ahead import HeadsAhead, output_table
from apply_edit.target.engine import Engine
from apply_edit.target.fit import Fitting
from apply_edit.target.heads import Heads, Shape, Trained, check_trained, load, save
from apply_edit.target.hidden import positions
from apply_edit.target.linear import can_pack
from apply_edit.target.store import heads_path
from apply_edit.target.traces import CHECKPOINT, Trace, Traces
from tests.clock import Clock
from tests.decode.fake import Silent
from tests.target.families import SIZES, engine
from tests.target.families import save as save_model

pytestmark = pytest.mark.usefixtures("one_thread")

BF16 = torch.bfloat16
HIDDEN, VOCAB = SIZES["hidden_size"], SIZES["vocab_size"]
SHAPE = Shape(HIDDEN, VOCAB)
PROMPT = [7 * i % 200 + 1 for i in range(90)]
Lessons = tuple[Engine, Path, list[tuple[str, Trace]]]
PLAIN = AdaptiveSchedule([(1, 10.0), (8, 11.0), (64, 40.0)])


@pytest.fixture(scope="module", params=["llama", "llama-mha", "qwen2"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(request.param, tmp_path_factory.mktemp(request.param))


def random_heads(seed: int = 0, tokens: int = 120) -> Trained:
    """Heads that guess something else at every place, among some of the tokens."""
    torch.manual_seed(seed)
    heads = Heads(HIDDEN, 2 * HIDDEN, 3.0)
    with torch.no_grad():
        heads.out.weight.normal_(0.0, 0.3)
    heads.requires_grad_(False)
    return Trained(heads, torch.randperm(VOCAB)[:tokens].sort().values, 4)


def write(
    target: Engine, proposer: Proposer, rule: Rule, prompt: list[int], budget: int
) -> list[Step]:
    target.reset(0)
    target.prefill(prompt[:-3])
    schedule: Schedule = FixedSchedule(0 if isinstance(proposer, Silent) else 256)
    if isinstance(proposer, CombinedProposer):
        schedule = proposer
    return list(
        decode(target, proposer, schedule, tail=prompt[-3:], rule=rule, stop=set(), budget=budget)
    )


def tokens_of(steps: list[Step]) -> list[int]:
    return [token for step in steps for token in step.tokens]


@pytest.mark.parametrize("rule", [Greedy(), Sampled(0.8, 0.95, 0, 3)], ids=["greedy", "sampled"])
@pytest.mark.parametrize("dtype", [torch.float32, BF16], ids=str)
def test_drafting_with_heads_changes_no_token(folder: Path, dtype: torch.dtype, rule: Rule) -> None:
    if dtype == BF16 and not can_pack(BF16):
        pytest.skip("bf16 passes of different widths do not agree on this CPU")
    target = engine(folder, dtype)
    plain = tokens_of(write(target, Silent(), rule, PROMPT, 30))
    ahead = HeadsAhead(target, random_heads(), output_table(target, folder))
    drafts: list[Proposer] = [
        ChainProposer(HeadsDrafter(ahead), PROMPT, PLAIN.cost, k=4),
        CombinedProposer(
            CopyProposer([*plain[:12], 5, *plain[14:]]),
            ChainProposer(HeadsDrafter(ahead), PROMPT, PLAIN.cost, share=0.02),
            PLAIN,
            PLAIN.cost,
            expected=(1e6, 0.0),
        ),
    ]
    for proposer in drafts:
        steps = write(target, proposer, rule, PROMPT, 30)
        assert tokens_of(steps) == plain
        assert any("draft" in step.sources for step in steps)


def test_the_tap_has_the_state_of_the_last_row_committed(folder: Path) -> None:
    target = engine(folder, BF16 if can_pack(BF16) else torch.float32)
    tap = target.tap()
    heard: list[tuple[int, torch.Tensor]] = []
    tap.on_rows = lambda position, rows: heard.append((position, rows.clone()))

    def alone(tokens: list[int]) -> torch.Tensor:
        """The state of the last of some tokens, one pass for each."""
        target.reset(0)
        for token in tokens:
            target.score([token])
            target.keep(1)
        assert tap.last is not None
        assert tap.position == len(tokens) - 1
        return tap.last

    def same(found: torch.Tensor | None, wanted: torch.Tensor) -> bool:
        return found is not None and torch.allclose(
            found.float(), wanted.float(), rtol=1e-3, atol=1e-3
        )

    prompt = PROMPT[:20]
    chain = alone([*prompt, 11, 12])
    side = alone([*prompt, 11, 31, 32])
    target.reset(0)
    assert tap.last is None
    target.prefill(prompt[:-3])
    heard.clear()
    branches = [Branch(0, (41,)), Branch(1, (31, 32))]
    target.score([*prompt[-3:], 11, 12, 13], branches, first=2)
    target.keep(5)  # the chain's first two guesses held
    assert same(tap.last, chain)
    assert tap.position == 21
    assert heard[0][0] == 19
    assert same(heard[0][1][-1], chain)
    assert positions(heard, 19, 22) is not None
    assert positions(heard, 18, 22) is None
    target.reset(17)
    target.score([*prompt[-3:], 11, 12, 13], branches, first=2)
    target.keep(4, 1, 2)  # the second branch held
    assert same(tap.last, side)
    assert tap.position == 22
    # A pass of context alone predicts nothing.
    target.score([5, 6, 7], first=2)
    target.keep(2)
    assert tap.last is None


def test_heads_know_where_they_stand(folder: Path) -> None:
    target = engine(folder, torch.float32)
    ahead = HeadsAhead(target, random_heads(), output_table(target, folder))
    drafter = HeadsDrafter(ahead)
    assert drafter.begin(PROMPT) is None  # no pass was scored yet
    target.prefill(PROMPT[:-1])
    assert drafter.begin(PROMPT) is None
    token = target.score(PROMPT[-1:]).greedy()[0]
    target.keep(1)
    assert drafter.begin(PROMPT) is None  # of tokens that end elsewhere
    guess = drafter.begin([*PROMPT, token])
    assert guess is not None
    assert 0.0 < guess.second_chance <= guess.chance <= 1.0
    for _ in range(3):
        found = drafter.more(guess.token)
        assert found is not None
        guess = found
    assert drafter.more(guess.token) is None  # they were trained for four steps
    drafter.end()
    target.reset(0)
    assert drafter.begin([*PROMPT, token]) is None


def test_tokens_of_the_prompt_can_be_guessed(folder: Path) -> None:
    target = engine(folder, torch.float32)
    trained = random_heads(tokens=2)
    ahead = HeadsAhead(target, trained, output_table(target, folder))

    def guessed(prompt: list[int]) -> set[int]:
        target.reset(0)
        target.prefill(prompt[:-1])
        target.score(prompt[-1:])
        target.keep(1)
        state = ahead.start([*prompt, 9])
        assert state is not None
        return {token for token, _ in ahead.step(state, 9)[1]}

    few = set(trained.vocabulary.tolist())
    assert guessed([5, 6, 7, 8]) <= few | {5, 6, 7, 8, 9}
    assert guessed([105, 106]) <= few | {105, 106, 9}  # another prompt's are forgotten
    assert len(guessed(PROMPT)) == 4


def practise(target: Engine, prompts: list[list[int]], length: int) -> list[tuple[str, Trace]]:
    """What the target writes behind some prompts."""
    tap = target.tap()
    traces = []
    for number, prompt in enumerate(prompts):
        rows: list[tuple[int, torch.Tensor]] = []
        tap.on_rows = lambda position, states, rows=rows: rows.append((position, states.clone()))
        tokens = tokens_of(write(target, Silent(), Greedy(), prompt, length))
        tap.on_rows = None
        hidden = positions(rows, len(prompt) - 1, len(prompt) - 1 + len(tokens))
        assert hidden is not None
        traces.append(
            (
                f"{number:04x}",
                Trace(hidden, torch.tensor(tokens), torch.tensor(tokens), torch.ones(len(tokens))),
            )
        )
    return traces


@pytest.fixture(scope="module")
def lessons(
    tmp_path_factory: pytest.TempPathFactory,
) -> Lessons:
    folder = save_model("qwen2", tmp_path_factory.mktemp("lessons"))
    torch.set_num_threads(1)
    target = engine(folder, torch.float32)
    prompts = [[3 + n, 50 + n, 90, 7] for n in range(6)]
    return target, folder, practise(target, prompts, 40)


def fitting(lessons: Lessons, stored: Traces | None = None) -> Fitting:
    target, folder, traces = lessons
    table = target.model.get_input_embeddings().weight.detach()
    output = output_table(target, folder)
    return Fitting(traces, table, output, stored=stored, batch=64, passes=100.0)


def test_training_learns_what_the_target_writes(
    lessons: Lessons,
) -> None:
    target, folder, _ = lessons
    work = fitting(lessons)
    _, before = work.measure()
    events: list[Event] = []
    fit = work.run(1e9, events.append, Clock())
    assert fit.last_loss < 0.5 * fit.first_loss
    assert fit.accepted > max(before, 4 / VOCAB) + 0.5
    assert events
    # And what was learnt saves passes where it is used.
    ahead = HeadsAhead(target, work.trained, output_table(target, folder))
    prompt = [3, 50, 90, 7]
    plain = write(target, Silent(), Greedy(), prompt, 40)
    chain = ChainProposer(HeadsDrafter(ahead), prompt, PLAIN.cost, share=0.02)
    drafted = write(target, chain, Greedy(), prompt, 40)
    assert tokens_of(drafted) == tokens_of(plain)
    assert len(drafted) < 0.8 * len(plain)


def test_a_killed_training_goes_on_where_it_was(lessons: Lessons, cache: Path) -> None:
    whole = fitting(lessons)
    whole.run(25.0, clock=Clock())
    stored = Traces("tiny-0")
    stored.open()

    def killed(event: Event) -> None:
        if first.steps == 12:
            first._save()
            raise KeyboardInterrupt

    first = fitting(lessons, stored)
    with pytest.raises(KeyboardInterrupt):
        first.run(25.0, killed, Clock())
    second = fitting(lessons, stored)
    second.run(25.0, clock=Clock())
    assert second.steps == whole.steps
    for name, weight in whole.heads.state_dict().items():
        assert torch.allclose(second.heads.state_dict()[name], weight, atol=1e-5), name
    # A checkpoint that was cut off is none.
    path = stored.folder / CHECKPOINT
    path.write_bytes(path.read_bytes()[:-40])
    third = fitting(lessons, stored)
    third._resume()
    assert third.steps == 0


def test_nothing_to_learn_from_is_an_error() -> None:
    table = torch.zeros(8, 4)
    with pytest.raises(ModelError) as caught:
        Fitting([], table, table)
    assert caught.value.code == "no-practice"


def test_traces_are_the_users_alone(cache: Path) -> None:
    traces = Traces("tiny-0")
    traces.open()
    trace = Trace(torch.ones(3, 4, dtype=BF16), torch.arange(3), torch.arange(3), torch.ones(3))
    traces.add("ab", trace)
    traces.add("cd", None)
    traces.note(collecting=3.5)
    traces.note(other=1.0)
    assert stat.S_IMODE(traces.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in traces.folder.iterdir()} == {0o600}
    (traces.folder / "ee.safetensors.123.part").write_bytes(b"x")
    (traces.folder / "ff.safetensors").write_bytes(b"cut off")
    traces.open()
    assert "ab" in traces
    assert "cd" in traces
    assert "ee" not in traces
    found = list(traces)
    assert [key for key, _ in found] == ["ab"]
    assert torch.equal(found[0][1].hidden, trace.hidden)
    assert found[0][1].tokens.tolist() == [0, 1, 2]
    assert traces.state() == {"collecting": 3.5, "other": 1.0}
    traces.clear()
    assert not traces.folder.exists()


@pytest.fixture
def kept(cache: Path) -> Path:
    path = heads_path("tiny-0")
    save(path, random_heads(), "tiny-0", {"edits": "3"})
    return path


def test_heads_are_kept(kept: Path) -> None:
    wanted = random_heads()
    found = load(kept, "tiny", "tiny-0", SHAPE)
    assert found.steps == 4
    assert torch.equal(found.vocabulary, wanted.vocabulary)
    states, embeddings = torch.randn(2, HIDDEN), torch.randn(2, HIDDEN)
    near = found.heads(states, embeddings) - wanted.heads(states, embeddings)
    assert float(near.abs().max()) < 0.1
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


@pytest.mark.parametrize(
    ("weights_id", "shape", "words"),
    [
        ("other-1", SHAPE, "other weights"),
        ("tiny-0", Shape(HIDDEN + 2, VOCAB), "shapes"),
        ("tiny-0", Shape(HIDDEN, 50), "tokens"),
    ],
)
def test_heads_of_another_model_are_refused(
    kept: Path, weights_id: str, shape: Shape, words: str
) -> None:
    with pytest.raises(ModelError) as caught:
        load(kept, "tiny", weights_id, shape)
    assert caught.value.code == "bad-heads"
    assert words in caught.value.message
    assert "train-heads tiny" in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("left", [0, 10, 1000])
def test_damaged_heads_are_refused(kept: Path, left: int) -> None:
    kept.write_bytes(kept.read_bytes()[:left])
    with pytest.raises(ModelError) as caught:
        load(kept, "tiny", "tiny-0", SHAPE)
    assert caught.value.code == "bad-heads"


def refused(path: Path) -> str:
    """What is said of a heads file that cannot be used."""
    with pytest.raises(ModelError) as caught:
        load(path, "tiny", "tiny-0", SHAPE)
    assert caught.value.code == "bad-heads"
    assert "train-heads tiny" in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("name", ["mix.weight", "mix.bias", "out.weight", "scale", "vocabulary"])
def test_a_flipped_bit_of_any_tensor_is_seen(kept: Path, name: str) -> None:
    data = bytearray(kept.read_bytes())
    header = 8 + int.from_bytes(data[:8], "little")
    begin, end = json.loads(data[8:header])[name]["data_offsets"]
    for place in (begin, end - 1):
        flipped = data.copy()
        flipped[header + place] ^= 1
        kept.write_bytes(flipped)
        assert "is damaged" in refused(kept)
    kept.write_bytes(data)
    load(kept, "tiny", "tiny-0", SHAPE)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_heads_that_are_not_finite_are_refused(cache: Path, value: float) -> None:
    trained = random_heads()
    with torch.no_grad():
        trained.heads.mix.weight[1, 2] = value
    path = heads_path("tiny-0")
    save(path, trained, "tiny-0", {})
    assert "is damaged" in refused(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "1"}, "another version"),  # such files had no hash
        ({"sha256": "0" * 64}, "is damaged"),
        ({"sha256": None}, "is damaged"),
    ],
)
def test_heads_without_their_hash_are_refused(
    kept: Path, changes: dict[str, str | None], words: str
) -> None:
    with safe_open(kept, framework="pt") as file:
        told = {**file.metadata(), **changes}
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    save_file(tensors, kept, {key: value for key, value in told.items() if value is not None})
    assert words in refused(kept)


def test_no_heads_no_draft(cache: Path) -> None:
    with pytest.raises(ModelError) as caught:
        check_trained("tiny", "tiny-0")
    assert caught.value.code == "no-heads"
    assert "apply-edit models train-heads tiny" in caught.value.message
