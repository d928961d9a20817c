"""A new entry of data comes beside its siblings in the predicted merge, comma and all."""

import json

import pytest

from apply_edit.text.merge import predict

PACKAGE = {
    "name": "x",
    "scripts": {"build": "tsc", "test": "jest"},
    "files": ["one", "two"],
    "ports": {"a": {"port": 80}, "b": {"port": 81}},
    "version": "1.0.0",
}
TEXT = json.dumps(PACKAGE, indent=2) + "\n"


def changed(path, value):
    """The package with one entry more, or another value."""
    made = json.loads(json.dumps(PACKAGE))
    at = made
    for key in path[:-1]:
        at = at[key]
    if isinstance(at, list):
        at.append(value)
    else:
        at[path[-1]] = value
    return json.dumps(made, indent=2) + "\n"


@pytest.mark.parametrize(
    ("sketch", "path", "value"),
    [
        ('{\n  // ...\n  "license": "MIT"\n}\n', ["license"], "MIT"),
        ('{\n  "name": "x",\n  // ...\n  "license": "MIT"\n}\n', ["license"], "MIT"),
        (
            '{\n  // ...\n  "scripts": {\n    // ...\n    "lint": "eslint"\n  },\n  // ...\n}\n',
            ["scripts", "lint"],
            "eslint",
        ),
        (
            '{\n  // ...\n  "files": [\n    // ...\n    "three"\n  ],\n  // ...\n}\n',
            ["files", ""],
            "three",
        ),
        (
            '  // ...\n  "ports": {\n    // ...\n'
            '    "c": {\n      "port": 82\n    }\n  },\n  // ...\n',
            ["ports", "c"],
            {"port": 82},
        ),
        (
            '{\n  // ...\n  "scripts": {\n    // ...\n    "test": "vitest"\n  },\n  // ...\n}\n',
            ["scripts", "test"],
            "vitest",
        ),
        ('{\n  // ...\n  "version": "2.0.0"\n}\n', ["version"], "2.0.0"),
    ],
    ids=["at the end", "with a line above", "nested", "an item", "a block", "a value", "the last"],
)
def test_json(sketch, path, value):
    assert predict(TEXT, sketch).text == changed(path, value)


@pytest.mark.parametrize(
    ("original", "sketch", "expected"),
    [
        (
            "x = {\n    'a': 1,\n    'b': 2\n}\n",
            "x = {\n    # ...\n    'c': 3\n}\n",
            "x = {\n    'a': 1,\n    'b': 2,\n    'c': 3\n}\n",
        ),
        (
            "x = {\n    'a': 1,\n    'b': 2,\n}\n",
            "x = {\n    # ...\n    'c': 3,\n}\n",
            "x = {\n    'a': 1,\n    'b': 2,\n    'c': 3,\n}\n",
        ),
        (
            "const x = {\n  a: 1, // one\n  b: 2 // two\n};\n",
            "const x = {\n  // ...\n  c: 3\n};\n",
            "const x = {\n  a: 1, // one\n  b: 2 // two\n  c: 3\n};\n",
        ),
        (
            "def f(x):\n    if x:\n        a = g(x, 1)\n    return a\n",
            "def f(x):\n    # ...\n        a = g(x, 2)\n    return a\n",
            "def f(x):\n    if x:\n        a = g(x, 2)\n    return a\n",
        ),
    ],
    ids=["a dict", "with a comma", "a comment behind", "no data"],
)
def test_other_languages(original, sketch, expected):
    assert predict(original, sketch).text == expected
