"""Texts, bytes and file names that break tools: what the properties of text/ are drawn from."""

from __future__ import annotations

from hypothesis import strategies as st

ENDS = ("\n", "\r\n", "\r", "\n\n", "\r\r\n", "")
ODD = (
    "\f",
    "\v",
    "\x85",
    "\u2028",
    "\u2029",
    "\x1c",
    "\t",
    "  ",
    "cafe\u0301",
    "caf\u00e9",
    "\u212b",
    "\u00c5",
    "\ufb01",
    "\u1112\u1161\u11ab",
    "\ud55c",
    "\U0001f468\u200d\U0001f469",
    "\u201c",
    "<|im_end|>",
    "--- a",
    "+++ b",
    "@@ -1 +1 @@",
    "\\ No newline at end of file",
    "diff --git a/x b/x",
    "\ufeff",
)
_word = st.one_of(
    st.sampled_from(ODD),
    st.sampled_from(("x", "}", "def f():", "return 1", " ", "")),
    st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=4),
)
_line = st.lists(_word, max_size=4).map("".join)
_ended = st.tuples(_line, st.sampled_from(ENDS)).map("".join)


def texts(max_lines: int = 14) -> st.SearchStrategy[str]:
    """Any text, with every kind of line end mixed."""
    return st.lists(_ended, max_size=max_lines).map("".join)


@st.composite
def edited(draw: st.DrawFn, max_lines: int = 30) -> tuple[str, str]:
    """A text and the same with a few lines put in, taken out or changed."""
    lines = draw(st.lists(_ended, max_size=max_lines))
    new = list(lines)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(new)))
        new[at : at + draw(st.integers(0, 2))] = draw(st.lists(_ended, max_size=2))
    return "".join(lines), "".join(new)


_part = st.one_of(
    st.sampled_from(
        [b"a", b"a b", b" b", b"b ", b"-x", b"a\tb", b'q"q', b"s'q", b"a\\b", b"\xc3\xa9", b"a\xff"]
    ),
    st.sampled_from(
        [b"x\nb", b"a\rb", b"\x7f", b"\x01", b"a[0]", b"b", b"...", b"$x", b"`", b"{}"]
    ),
    st.binary(min_size=1, max_size=6).filter(lambda b: not {0, 47} & set(b)),
).filter(lambda part: part not in (b".", b"..") and part.lower() not in (b".git", b"git~1"))


def names(max_depth: int = 3) -> st.SearchStrategy[bytes]:
    """Paths below a folder, as bytes."""
    return st.lists(_part, min_size=1, max_size=max_depth).map(b"/".join)
