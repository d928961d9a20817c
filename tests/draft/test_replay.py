"""scripts/replay.py on an edit of our own: exact counts, and the peers' rules as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "replay.py"

ORIGINAL = "".join(f"def area{i}(w, h):\n    return w * h + {i}\n\n\n" for i in range(12))
EXPECTED = ORIGINAL.replace(
    "return w * h + 5", "if w < 0:\n        raise ValueError(w)\n    return w * h + 5"
)
UPDATE = """\
# ... existing code ...
def area5(w, h):
    if w < 0:
        raise ValueError(w)
    return w * h + 5
# ... existing code ...
"""
CASE = {
    "id": "area",
    "original": ORIGINAL,
    "instruction": "area5 must raise ValueError(w) if w < 0",
    "update": UPDATE,
    "expected": EXPECTED,
}


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(CASE) + "\n", encoding="utf-8")
    return path


def replayed(*args: str | Path) -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, SCRIPT, *args, "--tokenizer", "words", "--json"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )
    return {row["rule"]: row for row in json.loads(done.stdout)["summary"]}


def test_ours_beside_the_rules_of_others(cases: Path) -> None:
    found = replayed(cases, "--compare")
    ours, lookup, longest = found.values()
    assert list(found) == ["ours", "lookup n<=2 k=10", "longest n<=16 k=64"]
    assert ours["tokens"] == lookup["tokens"] == longest["tokens"]
    # No rule of theirs can take more than k tokens and the bonus one in a pass.
    assert lookup["tokens_per_pass"] <= 11
    assert ours["tokens_per_pass"] > lookup["tokens_per_pass"]
    assert ours["wasted_per_token"] < longest["wasted_per_token"]
    assert ours["seconds"] < min(lookup["seconds"], longest["seconds"])


def test_a_sketch_is_merged_and_drafted(cases: Path) -> None:
    sketched = replayed(cases, "--mode", "update")["ours"]
    assert sketched["wasted_per_token"] == 0.0
    unmerged = replayed(cases, "--mode", "update", "--no-prediction")["ours"]
    assert sketched["passes"] < unmerged["passes"] < replayed(cases)["ours"]["passes"]


def test_a_fixed_length(cases: Path) -> None:
    plain = replayed(cases, "--k", "0")["ours k=0"]
    assert plain["passes"] == plain["tokens"]
    assert plain["to_plain"] == pytest.approx(1.0)
