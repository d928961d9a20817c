"""What of a sketch is new to the file as a whole, and so finds no lines of the file to stand for.

A new function's `return x` and its closing bracket stand in the file as well, in other functions:
what such lines are equal to says nothing of where the new function goes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from apply_edit.text.outline import block_end, defined_name, indent_of


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
