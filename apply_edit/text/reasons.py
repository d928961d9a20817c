"""Why lines may be gone when all that is known of the edit is an instruction.

The words that ask for removal, the names they take, what the other changes share with the lost
lines, and new lines in the same place. Everything else is damage.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property

from apply_edit.text.change import Change, Hunk, Loss
from apply_edit.text.comments import comment_lines
from apply_edit.text.imports import IMPORT, PACKAGE, still_imported, unused
from apply_edit.text.outline import Definition, defined_name, indent_of, outline
from apply_edit.text.wording import COMMENTS, REMOVE, REMOVES, REMOVES_CODE, RESHAPES

_ENDS = re.compile(r"^(?:return|raise|yield|throw)\b")
_CLOSES = re.compile(r"^(?:return|raise|yield|throw|pass|break|continue|end|fi|done|[)\]}])")
_WORD = re.compile(r"[^\W\d]\w{2,}")
_NEAR = 3  # lines, blanks aside, within which a change is beside another
LARGE = 8  # lines gone in one piece from which the size alone is a sign
_RARE = 3  # lines of the original in which a telling name occurs at most


def quoted(line: str) -> str:
    return repr(line if len(line) <= 60 else line[:57] + "...")


def _part(definition: Definition, change: Change, low: int) -> bool:
    """Whether a definition is only part of a statement that is gone from line `low` on."""
    for line in range(definition.start - 1, low - 1, -1):
        text = change.old_text[line]
        if text.strip() and indent_of(text) < definition.indent:
            return defined_name(text) is None
    return False


class Reasons:
    """Judges the hunks of a change by an instruction alone."""

    def __init__(self, change: Change, instruction: str) -> None:
        self.change = change
        self.instruction = instruction
        self.removes = REMOVES.search(instruction) is not None
        self.removes_code = REMOVES_CODE.search(instruction) is not None
        self.reshapes = RESHAPES.search(instruction) is not None
        self.says_comments = COMMENTS.search(instruction) is not None
        self.words = {w.lower() for w in _WORD.findall(instruction)}
        self._outline = outline(change.old_text)
        self._comments = comment_lines(change.old_text)
        # Words that ask for dead code to go excuse nothing else once they name their object.
        named = any(len(d.name) > 2 and d.name.lower() in self.words for d in self._outline)
        if named or re.search(r"`[^`]+`|(?<!\w)['\"][\w.]+['\"]", instruction):
            self.removes_code = False

    @cached_property
    def _frequency(self) -> Counter[str]:
        return Counter(w for line in self.change.old for w in set(_WORD.findall(line)))

    @cached_property
    def _written(self) -> Counter[str]:
        """Words of the whole output."""
        return Counter(w for line in self.change.new for w in _WORD.findall(line))

    def _is_comment(self, index: int) -> bool:
        return self.change.old_at[index] in self._comments

    def _named_lines(self, indices: Iterable[int]) -> list[str]:
        """The lines that are code, imports aside."""
        return [
            self.change.old[i]
            for i in indices
            if not self._is_comment(i) and not IMPORT.match(self.change.old[i])
        ]

    def told(self, hunk: Hunk) -> bool:
        """Whether the instruction uses a telling name of the lost lines."""
        words = {w for x in self._named_lines(range(hunk.a, hunk.b)) for w in _WORD.findall(x)}
        return any(self._frequency[w] <= _RARE and w.lower() in self.words for w in words)

    def related(self, hunk: Hunk) -> bool:
        """Whether the lost lines share a telling name with the instruction or another change."""
        change = self.change
        if self.told(hunk):
            return True
        lines = self._named_lines(range(hunk.a, hunk.b))
        own = {w for line in lines for w in _WORD.findall(line)}
        others = {
            w
            for h in change.hunks
            if h != hunk
            for line in change.old[h.a : h.b] + change.new[h.c : h.d]
            for w in _WORD.findall(line)
        }
        if any(self._frequency[w] <= _RARE for w in own & others):
            return True
        over = {w for w in own & others if not self._written[w] and len(w) > 3}
        return bool(lines) and all(over & set(_WORD.findall(line)) for line in lines)

    def mentioned(self, name: str) -> bool:
        """Whether the instruction asks that the name go, or be another one."""
        name = re.escape(name.split(".")[-1])
        said = re.search(rf"(?<!\w){name}(?!\w)", self.instruction, re.IGNORECASE)
        if said is None:
            return False
        if self.reshapes or not self.instruction.isascii():
            return True
        gone = rf"\b{REMOVE}\b(?:(?!\b(?:from|in|of|inside|within)\b)[^.;]){{0,80}}(?<!\w){name}"
        renamed = rf"\b(?:renam\w*|call\w*)\b[^.;]{{0,60}}(?<!\w){name}"
        return re.search(f"{gone}|{renamed}", self.instruction, re.IGNORECASE) is not None

    def beside(self, hunk: Hunk) -> bool:
        """Whether a change that puts in lines lies next to the hunk."""
        return any(
            h.d > h.c and (0 <= hunk.a - h.b <= _NEAR or 0 <= h.a - hunk.b <= _NEAR)
            for h in self.change.hunks
            if h != hunk
        )

    def losses(self) -> Iterator[Loss]:
        """Each hunk judged by itself: definitions, imports, ends, comments, size."""
        change = self.change
        taken = sum(h.b - h.a for h in change.hunks)
        if taken > 0.9 * len(change.old) > 2 * LARGE and not (self.reshapes or self.removes_code):
            yield Loss(1, taken, "nearly all of the file")
            return
        definitions = self._gone_definitions()
        for hunk in change.hunks:
            gone = change.lost(hunk)
            if not gone:
                continue
            low, high = change.old_at[hunk.a], change.old_at[hunk.b - 1]
            named = [d for d in definitions if low <= d.start <= high and not _part(d, change, low)]
            loss = next(
                (
                    Loss(d.start + 1, d.end - d.start, f"the definition of '{d.name}'")
                    for d in named
                    if not self._definition_may_go(d, hunk, len(named))
                ),
                None,
            )
            loss = loss or self._plain(hunk, gone)
            if loss is not None:
                yield loss

    def _gone_definitions(self) -> list[Definition]:
        change = self.change
        new = Counter(name for line in change.new if (name := defined_name(line)))
        old = Counter(d.name for d in self._outline)
        cut = {
            change.old_at[i]
            for h in change.hunks
            for i in range(h.a, h.b)
            if h.c == h.d or new[defined_name(change.old[i]) or ""] == 0
        }
        spare = {name: old[name] - new[name] for name in old}
        gone = []
        for definition in self._outline:
            moved = change.old_text[definition.start].strip() in change.inserted
            if definition.start in cut and spare[definition.name] > 0 and not moved:
                spare[definition.name] -= 1
                gone.append(definition)
        return gone

    def _definition_may_go(self, definition: Definition, hunk: Hunk, together: int) -> bool:
        if self.mentioned(definition.name):
            return True
        put_in = self.change.new[hunk.c : hunk.d]
        if sum(1 for line in put_in if defined_name(line)) >= together:
            return True  # renamed, or written anew
        if 2 * len(put_in) >= hunk.b - hunk.a:
            return True
        if len(definition.name) > 2 and self._still_used(definition):
            return False
        if self.removes_code or self._callers_changed(definition):
            return True
        return self.reshapes and (self.beside(hunk) or bool(put_in))

    @cached_property
    def _uses(self) -> dict[str, list[int]]:
        """Per word of the original, the lines that hold it."""
        found: dict[str, list[int]] = {}
        for index, line in enumerate(self.change.old_text):
            for word in set(re.findall(r"\w+", line)):
                found.setdefault(word, []).append(index)
        return found

    @cached_property
    def _words_now(self) -> set[str]:
        return {word for line in self.change.new for word in re.findall(r"\w+", line)}

    @cached_property
    def _taken(self) -> set[int]:
        """Numbers of the original's lines that the change takes away."""
        change = self.change
        return {change.old_at[i] for h in change.hunks for i in range(h.a, h.b)}

    def _still_used(self, definition: Definition) -> bool:
        """Whether the output uses the name, as the original did outside the definition."""
        word = (re.findall(r"\w+", definition.name) or [""])[-1]
        inside = range(definition.start, definition.end)
        return word in self._words_now and any(i not in inside for i in self._uses.get(word, ()))

    def _callers_changed(self, definition: Definition) -> bool:
        """Whether another change takes away a use of the name."""
        word = (re.findall(r"\w+", definition.name) or [""])[-1]
        inside = range(definition.lead, definition.end)
        return any(
            i in self._taken and i not in inside and i not in self._comments
            for i in self._uses.get(word, ())
        )

    def _plain(self, hunk: Hunk, gone: list[int]) -> Loss | None:
        """What lines are lost without reason, definitions aside."""
        change = self.change
        lines = [change.old[i] for i in gone]
        first = change.old_at[gone[0]] + 1
        loss = Loss(first, len(gone), quoted(lines[0]))
        ends = hunk.b == len(change.old)
        if ends and self._cut(hunk):
            return Loss(first, len(gone), loss.what, tail=True)
        if hunk.d > hunk.c:
            return loss if self._shrunk(hunk, len(gone)) else None
        kept_imports = [
            (i, line)
            for i, line in zip(gone, lines, strict=True)
            if PACKAGE.match(line) or (IMPORT.match(line) and not unused([line], change))
        ]
        if kept_imports and not (self.removes and self.told(hunk)):
            at, line = kept_imports[0]
            used = not IMPORT.match(line) or still_imported(line, change)
            if used or not self.removes:
                return Loss(change.old_at[at] + 1, len(gone), quoted(line))
        if all(self._is_comment(i) for i in gone):
            asked = self.says_comments and (self.removes or self.reshapes)
            if asked or self.removes_code or self.beside(hunk):
                return None
            return Loss(first, len(gone), f"the comment {loss.what}")
        if hunk.a == 0 and any(self._is_comment(i) for i in gone) and not self.removes_code:
            return loss
        if all(IMPORT.match(line) for line in lines):
            return None
        return None if self._excused(hunk, len(gone), ends) else loss

    def _excused(self, hunk: Hunk, count: int, ends: bool) -> bool:
        """Whether lost statements have a reason."""
        if self.removes_code:
            return True
        small = count < LARGE
        if len(self.change.hunks) == 1 and small and not ends and hunk.a > 0:
            return True  # all that changed: the edit itself
        beside, related = self.beside(hunk), self.related(hunk)
        if small:
            return beside or related or self.reshapes or self.removes
        return related and (beside or self.reshapes or self.removes)

    def _shrunk(self, hunk: Hunk, count: int) -> bool:
        """Whether few new lines stand for very many old ones."""
        put_in = hunk.d - hunk.c
        large = count - put_in > max(2 * LARGE, len(self.change.old) // 3) and put_in * 6 < count
        return large and not (self.removes or self.reshapes or self.related(hunk))

    def _cut(self, hunk: Hunk) -> bool:
        """Whether the file's end is gone, or the output stops in the middle of a line."""
        change = self.change
        last, old = change.new[-1], change.old[hunk.a : hunk.b]
        if hunk.d == hunk.c:
            if _ENDS.match(change.old[-1]) and not _CLOSES.match(last) and not self.removes_code:
                return True
            excused = self.removes and len(old) < LARGE and self.told(hunk)
            return not (self.removes_code or excused)
        begun = any(line.startswith(last) and line != last for line in old)
        fewer = hunk.d - hunk.c <= len(old) and len(old) > 1
        unended = _ENDS.match(change.old[-1]) and not _CLOSES.match(last) and not self.reshapes
        if unended and 2 * (hunk.d - hunk.c) < len(old) and not self.removes_code:
            return True
        return begun and fewer and last not in change.old
