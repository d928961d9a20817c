"""Closed streams, gone readers, full disks, libraries that print, endings by signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import AFTER, BEFORE, SLOW, TIMEOUT, Command, wait_for

ENDINGS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command.make(tmp_path)


EDIT = "apply f.py -i x -m replay:g.py"


def test_a_closed_stdout_is_a_failure_that_is_said(command: Command) -> None:
    done = command.shell(f"{EDIT} >&-")
    assert done.code == 2
    assert done.err.endswith("[stdout]\n")
    assert done.err.count("\n") == 1


def test_a_closed_stdout_does_not_matter_to_a_write(command: Command) -> None:
    assert command.shell(f"{EDIT} -w >&-").code == 0
    assert (command.folder / "f.py").read_bytes() == AFTER


def test_a_closed_stderr_does_not_matter(command: Command) -> None:
    done = command.shell(f"{EDIT} --stats -v 2>&-")
    assert (done.code, done.out) == (0, AFTER)
    assert command.shell("apply missing.py -i x 2>&-").code == 2
    assert command.shell(f"{EDIT} -w <&- >&- 2>&-").code == 0
    assert (command.folder / "f.py").read_bytes() == AFTER


def test_no_file_takes_the_place_of_a_closed_stream(command: Command) -> None:
    (command.folder / "run.sh").write_text('exec "$@" <&- >&- 2>&-')
    loud = "import os\nimport apply_edit.__main__ as m\nreal = m.Streams.open\n" + (
        "def opened():\n    streams = real()\n    os.write(1, b'loud')\n    os.write(2, b'loud')\n"
        "    return streams\nm.Streams.open = opened\n"
    )
    argv = command.argv("f.py", "-i", "x", "-m", "replay:g.py", "-w", "-v", code=loud)
    done = subprocess.run(["sh", "run.sh", *argv], cwd=command.folder, env=command.env, check=False)
    assert done.returncode == 0
    assert (command.folder / "f.py").read_bytes() == AFTER
    assert (command.folder / "g.py").read_bytes() == AFTER


def test_a_closed_stdin_is_said_where_it_is_to_be_read(command: Command) -> None:
    done = command.shell("apply - -i x -m replay:g.py <&-")
    assert (done.code, done.out) == (2, b"")
    assert done.err.endswith("[stdin]\n")


@pytest.mark.parametrize("lines", [1, 5000])
def test_a_reader_that_goes_away_is_nothing_to_talk_about(command: Command, lines: int) -> None:
    data = (b"x" * 60 + b"\n") * lines
    (command.folder / "f.py").write_bytes(data)
    (command.folder / "g.py").write_bytes(data)
    done = command.shell(f"{EDIT} | head -c1; exit ${{PIPESTATUS[0]}}")
    assert (done.out, done.err) == (b"x", "")
    # A short answer is in the pipe before the reader is gone.
    assert done.code == 141 if lines > 1 else done.code in (0, 141)


def test_help_into_a_reader_that_is_gone(command: Command) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command.argv("--help"), stdout=writer, stderr=subprocess.PIPE, env=command.env, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout(command: Command) -> None:
    done = command.shell(f"{EDIT} > /dev/full")
    assert done.code == 2
    assert done.err.endswith("[stdout]\n")
    assert command.shell(f"{EDIT} --stats 2> /dev/full").code == 0


def test_an_answer_larger_than_a_pipe_that_does_not_block(command: Command) -> None:
    big = (b"y" * 60 + b"\n") * 5000
    (command.folder / "f.py").write_bytes(big)
    (command.folder / "g.py").write_bytes(big)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = subprocess.Popen(
        command.argv("f.py", "-i", "x", "-m", "replay:g.py"),
        stdout=writer,
        cwd=command.folder,
        env=command.env,
    )
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        assert stream.read() == big
    assert process.wait(TIMEOUT) == 0


def test_stdout_that_is_the_file_itself(command: Command) -> None:
    done = command.shell(f"{EDIT} >> f.py")
    assert done.code == 2
    assert done.err.endswith("[same-file]\n")
    assert (command.folder / "f.py").read_bytes() == BEFORE


def test_libraries_that_print_do_not_reach_stdout(command: Command) -> None:
    loud = (
        "import os\nfrom apply_edit.target import replay\n"
        "score = replay.ReplayTarget.score\n"
        "def loud(self, *args, **more):\n"
        "    print('banner')\n    os.write(1, b'progress')\n    os.system('echo child')\n"
        "    return score(self, *args, **more)\n"
        "replay.ReplayTarget.score = loud\n"
    )
    done = command.edit(code=loud)
    assert (done.code, done.out, done.err) == (0, AFTER, "")
    done = command.edit("-v", code=loud)
    assert (done.code, done.out) == (0, AFTER)
    for word in ("banner", "progress", "child"):
        assert word in done.err


@pytest.mark.parametrize(("number", "code"), ENDINGS)
@pytest.mark.parametrize("args", [["f.py"], ["f.py", "-w"], ["f.py", "-o", "new"], ["-"]])
def test_a_signal_ends_it_cleanly(
    command: Command, number: int, code: int, args: list[str]
) -> None:
    argv = command.argv(*args, "-i", "x", "-m", "replay:g.py", "--draft", "none", code=SLOW)
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=command.folder,
        env={**command.env, "DELAY": "0.2"},
    )
    assert process.stdin is not None
    process.stdin.write(BEFORE)
    process.stdin.close()
    process.stdin = None
    wait_for(command.mark)
    process.send_signal(number)
    out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, err) == (code, b"")
    # A filter that is interrupted gives back what it got.
    assert out == (BEFORE if args == ["-"] else b"")
    assert command.files() == {"f.py", "g.py"}
    assert (command.folder / "f.py").read_bytes() == BEFORE


def test_a_second_signal_ends_it_at_once(command: Command) -> None:
    # The first is swallowed, as by a library that catches everything in native code.
    deaf = SLOW + (
        "def deaf(self, *args, **more):\n"
        "    Path(os.environ['MARK']).touch()\n"
        "    try:\n        time.sleep(60)\n"
        "    except BaseException:\n"
        "        Path(os.environ['MARK'] + '2').touch()\n"
        "        time.sleep(60)\n"
        "replay.ReplayTarget.score = deaf\n"
    )
    process = subprocess.Popen(
        command.argv("f.py", "-i", "x", "-m", "replay:g.py", code=deaf),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=command.folder,
        env=command.env,
    )
    wait_for(command.mark)
    process.send_signal(signal.SIGINT)
    wait_for(Path(str(command.mark) + "2"))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_second_signal_reaches_past_native_code(command: Command) -> None:
    # Python's handlers run between byte codes only, and there are none for minutes here.
    native = SLOW + (
        "import hashlib\n"
        "def native(self, *args, **more):\n"
        "    Path(os.environ['MARK']).touch()\n"
        "    hashlib.pbkdf2_hmac('sha256', b'a', b'b', 2_000_000_000)\n"
        "replay.ReplayTarget.score = native\n"
    )
    process = subprocess.Popen(
        command.argv("f.py", "-i", "x", "-m", "replay:g.py", code=native),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=command.folder,
        env=command.env,
    )
    wait_for(command.mark)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode in (130, 143), out, err) == (True, b"", b"")


def test_signals_that_were_ignored_stay_ignored(command: Command) -> None:
    argv = command.argv("f.py", "-i", "x", "-m", "replay:g.py", code=SLOW)
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, signal, sys; signal.signal(signal.SIGHUP, "
            "signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",
            *argv,
        ],
        stdout=subprocess.PIPE,
        cwd=command.folder,
        env=command.env,
    )
    wait_for(command.mark)
    process.send_signal(signal.SIGHUP)
    out, _ = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out) == (0, AFTER)


def test_it_runs_without_a_home_or_a_working_folder(command: Command, tmp_path: Path) -> None:
    argv = command.argv(
        str(command.folder / "f.py"), "-i", "x", "-m", f"replay:{command.folder}/g.py"
    )
    env = {k: v for k, v in command.env.items() if k in ("PATH", "PYTHONPATH")}
    done = subprocess.run(argv, capture_output=True, cwd="/", env=env, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, AFTER, b"")
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd '{gone}' && rmdir '{gone}' && exec \"$@\""
    done = subprocess.run(
        ["sh", "-c", script, "sh", *argv], capture_output=True, env=command.env, check=False
    )
    assert (done.returncode, done.stdout) == (0, AFTER), done.stderr
