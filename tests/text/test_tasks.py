"""Edits to practise on: pieces that fit, instructions that suit, the same for the same file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.text.tasks import LONGEST, MOST, Task, tasks

SOURCE = '''\
import os


@decorated
def read(path, limit=3):
    """Read a file.

    More words.
    """
    lines = []
    with open(path) as file:
        for line in file:
            if not line:
                continue
            elif len(lines) > limit:
                break
            lines.append(line)
    return lines


class Shelf:
    """Books."""

    def __init__(self, books):
        self.books = list(books)
        self.count = len(self.books)
        self.name = "shelf of books"


def tiny():
    return 1
'''


def every(source: str, name: str) -> Iterator[Task]:
    for seed in range(400):
        yield from tasks(source, name, 5, seed)


def test_pieces_are_definitions_moved_to_the_left_edge() -> None:
    texts = {task.text for task in every(SOURCE, "a.py")}
    assert any(text.startswith("@decorated\ndef read") for text in texts)
    assert any(text.startswith("class Shelf") for text in texts)
    assert not any("tiny" in text for text in texts)  # too short to practise on
    for text in texts:
        assert text.endswith("\n")
        assert not text.startswith((" ", "\n"))


def test_instructions_suit_the_piece() -> None:
    found = {(task.instruction, task.text) for task in every(SOURCE, "a.py")}
    said = {instruction for instruction, _ in found}
    assert any("for files that cannot be opened" in one for one in said)
    assert any("the loop in read" in one for one in said)
    assert any("__repr__ method to Shelf" in one for one in said)
    assert any("Rename lines to" in one for one in said)
    assert any("shelf of books" in one for one in said)
    assert not any("{" in one for one in said)
    for instruction, text in found:
        if "__repr__" in instruction:
            assert text.startswith("class Shelf")


def test_some_functions_are_to_be_written_anew() -> None:
    opened = {task.text for task in every(SOURCE, "a.py") if "NotImplementedError" in task.text}
    assert opened == {
        SOURCE[SOURCE.index("@dec") : SOURCE.index("    lines = []")]
        + "    raise NotImplementedError\n"
    }


def test_other_languages_have_tasks_too() -> None:
    source = (
        "function add(items) {\n  let sum = 0;\n  for (const x of items) {\n    sum += x;\n  }\n"
    )
    source += "  return sum;\n}\n"
    found = tasks(source, "a.js", 3)
    assert [task.text for task in found] == [source]
    said = {task.instruction for task in every(source, "a.js")}
    assert not any("type hints" in one or "docstring" in one for one in said)


def test_the_same_file_gives_the_same_tasks() -> None:
    assert tasks(SOURCE, "a.py", 5, 1) == tasks(SOURCE, "a.py", 5, 1)
    assert tasks(SOURCE, "a.py", 0) == []


@given(
    st.text(alphabet="def class(){}:\n\"'#@xyz \t\u00e9", max_size=300),
    st.sampled_from(["a.py", "b.c"]),
)
def test_any_text_will_do(source: str, name: str) -> None:
    for task in tasks(source, name, 9):
        assert 0 < len(task.text) <= max(LONGEST, len(source) + 40)
        assert task.text.count("\n") <= MOST + 2
        assert task.instruction


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.glob("test_*.py"))[:4], ids=str)
def test_real_files_give_tasks(path: Path) -> None:
    assert tasks(path.read_text(encoding="utf-8"), path.name, 3)
