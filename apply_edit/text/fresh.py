"""What of a sketch is new to the file as a whole, and so finds no lines of the file to stand for.

A new function's `return x` and its closing bracket stand in the file as well, in other functions:
what such lines are equal to says nothing of where the new function goes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from apply_edit.text.outline import block_end, defined_name, indent_of

_ENTRY = re.compile(
    r"""^\s*(?:(?P<key>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\w$.\-]+)\s*:(?![:=])"""
    r"""|(?P<item>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|-?\d[\w.]*)\s*,?\s*$)"""
)
_OPEN = tuple(",{[(;:")


def entry(line: str) -> str | None:
    """The key of an entry of data (JSON, a dict, YAML), or the whole of a plain item of a list."""
    found = _ENTRY.match(line)
    if found is None or line.split(maxsplit=1)[0] in ("case", "default:", "else:", "try:"):
        return None
    return found["key"] or found["item"]


def entries(text: Sequence[str], old: Sequence[str], end: int) -> set[int]:
    """The lines of entries, whole above line `end`, whose keys no old entry of that depth has.

    Entries are much alike, but one of another key comes beside the old ones and rewrites none.
    """
    known = {(indent_of(line), key) for line in old if (key := entry(line))}
    found: set[int] = set()
    row = 0
    while row < end:
        key = entry(text[row])
        stop = row + 1
        if key is not None and (indent_of(text[row]), key) not in known:
            stop = block_end(text, row) if text[row].rstrip().endswith(_OPEN[1:]) else stop
            if stop <= end:
                found.update(range(row, stop))
        row = stop
    return found


def parted(above: str, new: Sequence[str], below: str) -> bool:
    """Whether a comma has to come behind `above`, the last entry before a closing bracket `below`,
    once the lines `new` stand between them."""
    first = next((line for line in new if line.strip()), "")
    word = above.strip()
    return (
        below.strip()[:1] in tuple("]}")
        and entry(first) is not None
        and (entry(above) is not None or word in ("}", "]"))
        and not word.endswith(_OPEN)
        and not re.search(r"(?:^|\s)(?://|#)", above)
        and indent_of(above) == indent_of(first)
    )


def fresh(rows: Sequence[str], known: Collection[str | None]) -> Iterator[range]:
    """The stretches of lines that define a name which is not `known`, each header included."""
    row = 0
    while row < len(rows):
        name = defined_name(rows[row])
        if name is None or name in known:
            row += 1
            continue
        end = _section_end(rows, row) if rows[row].startswith("[") else block_end(rows, row)
        yield range(row, end)
        row = end


def added(text: Sequence[str], old: Sequence[str], end: int) -> set[int]:
    """The lines of definitions, whole above line `end`, whose names the old lines do not define.

    They come beside the old lines: a new function is like every other, and rewrites none. (Where
    no marker parts it from the file's own end, it stands for all that is there.)
    """
    known = {defined_name(line) for line in old}
    return {row for block in fresh(text, known) if block.stop <= end for row in block}


def _section_end(rows: Sequence[str], header: int) -> int:
    """The line after a section of an INI or TOML file: the next header, or the end."""
    return next((r for r in range(header + 1, len(rows)) if rows[r].startswith("[")), len(rows))


def openers(rows: Sequence[str]) -> dict[int, int]:
    """Per line that is one closer or more and blanks, the line above that opens its block."""
    found: dict[int, int] = {}
    around: list[tuple[int, int]] = []  # column and number of the last line at each depth
    for row, line in enumerate(rows):
        text = line.strip()
        if not text:
            continue
        column = indent_of(line)
        while around and around[-1][0] > column:
            around.pop()
        if around and around[-1][0] == column:
            opener = around.pop()[1]
            if closes(text) and not closes(rows[opener].strip()):
                found[row] = opener
        around.append((column, row))
    return found


def closes(text: str) -> bool:
    """Whether a line, without its blanks, does nothing but end a block."""
    return text in ("end", "fi", "done", "esac") or (
        text[:1] in tuple(")]}") and not any(map(str.isalnum, text))
    )
