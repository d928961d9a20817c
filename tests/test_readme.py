"""Every command of the README works as it stands there; the model is replaced by a replay."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")

BEFORE = """\
import json


def handle(request):
    return json.dumps(request)
"""
AFTER = BEFORE.replace("import json\n", "import json\nimport logging\n").replace(
    "    return", '    logging.info("%s", request)\n    return'
)


def shell_commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    return [line for block in blocks[2:] for line in block.splitlines() if line]


def editor_commands() -> list[str]:
    found = re.findall(r"^- [^`]*`[^`]*?(apply-edit [^`]+)`", README, re.MULTILINE)
    return [c.replace("${file}", "app.py").replace(" %:S ", " app.py ") for c in found]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the README's files, and `apply-edit` on the PATH."""
    work = tmp_path / "project"
    work.mkdir()
    for name in ("app.py", "server.py", "client.py"):
        (work / name).write_text(BEFORE)
    (work / "sketch.py").write_text(re.findall(r"```python\n(import.*?)```", README, re.DOTALL)[0])
    (tmp_path / "after.py").write_text(AFTER)
    (tmp_path / "head.py").write_text("".join(AFTER.splitlines(keepends=True)[:-3]))
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "apply-edit"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m apply_edit "$@"\n')
    program.chmod(0o755)
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    subprocess.run(["git", "add", "-A"], cwd=work, check=True)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("APPLY_EDIT_MODEL", f"replay:{tmp_path / 'after.py'}")
    return work


def run(command: str, project: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=project,
        input=text,
        stdin=None if text is not None else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_readme_has_commands() -> None:
    assert len(shell_commands()) >= 9
    assert len(editor_commands()) == 4


@pytest.mark.parametrize("command", shell_commands())
def test_shell_commands(command: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "--lines" in command:
        # Only the range's lines are rewritten, so only they are replayed.
        part = AFTER.replace("    return json.dumps(request)\n", "")
        (project.parent / "after.py").write_text(part)
    done = run(command, project)
    assert done.returncode == 0, done.stderr
    now = (project / "app.py").read_text()
    if "--write" in command or "git apply" in command:
        assert now == AFTER
        assert done.stdout == ""
        others = AFTER if "server.py" in command else BEFORE
        assert (project / "client.py").read_text() == others
    elif "> app_new.py" in command:
        assert (project / "app_new.py").read_text() == AFTER
    elif "--check" in command:
        assert "would change" in done.stdout
        assert now == BEFORE
    elif "models" in command:
        assert "qwen2.5-coder-1.5b" in done.stdout
    else:
        assert done.stdout == AFTER
        assert now == BEFORE


@pytest.mark.parametrize("command", editor_commands())
def test_editor_commands(command: str, project: Path) -> None:
    done = run(command, project, BEFORE)
    assert done.returncode == 0, done.stderr
    if "--write" in command:
        assert (project / "app.py").read_text() == AFTER
    else:
        assert done.stdout == AFTER


def test_the_python_example(project: Path) -> None:
    example = re.findall(r"```python\n(from apply_edit.*?)```", README, re.DOTALL)[0]
    model = os.environ["APPLY_EDIT_MODEL"]
    code = example.replace("Editor.load()", f"Editor.load({model!r})")
    subprocess.run([sys.executable, "-c", code], cwd=project, check=True, timeout=60)
    assert (project / "app.py").read_text() == AFTER


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
