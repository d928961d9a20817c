"""The contract of the command, looked at from outside."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

from fuzz_cases import Case
from fuzz_checks import answer_file, promise

ROOT = Path(__file__).resolve().parent.parent
MODES = ("stdout", "stdin", "--diff", "-w", "-o", "--check", "--json")


def check_command(case: Case, folder: Path, rng: Random) -> None:
    """Run ``python -m apply_edit`` on a case in one of its modes."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    for path in work.iterdir():
        path.unlink()
    mode = rng.choice(MODES)
    file = work / f"f.{case.file.kind}"
    file.write_bytes(case.data)
    (work / "answer").write_bytes(answer_file(case.answer))
    argv = ["-" if mode == "stdin" else file.name, "--no-progress"]
    argv += ["-m", f"replay{'-raw' if case.raw else ''}:answer"]
    if case.request.instruction is not None:
        argv.append(f"--instruction={case.request.instruction}")
    if case.request.update is not None:
        (work / "sketch").write_bytes(case.request.update.encode("utf-8", "surrogatepass"))
        argv += ["-u", "sketch"]
    if case.lines is not None:
        argv += ["--lines", f"{case.lines[0]}:{case.lines[1]}"]
    argv += [f"--allow={code}" for code in sorted(case.request.allow)]
    argv += ["--encoding", case.request.encoding]
    argv += {"stdin": ["--stdin-filename", file.name], "stdout": []}.get(mode, [mode])
    if mode == "-o":
        argv.append("out")
    before = {path.name for path in work.iterdir()}
    done = _run(argv, work, case.data if mode == "stdin" else b"")
    err = done.stderr.decode("utf-8", "replace")
    said = f"{mode}: {err}"
    promise("Traceback" not in err, said)
    promise("[internal]" not in err, said)
    promise(done.returncode in ((0, 1, 2) if mode == "--check" else (0, 2)), f"exit code: {said}")
    promise(("apply-edit: error: " in err) == (done.returncode == 2), f"error and code: {said}")
    new = {path.name for path in work.iterdir()} - before
    promise(new <= {"out"}, f"files left behind: {new}")
    if done.returncode == 2:
        echo = case.data if mode == "stdin" else b""
        if mode == "--json":
            answer = json.loads(done.stdout)
            promise(answer["status"] in ("error", "refused"), "the JSON says that it is done")
            promise(f"[{answer['code']}]" in err, "the JSON has another code")
        else:
            promise(done.stdout == echo, "stdout is not what a failure leaves there")
        promise(not new, "a failure wrote a file")
        promise(file.read_bytes() == case.data, "a failure changed the file")
        return
    _check_done(case, mode, argv, work, file, done)


def _check_done(
    case: Case,
    mode: str,
    argv: list[str],
    work: Path,
    file: Path,
    done: subprocess.CompletedProcess[bytes],
) -> None:
    """All modes give the result that plain stdout gives."""
    written = file.read_bytes()
    if mode != "-w":
        promise(written == case.data, "the file changed unasked")
    file.write_bytes(case.data)
    drop = {"-w", "-o", "out", "--check", "--json", "--diff"}
    plain = [word for word in argv if word not in drop]
    want = _run(plain, work, case.data)
    promise(want.returncode == 0, "the same edit fails at the second time")
    out = want.stdout
    if mode in ("stdout", "stdin"):
        promise(done.stdout == out, "not the same answer twice")
    elif mode == "-w":
        promise(not done.stdout and written == out, "-w wrote something else")
    elif mode == "-o":
        promise(not done.stdout and (work / "out").read_bytes() == out, "-o wrote something else")
    elif mode == "--check":
        promise(done.returncode == int(out != case.data), "--check says otherwise")
    elif mode == "--json":
        answer = json.loads(done.stdout)
        text = answer["output"].encode()
        if answer["output_encoding"] == "base64":
            text = base64.b64decode(text)
        promise(answer["status"] == "ok" and text == out, "the JSON has another output")
    else:
        promise(bool(done.stdout) == (out != case.data), "a diff without a change, or none")
        if done.stdout:
            _check_applies(done.stdout, work, file, out)


def _check_applies(diff: bytes, work: Path, file: Path, want: bytes) -> None:
    env = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(work.parent)}
    subprocess.run(["git", "init", "-q", "."], cwd=work, env=env, check=True)
    try:
        done = subprocess.run(
            ["git", "apply", "--whitespace=nowarn"],
            input=diff,
            cwd=work,
            env=env,
            capture_output=True,
            check=False,
        )
        promise(done.returncode == 0, f"git apply: {done.stderr.decode('utf-8', 'replace')}")
        promise(file.read_bytes() == want, "git apply makes something else")
    finally:
        subprocess.run(["rm", "-rf", ".git"], cwd=work, check=True)


def _run(argv: list[str], work: Path, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(work.parent),
        "LANG": "C.UTF-8",
    }
    return subprocess.run(
        [sys.executable, "-m", "apply_edit", *argv],
        input=stdin,
        cwd=work,
        env=env,
        capture_output=True,
        check=False,
        timeout=120,
    )
