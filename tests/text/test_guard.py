"""Damaged answers are refused by kind; good ones that look like them are not."""

# ruff: noqa: E501 - whole texts on a line read best

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.text.guard import CODES, check
from tests.text.shop import JAVA, PYTHON

ASK = "Make remove() raise KeyError when the sku is unknown."
OLD = "        self.stock[sku] -= n\n"
NEW = "        if sku not in self.stock:\n            raise KeyError(sku)\n" + OLD
EDITED = PYTHON.replace(OLD, NEW)
SKETCH = (
    "# ... existing code ...\n    def remove(self, sku, n):\n" + NEW
    + "        return self.stock[sku]\n# ... existing code ...\n"
)  # fmt: skip
JAVA_ASK = "Refuse to take out more than there is."
JAVA_OLD = "        stock.put(sku, left);\n"
JAVA_NEW = "        if (left < 0) {\n            throw new IllegalStateException();\n        }\n"
JAVA_EDITED = JAVA.replace(JAVA_OLD, JAVA_NEW + JAVA_OLD)
JAVA_SKETCH = (
    "// ... existing code ...\n        int left = stock.get(sku) - n;\n" + JAVA_NEW + JAVA_OLD
    + "// ... existing code ...\n"
)  # fmt: skip
ADD = PYTHON[PYTHON.index("    def add") : PYTHON.index("    def remove")]


def codes(original, output, instruction=ASK, update=None, name="shop.py", finished=True):
    problems = check(
        original, output, finished=finished, instruction=instruction, update=update, name=name
    )
    for problem in problems:
        assert problem.code in CODES
        assert problem.message
        assert "\n" not in problem.message
    return [problem.code for problem in problems]


def both(python_output, java_output):
    """The same damage to either file, with the instruction and with the sketch."""
    return [
        (PYTHON, python_output, ASK, None, "shop.py"),
        (PYTHON, python_output, None, SKETCH, "shop.py"),
        (JAVA, java_output, JAVA_ASK, None, "Shop.java"),
        (JAVA, java_output, None, JAVA_SKETCH, "Shop.java"),
    ]


def swapped(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


JAVA_TOTAL = JAVA[JAVA.index("    public int total") : JAVA.rindex("}\n")]
DAMAGES = {
    "empty": ("empty", both("\n", "")),
    "a loop": ("looping", both(EDITED + "    x = 1\n" * 99, JAVA_EDITED + "  a();\n  b();\n" * 50)),
    "a fence": ("fenced", both(f"```python\n{EDITED}```\n", f"{JAVA_EDITED}```\n")),
    "prose before": (
        "fenced",
        both("Here is the updated code:\n\n" + EDITED, "Sure! Below is the file.\n" + JAVA_EDITED),
    ),
    "prose after": (
        "fenced",
        both(EDITED + "\nThis change adds the check.\n", JAVA_EDITED + "Note that it throws now.\n"),
    ),
    "a tag of the prompt": (
        "fenced",
        both(EDITED + "</updated-code>\n", f"<code>\n{JAVA_EDITED}</code>\n"),
    ),
    "a marker for a method": (
        "elided",
        both(
            swapped(EDITED, ADD, "    # ... existing code ...\n\n"),
            swapped(JAVA_EDITED, JAVA_TOTAL, "    // rest of the code unchanged\n"),
        ),
    ),
    "a marker behind code": (
        "elided",
        both(
            swapped(EDITED, "    def add", "    # … other methods …\n    def add"),
            swapped(JAVA_EDITED, "int sum = 0;", "int sum = 0; // ... rest of the method ..."),
        ),
    ),
    "the file twice": ("duplicated", both(EDITED + EDITED, JAVA_EDITED + "\n" + JAVA)),
    "a definition twice": (
        "duplicated",
        both(
            swapped(EDITED, ADD, ADD + ADD),
            swapped(JAVA_EDITED, JAVA_TOTAL, JAVA_TOTAL + "\n" + JAVA_TOTAL),
        ),
    ),
    "a block twice": (
        "duplicated",
        both(
            swapped(EDITED, "    print(shop.total())\n", '    print(shop.total())\n    shop = Shop(os.path.basename(sys.argv[0]))\n    shop.add("a", 1)\n    print(shop.total())\n'),
            swapped(JAVA_EDITED, "        return sum;\n", "        return sum;\n        for (int n : stock.values()) {\n            sum += n;\n        }\n        return sum;\n"),
        ),
    ),
    "a definition gone": (
        "lost", both(swapped(EDITED, ADD, ""), swapped(JAVA_EDITED, JAVA_TOTAL, "")),
    ),
    "comments gone": (
        "lost",
        both(
            swapped(EDITED, "# The command line.\n# Prints the total.\n", ""),
            swapped(JAVA_EDITED, "/**\n * Holds stock.\n */\n", ""),
        ),
    ),
    "a docstring gone": (
        "lost",
        both(
            swapped(EDITED, '"""A shop."""\n', ""),
            swapped(JAVA_EDITED, "import java.util.Map;\n", ""),
        ),
    ),
    "the head gone": (
        "lost",
        both(EDITED[EDITED.index("class Shop") :], JAVA_EDITED[JAVA_EDITED.index("public class") :]),
    ),
    "the tail gone": (
        "truncated",
        both(EDITED[: EDITED.index('    shop.add("a"')], JAVA_EDITED[: JAVA_EDITED.index("            sum")]),
    ),
    "cut in a line": (
        "truncated",
        both(EDITED[: EDITED.index("name__ ==")], JAVA_EDITED[: JAVA_EDITED.index("stock.values")]),
    ),
    "a bracket gone": (
        "unparsable",
        both(
            swapped(EDITED, "sum(self.stock.values())", "sum(self.stock.values()"),
            swapped(JAVA_EDITED, "        return sum;\n    }\n", "        return sum;\n"),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_refused(kind):
    code, cases = DAMAGES[kind]
    for original, output, instruction, update, name in cases:
        found = codes(original, output, instruction, update, name)
        assert found, (kind, name, update is not None)
        if code in ("fenced", "elided", "duplicated", "looping", "empty"):
            assert found[0] == code
    assert any(code in codes(*case) for case in cases)


def test_an_answer_that_did_not_end_is_truncated():
    assert codes(PYTHON, EDITED, finished=False) == ["truncated"]


def test_a_loop_that_was_stopped_is_called_one():
    assert codes(PYTHON, EDITED + "    x = 1\n" * 40, finished=False)[0] == "looping"


def test_the_line_of_a_sketch_that_is_missing_is_named():
    output = swapped(EDITED, "            raise KeyError(sku)\n", "            return 0\n")
    problems = check(PYTHON, output, finished=True, instruction=None, update=SKETCH, name="a.py")
    assert [p.code for p in problems] == ["incomplete"]
    assert "raise KeyError(sku)" in problems[0].message


def test_the_sketch_in_the_wrong_one_of_two_blocks_loses_lines():
    original = "a {\n  x: 1;\n}\n\nb {\n  x: 1;\n}\n\nc {\n  y: 1;\n}\n"
    update = "/* ... */\nb {\n  x: 2;\n}\n/* ... */\n"
    assert codes(original, original.replace("x: 1", "x: 2", 1), None, update, "a.css")


GOOD = {
    "the edit": (PYTHON, EDITED, ASK, None),
    "the sketch": (PYTHON, EDITED, None, SKETCH),
    "both": (PYTHON, EDITED, ASK, SKETCH),
    "nothing changed": (PYTHON, PYTHON, ASK, None),
    "a definition removed on request": (
        PYTHON, swapped(PYTHON, ADD, "").replace('    shop.add("a", 1)\n', ""),
        "Delete the add method.", None,
    ),
    "dead code removed": (
        PYTHON, swapped(PYTHON, ADD, "").replace('    shop.add("a", 1)\n', ""),
        "Remove the unused methods", None,
    ),
    "a method inlined into its callers": (
        JAVA.replace("return sum;\n    }\n}", "return twice(sum);\n    }\n\n    private int twice(int n) {\n        return 2 * n;\n    }\n}"),
        JAVA.replace("return sum;", "return 2 * sum;"), "Double the total at once", None,
    ),
    "comments removed on request": (
        PYTHON, swapped(PYTHON, "        # count up\n", ""), "Remove comments", None,
    ),
    "an import that is no longer used": (
        PYTHON, PYTHON.replace("import os\n", "").replace("os.path.basename(sys.argv[0])", "sys.argv[0]"),
        "Show the whole path of the program", None,
    ),
    "a method renamed": (
        PYTHON, PYTHON.replace("total", "amount"), "Rename total to amount", None,
    ),
    "a body written anew": (
        PYTHON,
        PYTHON.replace("        return sum(self.stock.values())\n", "        n = 0\n        for v in self.stock.values():\n            n += v\n        return n\n"),
        "Use a loop in total", None,
    ),
    "a method added": (
        PYTHON, swapped(PYTHON, ADD, ADD + "    def clear(self):\n        self.stock.clear()\n\n"),
        "Add a clear method", None,
    ),
    "a stub": (
        "class P:\n    def run(self): pass\n",
        "class P:\n    def run(self): pass\n\n    def stop(self):\n        ...\n", "Add a stub stop()", None,
    ),
    "a marker-like line that the file has": (
        "a = 1\n# ... rest of the file ...\nb = 2\n", "a = 1\n# ... rest of the file ...\nb = 3\n",
        "Set b to 3", None,
    ),
    "Markdown with fences": (
        "# A\n\n```sh\nmake\n```\n", "# A\n\n```sh\nmake all\n```\n\n```sh\nmake test\n```\n",
        "Add the tests", None,
    ),
    "a docstring with fences": (
        'def f():\n    """Do.\n    """\n', 'def f():\n    """Do.\n\n    ```\n    f()\n    ```\n    """\n',
        "Add an example", None,
    ),
    "a file that ends in the prompt's tag": (
        "<code>\nx\n</code>\n", "<code>\ny\n</code>\n", "Set y", None,
    ),
    "underlines, conflicts and entities": (
        "Title\n=====\n\n<<<<<<< HEAD\na &amp; b\n=======\nc\n>>>>>>> x\n",
        "Title\n=====\n\n<<<<<<< HEAD\na &amp; d\n=======\nc\n>>>>>>> x\n", "Make b a d", None,
    ),
    "equal rows": (
        "t = [\n" + "    0, 0,\n" * 200 + "]\n", "t = [\n" + "    0, 0,\n" * 230 + "]\n",
        "Add thirty rows", None,
    ),
    "near-equal rows": (
        "t = [\n    (1, 1),\n]\n", "t = [\n" + "".join(f"    ({i}, {i}),\n" for i in range(300)) + "]\n",
        "Fill the table", None,
    ),
    "overloads": (
        JAVA, swapped(JAVA, JAVA_TOTAL, JAVA_TOTAL + "\n    public int total(int bonus) {\n        return total() + bonus;\n    }\n"),
        "Add total with a bonus", None,
    ),
    "setters": (
        "class A:\n    @property\n    def x(self):\n        return 1\n",
        "class A:\n    @property\n    def x(self):\n        return 1\n\n    @x.setter\n    def x(self, v):\n        pass\n",
        "Add a setter", None,
    ),
    "a file that never parsed": ("def f(:\n", "def g(:\n", "Rename f to g", None),
    "a condition that the loop's bounds make needless": (
        "def near(a, d):\n    for i in range(len(a)):\n        for j in range(len(a)):\n            if i != j:\n"
        "                if a[i] - a[j] < d:\n                    return True\n    return False\n",
        "def near(a, d):\n    for i in range(len(a)):\n        for j in range(i + 1, len(a)):\n"
        "            if abs(a[i] - a[j]) < d:\n                return True\n    return False\n",
        "Fix the bug in `near`: two numbers can be closer than d either way", None,
    ),
    "an empty file filled": ("", "a = 1\n", "Set a", None),
    "an empty file left empty": ("", "", "Do nothing", None),
}  # fmt: skip


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_answer_passes(kind):
    original, output, instruction, update = GOOD[kind]
    name = "x.md" if "Markdown" in kind else "x.java" if "class Shop {" in original else "x.py"
    if "tag" in kind or "conflicts" in kind or "empty" in kind:
        name = "x.txt"
    assert codes(original, output, instruction, update, name) == []


@given(
    st.text(alphabet="ab(){}#/.\n `", max_size=80), st.text(alphabet="ab(){}#/.\n `", max_size=80)
)
def test_any_answer_is_judged(original, output):
    codes(original, output)
    codes(output, output, update="# ...\na\n# ...\n")


PART = "def f(x):\n    if x:\n        return 1\n    return 2\n\n\ndef g(x):\n    return f(x) + 3\n"
DAMAGE = {
    "fenced": "```python\n" + PART + "```\n",
    "elided": "def f(x):\n    # ... existing code ...\n",
    "duplicated": PART + "\n\n" + PART,
    "truncated": PART[: PART.index("    return f")],
    "lost": PART[PART.index("def g") :],
    "unparsable": PART.replace("        return 1\n", ""),
    "looping": PART + "x = 1\n" * 400,
}


@pytest.mark.parametrize("code", DAMAGE)
def test_lines_of_a_part_are_named_as_the_files(code):
    def found(first_line):
        problems = check(
            PART, DAMAGE[code], finished=True, instruction="Speed f up", update=None,
            name="a.py", first_line=first_line,
        )  # fmt: skip
        return next(p for p in problems if p.code == code)

    alone, part = found(1), found(501)
    assert part.line == alone.line + 500
    numbers = [int(n) for n in re.findall(r"line (\d+)", alone.message)]
    assert numbers
    assert [int(n) for n in re.findall(r"line (\d+)", part.message)] == [n + 500 for n in numbers]
