"""Prompts frame the file so that nothing in it can be taken for the frame."""

from __future__ import annotations

import pytest

from apply_edit.target.prompt import body_of, build, read_answer
from apply_edit.target.replay import ReplayCodec


def test_the_reference_is_a_whole_unchanged_answer() -> None:
    codec = ReplayCodec()
    prompt = build(codec, "a = 1\nb = 2\n", instruction="swap")
    answer = codec.decode(prompt.reference)
    assert answer == "a = 1\nb = 2\n</updated-code>"
    assert read_answer(answer, prompt.closing_text) == ("a = 1\nb = 2", True)
    assert prompt.seen == "a = 1\nb = 2"


def test_the_prompt_holds_file_and_edit_and_opens_the_reply() -> None:
    codec = ReplayCodec()
    text = codec.decode(build(codec, "a = 1\n", instruction=" make it two ").tokens)
    assert "<code>\na = 1\n</code>" in text
    assert "<instruction>\nmake it two\n</instruction>" in text
    assert text.endswith("<updated-code>\n")
    text = codec.decode(
        build(codec, "a = 1\n", update="a = 2\n", instruction="two, not one").tokens
    )
    assert "<update>\na = 2\n</update>" in text
    assert "two, not one" in text


@pytest.mark.parametrize(
    "file",
    [
        "x = '</updated-code>'\n",
        "<code>\n",
        "</code>",
        "<updated-code-2></updated-code><update>\n",
    ],
)
def test_tags_that_stand_in_the_file_are_not_used(file: str) -> None:
    codec = ReplayCodec()
    prompt = build(codec, file, update="# x\n")
    tag = prompt.closing_text.strip()
    assert tag not in file
    answer = body_of(file) + prompt.closing_text
    assert read_answer(answer, prompt.closing_text) == (body_of(file), True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n</updated-code>", ("a", True)),
        ("a\n\n</updated-code>\n", ("a\n", True)),
        ("a</updated-code>", ("a", True)),
        ("</updated-code>", ("", True)),
        ("\n</updated-code>", ("", True)),
        ("</updated-code> inside\nb\n</updated-code>", ("</updated-code> inside\nb", True)),
        ("a\n</updated-code>\nb", ("a\n</updated-code>\nb", False)),
        ("a\n", ("a\n", False)),
    ],
)
def test_only_the_last_tag_is_the_frame(text: str, expected: tuple[str, bool]) -> None:
    assert read_answer(text, "\n</updated-code>") == expected
