"""Noisy targets: near-ties decided alone, and the report where decodings part."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.decode.accept import Greedy
from apply_edit.decode.divergence import Divergence, Remembering, first_divergence
from apply_edit.decode.loop import decode
from apply_edit.decode.margin import MarginTarget, margin_of
from apply_edit.decode.types import Branch, Draft, Proposer, Target
from tests.decode.fake import END, VOCAB, FakeScores, FakeTarget, Fixed, Silent

NOISE = 0.05
STEPS = 24


class NoisyTarget(FakeTarget):
    """Logits on a coarse grid, so that ties are near; in wide passes they are off by `NOISE`."""

    def __init__(self, seed: int) -> None:
        def logits(prefix: tuple[int, ...]) -> list[float]:
            rng = random.Random(f"{seed}:{prefix[-3:]}")
            return [0.0, *(rng.randrange(12) + rng.choice((0.0, 0.02)) for _ in range(VOCAB - 1))]

        super().__init__(logits)
        self.lone = 0

    def score(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> FakeScores:
        scores = super().score(tokens, branches, first)
        rows = len(tokens) + sum(len(b.tokens) for b in branches)
        if rows == 1:
            self.lone += 1
            return scores
        noisy = []
        for index in range(len(scores)):
            rng = random.Random(f"{rows}:{index}:{tokens}")
            noisy.append([x + rng.uniform(-NOISE, NOISE) for x in scores.row(index)])
        return FakeScores(noisy)


class Following:
    """Drafts what plain decoding wrote, sometimes wrong, with branches that may be right."""

    def __init__(self, text: Sequence[int], seed: int) -> None:
        self.text = list(text)
        self.rng = random.Random(seed)
        self.place = 0

    def propose(self, limit: int) -> Draft:
        right = self.text[self.place : self.place + self.rng.randrange(6)]
        chain = [t if self.rng.random() < 0.85 else self.rng.randrange(1, VOCAB) for t in right]
        branches = []
        for _ in range(self.rng.randrange(3)):
            fork = self.rng.randrange(len(chain) + 1)
            behind = self.text[self.place + fork : self.place + fork + 3]
            if behind:
                branches.append(Branch(fork, tuple(behind)))
        return Draft(tuple(chain), branches=tuple(branches))

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        self.place += len(tokens)


def write(target: Target, proposer: Proposer, tail: Sequence[int] = (3,)) -> list[int]:
    steps = decode(target, proposer, Fixed(8), tail=tail, rule=Greedy(), stop={END}, budget=STEPS)
    return [token for step in steps for token in step.tokens]


@given(seed=st.integers(0, 400), drafts=st.integers(0, 50))
def test_near_ties_are_decided_as_plain_decoding_decides_them(seed: int, drafts: int) -> None:
    plain = write(NoisyTarget(seed), Silent())
    noisy = NoisyTarget(seed)
    settled = MarginTarget(noisy, NOISE)
    assert write(settled, Following(plain, drafts)) == plain
    assert noisy.committed == [3, *plain[:-1]]
    assert noisy.lone >= settled.settled


def test_without_it_noise_would_decide() -> None:
    parted = 0
    for seed in range(40):
        plain = write(NoisyTarget(seed), Silent())
        parted += write(NoisyTarget(seed), Following(plain, 1)) != plain
    assert parted > 5


def test_clear_rows_cost_nothing() -> None:
    clear = FakeTarget(lambda prefix: [float((t * 7 + len(prefix)) % VOCAB) for t in range(VOCAB)])
    settled = MarginTarget(clear, NOISE)
    plain = write(settled, Silent())
    passes = clear.passes
    clear.reset(0)
    assert write(settled, Following(plain, 3)) == plain
    assert settled.settled == 0
    assert clear.passes - passes < passes


def test_the_tail_of_the_prompt_may_ride_along() -> None:
    for seed in range(30):
        # With rows before the first scored one the lone pass stands behind all of them.
        noisy = NoisyTarget(seed)
        noisy.prefill([9])
        tail = [9, 9, 3]
        alone = NoisyTarget(seed)
        alone.prefill([9, 9, 9])
        wanted = write(alone, Silent(), tail=[3])
        assert write(MarginTarget(noisy, NOISE), Following(wanted, seed), tail=tail) == wanted


def test_margins() -> None:
    scores = FakeScores([[1.0, 3.5, 3.0], [2.0, 2.0, 0.0]])
    assert margin_of(scores, 0) == pytest.approx(0.5)
    assert margin_of(scores, 1) == 0.0
    assert margin_of(FakeScores([[1.0]]), 0) == float("inf")


def test_a_divergence_names_tokens_logits_and_margin() -> None:
    scores = FakeScores([[0.0] * 4, [0.5, 2.25, 2.0, 1.0]])
    found = first_divergence([5, 2, 7], [5, 1], scores)
    assert found == Divergence(1, 2, 1, 2.0, 2.25)
    assert found.margin == 0.25
    words = {1: "cat", 2: "dog"}
    assert found.describe(lambda tokens: words[tokens[0]]) == (
        "token 1: drafted 'dog' (token 2) at 2, plain 'cat' (token 1) at 2.25, margin 0.25"
    )


def test_divergences_at_the_ends() -> None:
    assert first_divergence([1, 2], [1, 2]) is None
    assert first_divergence([], []) is None
    early = first_divergence([1], [1, 2], FakeScores([[0.0, 1.0, 4.0]]))
    assert early == Divergence(1, None, 2, None, 4.0)
    assert early.margin is None
    assert early.describe(str) == "token 1: drafted the end, plain '[2]' (token 2) at 4"
    assert first_divergence([1, 2], [1]) == Divergence(1, 2, None)


def test_the_last_scores_are_remembered() -> None:
    inner = NoisyTarget(1)
    target = Remembering(inner)
    plain = write(target, Silent())
    assert target.last is not None
    assert target.last.greedy() == [plain[-1]]
    assert target.length == inner.length
    target.reset(1)
    assert inner.committed == [3]
    assert target.limit == inner.limit
    target.prefill([4, 5])
    assert inner.committed == [3, 4, 5]
