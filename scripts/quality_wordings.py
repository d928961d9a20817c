"""Wordings to compare with the one in use: name -> `Wording`, by mode.

`{path}` (the case's, filled in per case) shows what a file name is worth.
"""

from __future__ import annotations

from dataclasses import replace

from apply_edit.target.prompt import INSTRUCTION, UPDATE, Wording

_RULES = """\
- Preserve the code's structure, order, comments, and indentation exactly.
- Output only the updated code, enclosed within <{answer}> and </{answer}> tags.
- Do not include any additional text, explanations, placeholders, ellipses, or code fences.
"""
_CARD = Wording(
    "You are a coding assistant that helps merge code updates, ensuring every modification is "
    "fully integrated.",
    "Merge all changes from the <{update}> snippet into the <{code}> below.\n" + _RULES,
)
_PLAIN_SYSTEM = (
    "You are a coding assistant that edits files, ensuring every modification that is asked for "
    "is made and nothing else changes."
)
_SIBLING = Wording(
    _PLAIN_SYSTEM,
    "Make the change that the <{update}> asks for in the <{code}> below.\n" + _RULES,
)
_SKETCH_RULES = (
    "- Every line of the <{update}> must stand in the updated code; a line such as "
    "'... existing code ...' stands for lines of the <{code}> that stay as they are.\n"
)

_VERBATIM = (
    "- Copy every line of the <{update}> exactly as it is written; do not fix, improve or extend "
    "it.\n"
)
_VERBATIM_ASK = (
    "Provide the complete updated code. Copy the lines of the <{update}> exactly as they are "
    "written, do not fix or improve them; keep all other lines of the <{code}>."
)

WORDINGS: dict[str, dict[str, Wording]] = {
    "instruction": {
        "current": INSTRUCTION,
        "card": _CARD,
        "edit-first": replace(_SIBLING, order=("edit", "code")),
        "twice": replace(_SIBLING, order=("edit", "code", "edit")),
        "unchanged": replace(
            _SIBLING,
            ask="Return the complete <{code}>, unchanged except for what the <{update}> asks for.",
        ),
        "remind": replace(
            _SIBLING,
            ask="Make the change of the <{update}> now: provide the complete updated code, with "
            "every other line exactly as it was.",
        ),
        "short": Wording(
            "You edit files.",
            "Make the change that the <{update}> asks for in the <{code}>. Write the whole updated "
            "code in <{answer}> tags and nothing else.\n",
        ),
        "named": replace(
            _SIBLING,
            rules="Make the change that the <{update}> asks for in the <{code}> of {path} below.\n"
            + _RULES,
        ),
        "system": replace(
            _SIBLING, system="You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
        ),
    },
    "update": {
        "current": UPDATE,
        "card": _CARD,
        "markers": replace(_CARD, rules=_CARD.rules + _SKETCH_RULES),
        "edit-first": replace(_CARD, order=("edit", "code")),
        "verbatim": replace(_CARD, rules=_CARD.rules + _VERBATIM),
        "verbatim-last": replace(_CARD, ask=_VERBATIM_ASK),
        "verbatim-both": replace(_CARD, rules=_CARD.rules + _VERBATIM, ask=_VERBATIM_ASK),
        "mechanical": replace(
            _CARD,
            system="You are a merge tool: you copy lines, and never correct or improve code.",
            ask=_VERBATIM_ASK,
        ),
    },
}
