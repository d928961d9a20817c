"""Definitions of a source text: their names, headers and the stretch of lines each one spans.

Read from the lines alone, by keywords, brackets and indentation, for the common languages at
once: no parser, so a text that does not parse has an outline too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_MODIFIERS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|static|final|abstract|open"
    r"|override|async|unsafe|extern(?:\s*\"[^\"]*\")?|const|constexpr|inline|virtual|sealed|data"
    r"|suspend|partial|readonly|native|synchronized|pub(?:\s*\([^)]*\))?|local|typedef|annotation"
    r"|companion|operator|mutating|lateinit|noexcept|explicit|friend)\s+)*"
)
_KEYWORD = re.compile(
    rf"^\s*{_MODIFIERS}"
    r"(?:def|defp|defmodule|defmacro|class|interface|enum(?:\s+class)?|struct|trait|impl|function\*?"
    r"|func|fun|fn|sub|proc|procedure|module|namespace|object|record|protocol|extension|union|mod"
    r"|macro_rules!|message|service|@interface|type)"
    r"\s+(?:\([^)]*\)\s*)?(?:<[^>]*>\s*)?([\w$.:\-?!]+)"
)
_ARROW = re.compile(
    rf"^\s*{_MODIFIERS}(?:const|let|var)?\s*([\w$.]+)\s*(?::[^=]+)?=\s*(?:async\s+)?"
    r"(?:function\b|\([^)]*\)\s*(?::[^=]+)?=>|[\w$]+\s*=>)"
)
_METHOD = re.compile(r"^\s*(?:[\w$<>\[\],.?&*:@~]+\s+)*?[*&]*([\w$:~]+)\s*(?:<[^>]*>)?\(([^;]*)$")
_SQL = re.compile(
    r"^\s*create\s+(?:or\s+replace\s+)?(?:temp\w*\s+|unique\s+|materialized\s+)*"
    r"(?:table|view|function|procedure|trigger|index|type|schema)\s+(?:if\s+not\s+exists\s+)?"
    r"([\w.\"`]+)",
    re.IGNORECASE,
)
_LISP = re.compile(r"^\s*\((?:def[\w\-]*|define[\w\-]*)\s+\(?([^\s()]+)")
_SECTION = re.compile(r"^\[{1,2}([^\[\]=]+)\]{1,2}\s*$")
_NOT_NAMES = (
    "if for while switch catch return else do try new throw case await yield assert print with"
    " super this sizeof typeof delete elif unless until when match not and or in lock using foreach"
    " synchronized raise"
)
_NOT_A_NAME = frozenset(_NOT_NAMES.split())
_OPENS = re.compile(r"(?:\{|->|=>|\))\s*$|\{\s*(?:$|//|/\*|\})|\)\s*(?:throws\b|:)|,\s*$|\(\s*$")
_LEADS = ("@", "#[", "///", "//", "#", "/*", "*", "--", "[", '"""', ";;", "template")


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, class, table, section, ... and its lines, `start` <= line < `end`.

    `lead` is the first line of what belongs to it above the header (comments, decorators);
    `indent` the header's column, tabs counted as four; `parent` the index, in the outline, of
    the definition around it.
    """

    name: str
    lead: int
    start: int
    end: int
    indent: int
    parent: int | None


def indent_of(line: str) -> int:
    """The column of the first character that is not blank, tabs counted as four."""
    head = line[: len(line) - len(line.lstrip())]
    return len(head) + 3 * head.count("\t")


def defined_name(line: str) -> str | None:
    """The name that a header line defines, or None when the line is no header."""
    stripped = line.strip()
    if len(stripped) < 4 or len(stripped) > 400 or stripped[0] in "#/*}\"'":
        return None
    if "def" in stripped and (found := _LISP.match(line)):
        return found[1]
    for pattern in (_KEYWORD, _ARROW, _SQL, _SECTION):
        if found := pattern.match(line):
            name = found[1].rstrip(":")
            return None if not name or name in _NOT_A_NAME else name
    if "(" not in stripped or stripped.endswith(";"):
        return None
    found = _METHOD.match(line)
    if found is None or found[1] in _NOT_A_NAME:
        return None
    before = line[: found.start(1)].split()
    if any(word in _NOT_A_NAME or word in ("=", ".") for word in before):
        return None
    if not _OPENS.search(stripped):
        return None
    if not before and not stripped.endswith("{"):
        return None  # a call that goes on in the next line
    if (
        before
        and not stripped.endswith(("{", ")"))
        and found[2].count(")") == 0
        and "," not in line
    ):
        return None
    return found[1]


def block_end(lines: Sequence[str], start: int) -> int:
    """The line after the block whose header is `lines[start]`, by indentation and closers."""
    column = indent_of(lines[start])
    end = start + 1
    for index in range(start + 1, len(lines)):
        text = lines[index].strip()
        if not text:
            continue
        depth = indent_of(lines[index])
        if depth > column:
            end = index + 1
        elif depth < column:
            break
        elif text[0] in ")" or text == "{" or text.startswith(("where ", "throws ", ": ")):
            end = index + 1
        elif text[0] in "}]" or text in ("end", "fi", "done", "esac", "end;", "END;", "END"):
            return index + 1
        else:
            break
    return end


def outline(lines: Sequence[str]) -> list[Definition]:
    """The definitions of a text, in the order of their headers."""
    found: list[Definition] = []
    open_ones: list[int] = []
    for index, line in enumerate(lines):
        name = defined_name(line)
        if name is None:
            continue
        column = indent_of(line)
        while open_ones and found[open_ones[-1]].end <= index:
            open_ones.pop()
        lead = index
        while lead > 0 and lines[lead - 1].lstrip().startswith(_LEADS):
            if indent_of(lines[lead - 1]) < column:
                break
            lead -= 1
        end = block_end(lines, index)
        found.append(
            Definition(name, lead, index, end, column, open_ones[-1] if open_ones else None)
        )
        open_ones.append(len(found) - 1)
    return found
