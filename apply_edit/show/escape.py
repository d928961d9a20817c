"""Text of any origin as HTML that shows it and does nothing else."""

from __future__ import annotations

import re
import unicodedata

_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_SPECIAL = re.compile(r"[&<>\"']")


def plain(text: str) -> str:
    """`text` for an attribute: escaped; what is invisible or moves other text is named."""
    return _escaped(_odd(text, "\u27e8{}\u27e9"))


def code(text: str) -> str:
    """`text` for the body of a listing: the same, with the names set apart."""
    parts = []
    for part in re.split("(\ue000[0-9A-F]+\ue001)", _odd(text, "\ue000{}\ue001")):
        if part.startswith("\ue000"):
            parts.append(f"<i>{part[1:-1]}</i>")
        else:
            parts.append(_escaped(part))
    return "".join(parts)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: _HTML[match[0]], text)


def _odd(text: str, form: str) -> str:
    """Characters that no one sees, or that reorder their neighbours, as their numbers."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(form.format(f"{ord(c):04X}") if _hidden(c) else c for c in text)


def _hidden(char: str) -> bool:
    # The two joiners spell emoji and Persian, and move nothing.
    if char in "\n\t\u200c\u200d":
        return False
    # Cc controls, Cf formats (bidi marks, zero width), Cs surrogates, Co private, Zl and Zp.
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
