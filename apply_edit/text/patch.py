"""The edit as a unified diff in git's form: bytes, never text, and never coloured.

`git apply` (from any folder of the repository) and GNU patch make exactly the new bytes from it.
Two settings of git are beyond any patch: ``apply.whitespace=error`` (or ``fix``) refuses (or
alters) added lines that end in blanks or a carriage return, and ``core.autocrlf=true`` rewrites
the line ends of the whole file as it does on checkout; ``git apply --whitespace=nowarn`` and
``git -c core.autocrlf=false apply`` overrule them.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from apply_edit.errors import Refusal
from apply_edit.text.gitname import quote, repository_path
from apply_edit.text.lcs import Match, common
from apply_edit.text.slide import slide

__all__ = ["apply", "check", "diff", "repository_path"]

_NO_NEWLINE = b"\\ No newline at end of file\n"
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(?: [^\n]*)?\n")
_HEADER = re.compile(
    rb"diff --git [^\n]+\n(?:new file mode \d{6}\n)?index [0-9a-f]{7}\.\.[0-9a-f]{7}(?: \d{6})?\n"
    rb"(?:--- [^\n]+\n\+\+\+ [^\n]+\n|\Z)"
)
_HEADING = re.compile(rb"[A-Za-z_$]")


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines `old_start:old_end` become lines `new_start:new_end`; `runs` are equal within them."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int
    runs: tuple[Match, ...]


def diff(
    old: bytes,
    new: bytes,
    path: bytes,
    *,
    mode: int = 0o100644,
    context: int = 3,
    new_file: bool = False,
) -> bytes:
    """The patch that makes `new` from `old`; empty when they are equal.

    `path` is what `repository_path` gives; `mode` is the file's (only whether its owner may
    execute it counts). With `new_file`, the patch creates the file, empty or not.
    """
    if old == new and not new_file:
        return b""
    mode = 0o100755 if mode & 0o100 else 0o100644
    ours, theirs = quote(b"a/" + path), quote(b"b/" + path)
    tab = b"\t" if b" " in path else b""
    head = [b"diff --git %s %s\n" % (ours, theirs)]
    if new_file:
        head.append(b"new file mode %o\nindex 0000000..%s\n" % (mode, _blob(new)))
        old, ours = b"", b"/dev/null"
    else:
        head.append(b"index %s..%s %o\n" % (_blob(old), _blob(new), mode))
    if old == new:
        return b"".join(head)
    head.append(b"--- %s%s\n" % (ours, b"" if new_file else tab))
    head.append(b"+++ %s%s\n" % (theirs, tab))
    a, b = _lines(old), _lines(new)
    runs = slide(common(a, b), a, b)
    return b"".join(head) + b"".join(
        part for hunk in _hunks(runs, len(a), len(b), context) for part in _written(hunk, a, b)
    )


def check(patch: bytes, old: bytes, new: bytes) -> None:
    """Refuse a patch that does not make exactly `new` from `old`.

    It is parsed by unidiff and applied by `apply`, neither of which made it. Raises Refusal
    `bad-diff`.
    """
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    try:
        made = apply(patch, old)
        start = patch.find(b"\n--- ") + 1
        # From the names on: unidiff cannot split a git header whose path holds " b/".
        body = io.StringIO(patch[start:].decode("latin-1") if start else "", newline="\n")
        parsed = PatchSet(body)
    except (ValueError, UnidiffParseError) as error:
        raise Refusal("bad-diff", f"{_REPORT} ({error})") from error
    balance = sum(file.added - file.removed for file in parsed)
    if made != new or balance != len(_lines(new)) - len(_lines(old)) or len(parsed) > 1:
        raise Refusal("bad-diff", _REPORT)


_REPORT = "the diff does not make the edited file; use the whole output instead and report this"


def apply(patch: bytes, old: bytes) -> bytes:
    """What `patch` (of one file) makes of `old`, every line and count of it checked.

    Raises ValueError where anything is off.
    """
    header = _HEADER.match(patch)
    if header is None and patch:
        raise ValueError("the diff does not begin as git's do")
    lines = _lines(patch[header.end() :] if header else b"")
    at = 0
    source, made, done = _lines(old), [], 0
    while at < len(lines):
        hunk = _HUNK.fullmatch(lines[at])
        if hunk is None:
            raise ValueError(f"line {at + 1} of the hunks is no header")
        start, count, new_start, new_count = (int(n) if n is not None else 1 for n in hunk.groups())
        start, new_start = start - (count > 0), new_start - (new_count > 0)
        at, removed, added = _body(lines, at + 1, count, new_count)
        if start < done or source[start : start + count] != removed:
            raise ValueError(f"a hunk does not match the file at line {start + 1}")
        made += source[done:start]
        if len(made) != new_start:
            raise ValueError(f"a hunk is off at line {new_start + 1}")
        made += added
        done = start + count
    made += source[done:]
    if any(not line.endswith(b"\n") for line in made[:-1]):
        raise ValueError("a line inside the file lacks its newline")
    return b"".join(made)


def _body(
    lines: list[bytes], at: int, count: int, new_count: int
) -> tuple[int, list[bytes], list[bytes]]:
    """One hunk's lines as they were and as they become, and where the next hunk begins."""
    removed: list[bytes] = []
    added: list[bytes] = []
    while len(removed) < count or len(added) < new_count:
        kind, text = (lines[at][:1], lines[at][1:]) if at < len(lines) else (b"", b"")
        at += 1
        if at < len(lines) and lines[at] == _NO_NEWLINE:
            text, at = text.removesuffix(b"\n"), at + 1
        if kind not in (b" ", b"-", b"+"):
            raise ValueError(f"line {at} of the hunks has no sign")
        if kind != b"+":
            removed.append(text)
        if kind != b"-":
            added.append(text)
    if len(removed) != count or len(added) != new_count:
        raise ValueError(f"the counts of the hunk before line {at + 1} of the hunks are off")
    return at, removed, added


def _lines(data: bytes) -> list[bytes]:
    """Lines with their ends; only a line feed ends a line."""
    parts = data.split(b"\n")
    last = parts.pop()
    return [part + b"\n" for part in parts] + ([last] if last else [])


def _blob(data: bytes) -> bytes:
    """git's abbreviated name of a file's content."""
    name = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    return name[:7].encode()


def _hunks(runs: list[Match], n: int, m: int, context: int) -> Iterator[_Hunk]:
    """Changes with `context` equal lines around them; those that touch share a hunk."""
    edges = [(0, 0, 0), *runs, (n, m, 0)]
    group: list[Match] = []
    begin: tuple[int, int] | None = None
    for place, (i, j, size) in enumerate(edges):
        first, last = place == 0, place == len(edges) - 1
        changed_after = not last and edges[place + 1][:2] != (i + size, j + size)
        if begin is not None and (not changed_after or size > 2 * context):
            tail = min(size, context)
            yield _Hunk(begin[0], i + tail, begin[1], j + tail, (*group, (i, j, tail)))
            begin, group = None, []
        elif begin is not None:
            group.append((i, j, size))
            continue
        if changed_after:
            lead = 0 if first else min(size, context)
            begin = (i + size - lead, j + size - lead)
            group = [(*begin, lead)]


def _written(hunk: _Hunk, a: list[bytes], b: list[bytes]) -> Iterator[bytes]:
    counts = (hunk.old_end - hunk.old_start, hunk.new_end - hunk.new_start)
    starts = (hunk.old_start + (counts[0] > 0), hunk.new_start + (counts[1] > 0))
    old, new = (
        b"%d" % start if count == 1 else b"%d,%d" % (start, count)
        for start, count in zip(starts, counts, strict=True)
    )
    yield b"@@ -%s +%s @@%s\n" % (old, new, _heading(a, hunk.old_start))
    i, j = hunk.old_start, hunk.new_start
    for p, q, size in (*hunk.runs, (hunk.old_end, hunk.new_end, 0)):
        groups = (b"-", a[i:p]), (b"+", b[j:q]), (b" ", a[p : p + size])
        for sign, lines in groups:
            for line in lines:
                yield sign + line if line.endswith(b"\n") else sign + line + b"\n" + _NO_NEWLINE
        i, j = p + size, q + size


def _heading(lines: list[bytes], before: int) -> bytes:
    """The nearest line above that is not indented, as git shows after the hunk's numbers."""
    for at in range(before - 1, -1, -1):
        if _HEADING.match(lines[at]):
            line = lines[at][:80].rstrip()
            text = line.decode("utf-8", "ignore")  # perhaps cut inside a character
            return (
                b" " + text.encode()
                if text.isprintable() and line.startswith(text.encode())
                else b""
            )
    return b""
