"""Learned drafts on fake models: chains, their length, the caches, and copying beside them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.decode.accept import Greedy, Rule, Sampled
from apply_edit.decode.loop import decode
from apply_edit.decode.schedule import AdaptiveSchedule, FixedSchedule
from apply_edit.decode.types import Proposer, Schedule, Step
from apply_edit.draft.chain import LEARNED, LONGEST, ChainProposer, Confidence
from apply_edit.draft.combine import CombinedProposer
from apply_edit.draft.drafter import Drafter, Guess, guess_of
from apply_edit.draft.heads import HeadsDrafter
from apply_edit.draft.lookup import CopyProposer
from apply_edit.draft.model import CHUNK, ModelDrafter, check_vocabulary
from apply_edit.draft.self import SelfDrafter
from apply_edit.errors import ModelError
from tests.decode.fake import END, VOCAB, FakeScores, FakeTarget, Fixed, Silent, hashed

FLAT = AdaptiveSchedule([(1, 80.0), (8, 88.0), (64, 300.0)])
WHOLE = FixedSchedule(256)
"""Chains are cut to what pays while they are written."""


class Beside(FakeTarget):
    """Other weights in the cache of a target: positions are shared, logits are its own."""

    def __init__(self, target: FakeTarget, like: FakeTarget, noise: float, seed: int) -> None:
        def logits(prefix: tuple[int, ...]) -> list[float]:
            rng = random.Random(f"{seed}:{prefix[-3:]}")
            return [8.0 * x + noise * rng.random() for x in like._logits(prefix)]

        super().__init__(logits, target.limit)
        self.committed = target.committed


class Clock:
    """Every question takes `step` milliseconds."""

    def __init__(self, step: float) -> None:
        self.step = step / 1000.0
        self.now = 0.0

    def __call__(self) -> float:
        self.now += self.step / 2.0
        return self.now


class Foreteller:
    """Heads without a model: they know what another target's logits say, for `steps` tokens, and
    only where the target's last pass left its state."""

    def __init__(self, target: FakeTarget, logits: FakeTarget, steps: int) -> None:
        self.target = target
        self.logits = logits
        self.steps = steps

    def start(self, tokens: Sequence[int]) -> tuple[int, ...] | None:
        ready = self.target.passes and len(self.target.committed) == len(tokens) - 1
        return tuple(tokens[:-1]) if ready else None

    def step(
        self, state: tuple[int, ...], token: int
    ) -> tuple[tuple[int, ...], list[tuple[int, float]]]:
        state = (*state, token)
        guess = guess_of(FakeScores([self.logits._logits(state)]), 0)
        best = [(guess.token, guess.chance)]
        if guess.second is not None:
            best.append((guess.second, guess.second_chance))
        return state, best


def tokens_of(steps: Sequence[Step]) -> list[int]:
    return [token for step in steps for token in step.tokens]


def run(
    target: FakeTarget,
    proposer: Proposer,
    schedule: Schedule,
    prompt: Sequence[int],
    rule: Rule,
    budget: int = 40,
    tail: int = 2,
) -> list[Step]:
    target.prefill(prompt[:-tail])
    return list(
        decode(
            target,
            proposer,
            schedule,
            tail=prompt[-tail:],
            rule=rule,
            stop={END},
            budget=budget,
        )
    )


def drafter_for(kind: str, target: FakeTarget, seed: int, noise: float) -> Drafter:
    like = hashed(seed, end_weight=0.9)
    if kind == "heads":
        noisy = Beside(FakeTarget(like._logits), like, noise, seed)
        return HeadsDrafter(Foreteller(target, noisy, 3))
    if kind == "self":
        return SelfDrafter(Beside(target, like, noise, seed))
    return ModelDrafter(Beside(FakeTarget(like._logits), like, noise, seed), VOCAB)


rules = st.one_of(
    st.just(Greedy()),
    st.builds(
        Sampled,
        temperature=st.sampled_from([0.3, 1.0]),
        top_p=st.sampled_from([0.9, 1.0]),
        top_k=st.sampled_from([0, 3]),
        seed=st.integers(0, 5),
    ),
)


@given(
    kind=st.sampled_from(["self", "model", "heads"]),
    copying=st.booleans(),
    seed=st.integers(0, 500),
    noise=st.sampled_from([0.0, 0.5, 4.0]),
    prompt=st.lists(st.integers(1, VOCAB - 1), min_size=3, max_size=40),
    budget=st.integers(1, 40),
    step=st.sampled_from([1.0, 30.0, 300.0]),
    k=st.sampled_from([None, 1, 4]),
    tail=st.integers(1, 3),
    rule=rules,
)
def test_tokens_are_those_of_plain_decoding(
    kind: str,
    copying: bool,
    seed: int,
    noise: float,
    prompt: list[int],
    budget: int,
    step: float,
    k: int | None,
    tail: int,
    rule: Rule,
) -> None:
    plain = run(
        hashed(seed, end_weight=0.9), Silent(), Fixed(0), prompt, rule, budget=budget, tail=tail
    )
    target = hashed(seed, end_weight=0.9)
    drafter = drafter_for(kind, target, seed, noise)
    schedule = AdaptiveSchedule([(1, 80.0), (8, 88.0), (64, 300.0)])
    chain = ChainProposer(drafter, prompt, schedule.cost, forbidden={END}, k=k, clock=Clock(step))
    proposer: Proposer = chain
    scored: Schedule = WHOLE
    if copying:
        copy = CopyProposer(prompt, forbidden={END})
        # As if nobody had to pay: drafts of both kinds in every mixture.
        proposer = scored = CombinedProposer(
            copy, chain, schedule, schedule.cost, schedule.scale, expected=(1e6, 0.0)
        )
    steps = run(target, proposer, scored, prompt, rule, budget=budget, tail=tail)
    assert tokens_of(steps) == tokens_of(plain)
    # What the loop committed is what was decided, whatever the drafter did beside it.
    if steps:
        written = tokens_of(steps)
        assert target.committed == [*prompt, *written][: len(target.committed)]
        assert len(target.committed) >= len(prompt) + len(written) - 1


@pytest.mark.parametrize("kind", ["self", "model"])
def test_a_drafter_that_thinks_alike_needs_few_passes(kind: str) -> None:
    prompt = [3, 1, 4]
    target = hashed(7)
    like = hashed(7)
    own = target if kind == "self" else FakeTarget(like._logits)
    narrow = Beside(own, like, 0.0, 0)
    drafter = SelfDrafter(narrow) if kind == "self" else ModelDrafter(narrow, VOCAB)
    chain = ChainProposer(drafter, prompt, FLAT.cost, trust=1.0, clock=Clock(8.0))
    steps = run(target, chain, WHOLE, prompt, Greedy(), budget=60)
    assert len(steps) <= 8
    assert all(step.rejected == () for step in steps)
    assert all(step.k <= LONGEST for step in steps)


def test_a_dear_drafter_stops_sooner_and_is_left_alone() -> None:
    def rows(step: float) -> int:
        target = hashed(3)
        drafter = SelfDrafter(Beside(target, hashed(3), 0.0, 0))
        chain = ChainProposer(drafter, [1, 2], FLAT.cost, trust=0.3, clock=Clock(step))
        steps = run(target, chain, WHOLE, [1, 2], Greedy(), budget=60)
        return len(steps)

    assert rows(8.0) < rows(70.0)
    target = hashed(3)
    chain = ChainProposer(SelfDrafter(target), [1, 2], FLAT.cost, clock=Clock(400.0))
    dear = CombinedProposer(CopyProposer([]), chain, FLAT, FLAT.cost, expected=(1e6, 0.0))
    run(target, dear, dear, [1, 2], Greedy(), budget=30)
    assert chain.rate() < 1.0 / FLAT.cost(1)
    assert dear.propose(8).region != LEARNED


def test_the_models_cache_is_cut_back_and_caught_up_in_the_same_pass() -> None:
    model = hashed(5)
    drafter = ModelDrafter(model, VOCAB)
    drafter.read([1, 2, 3, 4], lambda done, total: None)
    assert model.committed == [1, 2, 3]
    first = drafter.begin([1, 2, 3, 4])
    assert first is not None
    second = drafter.more(first.token)
    assert second is not None
    drafter.more(second.token)
    drafter.end()
    assert model.committed == [1, 2, 3, 4, first.token, second.token]
    # The first guess held, the second fell: the target's own token rides in one pass.
    other = 1 + second.token % (VOCAB - 1)
    passes = model.passes
    drafter.begin([1, 2, 3, 4, first.token, other])
    assert model.passes == passes + 1
    assert model.committed == [1, 2, 3, 4, first.token, other]
    assert drafter.behind([1, 2, 3, 4, first.token, other, 9, 9, 9]) == 2
    # Another prompt: what both share stays.
    drafter.begin([1, 2, 9])
    assert model.committed == [1, 2, 9]


def test_a_model_far_behind_catches_up_in_chunks() -> None:
    model = hashed(5)
    drafter = ModelDrafter(model, VOCAB)
    tokens = [1 + i % 9 for i in range(2 * CHUNK + 5)]
    assert drafter.begin(tokens) is not None
    assert model.committed == tokens
    assert model.passes == 1


def test_windows_end_drafts() -> None:
    small = hashed(5)
    small._limit = 6
    drafter = ModelDrafter(small, VOCAB)
    assert drafter.begin([1] * 7) is None
    assert drafter.begin([1] * 6) is not None
    assert drafter.more(1) is None
    target = hashed(5)
    target._limit = 4
    target.prefill([1, 2])
    narrow = SelfDrafter(Beside(target, target, 0.0, 0))
    assert narrow.begin([1, 2, 3]) is not None
    assert narrow.more(4) is not None
    assert narrow.more(5) is None
    narrow.end()
    assert target.committed == [1, 2]


def test_tokens_the_target_does_not_know_end_a_chain() -> None:
    def loud(prefix: tuple[int, ...]) -> list[float]:
        return [float(t) for t in range(VOCAB)]

    assert ModelDrafter(FakeTarget(loud), VOCAB - 1).begin([1, 2]) is None
    found = ModelDrafter(FakeTarget(lambda p: [0.0, 5.0, 1.0, 4.0]), 3).begin([1, 2])
    assert found is not None
    assert (found.token, found.second) == (1, None)


def test_a_drafter_that_fails_leaves_the_target_as_it_was() -> None:
    target = hashed(5)
    target.prefill([1, 2])

    class Broken(Beside):
        def score(self, tokens, branches=(), first=0):  # type: ignore[no-untyped-def]
            if self.passes:
                raise RuntimeError("out of memory")
            return super().score(tokens, branches, first)

    broken = SelfDrafter(Broken(target, target, 0.0, 0))
    chain = ChainProposer(broken, [1, 2, 3], FLAT.cost, trust=1.0, clock=Clock(8.0))
    with pytest.raises(RuntimeError):
        chain.propose(8)
    assert target.committed == [1, 2]


def test_confidence_follows_what_was_seen() -> None:
    confidence = Confidence(trust=0.5)
    assert confidence.of(0.6) == pytest.approx(0.8)
    for _ in range(40):
        confidence.add(0.6, False)
        confidence.add(0.999, True)
    assert confidence.of(0.6) < 0.15
    assert confidence.of(0.999) > 0.99
    assert 0.4 < confidence.usual < 0.6


def test_guesses_have_the_chances_of_the_softmax() -> None:
    guess = guess_of(FakeScores([[1.0, 3.0, 2.0]]), 0)
    assert (guess.token, guess.second) == (1, 2)
    assert guess.chance == pytest.approx(0.66524, abs=1e-4)
    assert guess.second_chance == pytest.approx(0.24473, abs=1e-4)
    assert guess_of(FakeScores([[1.0]]), 0) == Guess(0, 1.0)


def test_vocabularies_are_compared_token_by_token() -> None:
    base = {"a": 0, "b": 1, "c": 2}
    assert check_vocabulary(base, dict(base), "t", "d") == 3
    # One of them may have more behind.
    assert check_vocabulary({**base, "x": 3}, base, "t", "d") == 3
    assert check_vocabulary(base, {**base, "x": 3}, "t", "d") == 3
    for other in ({"a": 0, "b": 2, "c": 1}, {"a": 0, "b": 1}, {"a": 0, "b": 1, "z": 2}, {}):
        if set(other) == {"a", "b"} and other["b"] == 1:
            assert check_vocabulary(base, other, "t", "d") == 2
            continue
        with pytest.raises(ModelError) as caught:
            check_vocabulary(base, other, "t", "d")
        assert caught.value.code == "vocab-mismatch"


@pytest.mark.parametrize("sides", [0, 1, 3])
def test_runners_up_hang_where_the_chain_is_likeliest_to_fall(sides: int) -> None:
    class Unsure:
        """Three guesses: the second is the least certain, the last has no runner-up."""

        said = (Guess(3, 0.7, 4, 0.25), Guess(5, 0.5, 6, 0.45), Guess(7, 0.6))

        def behind(self, tokens: Sequence[int]) -> int:
            return 0

        def begin(self, tokens: Sequence[int]) -> Guess:
            self.place = 0
            return self.said[0]

        def more(self, token: int) -> Guess | None:
            self.place += 1
            return self.said[self.place] if self.place < len(self.said) else None

        def end(self) -> None:
            pass

    def draft(cost: float) -> tuple[tuple[int, ...], set[tuple[int, tuple[int, ...]]]]:
        schedule = AdaptiveSchedule([(1, 80.0), (8, 80.0 * cost), (64, 300.0 * cost)])
        chain = ChainProposer(
            Unsure(), [1, 2], schedule.cost, trust=0.0, share=0.01, sides=sides, clock=Clock(0.1)
        )
        made = chain.propose(8)
        return made.tokens, {(branch.fork, branch.tokens) for branch in made.branches}

    tokens, branches = draft(1.01)
    assert tokens == (3, 5, 7)
    assert branches == {0: set(), 1: {(1, (6,))}, 3: {(0, (4,)), (1, (6,))}}[sides]
    # Rows that cost too much get none.
    assert draft(3.0)[1] == set()
