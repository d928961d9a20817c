"""--report, --history and `apply-edit stats` of the real command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import AFTER, BEFORE, Command


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command.make(tmp_path)


def history(command: Command) -> Path:
    return Path(command.env["HOME"]) / ".local" / "state" / "apply-edit" / "history.jsonl"


def test_reports_come_beside_the_answer(command: Command) -> None:
    done = command.edit("--report", "out.html")
    assert (done.code, done.out, done.err) == (0, AFTER, "")
    page = (command.folder / "out.html").read_text()
    assert "<h1>f.py</h1>" in page
    assert "1 line changed" in page
    done = command.edit("--report", "out.json", "--json")
    data = json.loads((command.folder / "out.json").read_text())
    assert data["files"][0]["stats"] == json.loads(done.out)["stats"]
    assert data["files"][0]["notes"]


def test_a_refused_answer_is_reported_and_the_filter_still_echoes(command: Command) -> None:
    (command.folder / "g.py").write_text("Sure! Here it is\n")
    args = ("-", "-i", "x", "-m", "replay-raw:g.py", "--report", "out.html", "--history")
    done = command(*args, stdin=BEFORE)
    assert (done.code, done.out) == (2, BEFORE)
    page = (command.folder / "out.html").read_text()
    assert "Refused" in page
    assert "Sure" in page
    kept = json.loads(history(command).read_text())
    assert kept["status"] == "refused"
    assert kept["code"] in done.err
    assert kept["passes"] > 0
    assert kept["prompt_tokens"] > kept["output_tokens"] > 0


def test_several_files_are_one_report(command: Command) -> None:
    (command.folder / "h.py").write_bytes(BEFORE)
    done = command(
        *("f.py", "h.py", "-i", "x", "-m", "replay:g.py", "--json", "--report", "out.json")
    )
    assert done.code == 0, done.err
    data = json.loads((command.folder / "out.json").read_text())
    assert [one["file"] for one in data["files"]] == ["f.py", "h.py"]


@pytest.mark.parametrize("place", ["f.py", "out.txt", "-", "nowhere/out.html"])
def test_a_report_that_has_no_place_costs_no_edit(command: Command, place: str) -> None:
    done = command.edit("--report", place)
    assert (done.code, done.out) == (2, b"")
    assert "[bad-report]" in done.err
    assert (command.folder / "f.py").read_bytes() == BEFORE


def test_a_report_that_cannot_be_written_loses_no_answer(command: Command) -> None:
    (command.folder / "out.html").symlink_to("/dev/full")
    done = command.edit("--report", "out.html")
    assert (done.code, done.out) == (0, AFTER)
    assert "the report was not written" in done.err


def test_no_history_unless_the_user_says_so(command: Command) -> None:
    command.edit()
    (command.folder / "pyproject.toml").write_text("[tool.apply-edit]\nhistory = true\n")
    command.edit()
    assert not history(command).exists()
    done = command("stats")
    assert (done.code, done.out) == (0, b"")
    assert "APPLY_EDIT_HISTORY=1" in done.err


def test_a_project_does_not_undo_the_users_word(command: Command) -> None:
    (command.folder / "pyproject.toml").write_text("[tool.apply-edit]\nhistory = false\n")
    command.edit(APPLY_EDIT_HISTORY="1")
    config = Path(command.env["HOME"]) / ".config" / "apply-edit"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("history = true\n")
    command.edit()
    command.edit("--no-history")
    assert len(history(command).read_text().splitlines()) == 2


def test_stats_show_what_the_history_kept(command: Command) -> None:
    for _ in range(3):
        command.edit("--history")
    done = command("stats")
    assert done.code == 0
    assert b"instruction" in done.out
    assert b"3 runs" in done.out
    data = json.loads(command("stats", "--json", "--by", "kind,language").out)
    assert (
        data["groups"][0] | {"runs": 3, "kind": "instruction", "language": "python"}
        == (data["groups"][0])
    )
    assert command("stats", "--html", "past.html").code == 0
    assert (command.folder / "past.html").read_bytes().startswith(b"<!doctype html>")
    assert command("stats", "--html", "-").out.startswith(b"<!doctype html>")
    done = command("stats", "--since", "2999-01-01")
    assert "no runs since" in done.err
    done = command("stats", "--clear")
    assert "removed 3 runs" in done.err
    assert "no history yet" in command("stats").err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--since", "yesterday"], "2026-01-31"),
        (["--by", ","], "--by takes"),
        (["--html", "past.txt"], ".html"),
        (["--clear", "--since", "2026-01-01"], "give it alone"),
        (["--claer"], "did you mean --clear?"),
    ],
)
def test_usage_errors_of_stats(command: Command, args: list[str], said: str) -> None:
    done = command("stats", *args)
    assert (done.code, done.out) == (2, b"")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_the_history_being_unwritable_loses_no_answer(command: Command) -> None:
    history(command).mkdir(parents=True)
    done = command.edit("--history")
    assert (done.code, done.out) == (0, AFTER)
    assert "the history cannot be written" in done.err
