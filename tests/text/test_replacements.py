"""Literal replacements that an instruction names."""

import pytest

from apply_edit.text.replacements import replacements

TEXT = "total = 10\nfoo(bar, 'x y')\nclass Shop: pass\nlog.debug(total)\n"


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("rename foo to baz", [("foo", "baz")]),
        ("Rename the function foo() to baz.", [("foo", "baz")]),
        ("Rename `total` to `amount`, please", [("total", "amount")]),
        ("replace 'x y' with \"z\"", [("x y", "z")]),
        ("Change 10 to 20", [("10", "20")]),
        ("Change the timeout from 10 to 20", [("10", "20")]),
        ("Use `log.info` instead of `log.debug`", [("log.debug", "log.info")]),
        ("将 foo 重命名为 baz", [("foo", "baz")]),
        ("`foo` を `baz` に変更", [("foo", "baz")]),
        ("benenne foo in baz um", [("foo", "baz")]),
        ("Renomme foo en baz", [("foo", "baz")]),
        ("renombra foo a baz", [("foo", "baz")]),
        ("rename missing to other", []),
        ("rename tot to other", []),
        ("change total so that it works", []),
        ("change foo to return 3", []),
        ("Convert foo to a generator", []),
        ("Make it faster", []),
        ("", []),
    ],
)
def test_only_what_is_named_and_there(instruction, expected):
    assert replacements(instruction, TEXT) == expected
