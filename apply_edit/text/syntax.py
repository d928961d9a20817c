"""Whether a text still parses, for the languages a parser is at hand for.

Python, JSON, TOML and XML with the standard library; the rest with tree-sitter if the `syntax`
extra is installed; otherwise the brackets of languages written in the manner of C.
Nothing is ever run.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import warnings
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any
from xml.parsers import expat

__all__ = ["fault", "language_of"]

_BY_SUFFIX = {
    ".py": "python", ".pyi": "python", ".pyw": "python", ".json": "json", ".toml": "toml",
    ".xml": "xml", ".svg": "xml", ".xsd": "xml", ".java": "java", ".kt": "kotlin",
    ".kts": "kotlin", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
    ".jsx": "javascript", ".ts": "typescript", ".mts": "typescript", ".tsx": "tsx", ".go": "go",
    ".rs": "rust", ".c": "c", ".h": "cpp", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp",
    ".hpp": "cpp", ".hh": "cpp", ".cs": "csharp", ".swift": "swift", ".scala": "scala",
    ".php": "php", ".rb": "ruby", ".lua": "lua", ".sh": "bash", ".bash": "bash", ".dart": "dart",
    ".css": "css", ".scss": "scss", ".yaml": "yaml", ".yml": "yaml", ".html": "html",
    ".htm": "html", ".ex": "elixir", ".exs": "elixir", ".hs": "haskell", ".ml": "ocaml",
    ".zig": "zig", ".r": "r", ".jl": "julia", ".md": "markdown", ".markdown": "markdown",
    ".rst": "rst", ".txt": "text", ".adoc": "text", ".tex": "latex", ".sql": "sql",
}  # fmt: skip
_BY_NAME = {
    "js": "javascript", "ts": "typescript", "py": "python", "golang": "go", "c++": "cpp",
    "c#": "csharp", "shell": "bash", "sh": "bash", "yml": "yaml", "rs": "rust", "kt": "kotlin",
}  # fmt: skip
_BRACE_LANGUAGES = (
    "java kotlin javascript typescript tsx go rust c cpp csharp swift scala dart php css scss"
)
_BRACES = frozenset(_BRACE_LANGUAGES.split())
_LOOSE = frozenset(["markdown", "rst", "text", "latex", "yaml", "html", "sql", "r"])
_DEEP = 1_000_000  # characters beyond which the standard parsers are not tried


def language_of(name: str = "", language: str = "") -> str:
    """The language's usual name in lower case, from the one given or the file's suffix."""
    if language:
        return _BY_NAME.get(language.lower(), language.lower())
    return _BY_SUFFIX.get(PurePosixPath(name).suffix.lower(), "")


def fault(text: str, language: str) -> tuple[int, str] | None:
    """The first fault as (1-based line, what is wrong), or None when none is known.

    `language` as `language_of` gives it.
    """
    if len(text) > _DEEP or not text.strip():
        return None
    if language == "python":
        return _python(text)
    if language == "json":
        return _json(text)
    if language == "toml":
        return _toml(text)
    if language == "xml":
        return _xml(text)
    if language and language not in _LOOSE and (parser := _tree_sitter(language)) is not None:
        return _tree(text, parser)
    return _brackets(text, language) if language in _BRACES else None


def _python(text: str) -> tuple[int, str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return error.lineno or 1, error.msg
    except ValueError as error:
        return 1, str(error)
    except (RecursionError, MemoryError):
        return None
    return None


def _json(text: str) -> tuple[int, str] | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.lineno, error.msg
    except (RecursionError, MemoryError, ValueError):
        return None
    return None


def _toml(text: str) -> tuple[int, str] | None:
    toml: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        toml.loads(text)
    except toml.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        return int(found[1]) if found else text.count("\n") + 1, str(error)
    except (RecursionError, MemoryError, ValueError):
        return None
    return None


def _xml(text: str) -> tuple[int, str] | None:
    parser = expat.ParserCreate()
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        return error.lineno, expat.ErrorString(error.code)
    return None


def _tree_sitter(language: str) -> Any | None:
    """A parser of the optional tree-sitter bundle, if it is there and knows the language."""
    try:
        pack: Any = import_module("tree_sitter_language_pack")
        return pack.get_parser(language)
    except (ImportError, LookupError, ValueError, OSError, AttributeError):
        return None


def _tree(text: str, parser: Any) -> tuple[int, str] | None:
    root = parser.parse(text.encode("utf-8", "replace")).root_node
    if not root.has_error:
        return None
    node = root
    while True:
        bad = next((c for c in node.children if c.has_error or c.is_missing or c.is_error), None)
        if bad is None:
            break
        node = bad
        if node.is_error or node.is_missing:
            break
    what = f"{node.type} is missing" if node.is_missing else "invalid syntax"
    return int(node.start_point[0]) + 1, what


_PIECE = re.compile(
    r"//[^\n]*|/\*(?s:.*?)\*/|\"\"\"(?s:.*?)\"\"\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    r"|`(?:\\.|[^`\\])*`|(?<=[(,=:\[!&|?{};])\s*/(?![/*])(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\\\n])+/"
    r"|[()\[\]{}]"
)
_RUST = re.compile(
    r"//[^\n]*|/\*(?s:.*?)\*/|r#+\"(?s:.*?)\"#+|\"(?:\\(?s:.)|[^\"\\])*\"|'(?:\\.[^']*|[^'\\])'"
    r"|[()\[\]{}]"
)
_CLOSER = {")": "(", "]": "[", "}": "{"}


def _brackets(text: str, language: str) -> tuple[int, str] | None:
    """The first bracket without its partner, comments and strings skipped."""
    stack: list[tuple[str, int]] = []
    pattern = _RUST if language in ("rust", "swift", "scala", "kotlin") else _PIECE
    for found in pattern.finditer(text):
        piece = found[0]
        if piece in "([{":
            stack.append((piece, found.start()))
        elif piece in _CLOSER:
            if not stack or stack[-1][0] != _CLOSER[piece]:
                return text.count("\n", 0, found.start()) + 1, f"'{piece}' closes nothing"
            stack.pop()
    if stack:
        piece, at = stack[-1]
        return text.count("\n", 0, at) + 1, f"'{piece}' is never closed"
    return None
