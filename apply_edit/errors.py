"""The one hierarchy of errors, each with a stable code.

Every error that a user can meet is an `ApplyEditError`: `code` is stable across versions and
goes into ``--json``; the message is one sentence that says what happened and what to do next.
The command maps all of them to exit code 2.
"""

from __future__ import annotations

from apply_edit.words import escaped


class ApplyEditError(Exception):
    """Base of all errors of the public API.

    >>> error = InputError("not-utf8", "byte 17 is not UTF-8; name the encoding with --encoding")
    >>> error.code
    'not-utf8'
    """

    def __init__(self, code: str, message: str) -> None:
        # A message may quote the file: what would not print stays visible, and on one line.
        plain = escaped(message)
        super().__init__(plain)
        self.code = code
        self.message = plain


class UsageError(ApplyEditError):
    """The request itself is off: options that exclude each other, an empty instruction."""


class ConfigError(ApplyEditError):
    """A configuration file or variable holds an unknown key or a value of the wrong kind."""


class InputError(ApplyEditError):
    """The file cannot be edited as text: missing, a folder, binary, wrong encoding, too long."""


class ModelError(ApplyEditError):
    """The model cannot be had or run: unknown, not downloaded, corrupt, not enough memory."""


class Refusal(ApplyEditError):  # noqa: N818 - a refusal is the tool working, not failing
    """A damaged answer (truncated, elided, fenced, looping, lost, ...); nothing was written."""


class SaveError(ApplyEditError):
    """The result could not be written; the file on disk is what it was."""
