"""What scripts/fuzz.py is made of: files that look like code and break tools, edits, damage."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from random import Random

ODD = (
    "cafe\u0301",
    "\u212b",
    "\u1112\u1161\u11ab",
    "\ufb01x",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "z\u0323\u0307\u0301",
    "\x0c",
    "\x0b",
    "\x85",
    "\u2028",
    "\u2029",
    "\x1c",
    "\u00a0",
    "\u3000",
    "\u200b",
    "\ufeff",
    "\ufffd",
    "\t",
    "  ",
    "<|im_end|>",
    "<|endoftext|>",
    "</s>",
    "[INST]",
    "</updated-code>",
    "<code>",
    "</code>",
    "&lt;&amp;",
    "<<<<<<< HEAD",
    "=======",
    "```",
    "\\ No newline at end of file",
    "@@ -1 +1 @@",
    "--- a",
    "\x1b[31m",
    "\x7f",
    "\r",
)
COMMENTS = {
    "py": "# {}",
    "js": "// {}",
    "go": "// {}",
    "c": "/* {} */",
    "html": "<!-- {} -->",
    "md": "<!-- {} -->",
    "yml": "# {}",
    "sql": "-- {}",
    "lisp": ";; {}",
    "csv": "# {}",
    "txt": "... {}",
}
BLOCKS = {
    "py": "def {w}_{n}({v}, b={m}):\n    if {v} > {m}:\n        return {v}\n    return b\n\n",
    "js": "export function {w}{n}({v}) {{\n  const x = {m};\n  return {v} + x;\n}}\n\n",
    "go": "func {w}{n}({v} int) int {{\n\tx := {m}\n\treturn {v} + x\n}}\n\n",
    "c": "static int {w}_{n}(int {v})\n{{\n\tint x = {m};\n\treturn {v} + x;\n}}\n\n",
    "html": '<div id="{w}{n}">\n  <p class="{v}">{m}</p>\n</div>\n',
    "md": "## {w} {n}\n\nSome {v} text  \nwith {m} breaks.\n\n```\ncode {n}\n```\n\n",
    "yml": "{w}_{n}:\n  {v}: {m}\n  list:\n    - {n}\n    - {m}\n",
    "sql": "CREATE TABLE {w}_{n} (\n    {v} INTEGER,\n    x TEXT DEFAULT '{m}'\n);\n\n",
    "lisp": "(defun {w}-{n} ({v})\n  (let ((x {m}))\n    (+ {v} x)))\n\n",
    "csv": "{n},{w},{v},{m}\n{m},{w},{v},{n}\n",
    "txt": "{w} {n}\n{v}\n\n{v} {m}\n",
}
WORDS = ("load", "save", "get", "put", "item", "total", "user", "name", "a", "run", "parse")
ENDINGS = ("\n", "\r\n", "\r")


@dataclass(frozen=True)
class File:
    """Lines without their ends, these ends, and what stands before the first."""

    kind: str
    lines: list[str]
    ends: list[str]
    bom: bool = False
    encoding: str = "utf-8"

    @property
    def text(self) -> str:
        return "".join(a + b for a, b in zip(self.lines, self.ends, strict=True))

    @property
    def data(self) -> bytes:
        mark = "\ufeff" if self.bom else ""
        return (mark + self.text).encode(self.encoding, "surrogatepass")


def block(rng: Random, kind: str) -> list[str]:
    """Some lines of a language."""
    text = BLOCKS[kind].format(
        w=rng.choice(WORDS), v=rng.choice(WORDS), n=rng.randrange(100), m=rng.randrange(9)
    )
    return text.split("\n")[:-1]


def spoil_line(rng: Random, line: str) -> str:
    """A line with something odd in it."""
    at = rng.randrange(len(line) + 1)
    odd = rng.choice(ODD) * rng.choice((1, 1, 1, 3))
    return line[:at] + odd + line[at:] + rng.choice(("", "", " ", "\t", "  "))


def file(rng: Random, blocks: int | None = None) -> File:
    """A text file of some language with odd bytes here and there."""
    kind = rng.choice(list(BLOCKS))
    lines: list[str] = []
    for _ in range(rng.choice((0, 1, 1, 2, 3, 5, 8, 20)) if blocks is None else blocks):
        lines += block(rng, kind) if rng.random() < 0.9 else rng.choices(("", "x", "}", " "), k=2)
    share = rng.choice((0, 0, 0.02, 0.1, 0.6))
    lines = [spoil_line(rng, line) if rng.random() < share else line for line in lines]
    if rng.random() < 0.03:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(("x", "e\u0301 ", "ab, ")) * 3000)
    if rng.random() < 0.1:
        lines += [""] * rng.randrange(1, 4)
    style = rng.choice(("\n", "\n", "\n", "\n", "\r\n", "\r\n", "\r", "mixed", "odd one"))
    if style == "mixed":
        ends = [rng.choice(("\n", "\r\n")) for _ in lines]
    elif style == "odd one":
        ends = ["\n"] * len(lines)
        if lines:
            ends[rng.randrange(len(lines))] = "\r\n"
    else:
        ends = [style] * len(lines)
    if style == "\r":
        lines = [line.replace("\r", "").replace("\n", "") for line in lines]
    elif style == "\r\n" or "\r\n" in ends:
        # A carriage return at the end of a line that ends in a line feed is that line's end.
        lines = [line.rstrip("\r") for line in lines]
    else:
        lines = [line.rstrip("\r") for line in lines]
    if lines and rng.random() < 0.3 and lines[-1]:
        ends[-1] = ""
    if style != "\r" and not any("\n" in end for end in ends):
        lines = [line.replace("\r", "") for line in lines]
    if lines:
        lines[0] = lines[0].lstrip("\ufeff")
    encoding = "utf-8"
    if rng.random() < 0.05:
        encoding = rng.choice(("utf-16-le", "utf-16-be", "latin-1", "gb18030", "utf-32-le"))
        if encoding == "latin-1":
            lines = [line.encode("latin-1", "replace").decode("latin-1") for line in lines]
    bom = rng.random() < 0.1 and encoding == "utf-8"
    return File(kind, lines, ends, bom, encoding)


def junk(rng: Random) -> bytes:
    """Bytes that are hardly text."""
    some = file(rng, rng.randrange(3)).data
    at = rng.randrange(len(some) + 1)
    piece = rng.choice(
        (b"\xff", b"\x00", b"\xc3", b"\xed\xa0\x80", b"\xfe\xff", b"\xff\xfe\x00\x00", b"\x80" * 9)
    )
    return rng.choice((some[:at] + piece + some[at:], rng.randbytes(rng.randrange(60)), piece))


def change(rng: Random, kind: str, lines: list[str]) -> list[str]:
    """A good edit: some lines put in, taken out or changed in part."""
    new = list(lines)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(new) + 1)
        what = rng.random()
        if what < 0.3:
            new[at:at] = block(rng, kind)[: rng.randrange(1, 6)]
        elif what < 0.45:
            del new[at : at + rng.randrange(1, 4)]
        elif at < len(new):
            words = new[at].split(" ")
            words[rng.randrange(len(words))] = rng.choice((*WORDS, "", "e\u0301", "7"))
            new[at] = " ".join(words)
    return new


def sketch(rng: Random, kind: str, old: list[str], new: list[str]) -> str:
    """The edit as somebody may write it down: pieces of the new text between marker lines."""
    marker = COMMENTS[kind].format("... existing code ...")
    changed = [i for i, line in enumerate(new) if i >= len(old) or line != old[i]][:400]
    rows: list[str] = []
    at = 0
    for spot in sorted(rng.sample(changed, min(len(changed), rng.choice((1, 1, 2, 3))))):
        low, high = max(at, spot - rng.randrange(1, 4)), min(len(new), spot + rng.randrange(1, 5))
        if low > at and rng.random() < 0.9:
            rows.append(rng.choice(("", "", "    ")) + marker)
        rows += new[low:high]
        at = max(high, at)
    if at < len(new) and rng.random() < 0.9:
        rows.append(marker)
    if rng.random() < 0.1:
        rows = rng.sample(rows, len(rows))
    if rng.random() < 0.05:
        rows = [marker] * rng.randrange(3)
    return rng.choice(("\n", "\n", "\n", "\r\n")).join(rows) + rng.choice(("\n", "\n", ""))


def _truncated(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    return lines[: rng.randrange(len(lines) + 1)]


def _elided(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    at = rng.randrange(len(lines) + 1)
    mark = rng.choice(("# ... existing code ...", "// rest unchanged", "...", "<!-- … -->"))
    return [*lines[:at], mark, *lines[at + rng.randrange(6) :]]


def _fenced(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    return [rng.choice(("```python", "```", "Here is the code:")), *lines, "```"]


def _looping(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    at = rng.randrange(len(lines) + 1)
    return [*lines[:at], *(lines[max(0, at - 2) : at] or ["x"]) * rng.choice((9, 60, 200))]


def _losing(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    at = rng.randrange(len(lines) + 1)
    return lines[:at] + lines[at + rng.randrange(1, 12) :]


def _twice(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    at = rng.randrange(len(lines) + 1)
    return rng.choice((lines * 2, lines[:at] + lines[max(0, at - 6) :]))


def _swapped(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    if len(lines) < 2:
        return lines
    at = rng.randrange(len(lines) - 1)
    return [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]


def _normalised(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    form = rng.choice(("NFC", "NFD", "NFKC"))
    return [unicodedata.normalize(form, line).replace("\n", "") for line in lines]  # type: ignore[arg-type]


def _stripped(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    return [line.rstrip() for line in lines]


def _indented(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    at = rng.randrange(len(lines) + 1)
    return [
        *lines[:at],
        *("  " + line for line in lines[at : at + rng.randrange(1, 9)]),
        *lines[at + 9 :],
    ]


def _tabbed(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    return [line.replace("    ", "\t") for line in lines]


def _blank(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    return rng.choice(([*lines, ""], ["", *lines], [*lines, "", ""], [x for x in lines if x]))


def _marked(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    return ["\ufeff" + lines[0], *lines[1:]] if lines else lines


def _nothing(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    return []


def _noise(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    new = list(lines) or [""]
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(new))
        new[at] = spoil_line(rng, new[at]).replace("\n", "")
    return new


def _none(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    return lines


def _unchanged(rng: Random, lines: list[str], old: list[str]) -> list[str]:
    return list(old)


DAMAGE = (
    _none,
    _none,
    _none,
    _unchanged,
    _unchanged,
    _truncated,
    _elided,
    _fenced,
    _looping,
    _losing,
    _twice,
    _swapped,
    _normalised,
    _stripped,
    _indented,
    _tabbed,
    _blank,
    _marked,
    _nothing,
    _noise,
    _noise,
)
