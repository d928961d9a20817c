"""The recordings for the docs come from the real command and can be shown anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from tests.command import ROOT, Command
from tests.show.reports import source

SVG = "{http://www.w3.org/2000/svg}"


def test_a_recording_of_a_run(tmp_path: Path) -> None:
    command = Command.make(tmp_path)
    before, after = command.folder / "a<b>.py", command.folder / "after.py"
    before.write_text(source(30))
    after.write_text(source(30, range(10, 12)))
    done = subprocess.run(
        [
            *(sys.executable, ROOT / "scripts" / "record.py", before, "--out", tmp_path / "out"),
            *("--columns", "70", "--", "-i", "change it", "-m", f"replay:{after}", "--diff"),
        ],
        env=command.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "out.txt").read_text(encoding="utf-8")
    assert "$ apply-edit 'a<b>.py' -i" in text
    assert "changed 2 lines" in text
    assert "+def function_10(value): return value + 10000" in text
    assert max(map(len, text.splitlines())) <= 70
    picture = ElementTree.parse(tmp_path / "out.svg").getroot()
    words = [element.text or "" for element in picture.iter(f"{SVG}text")]
    assert any("changed 2 lines" in word for word in words)
    assert {use.get("href", "")[1:] for use in picture.iter(f"{SVG}use")} == {
        group.get("id") for group in picture.iter(f"{SVG}g") if (group.get("id") or "a") != "a"
    }


def test_a_run_that_fails_leaves_no_recording(tmp_path: Path) -> None:
    command = Command.make(tmp_path)
    done = subprocess.run(
        [
            *(sys.executable, ROOT / "scripts" / "record.py", command.folder / "f.py"),
            *("--out", tmp_path / "out", "--", "-i", "x", "-m", "replay:/nowhere"),
        ],
        env=command.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "no-replay" in done.stderr
    assert not (tmp_path / "out.txt").exists()
