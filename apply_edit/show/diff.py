"""A diff in colour, for eyes: byte lines with SGR codes around them."""

from __future__ import annotations

from apply_edit.show.look import COLORED


def painted(patch: bytes) -> bytes:
    """`patch` with its added, removed and hunk lines coloured as git colours them."""
    out = []
    body = False
    for line in patch.split(b"\n"):
        style = ""
        if line.startswith(b"@@"):
            style, body = "hunk", True
        elif line.startswith(b"diff --git"):
            style, body = "title", False
        elif not body:
            style = "title"
        elif line[:1] == b"+":
            style = "added"
        elif line[:1] == b"-":
            style = "removed"
        code = COLORED[style].encode()
        out.append(b"\x1b[" + code + b"m" + line + b"\x1b[m" if code and line else line)
    return b"\n".join(out)
