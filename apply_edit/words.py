"""Words for one-line messages: quoting what came from outside, near misses, counts."""

from __future__ import annotations

from collections.abc import Iterable


def quote(value: object) -> str:
    """`value` as it should stand in a one-line message: quoted, controls escaped."""
    text = value if isinstance(value, str) else repr(value)
    shown = _printable(text)
    return f"'{shown}'" if isinstance(value, str) else shown


def _printable(text: str) -> str:
    """`text` with controls and undecodable bytes escaped, as `apply_edit.text.gitname.shown` does.

    The shell's arguments hold such bytes as surrogates, and in an ASCII locale all but ASCII.
    """
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        raw = text.encode("utf-8", "backslashreplace")
    plain = raw.decode("utf-8", "backslashreplace")
    return escaped(plain)


def escaped(text: str) -> str:
    """`text` with what would not print written as Python writes it in a string.

    >>> escaped("a\\x1b")
    'a\\\\x1b'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def nearest(word: str, known: Iterable[str], prefix: str = "") -> str:
    """``; did you mean X?`` for the likeliest of `known`, or nothing. X is shown with `prefix`.

    >>> nearest("--instr", ["--history", "--instruction", "--instruction-file"])
    '; did you mean --instruction?'
    """
    from difflib import get_close_matches

    names = list(known)
    wanted = word if word.isupper() else word.replace("_", "-")
    begun = [name for name in names if len(wanted.strip("-")) > 1 and name.startswith(wanted)]
    found = sorted(begun, key=len)[:1] or get_close_matches(wanted, names, 1, 0.65)
    return f"; did you mean {prefix}{found[0]}?" if found else ""


def one_line(text: str) -> str:
    """`text` fit for one line of a terminal: blanks collapsed, controls and surrogates escaped."""
    return _printable(" ".join(text.split()))


def name(path: str) -> str:
    """A file name as it should stand in a message, without quotes."""
    return quote(path)[1:-1]


def count(number: int, noun: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
