"""The loop on table-driven targets: what is drafted changes the number of passes, never a token."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.decode.accept import Greedy, Rule, Sampled
from apply_edit.decode.loop import decode
from apply_edit.decode.stats import Stats
from apply_edit.decode.types import Branch, Draft, Proposer, Step
from tests.decode.fake import END, VOCAB, FakeTarget, Fixed, Scripted, Silent, hashed, writes

TEXT = [1 + i % 7 for i in range(20)]


def run(
    target: FakeTarget,
    proposer: Proposer,
    k: int,
    *,
    budget: int = 100,
    rule: Rule | None = None,
    tail: Sequence[int] = (1,),
) -> tuple[list[int], list[Step]]:
    steps = list(
        decode(
            target,
            proposer,
            Fixed(k),
            tail=tail,
            rule=rule or Greedy(),
            stop={END},
            budget=budget,
        )
    )
    return [t for s in steps for t in s.tokens], steps


@pytest.mark.parametrize(
    ("proposer", "passes"),
    [(Scripted(TEXT), 4), (Scripted(TEXT, wrong=True), 20), (Silent(), 20)],
    ids=["perfect", "always wrong", "empty"],
)
def test_twenty_tokens_at_four(proposer: Proposer, passes: int) -> None:
    target = writes(TEXT, 1)
    output, steps = run(target, proposer, 4, budget=20)
    assert output == TEXT
    assert len(steps) == target.passes == passes
    assert steps[-1].finish == "length"


def test_end_of_text_alone_and_inside_a_block() -> None:
    output, steps = run(writes(TEXT[:6], 1), Silent(), 4)
    assert output == TEXT[:6]
    assert steps[-1].finish == "stop"
    # The draft runs past the target's end: nothing behind the end may come out.
    output, steps = run(writes(TEXT[:6], 1), Scripted(TEXT), 4)
    assert output == TEXT[:6]
    assert steps[-1].finish == "stop"
    # Even a drafted stop token that the target confirms ends the output there.
    output, steps = run(writes(TEXT[:6], 1), Scripted([*TEXT[:6], END, 3, 3]), 9)
    assert output == TEXT[:6]
    assert steps[-1].finish == "stop"
    assert len(steps) == 1


@pytest.mark.parametrize("budget", range(1, 12))
@pytest.mark.parametrize("k", [1, 3, 64])
def test_budget_is_never_exceeded(budget: int, k: int) -> None:
    output, steps = run(writes(TEXT, 1), Scripted(TEXT), k, budget=budget)
    assert output == TEXT[:budget]
    assert steps[-1].finish == "length"


def test_copying_accepts_whole_blocks() -> None:
    _, steps = run(writes(TEXT, 1), Scripted(TEXT), 4, budget=20)
    assert [s.accepted for s in steps] == [4, 4, 4, 4]
    assert all(s.rejected == () for s in steps)
    assert [[r.source for r in s.runs] for s in steps] == [["copy", "target"]] * 4
    assert [r.start for s in steps for r in s.runs] == [0, 4, 5, 9, 10, 14, 15, 19]


class Halving(Fixed):
    """Scores half of what is offered."""

    def choose(self, draft: Draft) -> int:
        return len(draft.tokens) // 2


def test_a_bonus_token_that_continues_the_source_belongs_to_its_run() -> None:
    steps = list(
        decode(
            writes([*TEXT[:10], 9, *TEXT[11:]], 1),
            Scripted(TEXT),
            Halving(8),
            tail=[1],
            rule=Greedy(),
            stop={END},
            budget=20,
        )
    )
    shown = [(r.source, len(r.tokens), r.origin) for s in steps for r in s.runs]
    assert shown[:4] == [("copy", 5, 0), ("copy", 5, 5), ("target", 1, None), ("copy", 5, 11)]
    assert [s.accepted for s in steps][:2] == [4, 4]


def test_first_draft_rides_with_the_tail_of_the_prompt() -> None:
    target = writes(TEXT, 5)
    output, steps = run(target, Scripted(TEXT), 19, budget=20, tail=[9, 9, 9, 9, 9])
    assert output == TEXT
    assert len(steps) == 1
    assert steps[0].rows == 5 + 19


def test_cache_holds_exactly_what_was_decided() -> None:
    target = writes(TEXT, 1)
    output, _ = run(target, Scripted(TEXT, wrong=True), 4, budget=20)
    assert target.committed == [1, *output[:-1]]


def test_context_window_ends_decoding() -> None:
    target = writes(TEXT, 1)
    target._limit = 8
    output, steps = run(target, Scripted(TEXT), 4)
    assert output == TEXT[: len(output)]
    assert steps[-1].finish == "length"
    assert target.length <= 8


def test_an_abandoned_consumer_leaves_a_consistent_cache() -> None:
    target = writes(TEXT, 1)
    generator = decode(
        target, Scripted(TEXT), Fixed(4), tail=[1], rule=Greedy(), stop={END}, budget=20
    )
    step = next(generator)
    generator.close()
    assert target.committed == [1, *step.tokens[:-1]]


def test_watch_ends_early() -> None:
    steps = list(
        decode(
            writes(TEXT, 1),
            Silent(),
            Fixed(4),
            tail=[1],
            rule=Greedy(),
            stop={END},
            budget=20,
            watch=lambda tokens: "loop" if 3 in tokens else None,
        )
    )
    assert [t for s in steps for t in s.tokens] == [1, 2, 3]
    assert steps[-1].finish == "loop"


class Branching(Scripted):
    """A wrong main chain with the right continuation hanging on a branch."""

    def propose(self, limit: int) -> Draft:
        right = self.text[self.place : self.place + 4]
        if len(right) < 4:
            return Draft(tuple(right))
        wrong = 1 + right[1] % (VOCAB - 1)
        return Draft(
            (right[0], wrong, wrong),
            "copy",
            branches=(
                Branch(0, (wrong, wrong)),
                Branch(1, (right[1], wrong)),
                Branch(1, tuple(right[1:4]), "output"),
            ),
        )


def test_the_branch_that_holds_is_taken() -> None:
    target = writes(TEXT, 1)
    output, steps = run(target, Branching(TEXT), 8, budget=20)
    assert output == TEXT
    assert [r.source for r in steps[0].runs] == ["copy", "output", "target"]
    assert steps[0].accepted == 4
    assert steps[0].drafted == 3 + 2 + 2 + 3
    assert steps[0].sources == {"copy": (3, 1), "draft": (4, 0), "output": (3, 3)}
    assert target.committed == [1, *output[:-1]]
    assert target.passes == 4


class Arbitrary:
    """Drafts what Hypothesis says: any chain, any branches."""

    def __init__(self, drafts: list[Draft]) -> None:
        self.drafts = drafts
        self.calls = 0

    def propose(self, limit: int) -> Draft:
        self.calls += 1
        return self.drafts[self.calls % len(self.drafts)] if self.drafts else Draft()

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        assert 0 <= accepted <= len(tokens)


tokens_ = st.lists(st.integers(0, VOCAB - 1), max_size=6).map(tuple)


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    chain = draw(tokens_)
    branches = draw(
        st.lists(st.builds(Branch, fork=st.integers(0, len(chain)), tokens=tokens_), max_size=3)
    )
    return Draft(chain, branches=tuple(branches))


rules = st.one_of(
    st.just(Greedy()),
    st.builds(
        Sampled,
        temperature=st.sampled_from([0.3, 1.0, 2.0]),
        top_p=st.sampled_from([0.5, 0.9, 1.0]),
        top_k=st.sampled_from([0, 2, 5]),
        seed=st.integers(0, 9),
    ),
)


@given(
    seed=st.integers(0, 1_000),
    end_weight=st.sampled_from([0.0, 0.9, 1.1]),
    proposals=st.lists(drafts(), max_size=5),
    k=st.integers(0, 8),
    budget=st.integers(1, 30),
    tail=st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=5),
    rule=rules,
)
def test_any_draft_gives_the_tokens_of_plain_decoding(
    seed: int,
    end_weight: float,
    proposals: list[Draft],
    k: int,
    budget: int,
    tail: list[int],
    rule: Rule,
) -> None:
    plain, _ = run(
        hashed(seed, end_weight=end_weight), Silent(), 0, budget=budget, rule=rule, tail=tail
    )
    drafted, steps = run(
        hashed(seed, end_weight=end_weight),
        Arbitrary(proposals),
        k,
        budget=budget,
        rule=rule,
        tail=tail,
    )
    assert drafted == plain
    stats = Stats()
    for step in steps:
        stats.add(step)
    assert stats.output_tokens == len(plain)
    assert stats.passes == len(steps)
    assert stats.accepted <= stats.drafted
    assert END not in drafted
