"""Literal replacements that an instruction names: "rename foo to bar", "replace `x` with `y`"."""

from __future__ import annotations

import re

__all__ = ["replacements"]


def _operand(name: str) -> str:
    """A pattern for one side: in backquotes, in double or single quotes, or plain."""
    return (
        rf"(?:`+(?P<{name}b>[^`\n]{{1,200}})`+"
        rf"|[\"“„«「](?P<{name}d>[^\"”“»」\n]{{1,200}})[\"”“»」]"
        rf"|(?<!\w)['‘](?P<{name}s>[^'’\n]{{1,200}})['’]"
        rf"|(?P<{name}p>[\w$@#./:+\-]*[\w$](?:\(\))?))"
    )


_KIND = (
    r"(?:(?:all|every|each|any|the|an?|of|occurrences?|instances?|uses?|usages?|calls?|to|name[sd]?"
    r"|local|global|function|method|class|variable|var|parameter|param|argument|arg|field|property"
    r"|attribute|constant|const|identifier|string|text|word|value|number|literal|type|module|key"
    r"|label|enum|struct|interface|column|default|timeout|limit"
    r"|la|le|les|der|die|das|den|die variable|funktion|el|los|las|función|fonction|il)\s+)*"
)
_FORMS = (
    [
        re.compile(
            rf"\b{verb}\s+{_KIND}{_operand('a')}{tail}\s+(?:{link})\s+{_KIND}{_operand('b')}", re.I
        )
        for verb, tail, link in (
            (r"renam(?:e|ing)", r"(?:\s+\w+){0,3}?", r"to|as|into|->|→|=>"),
            (r"replac(?:e|ing)", r"(?:\s+(?:everywhere|throughout|calls?|in [\w.]+))?", r"with|by"),
            (r"(?:substitut|swap)(?:e|ing)?", r"", r"with|by|for"),
            (r"(?:chang|updat)(?:e|ing)", r"", r"to|into|->|→|=>"),
            (
                r"(?:chang|increas|reduc|decreas|rais|lower|bump|set)\w*\b[^.\n]{0,40}?\bfrom",
                r"",
                r"to",
            ),
            (r"(?:switch|migrat|mov|convert)(?:e|ing)?\s+from", r"", r"to"),
            (r"(?:umbenennen von|benenne|ersetze)", r"", r"in|zu|durch|nach"),
            (r"(?:renomme[rz]?|remplace[rz]?|change[rz]?)", r"", r"en|par|à"),
            (r"(?:renombra[r]?|reemplaza[r]?|sustituye|cambia[r]?)", r"", r"a|por|con|en"),
            (r"(?:rinomina|sostituisci)", r"", r"in|con"),
        )
    ]
    + [
        re.compile(rf"{verb}\s*{_operand('a')}\s*{link}\s*{_operand('b')}")
        for verb, link in (
            (r"(?:将|把)", r"(?:重命名为|改名为|替换为|替换成|改为|改成|换成)"),
            (r"(?:переименуй|переименовать|замени|заменить)", r"(?:в|на)"),
        )
    ]
    + [
        re.compile(
            rf"{_operand('a')}\s*を\s*{_operand('b')}\s*に(?:変更|置換|改名|リネーム|置き換え)"
        )
    ]
)
_INSTEAD = re.compile(
    rf"\buse\s+{_KIND}{_operand('b')}\s+(?:instead of|in place of|rather than)\s+"
    rf"{_KIND}{_operand('a')}",
    re.I,
)
_VAGUE_WORDS = (
    "it this that them these those so be use have return make handle code function method class"
    " variable name value file files line lines something one more less better following new old"
    " a an the in on for from and or not is are"
)
_VAGUE = frozenset(_VAGUE_WORDS.split())


def replacements(instruction: str, original: str) -> list[tuple[str, str]]:
    """The literal substitutions (old, new) that the words name, in their order.

    Conservative: only where `old` stands in the original, as a whole word if it is one, and
    where both sides are quoted, or look like identifiers or numbers.

    >>> replacements("Rename `total` to `amount`.", "total = 1")
    [('total', 'amount')]
    """
    found: list[tuple[int, str, str]] = []
    for form in (*_FORMS, _INSTEAD):
        for match in form.finditer(instruction):
            old, old_quoted = _side(match, "a")
            new, new_quoted = _side(match, "b")
            if old == new or not _literal(old, old_quoted, original):
                continue
            if not new_quoted and (new.lower() in _VAGUE or not _named(old, new, old_quoted)):
                continue
            found.append((match.start(), old, new))
    seen: dict[str, str] = {}
    for _, old, new in sorted(found):
        seen.setdefault(old, new)
    return list(seen.items())


def _side(match: re.Match[str], name: str) -> tuple[str, bool]:
    """One operand, and whether it was quoted."""
    for kind in "bds":
        quoted = match.group(name + kind)
        if quoted is not None:
            return quoted, True
    plain = match.group(name + "p").rstrip(".,:;")
    return plain.removesuffix("()"), False


def _named(old: str, new: str, quoted: bool) -> bool:
    """Whether an unquoted new side is of the old one's kind: a number, or a name for a name."""
    if re.fullmatch(r"[-+]?[\d.]+\w{0,3}", old):
        return re.fullmatch(r"[-+]?[\d.]+\w{0,3}", new) is not None
    if re.fullmatch(r"[-+]?[\d.]+\w{0,3}", new):
        return False
    return quoted or re.fullmatch(r"[A-Za-z_$][\w$.:\-]*", new) is not None


def _literal(old: str, quoted: bool, original: str) -> bool:
    if not old or (not quoted and (old.lower() in _VAGUE or len(old) < 1)):
        return False
    left = r"(?<![\w])" if old[0].isalnum() or old[0] == "_" else ""
    right = r"(?![\w])" if old[-1].isalnum() or old[-1] == "_" else ""
    return re.search(left + re.escape(old) + right, original) is not None
