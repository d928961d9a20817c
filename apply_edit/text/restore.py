"""The original's own characters for all text that an edit left alone.

A tokenizer may show the model another spelling than the file's (composed accents for
decomposed ones). Three texts are composed here: the file's view, the view as `seen` by the
model, and the model's `new` text. What `new` shares with `seen` comes back as it stands in the
view; the rest stays as the model wrote it.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from apply_edit.text.lcs import Match, common

__all__ = ["Line", "kept", "restore"]

_TOKEN = re.compile(r"\w+|\n|[^\S\n]+|.")
_FORMS: tuple[Literal["NFC", "NFKC", "NFD", "NFKD"], ...] = ("NFC", "NFKC", "NFD", "NFKD")


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end; `origin` is the line of the view that it is or was made from."""

    text: str
    origin: int | None


@dataclass(frozen=True, slots=True)
class _Span:
    """`view[view_start:view_end]` is shown as `seen[seen_start:seen_end]`; `same` if unchanged."""

    view_start: int
    view_end: int
    seen_start: int
    seen_end: int
    same: bool


def restore(view: str, seen: str, new: str) -> list[Line]:
    """The lines of `new` with the view's characters for what it shares with `seen`.

    Each text is empty or ends in a line feed.
    """
    starts = [0, *accumulate(len(line) for line in _lines(view))]
    lines: list[Line] = []
    text: list[str] = []
    weight: dict[int, int] = {}
    for piece, place in _pieces(view, seen, new):
        for part in _lines(piece):
            body = part.removesuffix("\n")
            text.append(body)
            if place is not None:
                line = bisect_right(starts, place) - 1
                # Words say where a line comes from, its end says it only for want of words.
                says = 2 * len("".join(body.split())) + (body != part)
                weight[line] = weight.get(line, 0) + says
                place += len(part)
            if body != part:
                origin = (
                    max(weight, key=lambda at: (weight[at], -at)) if any(weight.values()) else None
                )
                lines.append(Line("".join(text), origin))
                text, weight = [], {}
    return lines


def kept(seen: str, new: str) -> list[Match]:
    """Runs of characters of `seen` that stand again in `new`: whole lines, then parts of lines."""
    a, b = _lines(seen), _lines(new)
    at = [0, *accumulate(map(len, a))]
    to = [0, *accumulate(map(len, b))]
    runs: list[Match] = []
    for i, j, p, q, size in _gaps(common(a, b), len(a), len(b)):
        runs += _within(seen[at[i] : at[p]], new[to[j] : to[q]], at[i], to[j])
        if size:
            runs.append((at[p], to[q], at[p + size] - at[p]))
    return runs


def _within(old: str, new: str, at: int, to: int) -> Iterator[Match]:
    """What a changed stretch keeps: words and blanks first, then parts of similar words."""
    if not old or not new:
        return
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    for i, j, p, q, size in _gaps(common(a, b), len(a), len(b)):
        left, right = "".join(a[i:p]), "".join(b[j:q])
        runs = common(left, right) if left and right else []
        # Single letters that two different words happen to share are no kept text.
        if 2 * sum(run[2] for run in runs) >= min(len(left), len(right)):
            yield from ((at + s, to + n, length) for s, n, length in runs)
        same = sum(map(len, a[p : p + size]))
        if size:
            yield at + len(left), to + len(right), same
        at, to = at + len(left) + same, to + len(right) + same


def _gaps(runs: list[Match], n: int, m: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Each stretch between runs as (i, j, p, q, size): a[i:p] against b[j:q], then the run."""
    i = j = 0
    for p, q, size in [*runs, (n, m, 0)]:
        yield i, j, p, q, size
        i, j = p + size, q + size


def _lines(text: str) -> list[str]:
    """Lines with their line feeds; nothing else ends a line."""
    parts = text.split("\n")
    last = parts.pop()
    return [part + "\n" for part in parts] + ([last] if last else [])


def _pieces(view: str, seen: str, new: str) -> Iterator[tuple[str, int | None]]:
    """`new` in pieces: the file's own text with its place in the view, or the model's (None)."""
    spans = _spans(view, seen)
    first, done = 0, 0
    for s, n, size in kept(seen, new):
        if done < n:
            yield _written(new, done, n), None
        done, end = n + size, s + size
        while first < len(spans) and spans[first].seen_end <= s:
            first += 1
        at = first
        while at < len(spans) and spans[at].seen_start < end:
            span = spans[at]
            low, high = max(s, span.seen_start), min(end, span.seen_end)
            if span.same:
                place = span.view_start + low - span.seen_start
                yield view[place : place + high - low], place
            elif (low, high) == (span.seen_start, span.seen_end):
                yield view[span.view_start : span.view_end], span.view_start
            else:  # half of what one character of the file is shown as
                yield seen[low:high], None
            at += 1
    if done < len(new):
        yield _written(new, done, len(new)), None


def _written(new: str, start: int, end: int) -> str:
    """The model's own text; a carriage return that it put before a line feed ends a line."""
    text = new[start:end].replace("\r\n", "\n")
    return text[:-1] if text.endswith("\r") and new.startswith("\n", end) else text


def _spans(view: str, seen: str) -> list[_Span]:
    """The view in order. What the tokenizer drops goes with the character that follows it."""
    spans: list[_Span] = []
    v = s = start = 0
    for text, shown, same in _shown(view, seen):
        if shown:
            if start < v and same:
                spans.append(_Span(start, v + 1, s, s + 1, False))
                spans.append(_Span(v + 1, v + len(text), s + 1, s + len(shown), True))
            else:
                spans.append(_Span(start, v + len(text), s, s + len(shown), same))
            start = v + len(text)
        v, s = v + len(text), s + len(shown)
    if start < v and spans:
        last = spans.pop()
        cut = last.seen_end - 1 if last.same else last.seen_start
        place = last.view_start + cut - last.seen_start
        spans.append(_Span(last.view_start, place, last.seen_start, cut, True))
        spans.append(_Span(place, v, cut, last.seen_end, False))
    return spans


def _shown(view: str, seen: str) -> Iterator[tuple[str, str, bool]]:
    """The view cut into (text, as it is seen, whether these are equal)."""
    if view == seen:
        yield view, seen, True
        return
    a, b = _lines(view), _lines(seen)
    if len(a) == len(b):
        for line, shown in zip(a, b, strict=True):
            if line == shown:
                yield line, shown, True
            else:
                yield from _clusters(line, shown)
        return
    for i, j, p, q, size in _gaps(common(a, b), len(a), len(b)):
        yield from _clusters("".join(a[i:p]), "".join(b[j:q]))
        same = "".join(a[p : p + size])
        yield same, same, True


def _clusters(text: str, shown: str) -> list[tuple[str, str, bool]]:
    """The smallest stretches of `text` that are shown on their own as something else."""
    for form in _FORMS:
        if unicodedata.normalize(form, text) == shown:
            cut = [(part, unicodedata.normalize(form, part)) for part in _separable(text, form)]
            if "".join(normal for _, normal in cut) == shown:
                return [(part, normal, part == normal) for part, normal in cut]
    parts: list[tuple[str, str, bool]] = []
    for i, j, p, q, size in _gaps(common(text, shown), len(text), len(shown)):
        parts += [(text[i:p], shown[j:q], False), (text[p : p + size], shown[q : q + size], True)]
    return [part for part in parts if part[0] or part[1]]


def _separable(text: str, form: Literal["NFC", "NFKC", "NFD", "NFKD"]) -> Iterator[str]:
    """`text` cut wherever normalisation does not reach over the cut (runs of ASCII stay whole)."""
    start = 0
    for end in range(1, len(text)):
        here, plain = text[end], text[end - 1].isascii()
        if here.isascii():
            if plain:
                continue
        else:
            if plain and end - start > 1:  # only the last letter of the run may compose
                yield text[start : end - 1]
                start = end - 1
            apart = unicodedata.normalize(form, text[start:end]) + unicodedata.normalize(form, here)
            if unicodedata.normalize(form, text[start : end + 1]) != apart:
                continue
            if unicodedata.combining(here):
                continue
        yield text[start:end]
        start = end
    yield text[start:]
