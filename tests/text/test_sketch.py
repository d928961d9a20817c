"""Markers, segments, and what of a sketch arrived."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_edit.errors import UsageError
from apply_edit.text.sketch import is_marker, missing_lines, parse, predict
from tests.text.shop import PYTHON

MARKERS = [
    "// ... existing code ...",
    "    # ... rest of the function ...",
    "/* … */",
    "/* ... existing styles ... */",
    "-- ...",
    "-- ... other columns unchanged ...",
    "<!-- ... -->",
    "<!-- ... rest of the page ... -->",
    "; ...",
    "% ...",
    "...existing code...",
    "... existing code ...",
    "# (unchanged)",
    "# ... (unchanged)",
    "// … keep the rest …",
    "// rest of the code remains unchanged",
    "{/* ... existing code ... */}",
    "...",
    "    ...",
    "…",
    "[...]",
    "// ... 现有代码 ...",
    "# ... restlicher Code unverändert ...",
]
CODE = [
    "",
    'print("Loading...")',
    "// the list of apps, and insert them into the database...",
    "// Disable it all if it is not compatible...",
    "var longest = Math.max(...rows.map(r => r.length));",
    "f(*args, ...)",
    "=======",
    "-----------",
    "# the rest of the arguments go to the child",
    "x = y  # same as before",
    "for (...) {",
    "return { ...state, existing: true };",
    "# ...alternatively, emit an event about the first one",
    "<<<<<<< HEAD",
]


@pytest.mark.parametrize("line", MARKERS)
def test_a_line_that_stands_for_code_is_a_marker(line):
    assert is_marker(line, set())


@pytest.mark.parametrize("line", CODE)
def test_a_line_of_code_or_speech_is_none(line):
    assert not is_marker(line, set())


@pytest.mark.parametrize("line", MARKERS)
def test_a_line_of_the_original_is_no_marker(line):
    assert not is_marker(line, {line.strip()})


@pytest.mark.parametrize("update", ["", "\n\n", "# ... existing code ...\n", "...\n\n// ...\n  \n"])
def test_a_sketch_without_code_is_refused(update):
    with pytest.raises(UsageError) as caught:
        parse(update, "a = 1\n")
    assert caught.value.code == "empty-sketch"


def test_segments_lie_between_markers():
    sketch = parse("# ...\n# ... more ...\na = 1\n\n# ... existing code ...\nb = 2\n", "")
    assert [s.lines for s in sketch.segments] == [("a = 1", ""), ("b = 2",)]
    assert [s.before is None for s in sketch.segments] == [False, False]
    assert [s.after is None for s in sketch.segments] == [False, True]
    assert sketch.code == ["a = 1", "b = 2"]


def test_a_marker_like_line_of_the_file_stays_code_where_it_fits():
    original = "class P:\n    def run(self):\n        ...\n\n    def stop(self):\n        ...\n"
    update = "class P:\n    # ... existing code ...\n    def stop(self, now):\n        ...\n"
    assert parse("    def run(self):\n        ...\n", original).markers == 0
    assert parse("    def new(self):\n        ...\n        x = 1\n", original).markers == 1
    assert predict(original, "    def run(self):\n        ...\n").text == original
    assert "def stop(self, now):" in predict(original, update).text


def test_the_fence_around_a_sketch_is_not_part_of_it():
    assert parse("```python\na = 1\n# ...\n```\n", "").code == ["a = 1"]


def test_nothing_is_missing_when_all_lines_arrive_at_another_depth():
    update = "# ...\ndef remove(self, sku, n):\n    check(sku)\n# ...\n"
    output = PYTHON.replace(
        "n):\n        self.stock[sku] -=", "n):\n        check(sku)\n        self.stock[sku] -="
    )
    assert missing_lines(update, PYTHON, output) == []


def test_a_line_that_did_not_arrive_is_named():
    update = "# ...\n    def remove(self, sku, n):\n        check(sku)\n        log(sku)\n# ...\n"
    output = PYTHON.replace(
        "    def remove(self, sku, n):\n", "    def remove(self, sku, n):\n        log(sku)\n"
    )
    assert missing_lines(update, PYTHON, output) == ["check(sku)"]


def test_a_line_that_the_file_has_elsewhere_does_not_count_as_arrived():
    update = "# ...\n    def total(self):\n        return self.stock[sku]\n# ...\n"
    assert missing_lines(update, PYTHON, PYTHON) == ["return self.stock[sku]"]


def test_a_wrapped_line_arrived():
    update = "# ...\n    shop.add('a quite long name', 'another quite long name', 12345)\n# ...\n"
    output = (
        PYTHON + "    shop.add(\n        'a quite long name', 'another quite long name', 12345)\n"
    )
    assert missing_lines(update, PYTHON, output) == []


@given(st.text(alphabet="ab.#/ \n{}", max_size=60), st.text(alphabet="ab.#/ \n{}", max_size=60))
def test_any_sketch_is_merged_or_refused(original, update):
    try:
        prediction = predict(original, update)
    except UsageError:
        return
    assert 0.0 <= prediction.confidence <= 1.0
    for line in parse(update, original).code:
        assert line.strip() in prediction.text
