"""Source files below folders: git's list where there is one, a walk elsewhere."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from apply_edit.errors import InputError
from apply_edit.text.sources import LARGEST, read_source, source_files


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")


def names(folder: Path) -> list[str]:
    return [str(path.relative_to(folder.resolve())) for path in source_files([folder])]


def test_a_walk_passes_over_what_was_built_or_hidden(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "lib/b.rs", "c.txt", ".hid.py", ".git2/d.py", "node_modules/e.js")
    make(tmp_path, "venv/f.py", "lib/G.PY")
    (tmp_path / "big.py").write_bytes(b"#" * (LARGEST + 1))
    (tmp_path / "empty.py").touch()
    assert names(tmp_path) == ["a.py", "lib/G.PY", "lib/b.rs"]
    # A file that is named counts, and nothing counts twice.
    assert len(source_files([tmp_path / "a.py", tmp_path])) == 3


def test_in_a_work_tree_git_says_what_there_is(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True)

    make(tmp_path, "a.py", "build/kept.py", "other.py", "odd \u00e9\n.py")
    git("init", "-q")
    git("add", "a.py", "build/kept.py", "odd \u00e9\n.py")
    assert names(tmp_path) == ["a.py", "build/kept.py", "odd \u00e9\n.py"]
    (tmp_path / "a.py").unlink()  # tracked still, but gone
    assert "a.py" not in names(tmp_path)
    # A repository's own programs are not run.
    git("config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
    source_files([tmp_path])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("tracked", [False, True])
def test_links_that_lead_nowhere_are_passed_over(tmp_path: Path, tracked: bool) -> None:
    make(tmp_path, "a.py", "lib/b.py")
    for place, leads_to in (
        ("self.py", "self.py"),
        ("there.py", "back.py"),
        ("back.py", "there.py"),
        ("lib/folder", "../lib/folder"),
        ("broken.py", "none.py"),
        ("lib/up", ".."),
    ):
        (tmp_path / place).symlink_to(leads_to)
    if tracked:
        for words in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True)
    assert names(tmp_path) == ["a.py", "lib/b.py"]
    with pytest.raises(InputError) as caught:
        source_files([tmp_path / "self.py"])
    assert caught.value.code == "not-found"


@pytest.mark.parametrize("error", [RuntimeError, OSError])
def test_either_error_of_a_looping_link_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    make(tmp_path, "a.py", "loop.py")
    resolve = Path.resolve

    def resolved(path: Path, strict: bool = False) -> Path:
        if path.name == "loop.py":
            raise error("Symlink loop")
        return resolve(path, strict)

    monkeypatch.setattr(Path, "resolve", resolved)
    assert names(tmp_path) == ["a.py"]


def test_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        source_files([tmp_path / "none"])
    assert caught.value.code == "not-found"


def test_only_text_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    for data, text in (
        (b"\xef\xbb\xbfx\r\ny\n", "x\ny\n"),
        (b"\xff\xfe", None),
        (b"a\0b", None),
    ):
        path.write_bytes(data)
        assert read_source(path) == text
    assert read_source(tmp_path / "none.py") is None
