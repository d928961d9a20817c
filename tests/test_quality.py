"""The script that judges wordings judges rightly: known answers through the replay target."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
BEFORE = "def double(x):\n    # twice\n    return x\n"
AFTER = "def double(x):\n    # twice\n    return 2 * x\n"
TEST = "def check():\n    assert double(3) == 6\n"


def run(tmp_path: Path, answer: str, **case: str) -> tuple[dict[str, object], dict[str, object]]:
    """One case through the script: the verdict and the summary."""
    row = {
        "id": "one",
        "path": "main.py",
        "language": "python",
        "original": BEFORE,
        "instruction": "Return twice x.",
        "update": AFTER,
        "expected": AFTER,
        "context": "",
        "test": TEST,
        **case,
    }
    (tmp_path / "cases.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    (tmp_path / "answer").write_text(answer, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            SCRIPTS / "quality.py",
            tmp_path / "cases.jsonl",
            "--json",
            "--model",
            f"replay:{tmp_path / 'answer'}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    verdict, summary = (json.loads(line) for line in done.stdout.splitlines())
    return verdict, summary


def test_a_right_answer_is_exact_and_passes(tmp_path: Path) -> None:
    verdict, summary = run(tmp_path, AFTER)
    assert (verdict["refused"], verdict["exact"], verdict["passed"]) == ([], True, True)
    assert (summary["passed"], summary["tested"], summary["expected passes"]) == (1, 1, 1)


def test_an_answer_that_changes_nothing_fails(tmp_path: Path) -> None:
    verdict, _ = run(tmp_path, BEFORE)
    assert (verdict["unchanged"], verdict["exact"], verdict["passed"]) == (True, False, False)


def test_another_right_answer_passes_without_being_exact(tmp_path: Path) -> None:
    verdict, _ = run(tmp_path, AFTER.replace("2 * x", "x + x"))
    assert (verdict["exact"], verdict["passed"], verdict["lost"]) == (False, True, 0)


def test_a_lost_line_is_counted(tmp_path: Path) -> None:
    verdict, _ = run(tmp_path, AFTER.replace("    # twice\n", ""))
    assert verdict["lost"] == 1


def test_a_refused_answer_is_neither_exact_nor_passed(tmp_path: Path) -> None:
    verdict, summary = run(
        tmp_path, AFTER.replace("    # twice\n", "    # ... existing code ...\n")
    )
    assert verdict["refused"] == ["elided"]
    assert (verdict["exact"], verdict["passed"]) == (False, False)
    assert (summary["refused"], summary["codes"]) == (1, {"elided": 1})


def test_the_edited_text_stands_in_its_context(tmp_path: Path) -> None:
    context = "class C:\n{{Code}}\n"
    method = "    def double(self, x):\n        return {}\n"
    verdict, summary = run(
        tmp_path,
        method.format("x * 2"),
        original=method.format("x"),
        expected=method.format("2 * x"),
        context=context,
        test="def check():\n    assert C().double(3) == 6\n",
    )
    assert verdict["passed"]
    assert summary["expected passes"] == 1


def test_other_languages_are_not_executed(tmp_path: Path) -> None:
    verdict, summary = run(tmp_path, AFTER, language="ruby", path="main.rb")
    assert verdict["passed"] is None
    assert summary["tested"] == 0


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("assert True", True),
        ("def check():\n    pass", True),
        ("def check():\n    assert False", False),
        ("def check(f):\n    assert f(1) == 2\ncheck(double)", True),
        ("import sys\nsys.exit(3)", False),
        ("while True: pass", False),
        ("import time\ntime.sleep(60)", False),
        ("x = bytearray(1 << 33)", False),
        ("open('big', 'wb').write(bytes(2 << 20))", False),
        ("open('small', 'w').write('fine')", True),
        ("import os\nassert 'QUALITY_SECRET' not in os.environ", True),
    ],
)
def test_the_sandbox_ends_what_it_runs(
    monkeypatch: pytest.MonkeyPatch, test: str, expected: bool
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setenv("QUALITY_SECRET", "x")
    from quality_sandbox import passes

    endless = "while True" in test or "sleep" in test
    assert passes(AFTER, "", test, seconds=0.5 if endless else 10) is expected
