"""Blank lines at a file's ends stay as they are unless the edit is about them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.text.edges import keep_edges


@pytest.mark.parametrize(
    ("original", "output", "expected"),
    [
        ("\n\na\nb\n", "a\nc\nb\n", "\n\na\nc\nb\n"),
        ("a\nb\n\n\n", "a\nc\nb\n", "a\nc\nb\n\n\n"),
        ("a\nb\n", "a\nc\nb\n\n\n", "a\nc\nb\n"),
        ("a\nb\n  \n", "a\nb\n\n", "a\nb\n  \n"),
        ("\na\nb\n", "x\na\nb\n", "x\na\nb\n"),  # something new begins the file
        ("a\nb\n\n", "a\nb\nc\n", "a\nb\nc\n"),
        ("a\n", "", ""),
        ("", "a\n\n", "a\n\n"),
        ("\n\n", "\n", "\n"),
        ("a\n\x0c\n", "a\n", "a\n\x0c\n"),
    ],
)
def test_ends(original: str, output: str, expected: str) -> None:
    assert keep_edges(original, output) == expected


def test_an_edit_about_blank_lines_is_let_alone() -> None:
    assert keep_edges("a\n\n\n", "a\n", "Remove the trailing blank lines") == "a\n"


views = st.lists(st.sampled_from(["", " ", "a", "b", "\x0c"])).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


@given(views, views)
def test_only_blank_lines_at_the_ends_move(original: str, output: str) -> None:
    kept = keep_edges(original, output)
    assert kept.strip() == output.strip()
    assert keep_edges(original, kept) == kept
    assert keep_edges(original, original) == original
