"""Is there room for the model? Asked before the first weight is read."""

from __future__ import annotations

import contextlib
from pathlib import Path

from apply_edit.errors import ModelError
from apply_edit.target.shards import stock

_WIDTH = {
    **dict.fromkeys(("bfloat16", "bf16", "float16", "fp16", "half"), 2),
    **dict.fromkeys(("float32", "fp32", "float"), 4),
}
_BESIDES = 700_000_000
"""Bytes besides the weights: libraries, key/value buffers of a middling file, logits."""


def needed_bytes(folder: Path, dtype: object) -> int:
    """The peak of loading and running a model: one copy of all weights, one tensor twice."""
    width = _WIDTH[str(dtype).removeprefix("torch.")]
    held = stock(folder)
    return width * (held.values + held.greatest) + _BESIDES


def check_memory(folder: Path, dtype: object, available: int | None = None) -> None:
    """Refuse with code ``no-memory`` a model that does not fit. `dtype` by name or torch's own.

    `available` counts bytes; without it, what this process may still take. Where that cannot be
    told nothing is refused.
    """
    if available is None:
        available = available_bytes()
    needed = needed_bytes(folder, dtype)
    if available is not None and needed > available:
        raise ModelError(
            "no-memory",
            f"the model needs about {needed / 2**30:.1f} GiB of memory and "
            f"{available / 2**30:.1f} GiB are available; close programs or choose a smaller model",
        )


def available_bytes() -> int | None:
    """What this process may still take: the machine's free memory, within the limits set on it."""
    found = [n for n in (_machine(), _cgroup(), _address_space()) if n is not None]
    return max(0, min(found)) if found else None


def _machine() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with contextlib.suppress(ImportError):
        import psutil  # type: ignore[import-untyped, unused-ignore]

        return int(psutil.virtual_memory().available)
    return None


def _cgroup(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> int | None:
    """What the control groups of this process leave, version 1 or 2; file cache counts as free."""
    left: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for line in own.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                base, names = root, ("memory.max", "memory.current", "inactive_file")
            elif "memory" in controllers.split(","):
                base = root / "memory"
                names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            else:
                continue
            folder = base / path.strip("/")
            # Inside a container the path is often the host's; then the root stands for it.
            chain = [folder, *folder.parents] if folder.is_dir() else [base]
            for place in chain:
                left += _left(place, *names)
                if place == base:
                    break
    return min(left, default=None)


def _left(place: Path, limit: str, usage: str, cache: str) -> list[int]:
    with contextlib.suppress(OSError, ValueError):
        most = int((place / limit).read_text())  # "max" is no number: no limit
        used = int((place / usage).read_text())
        with contextlib.suppress(OSError, ValueError):
            for line in (place / "memory.stat").read_text().splitlines():
                if line.startswith(cache + " "):
                    used -= int(line.split()[1])
        return [most - used]
    return []


def _address_space() -> int | None:
    """What ``ulimit -v`` leaves."""
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return limit - pages * resource.getpagesize()
    return None
