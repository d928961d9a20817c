"""The predicted merge: where each kind of sketch goes."""

# ruff: noqa: E501 - whole texts on a line read best

import pytest

from apply_edit.text.merge import predict, regions
from tests.text.shop import JAVA, PYTHON, SQL

CHECKED = """\
    def remove(self, sku, n):
        if sku not in self.stock:
            raise KeyError(sku)
        self.stock[sku] -= n
        return self.stock[sku]
"""
REMOVE = (
    "    def remove(self, sku, n):\n        self.stock[sku] -= n\n        return self.stock[sku]\n"
)
SUM = "        return sum(self.stock.values())\n"


def swapped(text, old, new):
    assert text.count(old) == 1
    return text.replace(old, new)


CASES = {
    "markers at both ends": (
        PYTHON,
        "# ... existing code ...\n" + CHECKED + "# ... existing code ...\n",
        swapped(PYTHON, REMOVE, CHECKED),
    ),
    "several markers in a row": (
        PYTHON,
        "# ...\n# ... more ...\n" + CHECKED + "\n# ...\n# ...\n",
        swapped(PYTHON, REMOVE, CHECKED),
    ),
    "no marker, one function of a longer file": (
        PYTHON, CHECKED, swapped(PYTHON, REMOVE, CHECKED),
    ),
    "no marker, written further left": (
        PYTHON,
        "\n".join(line[4:] for line in CHECKED.split("\n")),
        swapped(PYTHON, REMOVE, CHECKED),
    ),
    "nested markers": (
        PYTHON,
        "class Shop:\n    # ... existing code ...\n    def remove(self, sku, n):\n"
        "        # ... existing code ...\n        log('removed')\n    # ... existing code ...\n",
        swapped(PYTHON, REMOVE, REMOVE + "        log('removed')\n"),
    ),
    "a body written anew": (
        PYTHON,
        "# ...\n    def total(self):\n        n = 0\n        for v in self.stock.values():\n"
        "            n += v\n        return n\n# ...\n",
        swapped(
            PYTHON, SUM,
            "        n = 0\n        for v in self.stock.values():\n            n += v\n"
            "        return n\n",
        ),
    ),
    "a new method at the end of a class": (
        PYTHON,
        "# ...\nclass Shop:\n    # ... existing methods ...\n\n    def clear(self):\n"
        "        self.stock.clear()\n\n# ... rest of file ...\n",
        swapped(PYTHON, SUM, SUM + "\n    def clear(self):\n        self.stock.clear()\n"),
    ),
    "first lines, then a marker": (
        PYTHON,
        '"""A shop."""\nimport json\nimport os\nimport sys\n# ... existing code ...\n',
        swapped(PYTHON, "import os\n", "import json\nimport os\n"),
    ),
    "a marker, then the last lines": (
        PYTHON,
        '# ... existing code ...\nif __name__ == "__main__":\n    sys.exit(main())\n',
        swapped(PYTHON, "\n    main()\n", "\n    sys.exit(main())\n"),
    ),
    "lines removed between two anchors": (
        PYTHON,
        "# ...\n    def add(self, sku, n):\n        self.stock[sku] = self.stock.get(sku, 0) + n\n# ...\n",
        swapped(PYTHON, "        # count up\n", ""),
    ),
    "brackets at their own depth": (
        JAVA,
        "    // ... existing code ...\n        int sum = 0;\n        if (stock.size() > 0) {\n"
        "            for (int n : stock.values()) {\n                sum += n;\n            }\n"
        "        }\n        return sum;\n    }\n// ... existing code ...\n",
        swapped(
            JAVA,
            "        for (int n : stock.values()) {\n            sum += n;\n        }\n",
            "        if (stock.size() > 0) {\n            for (int n : stock.values()) {\n"
            "                sum += n;\n            }\n        }\n",
        ),
    ),
    "two places": (
        JAVA,
        "// ... existing code ...\nimport java.util.TreeMap;\n\n/**\n"
        "// ... existing code ...\n    private final Map<String, Integer> stock = new TreeMap<>();\n\n"
        "// ... existing code ...\n",
        swapped(
            JAVA.replace("HashMap<>", "TreeMap<>"),
            "import java.util.HashMap;\n", "import java.util.TreeMap;\n",
        ),
    ),
    "comments of another kind": (
        SQL,
        "-- ...\n    sku text,\n    n integer NOT NULL\n);\n-- ...\n",
        swapped(SQL, "n integer\n", "n integer NOT NULL\n"),
    ),
    "a language without comments": (
        '{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}\n',
        '{\n  ...\n  "b": 5,\n  ...\n}\n',
        '{\n  "a": 1,\n  "b": 5,\n  "c": 3\n}\n',
    ),
    "HTML": (
        "<ul>\n  <li>one</li>\n  <li>two</li>\n</ul>\n<p>a &amp; b</p>\n",
        "<!-- ... -->\n  <li>two</li>\n  <li>three</li>\n<!-- ... -->\n",
        "<ul>\n  <li>one</li>\n  <li>two</li>\n  <li>three</li>\n</ul>\n<p>a &amp; b</p>\n",
    ),
    "the second of two equal blocks, by what follows it": (
        "a {\n  x: 1;\n}\nb {\n  x: 1;\n}\nc {\n  y: 1;\n}\n",
        "/* ... */\nb {\n  x: 2;\n}\n/* ... */\n",
        "a {\n  x: 1;\n}\nb {\n  x: 2;\n}\nc {\n  y: 1;\n}\n",
    ),
    "underlines": (
        "Title\n=======\n\ntext\n\nMore\n=======\n\nend\n",
        "...\nMore\n=======\n\nthe end\n",
        "Title\n=======\n\ntext\n\nMore\n=======\n\nthe end\n",
    ),
    "the whole file": ("a = 1\nb = 2\n", "a = 1\nb = 3\n", "a = 1\nb = 3\n"),
    "no final newline": ("a = 1\nb = 2", "# ...\nb = 3\n", "a = 1\nb = 3"),
    "an empty file": ("", "a = 1\n", "a = 1\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_sketch_lands_where_it_belongs(name):
    original, update, expected = CASES[name]
    assert predict(original, update).text == expected


def test_a_new_function_goes_to_the_end():
    text = predict(PYTHON, "# ... existing code ...\n\n\ndef helper():\n    return 1\n").text
    assert text.startswith(PYTHON)
    assert text.endswith("def helper():\n    return 1\n")


def test_two_functions_without_markers_keep_what_lies_between():
    update = (
        "    def add(self, sku, n=1):\n        self.stock[sku] = self.stock.get(sku, 0) + n\n"
        "        return self.stock[sku]\n\n    def total(self):\n        return len(self.stock)\n"
    )
    text = predict(PYTHON, update).text
    assert "n=1" in text
    assert "len(self.stock)" in text
    assert REMOVE in text


def test_confidence_tells_an_anchored_segment_from_a_guess():
    sure = predict(PYTHON, "# ...\n" + CHECKED + "# ...\n").confidence
    guess = predict(PYTHON, "# ...\nnothing_of_the_sort()\n# ...\n").confidence
    assert guess < 0.5 <= sure


def test_regions_are_the_lines_touched():
    lines = PYTHON.split("\n")
    ((start, end),) = regions("# ...\n" + CHECKED + "# ...\n", PYTHON)
    assert "\n".join(lines[start:end]) + "\n" == REMOVE


def test_a_long_file_of_equal_rows():
    rows = ["    0, 1, 2,"] * 3000
    original = "\n".join(["t = [", *rows, "]"]) + "\n"
    update = "\n".join(["t = [", *rows, "    7,", "]"]) + "\n"
    assert predict(original, update).text == update


def repeated(header, body, close, count, between="\n"):
    """Functions that differ in their names and one number only."""
    blocks = [header.format(i) + "\n" + body.format(i) + "\n" + close for i in range(count)]
    return between.join(blocks)


LIKE = {
    "Python": ("def f{}(x):", "    y = x + {}\n    return y", "", "# ...\n"),
    "Python methods": (
        "    def f{}(self):", "        y = {}\n        return y", "", "    # ... more ...\n",
    ),
    "JavaScript": ("function f{}(x) {{", "  const y = x + {};\n  return y;", "}\n", "// ...\n"),
    "Go": ("func F{}(x int) int {{", "\ty := x + {}\n\treturn y", "}\n", "// ...\n"),
    "Java methods": (
        "    int f{}() {{", "        int y = {};\n        return y;", "    }\n",
        "    // ... existing code ...\n",
    ),
    "Ruby": ("def f{}(x)", "  y = x + {}\n  y", "end\n", "# ...\n"),
    "CSS": (".f{} {{", "  x: {};\n  y: 0;", "}\n", "/* ... */\n"),
}  # fmt: skip
"""A header, a body that differs in one line, what closes it, and a marker."""
BLANKS = {"": "none", "\n": "one", "\n\n": "two", "    \n": "spaces"}


@pytest.mark.parametrize("blank", BLANKS, ids=BLANKS.values())
@pytest.mark.parametrize("count", [12, 220])
@pytest.mark.parametrize("kind", LIKE)
def test_pieces_with_blank_edges_end_where_their_blocks_end(kind, count, blank):
    header, body, close, marker = LIKE[kind]
    original = "first line\n\n\n" + repeated(header, body, close, count, "\n\n") + "\nlast line\n"
    chosen = (1, count // 2, count - 2)
    # The header is as it was: it, and nothing else, tells where the piece goes.
    pieces = [f"{blank}{header.format(i)}\n{body.format(-i)}\n{close}{blank}" for i in chosen]
    expected = original
    for i in chosen:
        old, new = (header.format(i) + "\n" + body.format(n) + "\n" for n in (i, -i))
        expected = swapped(expected, old, new)
    found = predict(original, marker + marker.join(pieces) + marker).text
    assert code(found) == code(expected)
    assert found.startswith("first line\n\n\n" + header.format(0))


def code(text):
    return [line for line in text.split("\n") if line.strip()]


@pytest.mark.parametrize("top", ["", "first line\nsecond line\n"], ids=["alone", "with the top"])
@pytest.mark.parametrize("kind", ["Python", "JavaScript", "Go", "Ruby", "CSS"])
def test_a_new_block_like_all_others_goes_to_the_end(kind, top):
    header, body, close, marker = LIKE[kind]
    original = "second line\n\n" + repeated(header, body, close, 9, "\n")
    new = header.format("last") + "\n" + body.format("last") + "\n" + close
    found = predict(original, top + marker + "\n\n" + new).text
    expected = original + "\n" + new
    if top:
        expected = "first line\n" + expected
    assert code(found) == code(expected)


@pytest.mark.parametrize("blank", ["", "\n"], ids=["close", "blank edges"])
@pytest.mark.parametrize("kind", ["Python", "Python methods", "JavaScript", "Go", "Java methods"])
@pytest.mark.parametrize("where", ["above", "below"])
def test_a_new_block_beside_a_known_one_replaces_none(kind, where, blank):
    header, body, close, marker = LIKE[kind]
    original = "first line\n\n" + repeated(header, body, close, 9, "\n") + "\nlast line\n"
    known = header.format(4) + "\n" + body.format(4) + "\n" + close
    new = header.format("fresh") + "\n" + body.format("fresh") + "\n" + close
    both = new + "\n" + known if where == "above" else known + "\n" + new
    found = predict(original, marker + blank + both + blank + marker).text
    assert code(found) == code(swapped(original, known, both))


def test_a_new_method_before_the_end_of_a_class_replaces_none():
    update = "// ...\n\n    int size() {\n        return stock.size();\n    }\n}\n"
    found = predict(JAVA, update).text
    assert code(found)[:-4] == code(JAVA)[:-1]
    assert code(found)[-4:] == code(update)[1:]


def test_a_new_section_goes_to_the_end():
    original = "".join(f"[part{i}]\nname = {i}\nenabled = true\n\n" for i in range(5))
    new = "[other]\nenabled = true\nname = 9\n"
    found = predict(original, "# ...\n\n" + new).text
    assert code(found) == code(original + new)


def test_a_renamed_function_takes_the_place_of_the_old():
    update = PYTHON[PYTHON.index("    def total(self)") :].replace("def total", "def in_all")
    end = update.index(SUM) + len(SUM)
    found = predict(PYTHON, "# ...\n" + update[:end] + "# ...\n").text
    assert found == swapped(PYTHON, "def total(", "def in_all(")


def test_blank_lines_at_a_pieces_edges_are_no_part_of_its_region():
    lines = PYTHON.split("\n")
    ((start, end),) = regions("# ...\n\n" + CHECKED + "\n# ...\n", PYTHON)
    assert "\n".join(lines[start:end]) + "\n" == REMOVE
