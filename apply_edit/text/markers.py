"""Marker lines: the lines of a sketch that stand for code left as it is.

`// ... existing code ...`, `# (unchanged)`, `<!-- … rest of the page … -->`, a bare `...`: what
people and models write for "the rest stays". A line that says so but stands in the original is
text of the file, not a marker.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_OPENERS = r"(?://+|/\*+|\*+|#+|--+|;+|%+|<!--|\{/\*|\{\{!--|\{#|<%#|\(\*|'+|\"\"\"|REM\b|rem\b|!)"
_CLOSERS = r"(?:\*+/\}|\*+/|-->|--\}\}|#\}|%>|\*\)|\"\"\")"
_COMMENT = re.compile(rf"^\s*({_OPENERS})?\s*(.*?)\s*(?:{_CLOSERS})?\s*$", re.DOTALL)
_DOTS = re.compile(r"\.{3,}|…|\.\s\.\s\.|\. \. \.")
_KEPT = re.compile(
    r"\b(?:existing|unchanged|unmodified|untouched|as (?:before|is|it was)|the same|same as"
    r"|identical|omitted|elided|snip(?:ped)?|truncated|keep|kept|stays?|remains?|remaining|rest of"
    r"|the rest|other|others|previous|original|as above|no changes?|etc|more|continues?|continued"
    r"|skipped|goes here|like before|not shown|not changed|left out|left as|all the)\b"
    r"|restlich|unver[äa]ndert|bestehend|inchang[ée]|existant|reste du|sin cambios|existente"
    r"|resto d|без изменений|остальн|существующ|现有|其余|其他|不变|原有|保持|既存|変更なし|省略",
    re.IGNORECASE,
)
_THINGS = re.compile(
    r"\b(?:code|function|functions|method|methods|class|classes|file|import|imports|body|lines?"
    r"|logic|implementation|fields?|content|contents|section|definitions?|properties|tests?|cases?"
    r"|routes?|rules?|styles?|items?|entries|rows?|config|settings|props|members?|statements?"
    r"|handlers?|constructor|module|document|page|script|program|below|above|here|it|same|rest"
    r"|existing|unchanged|remaining)\b",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"^[\s(\[<]*(?:(?:the )?(?:rest|remainder|remaining \w+|existing \w+|other \w+|code|everything"
    r"(?: else)?|all (?:the )?(?:other|existing) \w+)\b[^.;:=(){}]{0,60}?"
    r"\b(?:unchanged|same|omitted|as (?:before|is)|here|stays?|remains?|not shown)\b[^=;{}]{0,40}"
    r"|(?:unchanged|no changes?(?: here)?|existing code|unmodified|omitted(?: for brevity)?|snip"
    r"|same as (?:before|above)|rest of (?:the )?[\w` .()]{1,50}?)[^=;{}]{0,16})[\s)\]>.]*$",
    re.IGNORECASE,
)
_CODE = re.compile(r"[=;{}]|\w\(|\)\.|->|=>|::")


def looks_like_marker(line: str) -> bool:
    """Whether a line, wherever it stands, says "code left out here".

    A bare `...` counts. A sentence that merely ends in dots does not.

    >>> looks_like_marker("    // ... existing code ...")
    True
    >>> looks_like_marker('print("Loading...")')
    False
    """
    text = line.strip()
    if not text or len(text) > 160:
        return False
    found = _COMMENT.match(text)
    if found is None:
        return False
    commented, body = found[1] is not None, found[2].strip()
    if not body:
        return False
    dots = list(_DOTS.finditer(body))
    if not dots:
        return commented and _BARE.match(body) is not None
    words = _DOTS.sub(" ", body).strip(" \t.-–—()[]<>{}/*#:")
    if not words:
        return body[0] in ".…([<{"
    if _CODE.search(words) and not commented:
        return False
    framed = dots[0].start() <= 1
    if len(words.split()) > 12:
        return False
    if framed:
        return bool(_KEPT.search(words) or (commented and _THINGS.search(words)))
    if body.endswith(("...", "…", "...)", "…)", "...]", "...>")) and commented:
        return bool(
            _BARE.match(words) or re.match(r"(?i)(?:the )?(?:rest|remaining|existing)\b", words)
        )
    return False


def is_marker(line: str, original_lines: Collection[str]) -> bool:
    """Whether a line of a sketch is a marker and not a line of the file.

    `original_lines` are the lines of the original, stripped of surrounding blanks (a set is best).
    """
    return looks_like_marker(line) and line.strip() not in original_lines
