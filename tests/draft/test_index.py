"""The index: what it finds, in which order, and that its work does not grow with the file."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apply_edit.draft.index import DEPTH, LENGTHS, Reference, distance


def places(reference: Reference, context: list[int], near: int) -> list[tuple[int, int]]:
    return [(m.place, m.length) for m in reference.find(context, near)]


def test_longer_matches_come_first_then_nearest_ahead() -> None:
    #                            0  1  2  3  4  5  6  7  8  9 10 11
    reference = Reference("copy", [9, 1, 2, 3, 8, 2, 3, 7, 2, 3, 6, 5])
    assert places(reference, [1, 2, 3], 0) == [(4, 3), (7, 2)]
    # All three places match two tokens: ahead of home before behind it.
    assert places(reference, [2, 3], 6) == [(7, 2), (10, 2), (4, 2)]
    assert places(reference, [2, 3], 8) == [(10, 2), (7, 2)]


def test_nothing_is_found_where_nothing_follows() -> None:
    reference = Reference("copy", [1, 2, 3])
    assert places(reference, [2, 3], 0) == []
    assert places(reference, [4], 0) == []
    assert places(reference, [], 0) == []


def test_the_longest_anchor_is_measured_up_to_the_depth() -> None:
    tokens = list(range(100, 100 + 2 * DEPTH))
    reference = Reference("copy", [*tokens, 1])
    assert places(reference, tokens, 0) == [(len(tokens), DEPTH)]


def test_it_grows_with_the_output() -> None:
    reference = Reference("output")
    reference.extend([1, 2, 3])
    assert places(reference, [1, 2], 0) == [(2, 2)]
    reference.extend([1, 2, 4])
    assert places(reference, [1, 2], 6) == [(5, 2)]
    assert places(reference, [1, 2], 0) == [(2, 2), (5, 2)]
    assert reference.count(1) == 2
    assert reference.count(77) == 0


def test_distance_puts_what_lies_ahead_first() -> None:
    assert sorted([3, 9, 12, 8], key=lambda place: distance(place, 8)) == [8, 9, 12, 3]


@given(
    tokens=st.lists(st.integers(0, 4), max_size=60),
    context=st.lists(st.integers(0, 4), max_size=12),
    near=st.integers(0, 60),
)
def test_every_match_is_one(tokens: list[int], context: list[int], near: int) -> None:
    found = Reference("copy", tokens).find(context, near)
    assert len({m.place for m in found}) == len(found)
    assert [m.length for m in found] == sorted((m.length for m in found), reverse=True)
    for match in found:
        assert tokens[match.place - match.length : match.place] == context[-match.length :]
        assert match.place < len(tokens)
        longer = match.length + 1
        if match.length < min(DEPTH, match.place, len(context)):
            assert tokens[match.place - longer : match.place] != context[-longer:]
    # One anchor length that stands anywhere but at the end is enough to be found.
    if context and context[-1] in tokens[:-1]:
        assert found


def work_per_token(size: int) -> float:
    """Operations per token to index a file of few distinct tokens and ask at each of its places."""
    tokens = [(i * i + i // 7) % 11 for i in range(size)]
    reference = Reference("copy", tokens)
    output: list[int] = []
    for place, token in enumerate(tokens):
        output.append(token)
        reference.find(output, place)
    return reference.operations / size


def test_work_per_token_does_not_grow_with_the_file() -> None:
    small, large = work_per_token(500), work_per_token(8000)
    assert large <= small * 1.25
    assert large < len(LENGTHS) * (2 + 3 * (DEPTH + 1))
