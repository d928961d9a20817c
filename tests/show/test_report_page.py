"""The report's page as text: whole, safe, small, and as clear without colour as with it."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.decode.stats import Tally
from apply_edit.events import Piece
from apply_edit.show.charts import bins
from apply_edit.show.escape import code, plain
from apply_edit.show.html import style
from apply_edit.show.listing import listing, rows_of
from apply_edit.show.page import page
from apply_edit.show.recording import Pass
from tests.show.reports import NOW, edited, source

MEGABYTE = 1_000_000
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!-- <b onmouseover=alert(1)> -->",
    "]]></style></pre></li></ol><img src=x onerror=alert(1)>",
    "\"' onfocus='alert(1)' x=\"",
    "&lt;&amp;&#x3c;&notit;",
    "\x00\x01\x1b[31m\x7f\x85",
    "left \u202e thgir \u2066 isolate \u200b nothing \ufeff",
    "\u05d0\u05d1\u05d2 abc",
    "\ue0003C\ue001",
    "javascript:alert(1)",
]


class Reader(HTMLParser):
    """Keeps tags, attributes and texts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


@pytest.fixture(scope="module")
def plain_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    costs = ((1, 5.0), (8, 6.0), (64, 20.0))
    return page([edited(folder, source(30), source(30, range(10, 12)), costs=costs)], NOW)


def test_nothing_but_our_style_may_act(plain_page: str) -> None:
    reader = read(plain_page)
    names = {tag for tag, _ in reader.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    for _, attributes in reader.tags:
        assert not [key for key in attributes if key.startswith("on")]
        assert not set(attributes) & {"style", "src", "href", "srcset", "data", "action"}
    css = plain_page.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = next(a["content"] for t, a in reader.tags if "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{digest}'" in policy
    assert "url(" not in css
    assert "@import" not in css


def test_outline_and_language(plain_page: str) -> None:
    tags = read(plain_page).tags
    assert ("html", {"lang": "en"}) in tags
    levels = [int(tag[1]) for tag, _ in tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_every_chart_has_a_name_and_every_table_heads(plain_page: str) -> None:
    tags = read(plain_page).tags
    charts = [attributes for tag, attributes in tags if tag == "svg" and "role" in attributes]
    assert len(charts) >= 5
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in charts)
    assert plain_page.count("<table>") == plain_page.count("<thead>") >= 4


def test_figures_beside_the_floor(plain_page: str) -> None:
    text = " ".join(read(plain_page).texts)
    for words in ("total / floor", "tokens per pass", "floor", "bit: On this machine"):
        assert words in text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_content_stays_text(tmp_path: Path, hostile: str) -> None:
    before = f"a = 1\n{hostile}\nb = 2\n"
    after = f"a = 1\n{hostile}\nb = 3 # {hostile}\n"
    one = edited(tmp_path, "a = 1\nb = 2\n", "a = 1\nb = 3\n", name=f"f{hostile}.txt")
    texts = (Piece("copy", before), Piece("target", after))
    first = replace(one.passes[0], pieces=texts, rejected=f"{hostile}\n\t{hostile}", fallen=3)
    one = replace(
        one,
        passes=(first, *one.passes[1:]),
        request={**one.request, "instruction": hostile, "update": hostile, "encoding": hostile},
        message=hostile,
        code=hostile,
        notes=(hostile,),
        stats=replace(one.stats, model=hostile),
    )
    harmless = replace(one, file="f", code="c", message="m", notes=("n",), passes=one.passes[1:])
    reader, expected = read(page([one], NOW)), read(page([harmless], NOW))
    assert {tag for tag, _ in reader.tags} <= {tag for tag, _ in expected.tags} | {
        "i",
        "u",
        "b",
        "ol",
    }
    for _, attributes in reader.tags:
        assert not [key for key in attributes if key.startswith("on")]
    text = page([one], NOW)
    for char in "\x00\x01\x1b\x7f\x85\u202e\u2066\u200b\ufeff":
        assert char not in text
    if hostile.isascii() and hostile.isprintable():
        assert hostile in "".join(reader.texts)
        labels = [a.get("aria-label") or "" for _, a in reader.tags]
        assert any(hostile in label for label in labels)


@given(st.text(st.characters(codec="utf-8")))
def test_what_is_shown_is_what_was_there(text: str) -> None:
    def shown(c: str) -> str:
        return c if plain(c) == c or (len(plain(c)) > 1 and c in "&<>\"'") else plain(c)

    assert "".join(read(f"<pre>.{code(text)}</pre>").texts)[1:] == "".join(
        f"{ord(c):04X}" if plain(c).startswith("\u27e8") and c != "\u27e8" else c for c in text
    )
    attributes = read(f'<b title="{plain(text)}">').tags[0][1]
    assert list(attributes) == ["title"]
    assert attributes["title"] == "".join(map(shown, text))


def test_a_lone_surrogate_does_not_end_the_report(tmp_path: Path) -> None:
    one = edited(tmp_path, "a\n", "b\n", name="f\udcff.txt")
    assert b"f" in page([one], NOW).encode("utf-8")


def test_rows_hold_the_lines_their_runs_and_marks(tmp_path: Path) -> None:
    one = edited(tmp_path, source(30), source(30, range(10, 12)))
    rows = rows_of(one)
    assert [row.number for row in rows] == list(range(1, 31))
    lines = ["".join(t for kind, t in row.parts if kind != "x") for row in rows]
    assert "\n".join(lines) + "\n" == source(30, range(10, 12))
    assert [row.number for row in rows if row.changed] == [11, 12]
    assert any(kind == "x" for row in rows[10:12] for kind, _ in row.parts)
    assert all(kind in "ct" for row in rows[14:] for kind, _ in row.parts)


def test_a_listing_that_is_too_long_keeps_the_edit_and_says_what_it_leaves_out(
    tmp_path: Path,
) -> None:
    one = edited(tmp_path, source(400), source(400, range(300, 302)))
    whole = listing(one, 1 << 20)
    assert whole.count("<li") == 400
    assert "left out" not in whole
    text = listing(one, 4_000)
    assert len(text) < 5_000
    left = sum(int(n.replace(",", "")) for n in re.findall(r"<p class=gap>([\d,]+) copied", text))
    assert left + text.count("<li") == 400
    assert text.count("<li class=n>") == 2
    assert "<ol class=f start=298>" in text
    assert "<ol class=f start=1>" in text


def many(passes: int, text: str, rejected: str) -> tuple[Pass, ...]:
    """Passes as they come without drafts that hold: one token each, and a draft that fell."""
    return tuple(
        Pass(
            part=0,
            start=n,
            tokens=1,
            rows=9,
            drafted=8,
            accepted=0,
            k=8,
            context=100,
            began=n * 0.1,
            seconds=0.1,
            draft_seconds=0.001,
            position=0.5,
            sources={"copy": Tally(8, 0)},
            pieces=(Piece("target", text),),
            rejected=rejected,
            fallen=8,
        )
        for n in range(passes)
    )


@pytest.mark.parametrize("text", ["token\n", "<&\"'>", "\x01\u202e\x02"])
def test_the_worst_of_ten_thousand_tokens_stays_below_a_megabyte(tmp_path: Path, text: str) -> None:
    one = edited(tmp_path, source(3), source(3, range(1)))
    one = replace(one, passes=many(10_000, text, '<"rejected"> ' * 20), request=one.request)
    data = page([one], NOW).encode()
    assert len(data) < MEGABYTE
    assert b"25 passes, averaged" in data
    assert b"left out to keep this page small" in data
    data = page([one] * 30, NOW).encode()
    assert len(data) < MEGABYTE
    assert b"Only the first" in data


def test_a_usual_file_of_ten_thousand_tokens_is_shown_whole(tmp_path: Path) -> None:
    before = source(900)
    one = edited(tmp_path, before, source(900, range(400, 420)))
    assert one.stats.output_tokens > 10_000
    data = page([one], NOW)
    assert data.count("<li>") + data.count("<li class=n>") > 900
    assert "left out" not in data
    assert len(data.encode()) < 300_000


def test_bins_lose_nothing() -> None:
    passes = many(1_001, "x", "")
    groups = bins(passes, 100)
    assert len(groups) <= 100
    assert sum(g.count for g in groups) == 1_001
    assert sum(g.tokens for g in groups) == sum(p.tokens for p in passes)
    assert sum(g.wasted for g in groups) == 8 * 1_001
    assert groups[-1].ended == pytest.approx(passes[-1].began + passes[-1].seconds)
    assert groups[0].name == "1\u201311"


def test_several_files(tmp_path: Path) -> None:
    good = edited(tmp_path, source(9), source(9, range(2)), name="good.py")
    bad = edited(tmp_path, source(60), "Sure!\n", raw=True, name="bad.py")
    text = page([good, bad], NOW)
    assert text.count("<h1>") == 1
    assert text.count("<section>") == 2
    assert ">bad.py</h2>" in text
    assert "Refused" in text


def test_an_edit_that_failed_before_its_first_pass(tmp_path: Path) -> None:
    one = edited(tmp_path, source(9), source(9), options=None)
    one = replace(one, passes=(), status="error", code="no-memory", message="there is too little")
    text = page([one], NOW)
    assert "No token was written" in text
    assert "no-memory" in text


def palettes() -> list[dict[str, str]]:
    """The variables of light, dark and print, each on top of light."""
    blocks = [dict(re.findall(r"--([\w-]+):(#\w+)", b)) for b in style().split(":root{")[1:]]
    assert len(blocks) == 3
    return [{**blocks[0], **block} for block in blocks]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""

    def light(color: str) -> float:
        digits = color[1:] if len(color) == 7 else "".join(c * 2 for c in color[1:])
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", palettes(), ids=["light", "dark", "print"])
def test_text_can_be_read_and_shapes_be_seen(palette: dict[str, str]) -> None:
    texts = [("ink", b) for b in palette if b in ("bg", "card") or b.endswith("-bg")]
    texts += [(t, b) for t in ("faint", "link", "no") for b in ("bg", "card")]
    texts += [("no", "no-bg")]
    for text, ground in texts:
        assert contrast(palette[text], palette[ground]) >= 4.5, (text, ground)
    for shape in ("copy", "update", "output", "draft", "target", "no"):
        assert contrast(palette[shape], palette["bg"]) >= 3, shape


def test_sources_differ_without_colour() -> None:
    rules = re.findall(r"\nu\.(\w)\{([^}]*)\}", style())
    looks = {re.sub(r"background:[^;}]*;?|text-decoration-color:[^;}]*;?", "", r) for _, r in rules}
    assert {name for name, _ in rules} == set("uodt")
    assert len(looks) == 4
