"""Apply a code edit to a file with a local language model: fast, exact, and safe.

>>> from apply_edit import Editor, Request
>>> editor = Editor.load("replay:after.py")                                # doctest: +SKIP
>>> editor.edit(b"x = 1\\n", Request(instruction="Make x two")).output      # doctest: +SKIP
b'x = 2\\n'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apply_edit.errors import (
    ApplyEditError,
    ConfigError,
    InputError,
    ModelError,
    Refusal,
    SaveError,
    UsageError,
)

if TYPE_CHECKING:
    from apply_edit.editor import Edit, Editor, Options, Request

__version__ = "0.1.0"

__all__ = [
    "ApplyEditError",
    "ConfigError",
    "Edit",
    "Editor",
    "InputError",
    "ModelError",
    "Options",
    "Refusal",
    "Request",
    "SaveError",
    "UsageError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """The editor's names, imported at first use so that --version and --help stay quick."""
    if name in ("Edit", "Editor", "Options", "Request"):
        from apply_edit import editor

        return getattr(editor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
