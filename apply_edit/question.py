"""What is asked of the model: a part of the file, the edit, and as much around it as fits."""

from __future__ import annotations

from dataclasses import dataclass

from apply_edit.errors import InputError
from apply_edit.split import split
from apply_edit.target.codec import Codec
from apply_edit.target.prompt import Prompt, body_of, build
from apply_edit.text import merge
from apply_edit.text.document import Document
from apply_edit.windowed import Part, check_length, nearest, too_long

SKETCH_CONTEXT = 1024
"""Tokens of context around each part of a sketch: every part pays for its own."""


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt for one part of a file.

    `seen` and `update` are the part's view and sketch as the tokenizer shows them; `predicted` is
    the body that is expected, where the edit is a sketch.
    """

    part: Part
    prompt: Prompt
    seen: str
    update: str | None = None
    predicted: str | None = None


@dataclass(frozen=True, slots=True)
class Asker:
    """Puts questions about one file to a model of which only the tokenizer is needed.

    `budget` is how many tokens the caller wants an answer to have (None: from its length).
    """

    codec: Codec
    window: int
    document: Document
    instruction: str | None = None
    budget: int | None = None

    def questions(self, part: Part) -> list[Question]:
        """One question, or one for every place of a sketch on a part that is too long.

        Raises `InputError` ``too-long`` and `UsageError` ``unplaced``.
        """
        try:
            return [self.question(part)]
        except InputError as error:
            if error.code != "too-long" or part.update is None:
                raise
            pieces = split(self.document, part)
            if (pieces[0].first, pieces[0].last) == (part.first, part.last):
                raise
        return [self.question(piece, SKETCH_CONTEXT) for piece in pieces]

    def question(self, part: Part, most: int | None = None) -> Question:
        """The question for a part, with at most `most` tokens of context (None: what fits).

        Raises `InputError` ``too-long`` where prompt and answer do not fit.
        """
        view, sketch = part.document.view, part.update is not None
        whole = part.document is self.document
        what = "the file" if whole else part.name
        check_length(self.codec, view, self.window, what, sketch=sketch)
        prompt = self._prompt(part)
        seen = prompt.seen + view[len(body_of(view)) :]
        update = predicted = None
        least = len(prompt.reference)
        if part.update is not None:
            update = self.codec.decode(self.codec.encode(part.update))
            predicted = body_of(merge.predict(seen, update).text)
            least = max(least, len(self.codec.encode(predicted + prompt.closing_text)))
        room = self.window - len(prompt.tokens)
        if room <= least:
            tokens = len(prompt.reference)
            frame = len(prompt.tokens) - tokens - len(prompt.update)
            raise too_long(
                what,
                view.count("\n"),
                tokens,
                frame,
                len(prompt.tokens) + least,
                self.window,
                sketch=sketch,
            )
        spare = room - (prompt.ample if self.budget is None else self.budget)
        if not whole:
            prompt = self._widest(part, prompt, spare if most is None else min(spare, most))
        return Question(part, prompt, seen, update, predicted)

    def _widest(self, part: Part, prompt: Prompt, room: int) -> Prompt:
        """The prompt with as much around the part as `room` tokens hold."""
        lines = self.document.view.split("\n")[:-1]
        limit = len(prompt.tokens) + room
        while room > 0:
            wider = self._prompt(part, *nearest(self.codec, lines, part.first, part.last, room))
            over = len(wider.tokens) - limit
            if over <= 0:
                return wider
            room -= max(over, room // 8)
        return prompt

    def _prompt(self, part: Part, before: str = "", behind: str = "") -> Prompt:
        return build(
            self.codec,
            part.document.view,
            instruction=self.instruction,
            update=part.update,
            before=before,
            behind=behind,
        )
