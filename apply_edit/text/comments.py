"""Which lines of a text are comment or documentation, told from their shape alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

_COMMENT = re.compile(
    r"^(?://|/\*|\*(?!\w)|#(?!\[|\s*(?:include|define|if|ifdef|ifndef|endif|else|elif|pragma|undef)\b)"
    r"|--(?!\w)|<!--|;|%(?!\w)|\"\"\"|''')"
)
_BLOCKS = (("/*", "*/"), ("<!--", "-->"), ('"""', '"""'), ("'''", "'''"))


def is_comment(line: str) -> bool:
    """Whether a line begins as a comment does in one of the common languages."""
    return _COMMENT.match(line.strip()) is not None


def comment_lines(lines: Sequence[str]) -> set[int]:
    """Indices of comment lines, those inside block comments and documentation strings too.

    A block counts only when a line begins with its opener and some later line has its closer.
    """
    found: set[int] = set()
    at = 0
    while at < len(lines):
        text = lines[at].strip()
        if not is_comment(text):
            at += 1
            continue
        end = at + 1
        for opener, closer in _BLOCKS:
            if text.startswith(opener) and closer not in text[len(opener) :]:
                end = next((i + 1 for i in range(at + 1, len(lines)) if closer in lines[i]), at + 1)
                break
        found.update(range(at, end))
        at = end
    return found
