"""Several FILEs in one call: the real command on replays that share passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import ROOT, SLOW, Command
from tests.show.schema import problems
from tests.terminal import Session

SLOTTED = """
from pathlib import Path
from apply_edit.target import replay
from tests.slotted import SlottedReplay
def open_answers(path, raw=False):
    texts = [file.read_text() for file in sorted(Path(path).iterdir())]
    return SlottedReplay({text.split("\\n")[0]: text for text in texts})
replay.ReplayBackend = open_answers
"""
NAMES = ("a.py", "b.py", "c.py")
ARGS = (*NAMES, "-i", "say 'five'", "-m", "replay:answers")


def text(name: str, lines: int = 40) -> str:
    return f"name = {name!r}\n" + "".join(f"{name[0]}_{i} = {i}\n" for i in range(lines))


def after(name: str) -> str:
    return text(name).replace("_5 = 5\n", "_5 = 'five'\n")


@pytest.fixture
def command(tmp_path: Path) -> Command:
    made = Command.make(tmp_path)
    (made.folder / "answers").mkdir()
    for name in NAMES:
        (made.folder / name).write_text(text(name))
        (made.folder / "answers" / name).write_text(after(name))
    return made


@pytest.mark.parametrize("batch", ["1", "2", "3", "64"])
def test_files_are_edited_together_and_come_out_as_alone(command: Command, batch: str) -> None:
    done = command(*ARGS, "--json", "--batch", batch, "-w", code=SLOTTED)
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert [one["file"] for one in answer["files"]] == list(NAMES)
    assert {one["stats"]["batch"] for one in answer["files"]} == {min(int(batch), 3)}
    for one in answer["files"]:
        assert 0 < one["stats"]["first_run_seconds"] <= one["stats"]["total_seconds"]
        assert one["stats"]["output_tokens"] > 100
    assert [(command.folder / name).read_text() for name in NAMES] == list(map(after, NAMES))


def test_the_answers_come_in_the_order_of_the_files(command: Command) -> None:
    done = command(*ARGS, "--diff", code=SLOTTED)
    assert done.code == 0
    places = [done.out.index(f"a/{name}".encode()) for name in NAMES]
    assert places == sorted(places)


def test_batch_is_a_setting(command: Command) -> None:
    (command.folder / "pyproject.toml").write_text("[tool.apply-edit]\nbatch = 2\n")
    done = command(*ARGS, "--json", code=SLOTTED)
    assert [one["stats"]["batch"] for one in json.loads(done.out)["files"]] == [2, 2, 2]
    done = command(*ARGS, "--json", code=SLOTTED, APPLY_EDIT_BATCH="1")
    assert [one["stats"]["batch"] for one in json.loads(done.out)["files"]] == [1, 1, 1]
    done = command(*ARGS, "--json", "--batch", "0")
    assert done.code == 2
    assert "--batch takes a whole number from 1 up" in done.err


def test_one_that_fails_is_in_the_json_and_hurts_no_other(command: Command) -> None:
    (command.folder / "answers" / "b.py").write_text(text("b.py", 3))
    done = command(*ARGS, "--json", code=SLOTTED)
    assert done.code == 2
    answer = json.loads(done.out)
    assert [one["status"] for one in answer["files"]] == ["ok", "refused", "ok"]
    assert "b.py: " in answer["files"][1]["message"]
    assert answer["files"][0]["output"] == after("a.py")
    assert answer["files"][2]["output"] == after("c.py")


def test_without_json_the_first_failure_ends_it(command: Command) -> None:
    (command.folder / "answers" / "b.py").write_text(text("b.py", 3))
    done = command(*ARGS, "-w", code=SLOTTED)
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith("apply-edit: error: b.py: ")
    assert [(command.folder / name).read_text() for name in NAMES] == list(map(text, NAMES))


def test_report_history_and_notes_are_each_files_own(command: Command) -> None:
    done = command(*ARGS, "--check", "-v", "--history", "--report", "out.json", code=SLOTTED)
    assert done.code == 1
    report = json.loads((command.folder / "out.json").read_text())
    schema = json.loads((ROOT / "docs" / "report.schema.json").read_text())
    assert problems(report, schema, schema) == []
    for one, name in zip(report["files"], NAMES, strict=True):
        assert one["file"] == name
        assert one["stats"]["batch"] == 3
        written = "".join(p["text"] for each in one["passes"] for p in each["pieces"])
        assert written.startswith(f"name = {name!r}")
    history = Path(command.env["HOME"]) / ".local" / "state" / "apply-edit" / "history.jsonl"
    assert len(history.read_text().splitlines()) == 3
    for name in NAMES:
        assert f"apply-edit: {name}: up to 3 edits share the passes" in done.err


def test_the_display_shows_one_and_counts_all(command: Command) -> None:
    session = Session(command, *ARGS, "-w", "--k", "8", code=SLOW + SLOTTED)
    lines = session.until(lambda lines: any("/pass" in line for line in lines))
    assert lines[0].startswith("a.py · 0 of 3 files done")
    assert not any(" b_" in line or " c_" in line for line in lines)
    assert session.end() == 0
    assert [line.split(":")[0] for line in session.lines] == list(NAMES)
    assert all("changed 1 line" in line for line in session.lines)
    assert session.cursor_visible


def test_ctrl_c_ends_all_of_them(command: Command) -> None:
    session = Session(command, *ARGS, "-w", "--k", "8", code=SLOW + SLOTTED, DELAY="0.1")
    session.until(lambda lines: any("/pass" in line for line in lines))
    session.type(b"\x03")
    assert session.end() == 130
    assert session.cursor_visible
    assert b"Traceback" not in session.sent
    assert [(command.folder / name).read_text() for name in NAMES] == list(map(text, NAMES))
