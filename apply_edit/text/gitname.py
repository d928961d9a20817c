"""Names of files: as a diff writes them, as git finds them, and as a message shows them."""

from __future__ import annotations

import os
from pathlib import Path

from apply_edit.words import escaped

__all__ = ["quote", "repository_path", "shown", "skipped_by_git"]

_ESCAPES = {
    0x07: b"\\a",
    0x08: b"\\b",
    0x09: b"\\t",
    0x0A: b"\\n",
    0x0B: b"\\v",
    0x0C: b"\\f",
    0x0D: b"\\r",
    0x22: b'\\"',
    0x5C: b"\\\\",
}


def quote(name: bytes) -> bytes:
    """`name` as git writes it (core.quotePath on): in quotes when a byte needs an escape.

    >>> quote(b"a b"), quote("é".encode())
    (b'a b', b'"\\\\303\\\\251"')
    """
    if all(0x20 <= byte < 0x7F and byte not in _ESCAPES for byte in name):
        return name
    return b'"%s"' % b"".join(map(_escaped, name))


def _escaped(byte: int) -> bytes:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return bytes((byte,)) if 0x20 <= byte < 0x7F else b"\\%03o" % byte


def repository_path(file: str | os.PathLike[str]) -> tuple[bytes, Path | None]:
    """The name of `file` for a diff, and the top of its git work tree (None outside one).

    The name is relative to the top, as `git apply` wants it from any folder; outside a
    repository it is relative to the working folder, or the bare name when the file is not below
    it. Symbolic links are followed first, for git refuses to patch through one.
    """
    real = Path(os.path.realpath(file))
    base = top = _top(real)
    if base is None:
        base = _here()
    name = Path(real.name)
    if base is not None and real.is_relative_to(base):
        name = real.relative_to(base)
    return os.fsencode(name), top


def skipped_by_git(file: str | os.PathLike[str]) -> Path | None:
    """The folder to run ``git apply`` in for a patch of `file`, where the working folder won't do.

    git leaves out, in silence and with exit code 0, what is not below the folder that it is run
    in; and in one repository it knows nothing of another, such as a submodule.
    """
    real = Path(os.path.realpath(file))
    top = _top(real)
    here = _here()
    below = here is not None and real.is_relative_to(here)
    if top is None:
        return None if below else real.parent
    return None if below and here is not None and _top(here / "file") == top else top


def _here() -> Path | None:
    """The working folder; None where it was removed."""
    try:
        return Path.cwd().resolve()
    except OSError:
        return None


def _top(file: Path) -> Path | None:
    for folder in file.parents:
        if folder.name.lower() == ".git":
            return None  # git refuses to patch its own files
        mark = folder / ".git"
        try:
            if mark.is_dir() and (mark / "HEAD").exists() and (mark / "objects").exists():
                return folder
            if mark.is_file():  # a submodule or a linked work tree
                with mark.open("rb") as stream:
                    if stream.read(8) == b"gitdir: ":
                        return folder
        except OSError:
            continue
    return None


def shown(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """`path` for a message: printable on any terminal, whatever bytes it holds.

    >>> shown(b"a\\xff\\n")
    'a\\\\xff\\\\n'
    """
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return escaped(text)
