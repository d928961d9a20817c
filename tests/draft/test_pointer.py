"""The pointer finds its place again after each kind of edit, and stays put without cause."""

from __future__ import annotations

from apply_edit.draft.index import Reference
from apply_edit.draft.pointer import PROVEN, Pointer

NEWLINE, INDENT = 1, 2


def file(lines: int) -> list[int]:
    """Lines of an indent, four names of their own, and a newline: common tokens and rare ones."""
    tokens = []
    for line in range(lines):
        tokens += [INDENT, *(100 * line + 10 + i for i in range(4)), NEWLINE]
    return tokens


def follow(pointer: Pointer, output: list[int], start: int = 0) -> None:
    for end in range(start + 1, len(output) + 1):
        pointer.step(output[:end])


def walked(original: list[int], output: list[int]) -> Pointer:
    pointer = Pointer(Reference("copy", original), 0)
    follow(pointer, output)
    return pointer


FILE = file(40)


def test_it_walks_along_a_copy() -> None:
    pointer = walked(FILE, FILE[:50])
    assert pointer.ready
    assert pointer.home == 50
    assert pointer.ahead(3) == FILE[50:53]


def test_after_a_replacement_of_equal_length() -> None:
    output = [*FILE[:50], 9001, *FILE[51:53]]
    pointer = walked(FILE, output)
    assert pointer.home == 53
    assert pointer.ready


def test_after_a_replacement_by_more() -> None:
    output = [*FILE[:50], 9001, 9002, 9003, 9004, *FILE[52:56]]
    pointer = walked(FILE, output)
    assert pointer.home == 56
    assert pointer.ready


def test_after_an_insertion_of_lines() -> None:
    inserted = [INDENT, 9001, 9002, NEWLINE, INDENT, 9003, 9004, NEWLINE]
    output = [*FILE[:48], *inserted, *FILE[48:52]]
    pointer = walked(FILE, output)
    assert pointer.home == 52
    assert pointer.ready


def test_after_a_deletion_of_lines() -> None:
    output = [*FILE[:48], *FILE[72:76]]
    pointer = walked(FILE, output)
    assert pointer.home == 76
    assert pointer.ready


def test_a_moved_block_and_the_place_it_was_moved_before() -> None:
    # The block of lines 30 to 34 now stands before line 10, whose lines follow behind it.
    block = FILE[180:210]
    output = [*FILE[:60], *block]
    pointer = walked(FILE, output)
    assert pointer.home == 210
    assert pointer.ready
    output += FILE[60:64]
    follow(pointer, output, len(output) - 4)
    assert pointer.home == 64
    assert pointer.ready


def test_after_a_long_block_the_place_left_is_forgotten() -> None:
    output = [*FILE[:60], *FILE[120:200]]
    pointer = walked(FILE, output)
    assert pointer.home == 200
    assert pointer.left == []


def test_a_far_coincidence_does_not_hold_the_pointer() -> None:
    # Six tokens of a line far away, then something new: the next line of home is close by again.
    output = [*FILE[:60], *FILE[181:186], 9001]
    pointer = walked(FILE, output)
    assert pointer.home in range(60, 70)


def test_a_newline_or_an_indent_alone_never_throws_the_pointer() -> None:
    for token in (NEWLINE, INDENT):
        for runs in range(1, 4):
            pointer = walked(FILE, [*FILE[:50], 9001, *[token] * runs])
            assert abs(pointer.home - 50) <= 12, (token, runs)
    # A whole inserted line of common tokens only, too.
    pointer = walked(FILE, [*FILE[:48], INDENT, 9001, NEWLINE, INDENT, 9002, NEWLINE, INDENT])
    assert abs(pointer.home - 48) <= 12


def test_rare_tokens_weigh_more_than_common_ones() -> None:
    pointer = Pointer(Reference("copy", FILE), 0)
    weights = {}
    for match in pointer.matches([NEWLINE]) + pointer.matches([13]):
        weights[FILE[match.place - 1]] = pointer.weight(match)
    assert weights[NEWLINE] < weights[13] / 2


def test_a_rename_is_drafted_once_it_has_come_twice() -> None:
    old, new = 500, 9001
    original = [t for line in range(20) for t in (INDENT, 10 * line + 600, old, 10 * line + 601)]
    renamed = [new if token == old else token for token in original]
    pointer = Pointer(Reference("copy", original), 0)
    for count in range(1, 6):
        follow(pointer, renamed[: 4 * count], 4 * (count - 1))
        assert pointer.ready, count
        expected = renamed if count >= PROVEN else original
        assert pointer.ahead(12) == expected[4 * count : 4 * count + 12], count
    # One place keeps the old name: from there on it is not drafted blindly any more.
    kept = [*renamed[: 4 * 5 + 2], old, original[4 * 5 + 3]]
    follow(pointer, kept, 4 * 5)
    assert pointer.ready
    assert pointer.ahead(12) == original[24:36]


def test_a_known_rename_of_several_tokens_is_finished_from_memory() -> None:
    original = [t for line in range(12) for t in (INDENT, 10 * line + 600, 500, 501, NEWLINE)]
    new = [9001, 9002, 9003]
    pointer = Pointer(Reference("copy", original), 0)
    output = [INDENT, 600, *new, NEWLINE, INDENT, 610]
    follow(pointer, output)
    assert pointer.ready
    follow(pointer, [*output, new[0]], len(output))
    assert pointer.ahead(4) == [9002, 9003, NEWLINE, INDENT]


def test_new_indentation_of_a_block() -> None:
    deep = 3
    original = [
        t for line in range(20) for t in (NEWLINE, INDENT, *range(10 * line + 600, 10 * line + 604))
    ]
    deeper = [deep if token == INDENT else token for token in original]
    pointer = Pointer(Reference("copy", original), 0)
    follow(pointer, deeper[:18])
    assert pointer.ahead(18) == deeper[18:36]


def test_the_end_of_the_reference() -> None:
    pointer = walked(FILE, FILE)
    assert not pointer.ready
    follow(pointer, [*FILE, 9001], len(FILE))
    assert not pointer.ready
