"""The promises of an edit, checked by other means than the tool keeps them with."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path
from random import Random

from fuzz_cases import ALL, Case, parts_of

from apply_edit.editor import Edit, Editor
from apply_edit.errors import ApplyEditError, InputError
from apply_edit.target.replay import ReplayBackend, ReplayCodec
from apply_edit.text import patch

TABLE = 60_000
"""The most cells of a table of common lines that a case is worth."""

Line = tuple[str, str]


class Broken(Exception):  # noqa: N818 - what is broken is the promise
    """A promise was not kept."""


def promise(kept: bool, what: str) -> None:
    if not kept:
        raise Broken(what)


class Composing(ReplayCodec):
    """A tokenizer that composes accents, as many do."""

    def encode(self, text: str) -> list[int]:
        return super().encode(unicodedata.normalize("NFC", text))


def check_case(case: Case, folder: Path) -> None:
    """Run the edit in this process and look at what comes out."""
    if case.window is not None:
        _check_windowed(case, folder)
        return
    path = folder / "answer"
    path.write_bytes(answer_file(case.answer))
    backend = ReplayBackend(path, raw=case.raw)
    if case.composing:
        backend._codec = Composing()
    try:
        edit = Editor(backend).edit(case.data, case.request, case.options)
    except ApplyEditError as error:
        check_refusal(case, error)
        return
    finally:
        promise(path.exists(), "the answer's file is gone")
    check_edit(case, edit)


def answer_file(lines: Sequence[str]) -> bytes:
    text = "\n".join(lines) + "\n"
    return text.encode("utf-8", "surrogatepass")


def check_refusal(case: Case, error: ApplyEditError) -> None:
    promise(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", error.code) is not None, "a code is odd")
    promise(bool(error.message.strip()), "a message is empty")
    promise(error.message.isprintable(), f"a message is not one plain line: {error.message!r}")
    promise(error.code != "not-exact", f"drafting changed the output: {error.message}")
    plain = case.junk is None and case.options.max_new_tokens is None
    known = case.request.encoding == case.file.encoding
    if case.unchanged and plain and known and not isinstance(error, InputError):
        raise Broken(f"an unchanged answer is refused: {error.code}: {error.message}")
    if error.code in case.request.allow:
        raise Broken(f"a refusal was not let through: {error.code}")


def check_edit(case: Case, edit: Edit) -> None:
    """An edit came out: content, line ends, marks, and the diff."""
    promise(edit.original == case.data, "the edit's original is not the file")
    promise(case.request.allow >= set(edit.allowed), "a problem was let through unasked")
    check_diff(case.data, edit.output)
    if case.junk is not None:
        return
    if edit.stats.finish != "stop" and set(edit.allowed) & {"truncated", "looping"}:
        return  # where it was cut is the loop's to say
    if case.unchanged:
        promise(edit.output == case.data, f"unchanged, yet not equal: {edit.output!r}")
    if case.raw and case.answer and "</updated-code" in case.answer[-1]:
        return  # it may be the frame's or the file's
    check_output(case, edit.output, _written(case))


def _written(case: Case) -> list[str]:
    """The lines of the answer as the target wrote them."""
    text = answer_file(case.answer).decode("utf-8", "surrogatepass")
    if not case.raw:
        text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    body = text.removesuffix("\n")
    old = case.file.lines
    if case.lines is not None:
        old = old[case.lines[0] - 1 : case.lines[1]]
    if case.composing:
        body = unicodedata.normalize("NFC", body)
        old = [unicodedata.normalize("NFC", line) for line in old]
    if body == "\n".join(old):
        return list(old)
    return body.split("\n") if body else []


def raw_lines(text: str, cr: bool) -> list[Line]:
    """Lines and their ends, found by a pattern."""
    ends = r"\r" if cr else r"\r?\n"
    found = re.findall(rf"(.*?)({ends}|\Z)", text, re.DOTALL)
    return [(line, end) for line, end in found if line or end]


def check_output(case: Case, output: bytes, written: list[str]) -> None:
    """The output is `written` in the file's own bytes."""
    encoding = case.request.encoding
    text = output.decode(encoding, "surrogatepass")
    if encoding == "utf-8":
        promise(text.startswith("\ufeff") == case.file.bom or not text, "the mark went or came")
        text = text.removeprefix("\ufeff") if case.file.bom else text
    cr = "\n" not in case.file.text and "\r" in case.file.text
    old, new = raw_lines(case.file.text, cr), raw_lines(text, cr)
    if case.lines is not None:
        first, last = case.lines
        head, tail = old[: first - 1], old[last:]
        promise(new[: len(head)] == head, "lines before the range changed")
        promise(not tail or new[-len(tail) :] == tail, "lines behind the range changed")
        old = old[first - 1 : last]
        new = new[len(head) : len(new) - len(tail)]
        if not written:
            promise(not new, "an empty answer left lines")
            return
    shape: Callable[[str], str] = str
    if case.composing:
        shape = _composed
    want = [line.removeprefix("\ufeff") if i == 0 else line for i, line in enumerate(written)]
    if cr:
        want = [piece for line in want for piece in line.split("\r")]
    texts = [line for line, _ in old]
    want = _ended(_ended(want, texts, shape)[::-1], texts[::-1], shape)[::-1]
    open_end = bool(old) and not old[-1][1]
    begun = 0
    for (line, _), other in zip(old, want, strict=False):
        if _bare(shape(line)) != _bare(shape(other)):
            break
        begun += 1
    while open_end and len(want) > max(begun, 1) and not want[-1]:
        want.pop()  # a new blank line at the end would be a newline at the end
    if old and new and (case.lines is None or case.lines[1] == len(case.file.lines)):
        # A file without a newline at its end keeps none, unless just its end went.
        ends = not open_end or begun == len(want) < len(old)
        promise(bool(new[-1][1]) == ends, "the last line end went or came")
    promise(
        [_bare(shape(line)) for line, _ in new] == [_bare(shape(line)) for line in want],
        f"the output is not the answer: {[line for line, _ in new]!r}, not {want!r}",
    )
    known = {end for _, end in raw_lines(case.file.text, cr) if end} or {"\n"}
    ends = {end for _, end in new if end}
    promise(ends <= known, f"line ends from nowhere: {ends - known}")
    check_untouched(old, new, shape)


def _ended(want: list[str], old: list[str], shape: Callable[[str], str]) -> list[str]:
    """`want` beginning with the blank lines of `old`, if the same line follows them in both."""
    blank = list(takewhile(lambda line: not line.strip(), want))
    known = list(takewhile(lambda line: not line.strip(), old))
    rest, stood = want[len(blank) :], old[len(known) :]
    if not rest or not stood or _bare(shape(rest[0])) != _bare(shape(stood[0])):
        return want
    return known + rest


def _bare(line: str) -> str:
    return line.rstrip("\r")


def _composed(line: str) -> str:
    return unicodedata.normalize("NFC", line)


def check_untouched(old: Sequence[Line], new: Sequence[Line], shape: Callable[[str], str]) -> None:
    """Every line that stands in all longest common subsequences has its very bytes."""
    a, b = [shape(line) for line, _ in old], [shape(line) for line, _ in new]
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head] and old[head] == new[head]:
        head += 1
    a, b = a[head:], b[head:]
    if not a or not b or len(a) * len(b) > TABLE:
        return
    up, down = _table(a, b), _table(a[::-1], b[::-1])
    length = up[len(a)][len(b)]
    times, again = Counter(a), Counter(b)
    for i, line in enumerate(a):
        if times[line] > 1 or again[line] != 1:
            continue
        without = max(up[i][j] + down[len(a) - i - 1][len(b) - j] for j in range(len(b) + 1))
        if without == length:
            continue
        j = b.index(line)
        mine, now = old[head + i], new[head + j]
        ended = mine[1] == now[1] or head + i == len(old) - 1 or head + j == len(new) - 1
        promise(mine[0] == now[0] and ended, f"an untouched line changed: {mine!r} is {now!r}")


def _table(a: Sequence[str], b: Sequence[str]) -> list[list[int]]:
    """Lengths of the longest common subsequences of all beginnings."""
    rows = [[0] * (len(b) + 1)]
    for x in a:
        above, row = rows[-1], [0]
        for j, y in enumerate(b):
            row.append(above[j] + 1 if x == y else max(above[j + 1], row[j]))
        rows.append(row)
    return rows


def check_diff(old: bytes, new: bytes) -> None:
    if old == new:
        return
    text = patch.diff(old, new, b"a b.py")
    patch.check(text, old, new)
    promise(patch.apply(text, old) == new, "the diff makes something else")


def _check_windowed(case: Case, folder: Path) -> None:
    """A file longer than the window: each part has its own answer, the rest is as it was."""
    answers = folder / "answers"
    answers.mkdir(exist_ok=True)
    for path in answers.iterdir():
        path.unlink()
    try:
        questions = case.questions()
    except ApplyEditError as error:
        (answers / "0").write_text("x\n")
        try:
            Editor(ReplayBackend(answers, window=case.window or 0)).edit(
                case.data, case.request, case.options
            )
        except ApplyEditError as again:
            promise(again.code == error.code, f"{again.code}, not {error.code}")
            check_refusal(case, again)
            return
        raise Broken(f"{error.code} was raised once and not again") from error
    for question in questions:
        size = len(question.prompt.tokens) + len(question.prompt.reference)
        promise(size <= (case.window or 0), "a prompt and its answer exceed the window")
    texts = parts_of(case, questions, Random(len(case.data)))
    for number, lines in enumerate(texts):
        (answers / f"{number:04}").write_bytes(answer_file(lines))
    try:
        edit = Editor(ReplayBackend(answers, window=case.window or 0)).edit(
            case.data, case.request, case.options
        )
    except ApplyEditError as error:
        promise(error.message.isprintable(), f"a message is not one plain line: {error.message!r}")
        promise(error.code not in ALL & case.request.allow, f"not let through: {error.code}")
        return
    check_diff(case.data, edit.output)
    if edit.stats.finish != "stop":
        return
    at = 0
    rest = edit.output
    for question in questions:
        between = case.data[at : question.part.start]
        promise(rest.startswith(between) or at > 0, "bytes before the first part changed")
        place = rest.find(between)
        promise(place >= 0, "bytes between two parts changed")
        rest = rest[place + len(between) :]
        at = question.part.end
    promise(rest.endswith(case.data[at:]), "bytes behind the last part changed")
