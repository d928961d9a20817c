"""Guesses: which tokens are likeliest, what a tree may hold, and that bad guessing fades out."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from apply_edit.draft.guess import SIDE, Candidate, Chances, candidates, tree
from apply_edit.draft.index import Reference
from apply_edit.draft.pointer import Pointer
from apply_edit.draft.recycle import Successors

TEXT = Reference("copy", list(range(100, 160)))


def everything(tokens: Sequence[int]) -> tuple[int, ...]:
    return tuple(tokens)


def candidate(place: int, chance: float, match: int = 1) -> Candidate:
    return Candidate(TEXT.tokens[place], chance, ("next", 1, 0), match, TEXT, place)


def test_two_kinds_of_evidence_add_up() -> None:
    pointer = Pointer(Reference("copy", [1, 2, 3, 4, 5, 2, 9]), 0)
    pointer.home, pointer.strayed, pointer.matched = 1, 1, 0
    successors = Successors()
    successors.follow(Reference("output", [2, 9, 2, 3]))
    chances = Chances()
    found = {c.token: c.chance for c in candidates([7, 2], [pointer], successors, chances)}
    alone = chances.of(("next", 1, 0))
    assert found[3] > alone
    assert found[3] < 1.0
    ordered = [c.chance for c in candidates([7, 2], [pointer], successors, chances)]
    assert ordered == sorted(ordered, reverse=True)


def test_a_tree_spends_rows_where_they_are_likeliest_to_be_accepted() -> None:
    main, first, branches = tree(
        [candidate(0, 0.6, 8), candidate(20, 0.45), candidate(40, 0.05)],
        price=0.04,
        rows=8,
        longest=64,
        allowed=everything,
    )
    assert first is not None
    assert first.place == 0
    assert main == tuple(range(100, 100 + len(main)))
    assert len(main) > len(branches[0].tokens) >= 1
    assert branches[0].tokens[0] == 120
    # The third promises its row's price, but not that of an attention of its own.
    assert len(branches) == 1
    assert 0.04 + SIDE > 0.05
    assert len(main) + sum(len(b.tokens) for b in branches) == 8


def test_nothing_worth_its_row_is_no_tree() -> None:
    assert tree([candidate(0, 0.03)], price=0.04, rows=8, longest=8, allowed=everything)[0] == ()
    assert tree([], price=0.04, rows=8, longest=8, allowed=everything) == ((), None, ())
    assert tree([candidate(0, 0.9)], price=0.04, rows=8, longest=0, allowed=everything)[0] == ()


def test_a_choice_of_the_target_alone_is_one_token() -> None:
    alone = Candidate(7, 0.9, ("next", 1, 0), 1)
    main, first, _ = tree([alone], price=0.04, rows=8, longest=8, allowed=everything)
    assert main == (7,)
    assert first is not None
    assert first.source == "draft"


@given(
    chances=st.lists(st.floats(0.0, 1.0), max_size=8),
    price=st.floats(0.01, 0.5),
    rows=st.integers(1, 16),
    longest=st.integers(1, 20),
)
def test_a_tree_stays_within_its_bounds(
    chances: list[float], price: float, rows: int, longest: int
) -> None:
    found = [candidate(5 * i, c) for i, c in enumerate(sorted(chances, reverse=True))]
    main, first, branches = tree(found, price=price, rows=rows, longest=longest, allowed=everything)
    assert (first is None) == (main == ())
    assert len(main) <= longest
    assert all(1 <= len(b.tokens) <= longest for b in branches)
    assert sum(len(b.tokens) for b in branches) <= rows
    firsts = [main[:1], *(b.tokens[:1] for b in branches)]
    assert len(set(firsts)) == len(firsts)


def test_kinds_that_are_wrong_are_believed_less() -> None:
    chances = Chances()
    kind = ("next", 1, 0)
    before = chances.of(kind)
    for _ in range(20):
        chances.add(kind, right=False)
    assert chances.of(kind) < before / 3
    for _ in range(200):
        chances.add(kind, right=True)
    assert chances.of(kind) > 0.8
    assert chances.of(("next", 2, 0)) > before


def test_trees_that_never_hit_make_rows_dearer() -> None:
    chances = Chances()
    assert chances.worth == 1.0
    for _ in range(30):
        chances.judge(0.5, right=False)
    assert chances.worth < 0.4
    for _ in range(100):
        chances.judge(0.5, right=True)
    assert chances.worth == 1.0
