"""Source files below some folders: git's own list in a work tree, a walk elsewhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from apply_edit.errors import InputError
from apply_edit.text.gitname import shown

_SUFFIXES = """
.py .pyi .js .jsx .mjs .cjs .ts .tsx .java .kt .kts .scala .go .rs .c .h .cc .cpp .hpp .cs .m .swift
.rb .php .pl .lua .sh .bash .ex .exs .erl .hs .ml .clj .r .jl .dart .vue .svelte .sql .groovy .zig
.nim
"""
SUFFIXES = frozenset(_SUFFIXES.split())
LARGEST = 200_000
"""Bytes; longer files are data or generated more often than not."""
_BUILT = "node_modules venv env build dist target vendor site-packages __pycache__"
_PASSED_OVER = frozenset(_BUILT.split())


def source_files(folders: Sequence[Path]) -> list[Path]:
    """Files of source code below `folders`, sorted, each once; a file among them counts itself.

    In a git work tree those that git tracks; elsewhere all but hidden folders, and those that
    hold other people's code or what was built. Symbolic links that lead nowhere, or to
    themselves, are passed over.

    Raises `InputError` ``not-found`` for a folder that does not exist.
    """
    found: set[Path] = set()
    for folder in folders:
        if folder.is_file():
            found.add(folder.resolve())
            continue
        if not folder.is_dir():
            raise InputError("not-found", f"there is no folder {shown(folder)}; check the path")
        tracked = _tracked(folder)
        paths = map(_resolved, _walked(folder) if tracked is None else tracked)
        found.update(path for path in paths if path is not None)
    return sorted(path for path in found if path.suffix.lower() in SUFFIXES and _fits(path))


def read_source(path: Path) -> str | None:
    """A file's text; None for one that is no UTF-8 or went away."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text.replace("\r\n", "\n")


def _tracked(folder: Path) -> list[Path] | None:
    """What git tracks below `folder`; None outside a work tree or without git."""
    # A repository may not run programs of its own here.
    quiet = ("-c", "core.fsmonitor=false")
    command = ["git", *quiet, "-C", os.fspath(folder), "ls-files", "-z", "--", "."]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    except OSError:
        return None
    names = [name for name in done.stdout.split(b"\0") if name]
    if done.returncode != 0 or not names:
        return None
    return [folder / os.fsdecode(name) for name in names]


def _walked(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if name[0] != "." and name.lower() not in _PASSED_OVER
        )
        for name in files:
            if name[0] != ".":
                yield Path(place) / name


def _resolved(path: Path) -> Path | None:
    """Where a path leads; None for a symbolic link that leads to itself."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # RuntimeError before Python 3.13
        return None


def _fits(path: Path) -> bool:
    try:
        return path.is_file() and 0 < path.stat().st_size <= LARGEST
    except OSError:
        return False
