"""Sampled decoding has the target's distribution, whatever is drafted, in chains and in trees."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pytest

from apply_edit.decode.accept import Sampled, distribution
from apply_edit.decode.loop import decode
from apply_edit.decode.types import Branch, Draft
from tests.decode.fake import FakeTarget, Fixed, Silent

VOCAB = 4
TRIALS = 3_000
LENGTH = 3
LOGITS = {  # by the last token: what follows depends on what was drawn
    0: [0.3, 1.2, 0.1, 0.6],
    1: [1.0, 0.0, 0.9, 0.4],
    2: [0.2, 0.8, 1.4, 0.2],
    3: [0.5, 0.5, 0.5, 1.5],
}
NO_STOP = {VOCAB}


def target() -> FakeTarget:
    return FakeTarget(lambda prefix: LOGITS[prefix[-1]])


class Same:
    """The same draft at every pass."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    def propose(self, limit: int) -> Draft:
        return self.draft

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        pass


DRAFTS = {
    "k = 1": Draft((1,)),
    "k = 2": Draft((1, 2)),
    "k = 4": Draft((3, 3, 3, 0)),
    "tree": Draft((1, 0), branches=(Branch(0, (0, 1)), Branch(1, (2, 1)), Branch(0, (3,)))),
    "branches alone": Draft(branches=(Branch(0, (0,)), Branch(0, (1, 2)), Branch(0, (2,)))),
}


def write(rule: Sampled, proposer: Same | Silent) -> tuple[int, ...]:
    steps = decode(target(), proposer, Fixed(8), tail=[0], rule=rule, stop=NO_STOP, budget=LENGTH)
    return tuple(token for step in steps for token in step.tokens)


def chances(temperature: float, top_p: float, top_k: int) -> dict[tuple[int, ...], float]:
    """Every output of `LENGTH` tokens and its exact chance."""
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(LENGTH):
        longer: dict[tuple[int, ...], float] = {}
        for path, chance in found.items():
            tokens, weights = distribution(
                LOGITS[path[-1] if path else 0], temperature, top_p, top_k
            )
            for token, weight in zip(tokens, weights, strict=True):
                longer[(*path, token)] = chance * weight / sum(weights)
        found = longer
    return found


def critical(freedom: int) -> float:
    """The 99.99 % point of chi-square (Wilson and Hilferty's approximation)."""
    spread = 2.0 / (9.0 * freedom)
    return float(freedom * (1.0 - spread + 3.719 * math.sqrt(spread)) ** 3)


@pytest.mark.parametrize("name", DRAFTS)
@pytest.mark.parametrize(
    ("temperature", "top_p", "top_k"),
    [(0.4, 1.0, 0), (1.0, 1.0, 0), (2.5, 1.0, 0), (1.0, 0.7, 0), (1.0, 1.0, 2), (1.5, 0.8, 3)],
)
def test_whole_outputs_have_the_chance_they_should(
    name: str, temperature: float, top_p: float, top_k: int
) -> None:
    expected = chances(temperature, top_p, top_k)
    seen = Counter(
        write(Sampled(temperature, top_p, top_k, seed), Same(DRAFTS[name]))
        for seed in range(TRIALS)
    )
    assert set(seen) <= set(expected)
    # Rare outputs are counted together: chi-square wants five of each.
    rare = {path for path, chance in expected.items() if chance * TRIALS < 5.0}
    cells = [(seen[path], chance * TRIALS) for path, chance in expected.items() if path not in rare]
    if rare:
        cells.append((sum(seen[p] for p in rare), sum(expected[p] for p in rare) * TRIALS))
    chi = sum((count - mean) ** 2 / mean for count, mean in cells)
    assert len(cells) > 3
    assert chi < critical(len(cells) - 1)


def test_the_check_notices_an_acceptor_that_favours_its_draft() -> None:
    """Taking the draft a tenth more often than the target would is found with as many trials."""
    expected = chances(1.0, 1.0, 0)
    drafted = sum(chance for path, chance in expected.items() if path[0] == 1)
    chi = 0.0
    for path, chance in expected.items():
        scale = 1.1 if path[0] == 1 else (1.0 - 1.1 * drafted) / (1.0 - drafted)
        chi += TRIALS * (chance * scale - chance) ** 2 / chance
    # The mean of the statistic is the freedom plus this; three outputs in four stay undecided
    # below the point used above, so the first token alone must show it.
    first = TRIALS * (0.1 * drafted) ** 2 / drafted * (1.0 + drafted / (1.0 - drafted))
    assert first > critical(1)
    assert chi == pytest.approx(first)


@pytest.mark.parametrize("seed", range(25))
def test_the_same_seed_gives_the_same_tokens_whatever_is_drafted(seed: int) -> None:
    rule = Sampled(1.0, 0.95, 0, seed)
    outputs = {write(rule, Same(draft)) for draft in DRAFTS.values()}
    assert outputs == {write(rule, Silent())}
