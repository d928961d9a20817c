"""The contract of the command, met through real processes and the replay target."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import AFTER, BEFORE, TIMEOUT, Command

NEEDLESS = ("torch", "transformers", "rich", "numpy", "apply_edit.editor")


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command.make(tmp_path)


def one_error(err: str, code: str) -> str:
    """The sentence of the one line that standard error holds."""
    assert err.startswith("apply-edit: error: "), err
    assert err.endswith(f" [{code}]\n"), err
    assert err.count("\n") == 1
    return err.removeprefix("apply-edit: error: ").removesuffix(f" [{code}]\n")


def test_the_rewritten_file_is_all_there_is_on_stdout(command: Command) -> None:
    done = command.edit()
    assert (done.code, done.out, done.err) == (0, AFTER, "")
    assert (command.folder / "f.py").read_bytes() == BEFORE


@pytest.mark.parametrize("data", [b"a\r\nb\x0c\n\xef\xbb\xbfc  \nlast", b"\xef\xbb\xbfx = 1\r\n"])
def test_bytes_in_bytes_out(command: Command, data: bytes) -> None:
    (command.folder / "f.py").write_bytes(data)
    text = data.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    (command.folder / "g.py").write_text(text, newline="")
    done = command.edit(LC_ALL="C", PYTHONIOENCODING="ascii")
    assert (done.code, done.out) == (0, data)


def test_version_help_and_completion(command: Command) -> None:
    done = command("--version")
    assert done.code == 0
    assert done.out.startswith(b"apply-edit ")
    for args in (["--help"], ["-h"], ["models", "--help"], ["models", "pull", "--help"]):
        done = command(*args)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(b"Usage: apply-edit ")
        assert done.out.isascii()
    done = command("--show-completion", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="")
    assert done.code in (0, 1)


@pytest.mark.parametrize(
    ("words", "index", "offered"),
    [
        ("apply-edit --inst", 1, {"--instruction", "--instruction-file", "--install-completion"}),
        ("apply-edit mod", 1, {"models"}),
        ("apply-edit models ", 2, {"pull", "rm", "train-heads"}),
        ("apply-edit models train-heads smol", 3, {"smollm2-135m"}),
        ("apply-edit models pull smol", 3, {"smollm2-135m"}),
        ("apply-edit f.py --color a", 3, {"auto", "always"}),
        ("apply-edit f.py --allow e", 3, {"empty", "elided"}),
    ],
)
def test_what_the_shell_is_offered(
    command: Command, words: str, index: int, offered: set[str]
) -> None:
    asked = {"_APPLY_EDIT_COMPLETE": "complete_bash", "COMP_CWORD": str(index)}
    for joined in (words, words.replace(" ", "\n")):
        done = command(COMP_WORDS=joined, **asked)
        assert set(done.out.decode().split()) == offered, done.err
    done = command(_APPLY_EDIT_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=words)
    assert all(word in done.out.decode() for word in offered)


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["--nonsense"], [], ["f.py"]])
def test_quick_answers_import_nothing_slow(command: Command, args: list[str]) -> None:
    script = (
        "import sys, json\nfrom apply_edit.__main__ import main\n"
        f"sys.argv[1:] = {args!r}\ntry:\n    main()\nfinally:\n"
        f"    found = [m for m in {NEEDLESS!r} if m in sys.modules]\n"
        "    sys.stderr.write('\\nslow: ' + json.dumps(found) + '\\n')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=command.env, check=False
    )
    slow = json.loads(done.stderr.rpartition("slow: ")[2])
    # `f.py` alone is complete enough to be read as an order, but says no edit.
    assert [m for m in slow if m != "apply_edit.editor"] == []


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ([], "no-file", "name the file"),
        (["f.py"], "no-edit", "--instruction TEXT"),
        (["f.py", "-i", "x", "-u", "g.py"], "conflict", "--instruction and --update"),
        (["f.py", "-i", " "], "empty-instruction", "empty"),
        (["f.py", "-i"], "bad-option", "'-i' requires an argument"),
        (["f.py", "--instrution", "x"], "unknown-option", "did you mean --instruction?"),
        (["f.py", "-i", "x", "--seed", "x"], "bad-value", "--seed takes a whole number"),
        (["f.py", "-i", "x", "--k", "few"], "bad-value", "--k takes auto or"),
        (["f.py", "-i", "x", "--lines", "3"], "", ""),
        (["f.py", "-i", "x", "--lines", "3:1"], "bad-lines", "A:B"),
        (["f.py", "-i", "x", "--lines", "0:1"], "bad-lines", "A:B"),
        (["f.py", "-i", "x", "--lines", "a:b"], "bad-lines", "A:B"),
        (["f.py", "g.py", "-i", "x"], "several-files", "-w, --diff, --check"),
        (["f.py", "./f.py", "-w", "-i", "x"], "same-file", "one file"),
        (["f.py", "-w", "-o", "x", "-i", "x"], "conflict", "--write and --output"),
        (["f.py", "-w", "--diff", "-i", "x"], "conflict", "--write and --diff"),
        (["f.py", "-i", "x", "--stdin-filename", "x"], "conflict", "give - as FILE"),
        (["-", "-w", "-i", "x"], "conflict", "name the file"),
        (["-", "-u", "-"], "conflict", "only one thing"),
        (["f.py", "-i", "x", "-q", "-v"], "conflict", "quiet and verbose"),
        (["f.py", "-i", "x", "--allow", "lots"], "bad-value", "did you mean lost?"),
        (["f.py", "-i", "x", "--device", "gpu"], "bad-value", "auto, cpu, cuda"),
        (["f.py", "-i", "x", "--dtype", "bf16"], "bad-value", "bfloat16"),
        (["f.py", "-i", "x", "--draft", "cpoy"], "bad-value", "auto, copy, self"),
        (["serve"], "not-available", "./serve"),
        (["stats", "--by", "knd"], "bad-value", "did you mean kind?"),
        (["models", "pul"], "usage", "did you mean pull?"),
        (["models", "pull"], "usage", "NAME"),
        (["models", "pull", "qwen2.5"], "unknown-model", "qwen2.5"),
        (["models", "rm", "nothing"], "unknown-model", "nothing"),
        (["models", "train-heads"], "usage", "NAME"),
        (["models", "train-heads", "x", "--minutes", "0"], "bad-value", "--minutes"),
        (["models", "train-heads", "x", "--minutes", "soon"], "bad-value", "--minutes"),
        (["models", "train-heads", "x", "no/such"], "not-found", "no/such"),
        (["models", "train-heads", "qwen2.5"], "unknown-model", "qwen2.5"),
        (["f.py", "-i", "x", "-m", "replay:g.py", "--draft", "heads"], "no-draft-model", "heads"),
    ],
)
def test_usage_errors_are_one_line(command: Command, args: list[str], code: str, said: str) -> None:
    done = command(*args, *(["-m", "replay:g.py"] if not code else []))
    if not code:
        assert "bad-lines" not in done.err
        return
    assert done.code == 2
    assert done.out == b""
    assert said in one_error(done.err, code)


@pytest.mark.parametrize(
    ("make", "name", "code"),
    [
        (lambda p: None, "missing.py", "no-such-file"),
        (lambda p: p.mkdir(), "folder", "is-a-directory"),
        (lambda p: os.mkfifo(p), "fifo", "not-a-file"),
        (lambda p: p.write_bytes(b"a\0b"), "binary", None),
        (lambda p: p.write_bytes(b"ok\n\xff\n"), "latin.py", "not-utf8"),
        (lambda p: p.symlink_to(p), "loop", "link-loop"),
    ],
)
def test_files_that_cannot_be_edited(command: Command, make, name: str, code: str | None) -> None:
    make(command.folder / name)
    # A model that does not exist: the file is looked at first.
    done = command(name, "-i", "x", "-m", "no/such/folder", "-w")
    assert (done.code, done.out) == (2, b"")
    code = code or done.err.rpartition("[")[2].rstrip("]\n")
    assert name in one_error(done.err, code)


def test_devices_are_not_opened(command: Command) -> None:
    done = command("/dev/zero", "-i", "x", "-m", "replay:g.py")
    one_error(done.err, "not-a-file")


def test_a_failure_with_a_named_file_leaves_stdout_empty(command: Command) -> None:
    (command.folder / "g.py").write_text("def a():\n    # ... existing code ...\n")
    done = command.edit()
    assert (done.code, done.out) == (2, b"")
    assert "error: " in done.err


@pytest.mark.parametrize(
    "args",
    [
        ["-i", "x", "-m", "replay:damaged"],
        ["-i", "x", "-m", "replay:missing"],
        ["-i", ""],
        [],
        ["-i", "x", "--nonsense"],
        ["-i", "x", "--seed", "x"],
        ["-i", "x", "-u", "nothing"],
        ["-u", "nothing"],
        ["-w", "-i", "x"],
        ["-i", "x", "--lines", "99:100", "-m", "replay:g.py"],
    ],
)
def test_a_filter_that_fails_gives_its_input_back(command: Command, args: list[str]) -> None:
    (command.folder / "damaged").write_text("```python\ndef a():\n")
    data = b"\xef\xbb\xbf" + BEFORE.replace(b"\n", b"\r\n")
    done = command("-", *args, stdin=data)
    assert (done.code, done.out) == (2, data)
    assert done.err.count("\n") == 1


def test_a_filter_of_what_is_not_text_gives_that_back_too(command: Command) -> None:
    done = command("-", "-i", "x", stdin=b"a\0b\xff")
    assert (done.code, done.out) == (2, b"a\0b\xff")
    assert "standard input" in done.err


def test_a_filter_with_a_wrong_configuration_gives_its_input_back(command: Command) -> None:
    done = command("-", "-i", "x", stdin=BEFORE, APPLY_EDIT_SEED="x")
    assert (done.code, done.out) == (2, BEFORE)
    one_error(done.err, "bad-value")


@pytest.mark.parametrize("flag", ["--diff", "--check", "-o=x"])
def test_an_echo_is_not_mistaken_for_another_answer(command: Command, flag: str) -> None:
    args = ["-o", "x"] if flag == "-o=x" else [flag]
    done = command("-", "-i", "x", "-m", "replay:missing", *args, stdin=BEFORE)
    assert (done.code, done.out) == (2, b"")


def test_a_filter_that_works(command: Command) -> None:
    done = command("-", "-i", "b returns 3", "-m", "replay:g.py", stdin=BEFORE)
    assert (done.code, done.out, done.err) == (0, AFTER, "")
    done = command("-", "-i", "nothing", "-m", "replay:f.py", stdin=BEFORE)
    # Nothing on stderr either: vim puts that into the buffer.
    assert (done.code, done.out, done.err) == (0, BEFORE, "")


def test_stdin_is_left_alone_where_a_file_is_named(command: Command) -> None:
    argv = command.argv("f.py", "-i", "x", "-m", "replay:g.py")
    reader, writer = os.pipe()
    try:
        done = subprocess.run(
            argv,
            stdin=reader,
            capture_output=True,
            cwd=command.folder,
            env=command.env,
            timeout=TIMEOUT,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, AFTER)
    finally:
        os.close(reader)
        os.close(writer)


def test_a_sketch_from_stdin(command: Command) -> None:
    sketch = b"# ... existing code ...\ndef b():\n    return 3\n"
    done = command("f.py", "-u", "-", "-m", "replay:g.py", stdin=sketch)
    assert (done.code, done.out) == (0, AFTER)
    done = command("f.py", "-u", "-", "-m", "replay:missing", stdin=sketch)
    assert (done.code, done.out) == (2, b"")


def test_an_instruction_from_a_file_or_stdin(command: Command) -> None:
    (command.folder / "todo").write_bytes(b"\xef\xbb\xbfb returns 3\n")
    done = command("f.py", "--instruction-file", "todo", "-m", "replay:g.py")
    assert (done.code, done.out) == (0, AFTER)
    done = command("f.py", "--instruction-file", "-", "-m", "replay:g.py", stdin=b"do it")
    assert (done.code, done.out) == (0, AFTER)
    done = command("f.py", "--instruction-file", "-", "-m", "replay:g.py", stdin=b" \n")
    one_error(done.err, "empty-instruction")
    done = command("f.py", "--instruction-file", "none", "-m", "replay:g.py")
    one_error(done.err, "not-found")
    (command.folder / "todo").write_bytes(b"caf\xe9\n")
    done = command("f.py", "--instruction-file", "todo", "-m", "replay:g.py")
    assert "byte 3 of the instruction 'todo'" in one_error(done.err, "not-utf8")
    done = command(
        "f.py", "--instruction-file", "todo", "-m", "replay:g.py", "--encoding", "latin-1"
    )
    assert done.code == 0


def test_an_instruction_in_an_ascii_locale(command: Command) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = command("f.py", "-i", "café ☕".encode(), "-m", "replay:g.py", **plain)
    assert (done.code, done.out) == (0, AFTER)
    done = command("f.py", "-i", b"caf\xe9", "-m", "replay:g.py", **plain)
    one_error(done.err, "not-utf8")


def test_write_in_place(command: Command) -> None:
    (command.folder / "f.py").chmod(0o755)
    done = command.edit("-w")
    assert (done.code, done.out, done.err) == (0, b"", "")
    assert (command.folder / "f.py").read_bytes() == AFTER
    assert (command.folder / "f.py").stat().st_mode & 0o777 == 0o755
    assert command.files() == {"f.py", "g.py"}


def test_write_does_not_touch_what_does_not_change(command: Command) -> None:
    os.utime(command.folder / "g.py", (1, 1))
    done = command("g.py", "-i", "nothing", "-m", "replay:g.py", "-w")
    assert (done.code, done.out) == (0, b"")
    assert done.err == "apply-edit: no changes in g.py\n"
    assert (command.folder / "g.py").stat().st_mtime == 1


def test_output_elsewhere(command: Command) -> None:
    done = command.edit("-o", "new.py")
    assert (done.code, done.out) == (0, b"")
    assert (command.folder / "new.py").read_bytes() == AFTER
    assert (command.folder / "f.py").read_bytes() == BEFORE
    assert command.edit("-o", "new.py").code == 0
    done = command.edit("-o", "-")
    assert (done.code, done.out) == (0, AFTER)
    done = command.edit("-o", "/dev/stdout")
    assert done.code == 0
    one_error(command.edit("-o", ".").err, "is-a-directory")
    one_error(command.edit("-o", "no/such/folder").err, "no-such-folder")
    done = command.edit("-o", "f.py")
    assert (command.folder / "f.py").read_bytes() == AFTER
    assert command.files() == {"f.py", "g.py", "new.py"}


def test_check(command: Command) -> None:
    done = command.edit("--check")
    assert (done.code, done.out, done.err) == (1, b"", "apply-edit: would change f.py\n")
    assert command.edit("--check", "-q").err == ""
    done = command("g.py", "-i", "x", "-m", "replay:g.py", "--check")
    assert (done.code, done.out) == (0, b"")
    done = command.edit("--check", "--diff")
    assert done.code == 1
    assert done.out.startswith(b"diff --git a/f.py b/f.py\n")
    assert (command.folder / "f.py").read_bytes() == BEFORE


def test_a_diff_that_git_applies_from_anywhere(command: Command) -> None:
    subprocess.run(["git", "init", "-q"], cwd=command.folder, env=command.env, check=True)
    sub = command.folder / "sub dir"
    sub.mkdir()
    (sub / "f.py").write_bytes(BEFORE)
    hostile = {"FORCE_COLOR": "1", "APPLY_EDIT_COLOR": "always", "CLICOLOR_FORCE": "1"}
    done = command(
        "f.py", "-i", "x", "-m", f"replay:{command.folder}/g.py", "--diff", cwd=sub, **hostile
    )
    assert done.code == 0
    assert b"\x1b" not in done.out
    for cwd in (sub, command.folder):
        (sub / "f.py").write_bytes(BEFORE)
        subprocess.run(["git", "apply"], input=done.out, cwd=cwd, env=command.env, check=True)
        assert (sub / "f.py").read_bytes() == AFTER


def test_color_of_a_diff_only_by_flag(command: Command) -> None:
    done = command.edit("--diff", "--color", "always")
    assert b"\x1b[32m+    return 3\x1b[m" in done.out


def test_a_diff_of_nothing_says_so(command: Command) -> None:
    done = command("g.py", "-i", "x", "-m", "replay:g.py", "--diff")
    assert (done.code, done.out, done.err) == (0, b"", "apply-edit: no changes in g.py\n")


def test_several_files(command: Command) -> None:
    (command.folder / "h.py").write_bytes(BEFORE)
    done = command("h.py", "f.py", "-i", "x", "-m", "replay:g.py", "--diff")
    assert done.code == 0
    assert done.out.count(b"diff --git") == 2
    done = command("h.py", "f.py", "g.py", "-i", "x", "-m", "replay:g.py", "-w")
    assert (done.code, done.out, done.err) == (0, b"", "apply-edit: no changes in g.py\n")
    assert (command.folder / "h.py").read_bytes() == AFTER
    assert (command.folder / "f.py").read_bytes() == AFTER


def test_several_files_are_written_all_or_none(command: Command) -> None:
    (command.folder / "h.py").write_bytes(BEFORE + b"\n\ndef keep():\n    return 'me'\n" * 9)
    done = command("f.py", "h.py", "-i", "b returns 3", "-m", "replay:g.py", "-w")
    assert (done.code, done.out) == (2, b"")
    assert "h.py: " in done.err
    assert (command.folder / "f.py").read_bytes() == BEFORE


@pytest.mark.parametrize("json_too", [False, True])
def test_saves_are_taken_back_where_a_later_one_fails(command: Command, json_too: bool) -> None:
    """No edit is lost either: all stand beside their files."""
    (command.folder / "h.py").write_bytes(BEFORE)
    (command.folder / "f.py").chmod(0o640)
    words = ("f.py", "h.py", "-i", "x", "-m", "replay:g.py", "-w", *["--json"] * json_too)
    with (command.folder / "h.py").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = command(*words)
    assert done.code == 2
    assert (command.folder / "f.py").read_bytes() == BEFORE
    assert (command.folder / "h.py").read_bytes() == BEFORE
    assert stat.S_IMODE((command.folder / "f.py").stat().st_mode) == 0o640
    message = one_error(done.err, "locked")
    assert "h.py.edited, f.py.edited; no file was written" in message
    for file in ("f.py", "h.py"):
        assert (command.folder / f"{file}.edited").read_bytes() == AFTER
    assert command.files() == {"f.py", "g.py", "h.py", "f.py.edited", "h.py.edited"}
    if json_too:
        answer = json.loads(done.out)
        assert (answer["status"], answer["code"]) == ("error", "locked")
        assert [file["written"] for file in answer["files"]] == [None, None]
        assert [file["code"] for file in answer["files"]] == [None, "locked"]
        assert all(file["stats"] for file in answer["files"])


def test_what_cannot_be_taken_back_is_named(command: Command) -> None:
    """Somebody writes the first file between the saves: that text is theirs."""
    (command.folder / "h.py").write_bytes(BEFORE)
    meddle = (
        "from pathlib import Path\nfrom apply_edit.command import deliver\n"
        "from apply_edit.errors import SaveError\n"
        "save = deliver.save\n"
        "def meddle(path, data, expected):\n"
        "    if Path(path).name == 'h.py':\n"
        "        Path('f.py').write_text('mine\\n')\n"
        "        raise SaveError('disk-full', 'the disk is full')\n"
        "    return save(path, data, expected)\n"
        "deliver.save = meddle\n"
    )
    done = command("f.py", "h.py", "-i", "x", "-m", "replay:g.py", "-w", code=meddle)
    assert done.code == 2
    assert "f.py had been written and could not be taken back" in one_error(done.err, "disk-full")
    assert (command.folder / "f.py").read_text() == "mine\n"
    assert (command.folder / "h.py").read_bytes() == BEFORE
    assert (command.folder / "f.py.edited").read_bytes() == AFTER


def test_a_file_that_changed_meanwhile_is_left_alone_and_the_work_kept(command: Command) -> None:
    meddle = (
        "from pathlib import Path\nfrom apply_edit.target import replay\n"
        "score = replay.ReplayTarget.score\n"
        "def meddle(self, *args, **more):\n"
        "    Path('f.py').write_text('mine\\n')\n"
        "    return score(self, *args, **more)\n"
        "replay.ReplayTarget.score = meddle\n"
    )
    done = command.edit("-w", code=meddle)
    assert (done.code, done.out) == (2, b"")
    assert "f.py.edited" in one_error(done.err, "changed-on-disk")
    assert (command.folder / "f.py").read_text() == "mine\n"
    assert (command.folder / "f.py.edited").read_bytes() == AFTER


def test_a_read_only_file_is_refused_before_any_work(command: Command) -> None:
    (command.folder / "f.py").chmod(0o444)
    done = command("f.py", "-i", "x", "-m", "no/such/folder", "-w")
    one_error(done.err, "read-only")


def test_json_of_an_edit(command: Command) -> None:
    done = command.edit("--json")
    assert (done.code, done.err) == (0, "")
    answer = json.loads(done.out)
    assert answer["schema"] == 1
    assert (answer["status"], answer["code"], answer["message"]) == ("ok", None, None)
    assert (answer["file"], answer["changed"]) == ("f.py", True)
    assert (answer["output"].encode(), answer["output_encoding"]) == (AFTER, "utf-8")
    assert answer["diff"] is None
    assert answer["written"] is None
    assert answer["stats"]["output_tokens"] > 0
    assert {"file", "allowed", "version"} <= set(answer)


def test_json_with_the_other_answers(command: Command) -> None:
    answer = json.loads(command.edit("--json", "--diff").out)
    assert answer["diff"].startswith("diff --git ")
    assert answer["output"] is None
    done = command.edit("--json", "--check")
    assert done.code == 1
    assert json.loads(done.out)["changed"] is True
    answer = json.loads(command.edit("--json", "-w").out)
    assert (answer["written"], answer["output"]) == ("f.py", None)
    assert (command.folder / "f.py").read_bytes() == AFTER
    answer = json.loads(command.edit("--json", "-w").out)
    assert (answer["written"], answer["changed"]) == (None, False)
    answer = json.loads(command.edit("--json", "-o", "new.py").out)
    assert answer["written"] == "new.py"


@pytest.mark.parametrize(
    ("args", "status", "code"),
    [
        (["f.py", "-i", "x", "-m", "replay:damaged"], "refused", None),
        (["missing.py", "-i", "x"], "error", "no-such-file"),
        (["f.py", "-i", "x", "--nonsense"], "error", "unknown-option"),
        (["-", "-i", "x", "-m", "replay:missing"], "error", None),
        (["f.py"], "error", "no-edit"),
    ],
)
def test_json_of_a_failure(
    command: Command, args: list[str], status: str, code: str | None
) -> None:
    (command.folder / "damaged").write_text("```python\ndef a():\n")
    done = command(*args, "--json", stdin=BEFORE)
    assert done.code == 2
    answer = json.loads(done.out)
    assert answer["status"] == status
    assert f"{answer['message']} [{answer['code']}]\n" in done.err
    assert code is None or answer["code"] == code
    assert answer["output"] is None


def test_json_of_several_files_has_them_all(command: Command) -> None:
    (command.folder / "h.py").write_bytes(b"\xff")
    done = command("f.py", "h.py", "-i", "x", "-m", "replay:g.py", "--json", "-w")
    assert done.code == 2
    answer = json.loads(done.out)
    assert (answer["status"], answer["code"]) == ("error", "not-utf8")
    assert [one["status"] for one in answer["files"]] == ["ok", "error"]
    assert answer["files"][0]["written"] is None
    assert (command.folder / "f.py").read_bytes() == BEFORE


def test_json_of_bytes_that_are_not_utf8(command: Command) -> None:
    data = "# café\n".encode("latin-1") + BEFORE
    (command.folder / "f.py").write_bytes(data)
    (command.folder / "g.py").write_text("# café\n" + AFTER.decode())
    answer = json.loads(command.edit("--json", "--encoding", "latin-1").out)
    assert answer["output_encoding"] == "base64"
    assert base64.b64decode(answer["output"]) == "# café\n".encode("latin-1") + AFTER


@pytest.mark.parametrize(
    "name", [b"a[0].py", b"[red]b.py", b"a b.py", b"\xff\xfe.py", "é\u202e.py".encode(), b"-x.py"]
)
def test_names_are_bytes_and_no_markup(command: Command, name: bytes) -> None:
    path = os.fsdecode(name)
    (command.folder / path).write_bytes(BEFORE)
    args = ["-i", "x", "-m", "replay:g.py", "-w", "-v", "--"]
    done = command(*args, name, LC_ALL="C", PYTHONIOENCODING="ascii")
    assert (done.code, done.out) == (0, b"")
    assert (command.folder / path).read_bytes() == AFTER
    (command.folder / path).write_bytes(b"\xff")
    done = command("-i", "x", "--json", "--", name)
    answer = json.loads(done.out)
    if name.isascii():
        assert answer["file"] == name.decode()
    else:
        assert base64.b64decode(answer["file_base64"]) == name or answer["file"] == path
    assert "\x1b" not in done.err
    assert "\u202e" not in done.err


def test_a_file_named_like_a_command(command: Command) -> None:
    (command.folder / "models").write_bytes(BEFORE)
    done = command("./models", "-i", "x", "-m", "replay:g.py")
    assert (done.code, done.out) == (0, AFTER)


def test_stdin_filename_names_the_text_and_finds_the_project(command: Command) -> None:
    subprocess.run(["git", "init", "-q"], cwd=command.folder, env=command.env, check=True)
    (command.folder / "pyproject.toml").write_text('[tool.apply-edit]\nmodel = "replay:./g.py"\n')
    (command.folder / "sub").mkdir()
    done = command("-", "-i", "x", "--stdin-filename", "sub/x.py", "--diff", stdin=BEFORE)
    assert done.code == 0, done.err
    assert done.out.startswith(b"diff --git a/sub/x.py b/sub/x.py\n")
    answer = json.loads(
        command("-", "-i", "x", "--stdin-filename", "sub/x.py", "--json", stdin=BEFORE).out
    )
    assert answer["file"] == "sub/x.py"


def test_configuration_in_the_order_of_precedence(command: Command, tmp_path: Path) -> None:
    for name in ("user", "project", "environment", "flag"):
        (command.folder / f"{name}.py").write_bytes(BEFORE.replace(b"2", name.encode()))
    user = tmp_path / "home" / ".config" / "apply-edit"
    user.mkdir(parents=True)
    (user / "config.toml").write_text(f'model = "replay:{command.folder}/user.py"\n')
    args = ["f.py", "-i", "x"]
    assert b"user" in command(*args).out
    (command.folder / "pyproject.toml").write_text(
        '[tool.apply-edit]\nmodel = "replay:./project.py"\n'
    )
    assert b"project" in command(*args).out
    variable = {"APPLY_EDIT_MODEL": "replay:environment.py"}
    assert b"environment" in command(*args, **variable).out
    assert b"flag" in command(*args, "-m", "replay:flag.py", **variable).out
    done = command(*args, "-v", **variable)
    assert "model is replay:environment.py, from APPLY_EDIT_MODEL" in done.err


def test_files_of_projects_that_differ(command: Command) -> None:
    for name, seed in (("one", 1), ("two", 2)):
        (command.folder / name / ".git").mkdir(parents=True)
        (command.folder / name / "f.py").write_bytes(BEFORE)
        (command.folder / name / "pyproject.toml").write_text(f"[tool.apply-edit]\nseed = {seed}\n")
    args = ["one/f.py", "two/f.py", "-i", "x", "-m", "replay:g.py", "--check"]
    assert "seed" in one_error(command(*args).err, "mixed-config")
    assert command(*args, "--seed", "3").code == 1


def test_a_wrong_key_names_the_nearest_right_one(command: Command) -> None:
    (command.folder / "pyproject.toml").write_text("[tool.apply-edit]\nmodle = 'x'\n")
    assert "did you mean model?" in one_error(command.edit().err, "unknown-key")


def test_quiet_and_stats(command: Command) -> None:
    assert command.edit("-q", "--diff").err == ""
    done = command.edit("--stats")
    assert done.out == AFTER
    assert "output tokens" in done.err
    assert "\x1b" not in done.err


def test_lines(command: Command) -> None:
    (command.folder / "g.py").write_text("def b():\n    return 3\n")
    done = command.edit("--lines", "5:6")
    assert (done.code, done.out) == (0, AFTER)


def test_an_error_nobody_foresaw(command: Command) -> None:
    broken = (
        "from apply_edit.target import replay\n"
        "def score(self, *args, **more):\n    raise ZeroDivisionError('oh')\n"
        "replay.ReplayTarget.score = score\n"
    )
    done = command.edit(code=broken)
    assert (done.code, done.out) == (2, b"")
    assert "ZeroDivisionError: oh" in one_error(done.err, "internal")
    done = command.edit("-v", code=broken)
    assert "Traceback" in done.err
    done = command("-", "-i", "x", "-m", "replay:g.py", stdin=BEFORE, code=broken)
    assert (done.code, done.out) == (2, BEFORE)


def test_models_are_listed(command: Command) -> None:
    done = command("models")
    assert (done.code, done.err) == (0, "")
    text = done.out.decode()
    for word in ("smollm2-135m", "Apache-2.0", "not here", "the default"):
        assert word in text
    answer = json.loads(command("models", "--json").out)
    assert answer["default"] in {one["name"] for one in answer["models"]}
    assert {one["state"] for one in answer["models"]} == {"absent"}


@pytest.mark.parametrize(
    ("chosen", "default"),
    [
        (None, "qwen2.5-coder-1.5b"),
        ("qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b"),
        ("someone/else", None),
    ],
)
def test_one_default_is_listed(command: Command, chosen: str | None, default: str | None) -> None:
    env = {} if chosen is None else {"APPLY_EDIT_MODEL": chosen}
    lines = command("models", **env).out.decode().splitlines()
    said = [line.split()[0] for line in lines if "the default" in line]
    assert said == ([] if default is None else [default])
    answer = json.loads(command("models", "--json", **env).out)
    assert answer["default"] == (chosen or default)
    assert not [one["note"] for one in answer["models"] if "default" in one["note"]]


def test_models_are_removed(command: Command) -> None:
    done = command("models", "rm", "smollm2-135m")
    assert (done.code, done.err) == (0, "apply-edit: smollm2-135m was not in the cache\n")


def test_heads_are_listed_and_removed_with_their_model(command: Command) -> None:
    answer = json.loads(command("models", "--json").out)
    assert {one["heads"] for one in answer["models"]} == {False}
    heads = Path(answer["cache"]) / "heads"
    heads.mkdir(parents=True)
    kept = Path(next(o["folder"] for o in answer["models"] if o["name"] == "smollm2-135m")).name
    (heads / f"{kept}.safetensors").write_bytes(b"x" * 2_000_000)
    (heads / kept).mkdir()
    (heads / kept / "half.safetensors").write_bytes(b"x")
    answer = json.loads(command("models", "--json").out)
    assert [one["name"] for one in answer["models"] if one["heads"]] == ["smollm2-135m"]
    assert command("models").out.decode().count("has draft heads") == 1
    done = command("models", "rm", "smollm2-135m")
    assert done.err == "apply-edit: removed smollm2-135m, 2 MB freed\n"
    assert list(heads.iterdir()) == []


def test_there_must_be_files_to_train_on(command: Command) -> None:
    (command.folder / "none").mkdir()
    done = command("models", "train-heads", "smollm2-135m", "none")
    assert (done.code, done.out) == (2, b"")
    one_error(done.err, "no-sources")


def test_models_cannot_be_pulled_offline(command: Command) -> None:
    done = command("models", "pull", "smollm2-135m", "--offline")
    assert done.code == 2
    assert done.err.count("\n") == 1
