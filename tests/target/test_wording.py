"""What is said around file and edit speaks of the tags that are really used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apply_edit.target import prompt
from apply_edit.target.prompt import build
from apply_edit.target.replay import ReplayCodec


@pytest.mark.parametrize("edit", [{"instruction": "x"}, {"update": "# x\n"}])
def test_rules_and_last_sentence_name_the_tags_in_use(edit: dict[str, str]) -> None:
    codec = ReplayCodec()
    file = "<code>\n"
    text = codec.decode(build(codec, file, **edit).tokens)
    assert text.count("<code>") == 1  # the file's own; rules, frame and last sentence say code-2
    assert "<code-2>\n<code>\n</code-2>" in text
    assert text.endswith("<updated-code-2>\n")


def test_a_sketch_s_prompt_ends_with_what_must_arrive() -> None:
    codec = ReplayCodec()
    text = codec.decode(build(codec, "a = 1\n", update="a = 2\n", instruction="two").tokens)
    last = text.rindex("every line of the <update>")
    assert text.rindex("</update>") < text.rindex("In words: two") < last


def test_braces_of_file_and_edit_are_text() -> None:
    codec = ReplayCodec()
    file, edit = "d = {code: '{update}'}\n", "{answer} {0} {"
    assert edit in codec.decode(build(codec, file, instruction=edit).tokens)
    assert f"<code>\n{file}</code>" in codec.decode(build(codec, file, update=edit).tokens)


def test_the_order_is_the_wording_s(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = ReplayCodec()
    first = replace(prompt.INSTRUCTION, order=("edit", "code", "edit"))
    monkeypatch.setattr(prompt, "INSTRUCTION", first)
    text = codec.decode(build(codec, "a = 1\n", instruction="two").tokens)
    assert text.count("<instruction>\ntwo\n") == 2
    assert text.index("<instruction>\ntwo") < text.index("<code>\na = 1")


@pytest.mark.parametrize("edit", [{"instruction": "x"}, {"update": "# x\n"}])
def test_context_comes_first_and_is_only_to_be_read(edit: dict[str, str]) -> None:
    codec = ReplayCodec()
    text = codec.decode(build(codec, "b\n", before="a\n", behind="<code>\n", **edit).tokens)
    places = [text.rindex(part) for part in ("-2>\na\n</", "-2>\n<code>\n</", "<code-2>\nb\n</")]
    assert places == sorted(places)
    assert text.index("<code-before-2> and <code-behind-2> only show") < places[0]
    assert "only show" not in codec.decode(build(codec, "b\n", **edit).tokens)
