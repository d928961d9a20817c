"""Edits to practise on: pieces of source files, and an instruction that suits each.

The instructions are generic ones of the kinds that people ask for; which of them suit a piece is
told from its lines alone, so that every common language has some.
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from apply_edit.text.outline import Definition, outline

LEAST, MOST = 5, 60
"""Lines of a piece: short ones hold more edit for their length."""
LONGEST = 4000
"""Characters of a piece."""

_PYTHON = (".py", ".pyi", ".pyw")
_PARAMETERS = re.compile(r"\(([^()]*)\)")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_STRINGS = re.compile(r"(\"[^\"\n]{4,}\"|'[^'\n]{4,}')")
_WORDS = """
self cls this super None True False null true false return const let var def class function public
private static import from for while else elif if not and the int str float bool list dict tuple
string void args kwargs new async await try except finally raise with print assert yield lambda pass
break continue final func struct type interface extends
"""
_IGNORED = frozenset(_WORDS.lower().split())

_HEADER = re.compile(
    r"(?:(?:@|#).*\n)*(?:async )?def [^\n]*\([^()]*\)[^\n:]*:[ ]*\n"
    r"(?:[ ]+[rR]?(?:\"\"\"(?s:.*?)\"\"\"|'[^\n]*'|\"[^\n]*\")[ ]*\n)?"
)

OPENED = 0.6
"""The share of Python functions whose body is to be written: nearly all of such an answer is the
model's own, and only where the model writes are draft heads asked."""
BODIES = (
    "Implement {name}.",
    "Write the body of {name}.",
    "Complete {name} and explain each step in a comment.",
    "Implement {name} with type hints and error handling.",
)

ALWAYS = (
    "Rewrite {name} so that it is easier to read, without changing what it does.",
    "Make {name} faster without changing its result.",
    "Add a comment above each step of {name} that says why it is done.",
    "Add a parameter `verbose` to {name} which prints what is done when it is true.",
    "Let {name} check its arguments and report invalid ones with a clear error.",
    "Handle empty input in {name}.",
    "Split {name} into two: move a part of its work to a helper and call it.",
    "Find the bug in {name} and fix it.",
    "Add an example of how {name} is used behind it.",
    "Add a counter of how often {name} was called.",
    "Also handle the case in which the input is missing.",
    "Change {name} so that it also returns how many items were handled.",
    "Add a small test for {name} at the end.",
)
LOOPS = (
    "Replace the loop in {name} by a comprehension or the shortest equivalent.",
    "Stop the loop in {name} after at most `limit` rounds; `limit` is a new parameter.",
    "Skip items that are empty, and count the skipped ones.",
)
BRANCHES = (
    "Return early in {name} instead of nesting conditions.",
    "Turn the conditions of {name} round: test for the error first.",
    "Put each condition of {name} in a variable with a telling name.",
)
INPUT = (
    "Add error handling to {name} for files that cannot be opened.",
    "Let {name} try again up to three times before it gives up.",
    "Add a timeout to {name}.",
)
PYTHON = (
    "Add type hints to {name}.",
    "Add type hints to all parameters and the return value.",
    "Write a docstring for {name} that explains its parameters and its result.",
    "Log the arguments and the result of {name} with the logging module.",
    "Add error handling to {name}: raise ValueError with a message that says what was wrong.",
    "Catch the exceptions that {name} may raise and log them.",
    "Use f-strings in {name} wherever text is put together.",
    "Make {name} an async function.",
    "Cache the results of {name}.",
    "Add a keyword-only parameter `default` to {name} that is returned when nothing is found.",
)
CLASSES = (
    "Add a __repr__ method to {name}.",
    "Add a method to {name} that gives its content as a dictionary.",
    "Turn {name} into a dataclass.",
    "Add a method `reset` to {name} which restores the first state.",
    "Add an __eq__ method to {name}.",
)
OTHERS = (
    "Write a documentation comment for {name} that explains its parameters and its result.",
    "Log the arguments and the result of {name}.",
    "Add error handling to {name}.",
)


@dataclass(frozen=True, slots=True)
class Task:
    """A piece of code and what to change in it. `name` is the file's, for its language."""

    name: str
    text: str
    instruction: str


def tasks(text: str, name: str, count: int, seed: int = 0) -> list[Task]:
    """Up to `count` edits of pieces of `text`, the same for the same seed.

    Pieces are definitions; a text without any that is short enough is a piece as a whole.
    """
    draw = random.Random(f"{seed}:{name}:{len(text)}")
    lines = text.expandtabs(4).split("\n") if name.endswith(_PYTHON) else text.split("\n")
    found = [_piece(lines, d) for d in outline(lines) if LEAST <= d.end - d.lead <= MOST]
    pieces = [(title, piece) for title, piece in found if len(piece) <= LONGEST]
    if not pieces and LEAST <= len(lines) <= MOST and len(text) <= LONGEST:
        pieces = [("this file", text)]
    draw.shuffle(pieces)
    made = []
    for title, piece in pieces[:count]:
        opened = _opened(piece) if name.endswith(_PYTHON) else None
        if opened is not None and draw.random() < OPENED:
            made.append(Task(name, opened, draw.choice(BODIES).format(name=title)))
            continue
        instruction = draw.choice(_fitting(title, piece, name, draw))
        made.append(Task(name, piece, instruction))
    return made


def _piece(lines: Sequence[str], definition: Definition) -> tuple[str, str]:
    """The definition's name and its lines, moved to the left edge."""
    block = "\n".join(lines[definition.lead : definition.end])
    return definition.name, textwrap.dedent(block).strip("\n") + "\n"


def _opened(piece: str) -> str | None:
    """A function without its body, but for what stands above its first statement: decorators,
    the header and the docstring. None where no body of three lines would be left out."""
    found = _HEADER.match(piece)
    if found is None or len(piece[found.end() :].strip("\n").split("\n")) < 3:
        return None
    indent = re.search(r"^([ ]+)\S", piece[found.end() :], re.MULTILINE)
    return None if indent is None else f"{found[0]}{indent[1]}raise NotImplementedError\n"


def _fitting(title: str, piece: str, name: str, draw: random.Random) -> list[str]:
    """Instructions that suit a piece, one kind as likely as another."""
    python = name.endswith(_PYTHON)
    kinds: list[Sequence[str]] = [ALWAYS, PYTHON if python else OTHERS]
    if re.search(r"^\s*(for|while)\b", piece, re.MULTILINE):
        kinds.append(LOOPS)
    if len(re.findall(r"^\s*(?:if|elif|else|\} else|case)\b", piece, re.MULTILINE)) >= 2:
        kinds.append(BRANCHES)
    if re.search(r"\b(open|read|write|connect|fetch|request|recv|send)\w*\(", piece):
        kinds.append(INPUT)
    if python and re.match(r"(@.*\n)*class\b", piece):
        kinds.append(CLASSES)
    kinds += [kind for kind in (_renames(piece, draw), _wordings(piece, draw)) if kind]
    return [draw.choice(kind).format(name=title) for kind in kinds]


def _renames(piece: str, draw: random.Random) -> list[str]:
    """Renaming of words that stand in the piece more than once."""
    words = _WORD.findall(piece)
    often = sorted({w for w in words if words.count(w) >= 2 and w.lower() not in _IGNORED})
    if not often:
        return []
    word = draw.choice(often)
    new = draw.choice(("new_{}", "{}_value", "current_{}", "{}_item", "my_{}", "old_{}"))
    return [f"Rename {word} to {new.format(word)} everywhere."]


def _wordings(piece: str, draw: random.Random) -> list[str]:
    """Other words for a text that the piece holds."""
    found = [s for s in _STRINGS.findall(piece) if "{" not in s]
    if not found:
        return []
    return [f"Move the text {draw.choice(found)} to a constant above.".replace("{", "(")]
