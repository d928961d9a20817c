"""What an answer puts around the file or in place of it: fences, prose, tags, "the rest stays"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from apply_edit.text.change import Change
from apply_edit.text.markers import looks_like_marker

_FENCE = re.compile(r"^(?:`{3,}|~{3,})[\w+#.\- ]*$")
_TAG = re.compile(
    r"^(?:</?(?:updated[-_ ]?code|code|update|answer|file|output|edited[-_ ]?code|new[-_ ]?code"
    r"|original|result|response|think|instruction|rewritten)(?:\s[^<>]*)?>"
    r"|<\|[\w\-]+\|>|</?s>|\[/?INST\]|<\uff5c[^<>]*\uff5c>)$",
    re.IGNORECASE,
)
_SPEECH = re.compile(
    r"^\W{0,3}(?:here(?:'s| is| are)\b|sure\b|certainly\b|of course\b|okay\b|ok,|below (?:is|are)\b"
    r"|above (?:is|are)\b|the (?:updated|modified|following|complete|full|edited|revised|new|above"
    r"|code (?:above|below)|change|changes|rest)\b|i(?:'ve|'ll| have| will| made| added| updated"
    r"| changed| removed)\b|this (?:is|code|version|change|edit|update|will|ensures|adds|should)\b"
    r"|note(?: that|:)|explanation\b|changes(?: made)?:|in this (?:version|code|update)\b|let me\b"
    r"|updated code\b|as (?:requested|you asked)\b|please\b|hope this\b|with (?:this|these) change"
    r"|以下|这是|下面|修改后|更新后|voici\b|hier ist\b|aqu[íi] (?:est[áa]|tienes)\b|ecco\b|вот\b)",
    re.IGNORECASE,
)
_PROSE = frozenset(["markdown", "rst", "text", "latex", "html", ""])
_INLINE = re.compile(
    r"(?://|#|--|/\*|<!--|;)\s*(?:\.{3}|…)\s*(?:\w+\s+){0,4}?(?:existing|rest|unchanged|remaining"
    r"|same|previous|other)\b[^\n]{0,60}$",
    re.IGNORECASE,
)


def wrapped(change: Change, language: str) -> Iterator[tuple[int, str]]:
    """Lines (1-based, what they are) at either end that are no part of the file."""
    new, known = change.new, set(change.old)
    if not new:
        return
    first, last = change.new_at[0] + 1, change.new_at[-1] + 1
    if _FENCE.match(new[0]) and not (change.old and _FENCE.match(change.old[0])):
        yield first, "a code fence"
    if len(new) > 1 and _FENCE.match(new[-1]) and new[-1] not in known:
        unpaired = _odd(new) and not _odd(change.old)
        if unpaired or language not in _PROSE:
            yield last, "a code fence"
    for index, line in [(first, new[0]), (last, new[-1])]:
        if line not in known and _TAG.match(line):
            yield index, "a tag of the prompt"
    for order in (range(min(3, len(new))), range(len(new) - 1, max(-1, len(new) - 4), -1)):
        for at in order:
            if new[at] in known:
                break
            if at > 0 and _FENCE.match(new[at]) and language not in _PROSE:
                yield change.new_at[at] + 1, "a code fence"
            elif _speaks(new[at], language, change.old):
                yield change.new_at[at] + 1, "a sentence about the answer"


def _odd(lines: list[str]) -> bool:
    return sum(1 for line in lines if line.startswith(("```", "~~~"))) % 2 == 1


def _speaks(line: str, language: str, old: list[str]) -> bool:
    """Whether a line is the model's own speech and not a line of such a file."""
    if len(line) < 8 or not (" " in line or not line.isascii()):
        return False
    if _SPEECH.match(line):
        if language in _PROSE and _prose(old):
            return line.endswith(":") and "code" in line.lower()
        return not re.search(r"[;{}=]\s*$|^\w+\(|\w\(.*\)\s*$", line)
    if language in _PROSE:
        return False
    words = re.findall(r"[^\W\d_]+(?:'[a-z]+)?", line)
    plain = re.fullmatch(r"[\w\s,.'’\-:!`()\"]+[.:!]", line) is not None
    return plain and len(words) >= 6 and line[0].isupper() and not re.search(r"\w\(|[_=]", line)


def _prose(old: list[str]) -> bool:
    """Whether the original is prose for the most part."""
    some = old[:60]
    words = [
        line
        for line in some
        if line.endswith((".", ":", ",")) or (len(line.split()) >= 4 and line[-1].isalnum())
    ]
    return 2 * len(words) > len(some)


def elided(change: Change, language: str) -> Iterator[tuple[int, str]]:
    """Lines of the output (1-based, the line) that stand for code instead of being it."""
    spare = {line: change.old.count(line) for line in set(change.new) if _stands_in(line)}
    if not spare:
        return
    for line in spare:
        spare[line] -= change.new.count(line)
    for hunk in change.hunks:
        gone = len(change.lost(hunk))
        for at in range(hunk.c, hunk.d):
            line = change.new[at]
            if spare.get(line, 0) >= 0:
                continue
            bare = not any(map(str.isalnum, line))
            if bare and language in ("python", "") and gone == 0:
                continue  # the body of a stub
            yield change.new_at[at] + 1, line


def _stands_in(line: str) -> bool:
    return looks_like_marker(line) or _INLINE.search(line) is not None
