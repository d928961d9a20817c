"""Inputs that hands found while trying to break the command, each once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from apply_edit.errors import SaveError
from apply_edit.show.models import table
from apply_edit.target.catalog import CATALOG, DEFAULT_MODEL
from apply_edit.target.store import Stored
from apply_edit.text.save import check_room
from tests.command import AFTER, BEFORE, Command


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command.make(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("asked", ["--help", "--version", "models --help", "stats --help"])
def test_help_onto_a_full_disk_is_said_in_words(command: Command, asked: str) -> None:
    done = command.shell(f"apply {asked} >/dev/full")
    assert done.code == 2
    assert done.err.endswith("[stdout]\n")


def test_an_empty_name_is_no_folder(command: Command) -> None:
    done = command("", "-i", "x", "-m", "replay:g.py")
    assert done.code == 2
    assert "[no-file]" in done.err


@pytest.mark.parametrize(
    ("given", "meant"), [("--instr", "--instruction"), ("--max", "--max-new-tokens")]
)
def test_the_beginning_of_an_option_is_known_again(
    command: Command, given: str, meant: str
) -> None:
    assert f"did you mean {meant}?" in command("f.py", given, "x").err


def test_a_misspelt_variable_is_not_held_for_any_other(command: Command) -> None:
    assert "did you mean APPLY_EDIT_MODEL?" in command.edit(APPLY_EDIT_MODLE="x").err
    assert "did you mean" not in command.edit(APPLY_EDIT_FOO="x").err


@pytest.mark.parametrize("draft", ["auto", "copy", "self", "none"])
def test_every_draft_of_the_help_is_taken(command: Command, draft: str) -> None:
    assert command.edit("--draft", draft).out == AFTER


def test_a_wrong_value_is_told_with_the_place_that_set_it(command: Command) -> None:
    (command.folder / "pyproject.toml").write_text('[tool.apply-edit]\ndraft = "foo"\n')
    done = command.edit()
    assert "draft in [tool.apply-edit] of " in done.err
    assert "APPLY_EDIT_DEVICE takes auto" in command.edit(APPLY_EDIT_DEVICE="tpu").err


def test_a_replay_that_is_not_there_is_told_in_words(command: Command) -> None:
    done = command("f.py", "-i", "x", "-m", "replay:nosuch")
    assert done.err.startswith("apply-edit: error: cannot replay 'nosuch' (No such file")
    assert "Errno" not in done.err


def test_an_undecodable_name_is_shown_in_one_way(command: Command) -> None:
    done = command(b"\xff.py", "-i", "x", "-m", "replay:g.py", "--json")
    assert b'"message": "\\\\xff.py does not exist; check the name"' in done.out


@pytest.mark.parametrize("place", ["pyproject.toml", "home/apply-edit/config.toml"])
def test_a_configuration_that_is_a_pipe_is_not_waited_for(command: Command, place: str) -> None:
    path = command.folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    done = command.edit(XDG_CONFIG_HOME=str(command.folder / "home"))
    if place == "pyproject.toml":
        assert done.out == AFTER
    else:
        assert "[bad-config]" in done.err


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("f.py", "no-such-file"),
        ("f.py g.py -w", "no-such-folder"),
        ('"$OLDPWD/f.py" -o new.py', "no-such-folder"),
    ],
)
def test_a_removed_working_folder_is_told(command: Command, asked: str, code: str) -> None:
    (command.folder / "gone").mkdir()
    run = f'apply {asked} -i x -m "replay:$OLDPWD/g.py"'
    done = command.shell(f"cd gone && rmdir ../gone && {run}")
    assert done.code == 2
    assert done.err.endswith(f"[{code}]\n")


def test_a_filter_works_in_a_removed_folder(command: Command) -> None:
    (command.folder / "gone").mkdir()
    run = 'apply - -i x -m "replay:$OLDPWD/g.py" < "$OLDPWD/f.py"'
    assert command.shell(f"cd gone && rmdir ../gone && {run}").out == AFTER


@pytest.mark.parametrize("columns", [20, 40, 79, 200])
def test_the_options_in_the_help_fit_the_terminal(command: Command, columns: int) -> None:
    lines = command("--help", COLUMNS=str(columns)).out.decode().splitlines()
    options = lines[lines.index("The edit:") : lines.index("More:")]
    # An option's own name cannot be broken.
    wide = [line for line in options if len(line) > columns and not line.startswith("  -")]
    assert not wide


@pytest.mark.parametrize("width", [20, 50, 80, 120, None])
def test_the_table_of_models_never_cuts_a_remark_or_the_folder(
    tmp_path: Path, width: int | None
) -> None:
    rows = [Stored(name, "absent", 0, tmp_path) for name in CATALOG]
    lines = table(rows, DEFAULT_MODEL, tmp_path, color=False, width=width)
    text = " ".join(" ".join(lines).split())
    for entry in CATALOG.values():
        assert " ".join(entry.note.split()) in text
    assert lines[-1].endswith(str(tmp_path))
    assert width is None or all(len(line) < width for line in lines[:-1])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("asked", ["closed/f.py -w", "f.py -o closed/new.py"])
def test_a_folder_that_cannot_be_written_is_told_before_a_model_is_loaded(
    command: Command, asked: str
) -> None:
    closed = command.folder / "closed"
    closed.mkdir()
    (closed / "f.py").write_bytes(BEFORE)
    closed.chmod(0o555)
    done = command(*asked.split(), "-i", "x", "-m", "replay:nosuch")
    closed.chmod(0o755)
    assert "[read-only-folder]" in done.err


def test_room_is_missed_only_where_a_plain_file_would_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    check_room("/dev/null")
    check_room(tmp_path / "no" / "such")
    with pytest.raises(SaveError, match="not writable"):
        check_room(tmp_path / "new")


def git(folder: Path, *args: str, data: bytes | None = None) -> None:
    subprocess.run(["git", *args], cwd=folder, input=data, check=True, capture_output=True)


def test_a_diff_that_git_would_pass_over_says_where_to_apply_it(command: Command) -> None:
    git(command.folder, "init", "-q")
    side = command.folder / "side"
    side.mkdir()
    edit = ["-i", "x", "-m", "replay:../g.py", "--diff"]
    done = command("../f.py", *edit, cwd=side)
    assert f"git -C {command.folder} apply" in done.err
    git(side, "apply", data=done.out)
    assert (command.folder / "f.py").read_bytes() == BEFORE
    git(command.folder, "apply", data=done.out)
    assert (command.folder / "f.py").read_bytes() == AFTER


def test_a_diff_for_a_repository_inside_says_where_to_apply_it(command: Command) -> None:
    inner = command.folder / "inner"
    inner.mkdir()
    (inner / "f.py").write_bytes(BEFORE)
    for folder in (command.folder, inner):
        git(folder, "init", "-q")
    done = command("inner/f.py", "-i", "x", "-m", "replay:g.py", "--diff")
    assert f"git -C {inner} apply" in done.err


def test_a_diff_that_applies_here_says_nothing(command: Command) -> None:
    git(command.folder, "init", "-q")
    assert command.edit("--diff").err == ""


MAIN_GO = b"""\
package main

import (
\t"fmt"
\t"os"
\t"strconv"
)

// sum adds all numbers.
func sum(xs []int) int {
\ttotal := 0
\tfor _, x := range xs {
\t\ttotal += x
\t}
\treturn total
}

func main() {
\tfmt.Println(sum([]int{len(os.Args), strconv.IntSize}))
}
"""


def test_what_stands_before_a_range_is_not_taken_into_it_again(command: Command) -> None:
    lines = MAIN_GO.splitlines(keepends=True)
    (command.folder / "main.go").write_bytes(MAIN_GO)
    edit = ["-i", "rename total to acc", "--lines", "9:16"]
    good = b"".join(lines[8:16]).replace(b"total", b"acc")
    for answer, taken in ((good, True), (b"".join(lines[:8]) + good, False)):
        (command.folder / "g.py").write_bytes(answer)
        done = command("main.go", *edit, "-m", "replay:g.py")
        assert (done.code, done.out != b"") == ((0, True) if taken else (2, False)), done.err
    assert done.err.endswith("[duplicated]\n")
