"""The live display of the real command, seen through a terminal emulator."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.command import SLOW, TIMEOUT, Command
from tests.terminal import Session

FILE = b"".join(b"def function_%02d(x):\n    return x + %d\n\n" % (n, n) for n in range(40))
ANSWER = FILE.replace(b"x + 20\n", b"x * 20  # doubled, and more\n")
EDIT = ("f.py", "-i", "x", "-m", "replay:g.py", "--k", "16")
SUMMARY = re.compile(
    r"changed 1 line · [\d.]+ s · [\d.]+ tokens/pass( · [\d.]+× as fast as one token a pass)?$"
)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    made = Command.make(tmp_path)
    (made.folder / "f.py").write_bytes(FILE)
    (made.folder / "g.py").write_bytes(ANSWER)
    return made


def written(lines: list[str]) -> bool:
    """Whether the bar of the decoding is on the screen."""
    return any("/pass" in line for line in lines)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (60, 10), (20, 12), (160, 50)])
def test_it_is_drawn_to_the_size_of_the_terminal(command: Command, columns: int, rows: int) -> None:
    session = Session(command, *EDIT, "-w", columns=columns, rows=rows, code=SLOW)
    # A frame may arrive in pieces: wait until the bar and its figure are both there.
    lines = session.until(
        lambda lines: any("%" in line for line in lines) and any("━" in line for line in lines)
    )
    assert lines[0].startswith("f.py")
    assert any(line.startswith("  def function_") for line in lines)
    assert len(lines) <= rows - 1
    assert not session.cursor_visible
    assert session.end() == 0
    assert session.cursor_visible
    assert len(session.lines) == 1
    assert session.lines[0].startswith("changed 1 line")
    assert session.screen.cursor.y == 1
    assert (command.folder / "f.py").read_bytes() == ANSWER


def test_no_frame_shows_the_tags_of_the_prompt(command: Command) -> None:
    (command.folder / "f.py").write_text("a = 1\nb = 2\n")
    (command.folder / "g.py").write_text("a = 1\nb = 3\n")
    session = Session(command, *EDIT[:-1], "1", "-w", code=SLOW, DELAY="0.2")
    assert session.end() == 0
    seen = re.sub(rb"\x1b\[[\d;?]*[A-Za-z]", b"", session.sent)
    assert b"b = 3" in seen
    assert b"</" not in seen
    assert b"updated" not in seen


WAITING = """
import os, time
from pathlib import Path
from apply_edit.target import {module}
def wait(*args, **more):
    while not Path(os.environ["MARK"]).exists():
        time.sleep(0.02)
    raise KeyboardInterrupt
{module}.{name} = wait
"""
"""Stands for what takes long, until the mark is there."""


@pytest.mark.parametrize(
    ("words", "module", "title"),
    [
        (("pull",), "pull", "smollm2-135m"),
        (("train-heads",), "backend", "draft heads for smollm2-135m"),
    ],
)
def test_the_work_on_a_model_is_no_list_of_files(
    command: Command, words: tuple[str, ...], module: str, title: str
) -> None:
    name = "pull" if module == "pull" else "TorchBackend.open"
    code = WAITING.format(module=module, name=name)
    folder = () if module == "pull" else (".",)
    session = Session(command, "models", *words, "smollm2-135m", *folder, code=code)
    lines = session.until(lambda lines: bool(lines))
    command.mark.touch()
    assert lines[0] == title
    session.end()
    assert b"files done" not in session.sent


def test_the_answer_follows_when_the_display_is_gone(command: Command) -> None:
    session = Session(command, *EDIT, "--diff", code=SLOW)
    session.until(written)
    assert session.end() == 0
    assert SUMMARY.match(session.lines[0]), session.lines
    assert session.lines[1] == "diff --git a/f.py b/f.py"
    assert "-    return x + 20" in session.lines
    # Nothing of the display comes after the first byte of the answer.
    answer = session.sent.split(b"diff --git", 1)[1]
    assert b"\x1b" not in answer


def test_stdout_elsewhere_has_the_answer_alone(command: Command, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        session = Session(command, *EDIT, stdout=out.fileno(), code=SLOW)
        session.until(written)
        assert session.end() == 0
    assert (tmp_path / "out").read_bytes() == ANSWER
    assert len(session.lines) == 1
    assert SUMMARY.match(session.lines[0])


def test_ctrl_c_in_the_middle(command: Command) -> None:
    session = Session(command, *EDIT, "-w", code=SLOW, DELAY="0.1")
    session.until(written)
    session.type(b"\x03")
    assert session.end() == 130
    assert session.cursor_visible
    assert [line for line in session.lines if line != "^C"] == []
    assert b"Traceback" not in session.sent
    assert session.sent.rstrip().endswith(b"\x1b[?25h")
    assert (command.folder / "f.py").read_bytes() == FILE
    assert command.files() == {"f.py", "g.py"}


def test_ctrl_c_twice_restores_the_cursor(command: Command) -> None:
    deaf = SLOW + (
        "def deaf(self, *args, **more):\n"
        "    try:\n        time.sleep(60)\n"
        "    except BaseException:\n"
        "        print('heard', file=sys.stderr)\n        time.sleep(60)\n"
        "replay.ReplayTarget.score = deaf\n"
    )
    session = Session(command, *EDIT, code=deaf)
    session.until(lambda lines: any("reading" in line for line in lines))
    session.type(b"\x03")
    session.until(lambda lines: "heard" in "".join(lines))
    session.type(b"\x03")
    assert session.end() == 130
    assert session.cursor_visible


def test_sigterm_cleans_the_screen(command: Command) -> None:
    session = Session(command, *EDIT, code=SLOW, DELAY="0.1")
    session.until(written)
    session.process.terminate()
    assert session.end() == 143
    assert (session.cursor_visible, session.lines) == (True, [])


@pytest.mark.parametrize("size", [(100, 30), (40, 8)])
def test_resized_while_running(command: Command, size: tuple[int, int]) -> None:
    session = Session(command, *EDIT, "-w", columns=70, rows=16, code=SLOW, DELAY="0.03")
    session.until(written)
    session.resize(*size)
    before = len(session.sent)
    # The first frame after that may be one that was under way.
    session.until(
        lambda lines: (
            len(session.sent) > before + 200
            and written(lines)
            and all(len(line) < size[0] for line in lines)
        )
    )
    assert session.end() == 0
    assert session.cursor_visible
    assert [line for line in session.lines if line][-1].startswith("changed 1 line")


@pytest.mark.parametrize(
    ("args", "env"),
    [
        (["--no-progress"], {}),
        (["-q"], {}),
        ([], {"TERM": "dumb"}),
        ([], {"TERM": ""}),
        ([], {"APPLY_EDIT_PROGRESS": "0"}),
    ],
)
def test_where_it_is_not_wanted_nothing_is_drawn(
    command: Command, args: list[str], env: dict[str, str]
) -> None:
    session = Session(command, *EDIT, "-w", *args, code=SLOW, DELAY="0.005", **env)
    assert session.end() == 0
    assert b"\x1b[?25l" not in session.sent
    assert b"\x1b[A" not in session.sent
    if "TERM" in env:
        assert b"\x1b" not in session.sent
    assert session.lines == [] if "-q" in args else session.lines[0].startswith("changed 1 line")


@pytest.mark.skipif(shutil.which("vim") is None, reason="needs Vim")
@pytest.mark.parametrize(("answer", "kept"), [("nosuch", True), ("g.py", False)])
def test_vim_keeps_its_buffer_when_the_filter_fails(
    command: Command, answer: str, kept: bool
) -> None:
    shell = (
        "exec vim -u NONE -N -c 'set shellredir=>' "
        f"""-c "%!'$1' -m apply_edit - --stdin-filename %:S -q -i x -m replay:{answer}" """
        "-c wq 'a b.py'"
    )
    (command.folder / "a b.py").write_bytes(FILE)
    session = Session(command, shell=shell)
    while session.read():
        session.type(b"\r")  # on to where it asks for a key, after the message
    session.process.wait(TIMEOUT)
    assert (command.folder / "a b.py").read_bytes() == (FILE if kept else ANSWER)


def test_without_a_terminal_nothing_is_drawn_whatever_is_forced(command: Command) -> None:
    done = command(*EDIT, code=SLOW, FORCE_COLOR="1", DELAY="0.005")
    assert (done.code, done.out, done.err) == (0, ANSWER, "")


@pytest.mark.parametrize(
    ("env", "args", "colored"),
    [
        ({}, [], True),
        ({"NO_COLOR": "1"}, [], False),
        ({"NO_COLOR": "1"}, ["--color", "always"], True),
        ({}, ["--color", "never"], False),
    ],
)
def test_color(command: Command, env: dict[str, str], args: list[str], colored: bool) -> None:
    session = Session(command, *EDIT, "-w", *args, code=SLOW, DELAY="0.01", **env)
    assert session.end() == 0
    assert bool(re.search(rb"\x1b\[(\d+;)*3\dm", session.sent)) is colored


def test_in_the_c_locale_it_is_ascii(command: Command) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    session = Session(command, *EDIT, "-w", code=SLOW, **plain)
    session.until(written)
    assert session.end() == 0
    assert session.sent.isascii()
    assert b"###" in session.sent


def test_a_name_with_controls_cannot_reach_the_terminal(command: Command) -> None:
    name = "evil\x1b[2J\x1b]0;title\x07.py"
    (command.folder / name).write_bytes(FILE)
    session = Session(command, name, *EDIT[1:], "-w", code=SLOW)
    lines = session.until(written)
    assert "evil" in lines[0]
    assert session.end() == 0
    assert b"\x1b[2J" not in session.sent
    assert b"\x1b]0;" not in session.sent


def test_an_error_is_the_one_line_that_stays(command: Command) -> None:
    (command.folder / "g.py").write_bytes(ANSWER[:800] + b"# ... existing code ...\n")
    session = Session(command, *EDIT, code=SLOW)
    session.until(written)
    assert session.end() == 2
    assert session.cursor_visible
    text = " ".join(line for line in session.lines)
    assert text.startswith("apply-edit: error: ")


def test_reading_from_the_terminal_is_said(command: Command) -> None:
    session = Session(command, "-", *EDIT[1:], "--check")
    lines = session.until(lambda lines: any("Ctrl-D" in line for line in lines))
    assert lines == ["apply-edit: reading the file from the terminal; end it with Ctrl-D"]
    session.type(b"x = 1\n\x04")
    session.end()


def test_notes_of_verbose_runs_stay(command: Command) -> None:
    session = Session(command, *EDIT, "-w", "-v", code=SLOW, rows=40)
    session.until(written)
    assert session.end() == 0
    assert "apply-edit: model is replay:g.py, from --model" in session.lines
    assert SUMMARY.match(session.lines[-1])


def test_stopped_and_continued(command: Command) -> None:
    script = 'set -m; "$@"; echo stopped; read -r line; fg > /dev/null'
    session = Session(command, *EDIT, "-w", code=SLOW, DELAY="0.04", shell=script)
    session.until(written)
    session.type(b"\x1a")
    lines = session.until(lambda lines: "stopped" in lines)
    assert session.cursor_visible
    assert not written(lines)
    session.type(b"\n")
    session.until(written)
    assert session.end() == 0
    assert session.lines[-1].startswith("changed 1 line")
    assert (command.folder / "f.py").read_bytes() == ANSWER
