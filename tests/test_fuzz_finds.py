"""Inputs that scripts/fuzz.py found, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from apply_edit.editor import Editor, Options, Request
from apply_edit.errors import Refusal
from apply_edit.target.replay import ReplayBackend
from apply_edit.text import guard, merge

EVERYTHING = frozenset({*guard.CODES, "garbled"})


def edit(
    folder: Path,
    data: str,
    answer: str,
    *,
    request: Request | None = None,
    options: Options | None = None,
) -> str:
    (folder / "answer").write_bytes(answer.encode())
    editor = Editor(ReplayBackend(folder / "answer"))
    given = request or Request(instruction="x")
    return editor.edit(data.encode(), given, options).output.decode()


@pytest.mark.parametrize("text", ["\n", "\r\n", "\ufeff\n"])
def test_a_file_of_one_blank_line_keeps_it(tmp_path: Path, text: str) -> None:
    assert edit(tmp_path, text, "\n") == text


def test_rows_of_several_bytes_a_letter_are_no_loop(tmp_path: Path) -> None:
    text = "\u00e9 " * 3000 + "\n"
    for options in (Options(draft="none"), Options(k=1), Options()):
        assert edit(tmp_path, text, text, options=options) == text


def test_an_answer_cut_short_for_its_loop_is_never_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apply_edit.editor.LoopWatch.feed", lambda self, text: len(text) > 3)
    monkeypatch.setattr(guard, "check", lambda *_, **__: [])
    with pytest.raises(Refusal) as refused:
        edit(tmp_path, "a = 1\n" * 9, "a = 1\n" * 8 + "a = 2\n")
    assert refused.value.code == "looping"


def test_a_loop_is_a_loop_and_not_a_difference_of_drafting(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        edit(tmp_path, "x\n", "load    (+ run x)))\n\n" * 60, options=Options(verify=True))
    assert refused.value.code == "looping"


def test_a_carriage_return_file_replays_itself(tmp_path: Path) -> None:
    assert edit(tmp_path, "a\rb\r", "a\rb\r") == "a\rb\r"


def test_nul_in_an_answer_is_garbled(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        edit(tmp_path, "a\nb\n", "a\nb\0\n")
    assert refused.value.code == "garbled"


@pytest.mark.parametrize("data", ["a\nb", "a\r\nb"])
def test_a_blank_line_at_the_end_does_not_end_a_file_without_a_newline(
    tmp_path: Path, data: str
) -> None:
    request = Request(instruction="x", allow=EVERYTHING)
    output = edit(tmp_path, data, "a\nc\n\n", request=request)
    assert not output.endswith("\n")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("a\n", "a\n"),  # only the end went: the line left keeps its newline
        ("a\nb\n", "a\nb"),
        ("a\nb\n\n", "a\nb"),
        ("a\nb\nc\n\n", "a\nb\nc"),
    ],
)
def test_the_end_of_a_file_without_a_newline(tmp_path: Path, answer: str, expected: str) -> None:
    request = Request(instruction="x", allow=EVERYTHING)
    assert edit(tmp_path, "a\nb", answer, request=request) == expected


def test_a_message_that_quotes_the_file_is_one_plain_line() -> None:
    error = Refusal("lost", "the definition of 'a\ufeff\n\x1b' is gone")
    assert error.message == str(error) == "the definition of 'a\\ufeff\\n\\x1b' is gone"


REPEATED = "import os\n\n\n" + "".join(
    f"def f{i}(x):\n    y = x + {i}\n    return y\n\n\n" for i in range(200)
)


def test_a_piece_ends_where_its_function_ends() -> None:
    rest = "# ... existing code ...\n"
    pieces = [f"\ndef f{i}(x):\n    y = x + {i}00\n    return y\n\n" for i in (50, 150)]
    update = rest + rest.join(pieces) + rest
    expected = REPEATED.replace("x + 50\n", "x + 5000\n").replace("x + 150\n", "x + 15000\n")
    assert merge.predict(REPEATED, update).text == expected


def test_a_new_function_at_the_end_goes_to_the_end() -> None:
    update = "import re\nimport os\n# ... existing code ...\n\n\ndef last(x):\n    return x\n"
    text = REPEATED[: REPEATED.index("def f9(")]
    lines = merge.predict(text, update).text.rstrip().split("\n")
    assert lines[-2:] == ["def last(x):", "    return x"]
    assert "def f0(x):" in lines
