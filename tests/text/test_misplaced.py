"""A sketch's new line has to stand where the sketch puts it."""

import pytest

from apply_edit.text.guard import check

JS = """\
const http = require("http");
const seen = new Map();

function handle(req, res) {
  const url = new URL(req.url, "http://localhost");
  const name = url.searchParams.get("name");
  res.writeHead(200);
  res.end(name);
}

function start() {
  http.createServer(handle).listen(80);
}
"""
PY = '''\
import os
import sys


class Shop(Base):
    """A shop."""

    def __init__(self, name):
        """Open it."""
        super().__init__(name)
        self.name = name
        self.stock = {}

    def close(self):
        self.stock.clear()
        print("closed", file=sys.stderr)
'''
LOG = "  console.log(req.url);\n"


def put(text, line, behind):
    """The text with `line` behind the line that holds `behind`."""
    at = text.index("\n", text.index(behind)) + 1
    return text[:at] + line + text[at:]


def codes(original, output, update, name):
    found = check(original, output, finished=True, instruction=None, update=update, name=name)
    return [problem.code for problem in found]


BEHIND = (
    f"// ... existing code ...\nfunction handle(req, res) {{\n{LOG}  // ... existing code ...\n"
)
BEFORE = f"// ... existing code ...\n{LOG}  res.end(name);\n// ... existing code ...\n"
FIRST = f"// ... existing code ...\n{LOG}  // ... existing code ...\n  res.end(name);\n}}\n"


@pytest.mark.parametrize(
    ("sketch", "right", "wrong"),
    [
        (BEHIND, ["function handle"], ["const url", "get(", "writeHead", "res.end", "const seen"]),
        (BEFORE, ["writeHead"], ["function handle", "const url", "get(", "res.end", "start()"]),
        (FIRST, ["function handle", "const url", "writeHead"], ["res.end", "start()"]),
    ],
    ids=["behind a header", "before a line", "somewhere above"],
)
def test_a_new_line_stands_beside_its_neighbour(sketch, right, wrong):
    for behind in right:
        assert codes(JS, put(JS, LOG, behind), sketch, "a.js") == []
    for behind in wrong:
        assert "misplaced" in codes(JS, put(JS, LOG, behind), sketch, "a.js")


def test_lines_that_come_together_stay_together():
    first, second = "  const start = now();\n", "  trace(start, req);\n"
    sketch = BEHIND.replace(LOG, first + second)
    good = put(JS, first + second, "function handle")
    assert codes(JS, good, sketch, "a.js") == []
    apart = put(put(JS, second, "get("), first, "function handle")
    assert codes(JS, apart, sketch, "a.js") == ["misplaced"]
    turned = put(JS, second + first, "function handle")
    assert codes(JS, turned, sketch, "a.js") == ["misplaced"]


@pytest.mark.parametrize("behind", ["def __init__", "Open it", "super()"])
def test_what_opens_a_body_may_come_first(behind):
    line = "        self.open = True\n"
    sketch = f"# ...\n    def __init__(self, name):\n{line}# ... existing code ...\n"
    assert codes(PY, put(PY, line, behind), sketch, "a.py") == []
    assert codes(PY, put(PY, line, "self.name"), sketch, "a.py") == ["misplaced"]


def test_imports_may_be_sorted():
    sketch = "import os\nimport json\n# ... existing code ...\n"
    assert codes(PY, "import json\n" + PY, sketch, "a.py") == []
    assert codes(PY, put(PY, "import json\n", "import sys"), sketch, "a.py") == []
    inside = put(PY, "    import json\n", '"""A shop')
    assert codes(PY, inside, sketch, "a.py") == ["misplaced"]


def test_lines_that_can_be_mistaken_are_not_judged():
    twice = JS + "\nfunction stop(req, res) {\n  res.writeHead(200);\n  res.end();\n}\n"
    sketch = f"// ... existing code ...\n  res.writeHead(200);\n{LOG}// ... existing code ...\n"
    assert "misplaced" not in codes(twice, put(twice, LOG, "get("), sketch, "a.js")
    # Two of the new line: which of them is meant cannot be told.
    both = put(put(JS, LOG, "get("), LOG, "function handle")
    assert "misplaced" not in codes(JS, both, BEHIND, "a.js")


def test_the_message_names_the_line_of_the_answer():
    (problem,) = check(
        JS, put(JS, LOG, "get("), finished=True, instruction=None, update=BEHIND, first_line=11
    )
    assert problem.line == 17
    assert "line 17 of the edited file" in problem.message
    assert "directly behind 'function handle(req, res) {'" in problem.message
