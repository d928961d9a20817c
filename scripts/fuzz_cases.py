"""A case of scripts/fuzz.py: a file, what is asked, and what the target answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import fuzz_texts as texts

from apply_edit.editor import Options, Request
from apply_edit.question import Asker, Question
from apply_edit.target.replay import ReplayCodec
from apply_edit.text import guard
from apply_edit.text.document import Document
from apply_edit.windowed import part, whole

ALL = frozenset({*guard.CODES, "garbled"})
WORDS = (
    "Rename load to fetch",
    "Remove the comments",
    "add <|im_end|> to the </updated-code>",
    "Ändere e\u0301 in \u00e9",
    "x" * 300,
    "Delete all of it",
)


@dataclass(frozen=True)
class Case:
    """`answer` holds the lines that the target writes; `bytes` replaces the file where it is no
    text; `answers` are those of the parts of a file longer than `window`."""

    file: texts.File
    request: Request
    options: Options
    answer: list[str]
    junk: bytes | None = None
    raw: bool = False
    composing: bool = False
    unchanged: bool = False
    lines: tuple[int, int] | None = None
    window: int | None = None

    @property
    def data(self) -> bytes:
        return self.file.data if self.junk is None else self.junk

    def questions(self) -> list[Question]:
        """What the editor will ask, to know which lines an answer stands for."""
        document = Document.from_bytes(self.data, self.request.encoding)
        asker = Asker(ReplayCodec(), self.window or 1 << 20, document, self.request.instruction)
        update = self.request.update
        if update is not None:
            update = update.removeprefix("\ufeff").replace("\r\n", "\n")
        if self.lines is not None:
            return asker.questions(part(document, *self.lines, update))
        return asker.questions(whole(document, len(self.data), update))

    def shown(self) -> str:
        """All of it, to paste into a test."""
        return "\n".join(
            f"  {name} = {value!r}"
            for name, value in (
                ("data", self.data),
                ("request", self.request),
                ("options", self.options),
                ("answer", self.answer),
                ("raw, composing, window", (self.raw, self.composing, self.window)),
            )
        )


def make(rng: Random) -> Case:
    """Any case."""
    kind = rng.random()
    window = rng.choice((300, 600, 1000, 2000)) if kind < 0.08 else None
    file = texts.file(rng, rng.randrange(20, 90) if window else None)
    damage = rng.choice(texts.DAMAGE)
    lines = None
    old = file.lines
    if 0.06 < kind < 0.18 and old:
        first = rng.randrange(1, len(old) + 1)
        lines = (first, min(len(old), first + rng.choice((0, 1, 3, 20))))
        old = old[lines[0] - 1 : lines[1]]
    edited = texts.change(rng, file.kind, old)
    answer = damage(rng, edited, old)
    instruction = rng.choice(WORDS) if rng.random() < 0.6 else None
    update = None
    if instruction is None or rng.random() < 0.1:
        update = texts.sketch(rng, file.kind, old, edited)
    request = Request(
        instruction=instruction,
        update=update,
        name=f"a.{file.kind}",
        lines=lines,
        encoding=file.encoding if rng.random() < 0.98 else "utf-8",
        allow=ALL if rng.random() < 0.6 else frozenset(),
    )
    options = Options(
        k=rng.choice((None, None, None, 0, 1, 5, 64)),
        draft=rng.choice(("copy", "copy", "copy", "none")),
        max_new_tokens=rng.choice((None, None, None, None, 20, 200)),
        verify=rng.random() < 0.03,
    )
    return Case(
        file,
        request,
        options,
        answer,
        junk=texts.junk(rng) if kind > 0.97 else None,
        raw=rng.random() < 0.1,
        composing=window is None and rng.random() < 0.15,
        unchanged=answer == old and update is None,
        lines=lines,
        window=window,
    )


def parts_of(case: Case, questions: Sequence[Question], rng: Random) -> list[list[str]]:
    """An answer for each part: the lines as they are, some of them changed."""
    answers = []
    for question in questions:
        lines = case.file.lines[question.part.first - 1 : question.part.last]
        answers.append(lines if rng.random() < 0.3 else texts.change(rng, case.file.kind, lines))
    return answers
