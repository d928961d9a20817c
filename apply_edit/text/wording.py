"""The words of an instruction that ask for code to go or to take another shape."""

from __future__ import annotations

import re

REMOVE = (
    r"(?:remov(?:e[sd]?|ing)|delet(?:e[sd]?|ing)|drop(?:s|ped|ping)?|clean(?:s|ed|ing)?(?: up)?"
    r"|get(?:ting)? rid of|eliminat(?:e[sd]?|ing)|eras(?:e[sd]?|ing)|discard(?:s|ed|ing)?"
    r"|prun(?:e[sd]?|ing)|strip(?:s|ped|ping)?|take out|rip out"
    r"|entfern\w*|l[öo]sch\w*|supprim\w*|retir\w*|enl[eè]v\w*|elimin[ae]\w*|borra\w*|quita\w*"
    r"|rimuov\w*|togli)"
)
REMOVES = re.compile(rf"\b{REMOVE}\b|удал|убер|убра|删|移除|去掉|清理|削除|除去", re.IGNORECASE)
_CODE = (
    r"(?:(?:functions?|methods?|class(?:es)?|code|definitions?|helpers?|tests?|handlers?|fields?"
    r"|constants?|endpoints?|features?|modules?|sections?|blocks?|unused|dead|duplicat\w+|deprecated"
    r"|obsolete|everything)(?!\s+(?:calls?|imports?|comments?))|funktion\w*|methode\w*|fonctions?"
    r"|m[ée]thodes?|funci[óo]n\w*|m[ée]todos?|funzion\w*|metod\w*|klassen?|c[óo]digo|codice)"
)
REMOVES_CODE = re.compile(
    rf"\b{REMOVE}\b(?:\W+\w+){{0,4}}?\W+{_CODE}\b|\b(?:is|are|isn't|aren't) (?:not used|unused)"
    r"|\bnot used\b|\bdead code\b|удал|убер|убра|删|移除|去掉|清理|削除|除去",
    re.IGNORECASE,
)
RESHAPES = re.compile(
    r"\b(?:simplif\w*|refactor\w*|rewrit\w*|replac\w*|merg\w*|inlin\w*|extract\w*|mov(?:e|ing)\b"
    r"|convert\w*|restructur\w*|reorgani[sz]\w*|optimi[sz]\w*|consolidat\w*|split\w*|migrat\w*"
    r"|shorten\w*|condens\w*|encapsulat\w*|switch to|vereinfach\w*|ersetz\w*|ersetz"
    r"|translat\w*|port(?:ing)?|übersetz\w*|tradu\w*"
    r"|simplifi\w*|rempla\w*|reempla\w*|sustitu\w*|semplific\w*|sostitu\w*)\b"
    r"|упрост|замен|перепи|重构|简化|替换|重写|改写|リファクタ|置き換え",
    re.IGNORECASE,
)
COMMENTS = re.compile(
    r"\b(?:comment\w*|docs?|docstring\w*|documentation|licen[cs]e|header|todo\w*|notes?|kommentar\w*"
    r"|commentaire\w*|comentario\w*|commenti?)\b|注释|コメント|коммент",
    re.IGNORECASE,
)
