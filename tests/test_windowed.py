"""Files that the window cannot hold, and ranges of files."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_edit.decode.stats import Stats, Tally
from apply_edit.editor import Edit, Editor, Options, Request
from apply_edit.errors import ApplyEditError, InputError, Refusal, UsageError
from apply_edit.events import Event, Note, Wrote
from apply_edit.question import Asker, Question
from apply_edit.target.replay import ReplayBackend, ReplayCodec
from apply_edit.text.document import Document
from apply_edit.windowed import nearest, summed, whole

COUNT = 200
LONG = "import os\n\n\n" + "".join(
    f"def f{i}(x):\n    y{i} = x + {i}\n    return y{i}\n\n\n" for i in range(COUNT)
)
REST = "# ... existing code ...\n"
WINDOW = 2500


def piece(i: int) -> str:
    return f"\ndef f{i}(x):\n    y{i} = x + {i}000\n    return y{i}\n\n"


def edited(text: str, *numbers: int) -> str:
    for i in numbers:
        text = text.replace(f"x + {i}\n", f"x + {i}000\n")
    return text


def sketch(*numbers: int) -> str:
    return REST + REST.join(piece(i) for i in numbers) + REST


def questions(data: bytes, update: str, window: int = WINDOW) -> list[Question]:
    document = Document.from_bytes(data)
    asker = Asker(ReplayCodec(), window, document)
    return asker.questions(whole(document, len(data), update))


class Replayed:
    """An editor with a small window whose target gives one answer to each question."""

    def __init__(self, folder: Path, window: int = WINDOW) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.window = window
        self.events: list[Event] = []

    def __call__(
        self, data: bytes, request: Request, *answers: str, options: Options | None = None
    ) -> Edit:
        for number, answer in enumerate(answers):
            (self.folder / f"{number:04}").write_bytes(answer.encode())
        self.backend = ReplayBackend(self.folder, window=self.window)
        return Editor(self.backend).edit(data, request, options, self.events.append)


@pytest.fixture
def replayed(tmp_path: Path) -> Replayed:
    return Replayed(tmp_path / "answers")


def answers(data: bytes, update: str, expected: str) -> list[str]:
    """Each question's lines of an expected text that has as many lines as the file."""
    lines = expected.split("\n")
    return [
        "\n".join(lines[q.part.first - 1 : q.part.last]) + "\n" for q in questions(data, update)
    ]


def test_a_sketch_on_a_long_file_is_made_place_by_place(replayed: Replayed) -> None:
    update, data = sketch(20, 90, 180), LONG.encode()
    expected = edited(LONG, 20, 90, 180)
    given_ = answers(data, update, expected)
    assert len(given_) == 3
    result = replayed(data, Request(update=update, name="a.py"), *given_)
    assert result.output == expected.encode()
    assert result.stats.finish == "stop"
    assert result.stats.passes == len(result.steps)
    assert result.stats.output_tokens == sum(len(step.tokens) for step in result.steps)
    wrote = [event for event in replayed.events if isinstance(event, Wrote)]
    assert all(a.position <= b.position for a, b in pairwise(wrote))
    assert all(a.tokens <= b.tokens for a, b in pairwise(wrote))
    assert any(
        isinstance(e, Note) and "longer than the model's window" in e.text for e in replayed.events
    )


def test_every_prompt_and_its_answer_fit(replayed: Replayed) -> None:
    for window in (900, 1500, WINDOW, 4000):
        asked = questions(LONG.encode(), sketch(20, 90, 180), window)
        assert len(asked) == 3
        for question in asked:
            assert len(question.prompt.tokens) + len(question.prompt.reference) < window


def test_each_question_holds_its_own_share_of_the_sketch() -> None:
    asked = questions(LONG.encode(), sketch(20, 90))
    for question, own, other in zip(asked, (20, 90), (90, 20), strict=True):
        assert question.part.update is not None
        assert f"x + {own}000" in question.part.update
        assert f"x + {other}000" not in question.part.update
        assert question.seen.strip().startswith(f"def f{own}(")


def test_places_that_are_near_each_other_are_asked_for_together() -> None:
    assert len(questions(LONG.encode(), sketch(20, 21, 22, 90))) == 2


def test_a_short_file_is_asked_for_as_a_whole() -> None:
    data = LONG[:500].encode()
    (question,) = questions(data, REST + piece(3) + REST, 1 << 20)
    assert (question.part.start, question.part.end) == (0, len(data))


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_bytes_between_the_places_stay(replayed: Replayed, ending: str) -> None:
    odd = LONG.replace("return y50\n", "return y50  \x0c # e\u0301 \u212b\n").removesuffix("\n")
    data = b"\xef\xbb\xbf" + odd.replace("\n", ending).encode()
    update, expected = sketch(20, 180), edited(odd, 20, 180)
    result = replayed(data, Request(update=update), *answers(data, update, expected))
    assert result.output == b"\xef\xbb\xbf" + expected.replace("\n", ending).encode()


def test_new_code_at_the_top_and_at_the_end(replayed: Replayed) -> None:
    update = "import re\nimport os\n" + REST + "\n\ndef last(x):\n    return x\n"
    asked = questions(LONG.encode(), update)
    assert len(asked) == 2
    lines = LONG.split("\n")
    first = "import re\n" + "\n".join(lines[: asked[0].part.last]) + "\n"
    last = "\n".join(lines[asked[1].part.first - 1 : -1]) + "\n\ndef last(x):\n    return x\n"
    result = replayed(LONG.encode(), Request(update=update, name="a.py"), first, last)
    assert result.output == b"import re\n" + LONG.encode() + b"\ndef last(x):\n    return x\n"


def test_nothing_is_made_when_one_place_fails(replayed: Replayed) -> None:
    update, data = sketch(20, 90, 180), LONG.encode()
    good = answers(data, update, edited(LONG, 20, 90, 180))
    with pytest.raises(Refusal) as refused:
        replayed(data, Request(update=update), good[0], good[1], answers(data, update, LONG)[2])
    assert refused.value.code == "incomplete"
    with pytest.raises(Refusal) as refused:
        replayed(data, Request(update=update), good[0], good[1], "x = 1\n")
    assert refused.value.code in ("incomplete", "lost", "truncated")


def test_the_file_as_a_whole_must_hold_the_sketch_and_parse(replayed: Replayed) -> None:
    update, data = sketch(20, 90), LONG.encode()
    good = answers(data, update, edited(LONG, 20, 90))
    bad = good[1].replace("    y90 = x", "  y90 = x")
    with pytest.raises(Refusal) as refused:
        replayed(data, Request(update=update, name="a.py"), good[0], bad)
    assert refused.value.code == "unparsable"


def test_a_definition_is_found_by_its_name() -> None:
    update = REST + "def f90(x, z):\n    return x * z\n" + REST
    (question,) = questions(LONG.encode(), update)
    assert "def f90(x):" in question.seen


def test_code_of_a_sketch_that_has_no_place_is_not_guessed_at(replayed: Replayed) -> None:
    for update in (REST + "def new(x):\n    return 7\n" + REST, "def new(x):\n    return 7\n"):
        with pytest.raises(UsageError) as refused:
            replayed(LONG.encode(), Request(update=update), "x")
        assert refused.value.code == "unplaced"
        assert "def new(x):" in refused.value.message


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(instruction="add docstrings"), ("the file has 1,003 lines", "--update")),
        (Request(instruction="x", lines=(3, 900)), ("lines 3:900 have 898 lines", "fewer")),
        (Request(update=LONG), ("the file has 1,003 lines", "--lines")),
    ],
)
def test_what_does_not_fit_is_refused_before_the_weights(
    replayed: Replayed,
    request_: Request,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ReplayBackend, "target", lambda *_: pytest.fail("loaded"))
    with pytest.raises(InputError) as refused:
        replayed(LONG.encode(), request_, "x")
    assert refused.value.code == "too-long"
    assert f"{WINDOW:,}" in refused.value.message
    fits = re.findall(r"about (\d+) lines", refused.value.message)
    assert len(fits) == 1
    assert 200 <= int(fits[0]) <= 240
    for word in words:
        assert word in refused.value.message


def test_a_file_of_megabytes_is_not_tokenised_to_the_end(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0
    encode = ReplayCodec.encode

    def counting(self: ReplayCodec, text: str) -> list[int]:
        nonlocal read
        read += len(text)
        return encode(self, text)

    monkeypatch.setattr(ReplayCodec, "encode", counting)
    data = LONG.encode() * 100
    with pytest.raises(InputError) as refused:
        replayed(data, Request(instruction="x"), "x")
    assert refused.value.code == "too-long"
    assert "100,300 lines" in refused.value.message
    assert read < len(data) / 10
    first, last = 50_000, 50_010
    lines = data.decode().split("\n")
    middle = "\n".join(lines[first - 1 : last]) + "\n"
    result = replayed(data, Request(instruction="x", lines=(first, last)), middle)
    assert not result.changed
    assert read < len(data) / 5


# Ranges


def test_a_range_reads_what_fits_around_it(replayed: Replayed) -> None:
    document = Document.from_bytes(LONG.encode())
    lines = LONG.split("\n")
    first, last = 504, 506
    for window in (700, 1200, WINDOW, 1 << 20):
        asker = Asker(codec := ReplayCodec(), window, document, "make it faster")
        from apply_edit.windowed import part

        question = asker.question(part(document, first, last, None))
        text = codec.decode(question.prompt.tokens)
        budget = min(question.prompt.ample, window - len(question.prompt.tokens))
        assert len(question.prompt.tokens) + budget <= window
        assert "<code>\n" + "\n".join(lines[first - 1 : last]) + "\n</code>" in text
        if window == 1 << 20:
            assert "def f0(" in text
            assert f"def f{COUNT - 1}(" in text
        if window == WINDOW:
            assert "def f99(" in text
            assert "def f101(" in text
            assert "def f0(" not in text


@pytest.mark.parametrize("lines", [(1, 1), (1, 3), (2, 4), (4, 5), (5, 5), (1, 5)])
@pytest.mark.parametrize("tail", ["", "\n", "\r\n"])
def test_a_range_and_nothing_else_is_rewritten(
    replayed: Replayed, lines: tuple[int, int], tail: str
) -> None:
    texts = ["\tif a:", "        b = 1  ", "", "    \x0c c = '\u2028'", "  last"]
    ends = ["\n", "\r\n", "\r\n", "\n", tail]
    whole_ = [text + end for text, end in zip(texts, ends, strict=True)]
    data = "".join(whole_).encode()
    first, last = lines
    middle = "\n".join(texts[first - 1 : last])
    result = replayed(data, Request(instruction="x", lines=lines), middle + "\n")
    assert not result.changed
    new = replayed(
        data,
        Request(instruction="add z", lines=lines, allow=frozenset({"fenced"})),
        middle + "\n    z = 1\n",
    ).output
    before, behind = "".join(whole_[: first - 1]).encode(), "".join(whole_[last:]).encode()
    assert new.startswith(before)
    assert new.endswith(behind)
    rewritten = new[len(before) : len(new) - len(behind)].decode()
    own = "".join(whole_[first - 1 : last])
    if not own.endswith("\n"):
        assert rewritten.startswith(own)
        assert rewritten.endswith("z = 1")
    else:
        assert rewritten.startswith(own)
        assert rewritten.endswith(("z = 1\n", "z = 1\r\n"))
    assert rewritten.count("\n") == own.count("\n") + 1


def test_guards_judge_the_range_alone(replayed: Replayed) -> None:
    data = LONG.encode()
    start = LONG.split("\n").index("def f5(x):") + 1
    good = "def f5(x):\n    return x + 5\n"
    result = replayed(data, Request(instruction="simplify f5", lines=(start, start + 2)), good)
    assert result.output == LONG.replace("    y5 = x + 5\n    return y5\n", good[11:]).encode()
    with pytest.raises(Refusal) as refused:
        replayed(
            data,
            Request(instruction="simplify f5", lines=(start, start + 2), name="a.py"),
            "def f5(x):\n# ... existing code ...\n",
        )
    assert refused.value.code == "elided"
    assert refused.value.message.startswith(f"line {start + 1} of the edited file, ")


def test_a_range_must_still_fit_into_the_file(replayed: Replayed) -> None:
    start = LONG.split("\n").index("    y5 = x + 5") + 1
    request = Request(instruction="use a loop", lines=(start, start), name="a.py")
    with pytest.raises(Refusal) as refused:
        replayed(LONG.encode(), request, "  y5 = x + 5\n")
    assert refused.value.code == "unparsable"


def test_a_sketch_may_be_for_a_range_of_a_long_file(replayed: Replayed) -> None:
    data = LONG.encode()
    start = LONG.split("\n").index("def f90(x):")
    lines = (start - 30, start + 30)
    middle = edited("\n".join(LONG.split("\n")[lines[0] - 1 : lines[1]]) + "\n", 90)
    result = replayed(data, Request(update=sketch(90), lines=lines), middle)
    assert result.output == edited(LONG, 90).encode()


@pytest.mark.parametrize("text", ["\n", "\n\n", "x\n\n", " \n"])
def test_blank_lines_alone_are_not_nothing(replayed: Replayed, text: str) -> None:
    assert not replayed(text.encode(), Request(instruction="x"), text).changed
    count = text.count("\n")
    request = Request(instruction="x", lines=(count, count))
    line = text.split("\n")[count - 1] + "\n"
    assert not replayed(text.encode(), request, line).changed


def test_the_time_is_one_for_all_places(replayed: Replayed) -> None:
    update, data = sketch(20, 90), LONG.encode()
    good = answers(data, update, edited(LONG, 20, 90))
    with pytest.raises(Refusal) as refused:
        replayed(data, Request(update=update), *good, options=Options(timeout=0.0))
    assert refused.value.code == "timeout"


# The pieces


def test_the_nearest_lines_come_first_and_headers_of_blocks_around() -> None:
    lines = ["class A:", "    z = 0", "    def f(self):", *(f"        a{i} = 1" for i in range(40))]
    codec = ReplayCodec()
    before, behind = nearest(codec, lines, 30, 31, 120)
    got = before.split("\n")[:-1]
    assert got[:2] == ["class A:", "    def f(self):"]
    assert got[2:] == lines[29 - len(got[2:]) : 29]
    assert behind.split("\n")[:-1] == lines[31 : 31 + behind.count("\n")]
    assert abs((before.count("\n") - 2) - behind.count("\n")) <= 3


@settings(deadline=None)
@given(st.lists(st.text("ab \t(", max_size=9), min_size=1, max_size=30), st.data())
def test_context_is_whole_lines_within_the_room(lines: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    room = data.draw(st.integers(0, 60))
    codec = ReplayCodec()
    before, behind = nearest(codec, lines, first, last, room)
    assert len(codec.encode(before)) + len(codec.encode(behind)) <= room
    assert "".join(line + "\n" for line in lines[last:]).startswith(behind)
    above = iter(line + "\n" for line in lines[: first - 1])
    assert all(line in above for line in before.splitlines(keepends=True))


def test_figures_of_several_answers_add_up() -> None:
    one = Stats(output_tokens=3, passes=2, by_source={"copy": Tally(4, 2)}, finish="stop")
    two = Stats(output_tokens=5, passes=1, by_source={"copy": Tally(1, 1)}, finish="length")
    total = summed([one, two])
    assert (total.output_tokens, total.passes, total.finish) == (8, 3, "length")
    assert total.by_source == {"copy": Tally(5, 3)}
    assert one.by_source == {"copy": Tally(4, 2)}
    assert summed([one]) is one


@pytest.mark.parametrize("names", [[], ["b", "a"]])
def test_a_folder_answers_question_after_question(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text(f"{name}\n")
    if not names:
        with pytest.raises(ApplyEditError) as refused:
            ReplayBackend(tmp_path)
        assert refused.value.code == "no-replay"
        return
    editor = Editor(ReplayBackend(tmp_path))
    request = Request(instruction="x", allow=frozenset({"lost"}))
    assert [editor.edit(b"x\n", request).output for _ in range(3)] == [b"a\n", b"b\n", b"b\n"]
