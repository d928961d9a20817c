"""The prompt: the file's tokens between tags of a template, and how to read the answer.

The wordings are chosen by measurement with the default model (docs/quality.md). For sketches it is
the FastApply model card's (Kortix/FastApply-1.5B-v1.0) with a last sentence that says what must
arrive: fewer answers lacked lines of the sketch. For instructions it is the card's sibling, which
none of eight others beat. The tags' frame owns the line end before a closing tag, so the file's own
last line end is never the model's say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apply_edit.target.codec import Codec


@dataclass(frozen=True, slots=True)
class Wording:
    """What is said around file and edit: `rules`, the texts in `order` (``code``, ``edit``), `ask`.

    `rules` and `ask` may use the tag names {code}, {update} and {answer}.
    """

    system: str
    rules: str
    ask: str = "Provide the complete updated code."
    order: tuple[str, ...] = ("code", "edit")


UPDATE = Wording(
    system="You are a coding assistant that helps merge code updates, ensuring every modification "
    "is fully integrated.",
    rules="""\
Merge all changes from the <{update}> snippet into the <{code}> below.
- Preserve the code's structure, order, comments, and indentation exactly.
- Output only the updated code, enclosed within <{answer}> and </{answer}> tags.
- Do not include any additional text, explanations, placeholders, ellipses, or code fences.
""",
    ask="Provide the complete updated code: every line of the <{update}>, and every line of the "
    "<{code}> that it does not replace.",
)
INSTRUCTION = Wording(
    system="You are a coding assistant that edits files, ensuring every modification that is asked "
    "for is made and nothing else changes.",
    rules="""\
Make the change that the <{update}> asks for in the <{code}> below.
- Preserve the code's structure, order, comments, and indentation exactly.
- Output only the updated code, enclosed within <{answer}> and </{answer}> tags.
- Do not include any additional text, explanations, placeholders, ellipses, or code fences.
""",
)

CONTEXT = (
    "- <{before}> and <{behind}> only show what stands around the <{code}>: read them, and write "
    "nothing of them.\n"
)
"""A further rule, where there is context. It is shown before the code: what the model saw last it
writes on with (docs/quality.md)."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """`tokens` is the whole prompt, reply opened. `reference` are the tokens of a whole answer
    that changes nothing: the file's body and the closing tag. `update` and `instruction` are the
    tokens of the edit, `closing_text` the text that ends a whole answer. `seen` is the body as
    the tokenizer shows it. The first `fixed` tokens are the wording's own: no user's text."""

    tokens: tuple[int, ...]
    reference: tuple[int, ...]
    update: tuple[int, ...]
    instruction: tuple[int, ...]
    closing_text: str
    seen: str
    fixed: int = 0

    @property
    def ample(self) -> int:
        """Tokens for an answer: the file's, the edit's, and room to move."""
        whole = len(self.reference) + 1
        return whole + whole // 4 + 2 * len(self.update) + 768


def body_of(view: str) -> str:
    """The view without its last line end, which belongs to the frame."""
    return view.removesuffix("\n")


def build(
    codec: Codec,
    view: str,
    *,
    instruction: str | None = None,
    update: str | None = None,
    before: str = "",
    behind: str = "",
) -> Prompt:
    """The prompt that asks for `view` with the edit made; one of the edits must be given.

    `before` and `behind` are context around `view` that the model reads but does not rewrite.
    """
    body = body_of(view)
    edit = body_of(update) if update is not None else (instruction or "").strip()
    names = _tags(body, edit, instruction or "", before, behind, sketch=update is not None)
    wording = UPDATE if update is not None else INSTRUCTION
    rules = wording.rules + (CONTEXT if before or behind else "")
    head, foot = codec.chat(wording.system, rules.format(**names))
    closing_text = f"\n</{names['answer']}>"
    code = [f"<{names['code']}>\n{body}\n</{names['code']}>\n"]
    if before or behind:
        code = [
            f"<{names['before']}>\n{before}</{names['before']}>\n",
            f"<{names['behind']}>\n{behind}</{names['behind']}>\n",
            *code,
        ]
    parts = []
    for text in wording.order:
        parts += (
            code if text == "code" else [f"<{names['update']}>\n{edit}\n</{names['update']}>\n"]
        )
    words = ""
    if update is not None and instruction:
        words = instruction.strip()
        parts.append(f"In words: {words}\n")
    parts.append(wording.ask.format(**names))
    # One text, one tokenisation: a seam between parts would show the model tokens it never met.
    said = codec.encode("\n" + "\n".join(parts))
    edit_tokens = tuple(codec.encode(edit))
    return Prompt(
        tokens=(*head, *said, *foot, *codec.encode(f"<{names['answer']}>\n")),
        reference=tuple(codec.encode(body + closing_text)),
        update=edit_tokens if update is not None else (),
        instruction=tuple(codec.encode(words)) if update is not None else edit_tokens,
        closing_text=closing_text,
        seen=codec.decode(codec.encode(body)),
        fixed=len(head),
    )


def read_answer(text: str, closing_text: str) -> tuple[str, bool]:
    """The body that an answer holds, and whether the closing tag stood at its end.

    Only the frame's own tag at the very end is taken off; the same tag anywhere else is text.
    """
    trimmed = text.rstrip()
    tag = closing_text.removeprefix("\n")
    if not trimmed.endswith(tag):
        return text, False
    return trimmed.removesuffix(tag).removesuffix("\n"), True


def _tags(*texts: str, sketch: bool) -> dict[str, str]:
    """Tag names that stand in none of the texts."""
    names = {
        "code": "code",
        "update": "update" if sketch else "instruction",
        "answer": "updated-code",
        "before": "code-before",
        "behind": "code-behind",
    }
    number = 1
    suffix = ""
    while _met(texts, [name + suffix for name in names.values()]):
        number += 1
        suffix = f"-{number}"
    return {key: name + suffix for key, name in names.items()}


def _met(texts: Sequence[str], names: Sequence[str]) -> bool:
    """Whether any text holds any of the tags, opened or closed."""
    return any(f"<{n}>" in text or f"</{n}>" in text for n in names for text in texts)
