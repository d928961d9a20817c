"""Words for one-line messages: quoting what came from outside, near misses, counts."""

from __future__ import annotations

from collections.abc import Iterable


def quote(value: object) -> str:
    """`value` as it should stand in a one-line message: quoted, controls escaped."""
    text = value if isinstance(value, str) else repr(value)
    plain = text.encode("utf-8", "backslashreplace").decode("utf-8")
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in plain)
    return f"'{shown}'" if isinstance(value, str) else shown


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean X?`` for the likeliest of `known`, or nothing."""
    from difflib import get_close_matches

    found = get_close_matches(
        word if word.isupper() else word.replace("_", "-"), list(known), 1, 0.65
    )
    return f"; did you mean {found[0]}?" if found else ""


def one_line(text: str) -> str:
    """`text` fit for one line of a terminal: blanks collapsed, controls and surrogates escaped."""
    plain = " ".join(text.split()).encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in plain)


def name(path: str) -> str:
    """A file name as it should stand in a message, without quotes."""
    return quote(path)[1:-1]


def count(number: int, noun: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
