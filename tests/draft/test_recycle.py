"""The adjacency table: order of successors, their runs, and what the target adds."""

from __future__ import annotations

from apply_edit.draft.index import Reference
from apply_edit.draft.recycle import WIDTH, Successors


def listed(successors: Successors, context: list[int]) -> list[tuple[int, int, int]]:
    return [(s.token, s.order, s.rank) for s in successors.after(context)]


def test_latest_first_and_longer_contexts_before_shorter() -> None:
    successors = Successors()
    successors.follow(Reference("copy", [1, 2, 3, 5, 2, 4, 5, 2, 6]))
    # After (1, 2) only 3; after 2 alone 6, then 4 (3 is said already).
    assert listed(successors, [1, 2]) == [(3, 2, 0), (6, 1, 0), (4, 1, 1)]


def test_the_run_behind_a_successor_is_known() -> None:
    text = Reference("update", [7, 1, 2, 3])
    successors = Successors()
    successors.follow(text)
    first = next(successors.after([7]))
    assert first.reference is text
    assert text.tokens[first.place :] == [1, 2, 3]


def test_it_follows_growing_text() -> None:
    output = Reference("output")
    successors = Successors()
    successors.follow(Reference("copy", [1, 2]))
    successors.follow(output)
    assert listed(successors, [1]) == [(2, 1, 0)]
    output.extend([1, 3])
    assert listed(successors, [1]) == [(3, 1, 0), (2, 1, 1)]


def test_behind_an_unknown_word_the_token_before_it_speaks() -> None:
    successors = Successors()
    successors.follow(Reference("copy", [1, 2, 3]))
    assert listed(successors, [1, 99]) == [(3, 0, 0)]


def test_choices_of_the_target_rank_behind_text_and_push_none_of_it_out() -> None:
    successors = Successors()
    successors.follow(Reference("copy", [1, 2]))
    successors.learn(1, [5, 2, 6])
    assert listed(successors, [1]) == [(2, 1, 0), (5, 1, 1), (6, 1, 2)]
    for token in range(100, 120):
        successors.learn(1, [token])
    tokens = [token for token, _, _ in listed(successors, [1])]
    assert tokens[0] == 2
    assert len(tokens) == WIDTH


def test_a_context_keeps_few_successors() -> None:
    text = [token for follower in range(50, 90) for token in (1, follower)]
    successors = Successors()
    successors.follow(Reference("copy", text))
    found = [s.token for s in successors.after([1]) if s.order == 1]
    assert found == list(range(89, 89 - WIDTH, -1))
