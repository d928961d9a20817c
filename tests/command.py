"""Runs the real command as a process of its own, in a folder and a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEFORE = b"def a():\n    return 1\n\n\ndef b():\n    return 2\n"
AFTER = b"def a():\n    return 1\n\n\ndef b():\n    return 3\n"
TIMEOUT = 60

SLOW = """
import os, sys, time
from pathlib import Path
from apply_edit.target import replay
score = replay.ReplayTarget.score
def slow(self, *args, **more):
    Path(os.environ["MARK"]).touch()
    time.sleep(float(os.environ.get("DELAY", "0.02")))
    return score(self, *args, **more)
replay.ReplayTarget.score = slow
"""
"""Makes every pass of the replay target take a while, and marks the first."""

MAIN = "\nimport sys\nfrom apply_edit.__main__ import main\nsys.exit(main())\n"


@dataclass
class Result:
    """How a process ended."""

    code: int
    out: bytes
    err: str


@dataclass
class Command:
    """A folder with ``f.py``, an answer ``g.py`` for the replay target, and an empty home."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls, tmp_path: Path) -> Command:
        folder, home = tmp_path / "work", tmp_path / "home"
        folder.mkdir()
        home.mkdir()
        (folder / "f.py").write_bytes(BEFORE)
        (folder / "g.py").write_bytes(AFTER)
        env = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "MARK": str(tmp_path / "mark"),
        }
        return cls(folder, env)

    @property
    def mark(self) -> Path:
        """Exists once the first pass of a `SLOW` run has begun."""
        return Path(self.env["MARK"])

    def argv(self, *args: str | bytes, code: str = "") -> list[str | bytes]:
        """The command line; `code` is Python that runs before the command."""
        if code:
            return [sys.executable, "-c", code + MAIN, *args]
        return [sys.executable, "-m", "apply_edit", *args]

    def __call__(
        self,
        *args: str | bytes,
        stdin: bytes = b"",
        code: str = "",
        cwd: Path | None = None,
        **env: str,
    ) -> Result:
        done = subprocess.run(
            self.argv(*args, code=code),
            input=stdin,
            capture_output=True,
            cwd=cwd or self.folder,
            env={**self.env, **env},
            timeout=TIMEOUT,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))

    def edit(self, *args: str | bytes, **more: object) -> Result:
        """An edit of ``f.py`` that makes it ``g.py``."""
        return self("f.py", "-i", "b returns 3", "-m", "replay:g.py", *args, **more)  # type: ignore[arg-type]

    def shell(self, script: str, **env: str) -> Result:
        """A shell script in which ``$APPLY`` is the command."""
        words = f"'{sys.executable}' -m apply_edit"
        done = subprocess.run(
            ["bash", "-c", f'apply() {{ {words} "$@"; }}\n{script}'],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self.folder,
            env={**self.env, **env},
            timeout=TIMEOUT,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))

    def files(self) -> set[str]:
        """Names in the folder, hidden ones too."""
        return {path.name for path in self.folder.iterdir()}


def wait_for(path: Path) -> None:
    """Until `path` exists."""
    deadline = time.monotonic() + TIMEOUT
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.005)
