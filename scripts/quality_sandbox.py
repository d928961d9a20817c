"""Run a case's test on an edited text: a subprocess with no site of the user's and small limits."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS = 10
PLACE = "{{Code}}"
"""Stands in a case's `context` where the edited text belongs."""

_RUNNER = f"""\
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
source = open("case.py", encoding="utf-8").read()
exec(compile(source, "case.py", "exec"), {{"__name__": "__main__"}})
"""


def program(text: str, context: str, test: str) -> str:
    """One program of the edited text, what stands around it, and its test."""
    whole = context.replace(PLACE, text) if PLACE in context else f"{context}\n{text}"
    call = "\ncheck()\n" if "def check():" in test and "\ncheck()" not in test else ""
    return f"{whole}\n{test}\n{call}"


def passes(text: str, context: str, test: str, seconds: float = SECONDS) -> bool:
    """Whether the test ends without an error in time. Executes the code it is given."""
    with tempfile.TemporaryDirectory(prefix="quality-") as folder:
        Path(folder, "case.py").write_text(program(text, context, test), encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _RUNNER],
            cwd=folder,
            env={"PATH": os.defpath, "HOME": folder, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            # What the case started goes with it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
