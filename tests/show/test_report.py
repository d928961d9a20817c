"""Reports as data: what they hold, that it is what the schema says, where they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apply_edit.decode.types import Run, Step
from apply_edit.editor import Edit, Editor, Options, Request
from apply_edit.errors import UsageError
from apply_edit.events import Note, Piece, Wrote
from apply_edit.show.file_report import file_report, report
from apply_edit.show.recording import Recorder, new_lines
from apply_edit.show.report import check_place, write
from tests.command import ROOT
from tests.show.reports import NOW, edited, source
from tests.show.schema import problems

SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "report.schema.json").read_text())


def text_of(one: Any) -> str:
    return "".join(piece.text for each in one.passes for piece in each.pieces)


def test_the_passes_hold_the_whole_answer_without_its_frame(tmp_path: Path) -> None:
    after = source(30, range(10, 12)).removesuffix("\n") + " # é 日本\n"
    one = edited(tmp_path, source(30), after)
    assert text_of(one) + "\n" == after
    assert sum(each.tokens for each in one.passes) == one.stats.output_tokens
    assert [each.start for each in one.passes][:2] == [0, one.passes[0].tokens]
    assert one.new_lines == (11, 12, 30)
    assert one.changed_lines == 3
    assert any(each.rejected for each in one.passes)
    assert all(bool(each.rejected) == bool(each.fallen) for each in one.passes)


def test_a_tag_that_ends_the_file_itself_stays(tmp_path: Path) -> None:
    after = "say <b>\n</updated-code>"
    one = edited(tmp_path, "say <a>\n</updated-code>", after)
    assert text_of(one) == after


def test_json_is_what_the_schema_says(tmp_path: Path) -> None:
    part = "".join(source(30).splitlines(keepends=True)[2:9])
    reports = [
        edited(tmp_path, source(30), source(30, range(10, 12)), costs=((1, 5.0), (64, 20.5))),
        edited(tmp_path, source(30), part, lines=(3, 9), options=Options(k=4, timeout=60)),
        edited(tmp_path, source(30), "Sure! Here it is", raw=True),
    ]
    assert [one.status for one in reports] == ["ok", "ok", "refused"]
    data = json.loads(json.dumps(report(reports, NOW)))
    assert problems(data, SCHEMA, SCHEMA) == []
    assert data["created"] == "2026-11-30T12:00:00+00:00"


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        (("schema",), 2, "is not 1"),
        (("files", 0, "status"), "fine", "is none of"),
        (("files", 0, "passes", 0, "rows"), -1, "out of bounds"),
        (("files", 0, "passes", 0, "rows"), True, "is no integer"),
        (("files", 0, "stats", "sources"), {}, "not described"),
        (("files", 0, "stats", "by_source", "memory"), {"drafted": 1, "accepted": 0}, "is none"),
    ],
)
def test_the_schema_check_finds_what_is_wrong(
    tmp_path: Path, where: tuple[Any, ...], value: object, words: str
) -> None:
    data = report([edited(tmp_path, source(30), source(30, range(10, 12)))], NOW)
    place = data
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    (problem,) = problems(data, SCHEMA, SCHEMA)
    assert words in problem


def test_a_refused_answer_is_shown_as_far_as_it_went(tmp_path: Path) -> None:
    one = edited(tmp_path, source(60), source(60)[:900], raw=True)
    assert one.status == "refused"
    assert one.code in ("truncated", "lost", "unparsable")
    assert one.changed_lines is None
    assert text_of(one) == source(60)[:900]
    assert one.stats.passes == len(one.passes) > 0
    assert one.stats.output_tokens == sum(each.tokens for each in one.passes)
    assert one.stats.model == "replay"


def test_a_range_is_numbered_as_in_the_file(tmp_path: Path) -> None:
    part = source(30, range(10, 12)).split("\n")[8:14]
    one = edited(tmp_path, source(30), "\n".join(part) + "\n", lines=(9, 14))
    assert one.status == "ok", one.message
    assert one.first_lines == (9,)
    assert one.new_lines == (11, 12)


def test_answers_in_parts_are_told_apart() -> None:
    """A file longer than the window is rewritten in several answers, each with its frame."""

    def wrote(text: str, seconds: float, finish: Any = None) -> Wrote:
        step = Step(
            runs=(Run("copy", (1, 2), 0),),
            rows=3,
            drafted=2,
            accepted=2,
            rejected=(),
            k=2,
            context=9,
            seconds=0.5,
            draft_seconds=0.0,
            finish=finish,
        )
        return Wrote((Piece("copy", text),), "", step, 0.5, 2, seconds)

    recorder = Recorder()
    for event in (
        wrote("a\nB", 1.0),
        wrote("\n</updated-code>", 2.0, "stop"),
        Note("the second part"),
        wrote("d\nE\n</updated-code>", 4.0, "stop"),
    ):
        recorder(event)
    before, after = b"a\nb\nc\nd\ne\n", b"a\nB\nc\nd\nE\n"
    edit = Edit(before, after, recorder.stats(), (), ())
    backend = Editor.load(f"replay:{__file__}").backend
    request = Request(instruction="x", name="f")
    one = file_report("f", before, request, Options(), recorder, edit, backend)
    assert [each.part for each in one.passes] == [0, 0, 1]
    assert ["".join(p.text for p in each.pieces) for each in one.passes] == ["a\nB", "", "d\nE"]
    assert one.first_lines == (1, 4)
    assert one.new_lines == (2, 5)
    assert [each.start for each in one.passes] == [0, 2, 4]
    assert [each.began for each in one.passes] == [0.5, 1.5, 3.5]
    assert one.notes == ("the second part",)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("abc", "abc", []),
        ("abc", "abxc", [2]),
        ("abc", "ac", []),
        ("", "ab", [0, 1]),
        ("aaaa", "aaaaa", [4]),
        ("abcabc", "abxabx", [2, 5]),
    ],
)
def test_new_lines(old: str, new: str, wanted: list[int]) -> None:
    assert list(new_lines(list(old), list(new))) == wanted


@pytest.mark.parametrize(
    "path", ["out.txt", "out", "-", "out.html.gz", "nowhere/out.html", "folder.html"]
)
def test_places_that_are_refused_at_once(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(UsageError) as caught:
        check_place(path)
    assert caught.value.code == "bad-report"


def test_a_report_never_replaces_a_file_of_the_edit(tmp_path: Path) -> None:
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.write_text("<p>mine")
    link.symlink_to(page)
    for path in (page, link):
        for more in ({"inputs": [str(page)]}, {"output": str(page)}):
            with pytest.raises(UsageError, match="replace"):
                check_place(str(path), **more)  # type: ignore[arg-type]
    check_place(str(page), ["-", str(tmp_path / "f.py")])


def test_the_suffix_says_which(tmp_path: Path) -> None:
    one = edited(tmp_path, source(3), source(3, range(1)))
    write(str(tmp_path / "out.JSON"), [one], NOW)
    assert json.loads((tmp_path / "out.JSON").read_bytes())["schema"] == 1
    write(str(tmp_path / "out.html"), [one], NOW)
    write(str(tmp_path / "out.html"), [one], NOW)
    assert (tmp_path / "out.html").read_bytes().startswith(b"<!doctype html>")
