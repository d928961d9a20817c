"""The file as bytes and as the text that the model sees, and the way back.

`view` holds no byte order mark and ends every line in a line feed; how each line really ended,
the mark and the encoding are kept aside. Only ``\\n``, ``\\r\\n`` and, in a file without any line
feed, ``\\r`` end a line: form feeds, U+0085 and U+2028 stand inside lines, as they do for git.
"""

from __future__ import annotations

import codecs
from collections import Counter
from dataclasses import dataclass

from apply_edit.errors import InputError
from apply_edit.text.restore import Line, restore

__all__ = ["Document"]

_MARKS = {
    "utf-8": ((codecs.BOM_UTF8, "utf-8"),),
    "utf-16": ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")),
    "utf-16-le": ((codecs.BOM_UTF16_LE, "utf-16-le"),),
    "utf-16-be": ((codecs.BOM_UTF16_BE, "utf-16-be"),),
    "utf-32": ((codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be")),
    "utf-32-le": ((codecs.BOM_UTF32_LE, "utf-32-le"),),
    "utf-32-be": ((codecs.BOM_UTF32_BE, "utf-32-be"),),
    "gb18030": ((b"\x84\x31\x95\x33", "gb18030"),),
}
_WIDE = tuple(mark for name in ("utf-32", "utf-16") for mark in _MARKS[name])
_BINARY = (b"%PDF-", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"PK\x03\x04", b"\x89PNG", b"\xff\xd8\xff")


@dataclass(frozen=True, slots=True)
class Document:
    """A text file, taken apart so that `restore(view)` gives back its very bytes.

    `endings` has one item per line of `view` ("" where the file ends without one); `encoding`
    is a codec that writes no mark of its own; `ending` is for lines with no neighbour to follow.

    >>> document = Document.from_bytes(b"one\\r\\ntwo")
    >>> document.view
    'one\\ntwo\\n'
    >>> document.restore("one\\n2\\n3\\n")
    b'one\\r\\n2\\r\\n3'
    """

    view: str
    endings: tuple[str, ...]
    encoding: str = "utf-8"
    mark: bytes = b""
    ending: str = "\n"

    @classmethod
    def from_bytes(cls, data: bytes, encoding: str = "utf-8") -> Document:
        """Take `data` apart; no byte is ever replaced.

        Raises InputError `unknown-encoding`, `binary`, `not-utf8` (with the offset) or
        `encoding` (the bytes are not the named encoding's, or would not come back the same).
        """
        name = _codec(encoding)
        mark, name = _mark(data, name)
        text = _decode(data[len(mark) :], name, len(mark))
        lines, endings = _split(text)
        view = "".join(line + "\n" for line in lines)
        return cls(view, endings, name, mark, _dominant(endings))

    @property
    def data(self) -> bytes:
        """The bytes that this document was made from."""
        return self.mark + self._encode(
            "".join(map("".join, zip(self.view.split("\n"), self.endings, strict=False)))
        )

    def restore(self, new_view: str, seen: str | None = None) -> bytes:
        """The bytes for `new_view`, the original's own wherever the text is unchanged.

        `seen` is the view as the model was shown it, if that differs (its tokenizer may compose
        accents): what `new_view` shares with `seen` comes back as it stands in the file. A new
        line ends as the line before it does. A missing newline at the end of the file stays
        missing whatever `new_view` ends in, unless the last line left is an old one that had one;
        and none goes missing.

        Raises InputError `encoding` for a character that the file's encoding lacks.
        """
        seen = self.view if seen is None else seen
        if new_view.startswith("\ufeff") and not seen.startswith("\ufeff"):
            new_view = new_view[1:]  # the mark is kept aside, and must not be doubled
        if "\r\n" not in seen:
            new_view = new_view.replace("\r\n", "\n")
        seen, new = _closed(seen), _closed(new_view)
        known = {ending for ending in self.endings if ending}
        if seen == self.view and len(known) < 2:
            lines = [Line(text, None) for text in new.split("\n")[:-1]]
        else:
            lines = restore(self.view, seen, new)
        return self.mark + self._encode(self._join(lines))

    def slice(self, first: int, last: int) -> tuple[bytes, Document, bytes]:
        """The bytes before lines `first` to `last`, these lines, and the bytes after them.

        Lines count from 1, both ends included. The file is unchanged but for these lines when
        ``before + middle.restore(...) + after`` is written.

        Raises InputError `lines` when there are no such lines.
        """
        if not 1 <= first <= last <= len(self.endings):
            count = len(self.endings)
            has = "no lines" if not count else "1 line" if count == 1 else f"{count} lines"
            raise InputError(
                "lines", f"lines {first}:{last} cannot be taken from a file that has {has}"
            )
        texts = self.view.split("\n")[:-1]
        whole = [text + end for text, end in zip(texts, self.endings, strict=True)]
        head, body = whole[: first - 1], texts[first - 1 : last]
        near = self.endings[first - 2] if first > 1 else next(iter(self.endings[last:]), "")
        middle = Document(
            "".join(text + "\n" for text in body),
            self.endings[first - 1 : last],
            self.encoding,
            ending=near or self.ending,
        )
        before = self.mark + self._encode("".join(head))
        after = self._encode("".join(whole[last:]))
        if before + middle.data + after != self.data:
            raise InputError(
                "encoding",
                f"lines of a file in {self.encoding} cannot be rewritten alone;"
                " convert it to UTF-8 or leave out --lines",
            )
        return before, middle, after

    def _join(self, lines: list[Line]) -> str:
        """The text with an end for every line: its own, else the one before, else the next."""
        ends = [self.endings[line.origin] if line.origin is not None else "" for line in lines]
        known = {end for end in self.endings if end}
        default = known.pop() if len(known) == 1 else self.ending
        near = next((end for end in ends if end), default)
        parts = []
        for line, end in zip(lines, ends, strict=True):
            near = end or near
            parts += [line.text, near]
        if parts and self.endings and not self.endings[-1]:
            # A new blank line at the end would be a newline there, which this file does not have.
            kept = 0
            for line, text in zip(lines, self.view.split("\n")[:-1], strict=False):
                if line.text != text:
                    break
                kept += 1
            while len(parts) > 2 * max(kept, 1) and not parts[-2]:
                del parts[-2:]
            # Where only the end went, the last line left is an old one, and keeps its newline.
            if len(parts) > 2 * kept or kept == len(self.endings):
                parts.pop()
        return "".join(parts)

    def _encode(self, text: str) -> bytes:
        try:
            data = text.encode(self.encoding)
            same = self.encoding == "utf-8" or data.decode(self.encoding) == text
        except UnicodeError as error:
            at = getattr(error, "start", 0)
        else:
            if same:
                return data
            back = data.decode(self.encoding)
            at = next((i for i, (a, b) in enumerate(zip(text, back, strict=False)) if a != b), 0)
        line = text.count("\n", 0, at) + 1
        raise InputError(
            "encoding",
            f"line {line} of the result holds U+{ord(text[at]):04X}, which {self.encoding} cannot"
            " express; convert the file to UTF-8 first or ask for an edit without it",
        )


def _codec(encoding: str) -> str:
    """The canonical name of a text codec, less the variants that write a mark themselves."""
    try:
        info = codecs.lookup(encoding)
    except (LookupError, ValueError, UnicodeError):
        info = None
    if info is None or not getattr(info, "_is_text_encoding", True):
        name = encoding.encode("ascii", "backslashreplace").decode()
        raise InputError(
            "unknown-encoding",
            f"no text encoding is named {name!r}; name one such as utf-8, latin-1 or utf-16",
        )
    return "utf-8" if info.name == "utf-8-sig" else info.name


def _mark(data: bytes, name: str) -> tuple[bytes, str]:
    """The byte order mark that `data` begins with, and the codec that reads what follows."""
    for mark, exact in _MARKS.get(name, ()):
        if data.startswith(mark):
            return mark, exact
    if name in ("utf-16", "utf-32"):
        if not data:
            return b"", f"{name}-le"
        raise InputError(
            "encoding",
            f"the file has no byte order mark; name --encoding {name}-le or {name}-be",
        )
    return b"", name


def _decode(data: bytes, name: str, skipped: int) -> str:
    if name == "utf-8" and not skipped:
        for mark, exact in _WIDE:
            if data.startswith(mark):
                kind = exact[:6]
                raise InputError(
                    "not-utf8",
                    f"byte 0 begins a {kind.upper()} byte order mark; say --encoding {kind}",
                )
    wide = name.startswith(("utf-16", "utf-32"))
    if not wide and (at := data.find(b"\0")) >= 0:
        raise _binary(f"byte {at + skipped} is NUL")
    if data.startswith(_BINARY) and not data.isascii():
        raise _binary("it begins like an archive, image or PDF file")
    try:
        text = data.decode(name)
        back = data if name == "utf-8" else text.encode(name)
    except UnicodeError as error:
        at = getattr(error, "start", 0) if isinstance(error, UnicodeDecodeError) else 0
        raise _undecodable(name, at + skipped) from None
    if back != data:
        differ = (i for i, (a, b) in enumerate(zip(data, back, strict=False)) if a != b)
        at = next(differ, min(len(data), len(back)))
        raise InputError(
            "encoding",
            f"byte {at + skipped} would not come back the same from {name}; name the file's"
            " own encoding with --encoding",
        )
    if (at := text.find("\0")) >= 0:
        raise _binary(f"character {at} is NUL")
    return text


def _binary(why: str) -> InputError:
    return InputError("binary", f"the file is not text ({why}); name a text file")


def _undecodable(name: str, at: int) -> InputError:
    if name == "utf-8":
        return InputError(
            "not-utf8", f"byte {at} is not UTF-8; name the file's encoding with --encoding"
        )
    return InputError(
        "encoding", f"byte {at} is not {name}; name the file's own encoding with --encoding"
    )


def _split(text: str) -> tuple[list[str], tuple[str, ...]]:
    """Lines without their ends, and these ends."""
    if "\n" not in text and "\r" in text:
        lines = text.split("\r")
        ends = ["\r"] * (len(lines) - 1)
    else:
        lines = text.split("\n")
        ends = ["\r\n" if line.endswith("\r") else "\n" for line in lines[:-1]]
        lines[:-1] = [line.removesuffix("\r") for line in lines[:-1]]
    if lines[-1]:
        ends.append("")
    else:
        lines.pop()
    return lines, tuple(ends)


def _dominant(endings: tuple[str, ...]) -> str:
    counts = Counter(ending for ending in endings if ending)
    return max(counts, key=lambda ending: counts[ending]) if counts else "\n"


def _closed(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
