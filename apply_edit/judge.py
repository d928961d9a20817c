"""Whether an answer may become the file: what it holds, and what is wrong with it."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from apply_edit.answer import Answer
from apply_edit.edit import Request, lines_as_lf
from apply_edit.errors import Refusal
from apply_edit.question import Question
from apply_edit.target.codec import Codec
from apply_edit.target.prompt import body_of, read_answer
from apply_edit.text import guard
from apply_edit.text.document import Document
from apply_edit.text.edges import keep_edges


@dataclass(frozen=True, slots=True)
class View:
    """The text an answer holds, and whether it ended otherwise than at its budget."""

    text: str
    finished: bool


def view_of(codec: Codec, answer: Answer, question: Question, instruction: str | None) -> View:
    """The new view that an answer holds."""
    whole = codec.decode(answer.tokens)
    text, closed = read_answer(whole, question.prompt.closing_text)
    if not closed:
        text = text.removesuffix("\n")
    finished = closed or answer.stats.finish in ("stop", "loop")
    if text == body_of(question.seen):  # a file of one blank line has an empty body, too
        return View(question.seen, finished)
    view = text + "\n" if text else ""
    return View(keep_edges(question.seen, view, instruction), finished)


def judge(view: View, question: Question, answer: Answer, request: Request) -> list[str]:
    """The codes of an answer's problems, if all may pass. Raises `Refusal` for one that may not."""
    seen = question.seen
    problems = []
    if "\0" in view.text or view.text.count("\ufffd") > seen.count("\ufffd"):
        problems.append(
            guard.Problem(
                "garbled", "the answer holds bytes that are not text; try again or another model"
            )
        )
    problems += guard.check(
        seen,
        view.text,
        finished=view.finished,
        instruction=request.instruction,
        update=question.update,
        name=request.name,
        first_line=question.part.first,
    )
    if answer.stats.finish == "loop" and not any(p.code == "looping" for p in problems):
        # Seen while it was written and no more now: still, it is not whole.
        problems.append(
            guard.Problem("looping", "the answer repeats itself to no end; try another model")
        )
    more = {}
    if answer.stats.finish == "length":
        more["truncated"] = f" (it stopped at its budget of {answer.budget:,} tokens)"
    return _let_through(problems, request, more)


def judge_file(view: str, output: bytes, request: Request, encoding: str, split: bool) -> list[str]:
    """As `judge`, for the file of which parts were rewritten: what no part shows on its own."""
    update = None if request.update is None else lines_as_lf(request.update)
    # The parts of the sketch have been through the tokenizer, which may compose accents.
    before, after, edit = (
        unicodedata.normalize("NFC", text)
        for text in (view, Document.from_bytes(output, encoding).view, update or "")
    )
    problems = guard.check(
        before,
        after,
        finished=True,
        instruction=request.instruction,
        update=edit if update is not None else None,
        name=request.name,
    )
    # Outside a range that the caller named nothing can be lost; but it may no longer fit in, or
    # hold once more what stands around it.
    wanted = guard.CODES if split else ("duplicated", "unparsable")
    return _let_through([p for p in problems if p.code in wanted], request, {})


def _let_through(
    problems: list[guard.Problem], request: Request, more: dict[str, str]
) -> list[str]:
    for problem in problems:
        if problem.code not in request.allow:
            raise Refusal(problem.code, problem.message + more.get(problem.code, ""))
    return [problem.code for problem in problems]
