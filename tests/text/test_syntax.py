"""Which texts still parse."""

import pytest

from apply_edit.text.syntax import fault, language_of


@pytest.mark.parametrize(
    ("name", "language"),
    [("a.py", "python"), ("x/b.JSON", "json"), ("c.tsx", "tsx"), ("Makefile", ""), ("d.h", "cpp")],
)
def test_the_language_follows_the_suffix(name, language):
    assert language_of(name) == language
    assert language_of(name, "Golang") == "go"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "def f():\n    return '\\d'\n"),
        ("json", '{"a": [1, 2]}\n'),
        ("toml", "[a]\nb = 1\n"),
        ("xml", "<a><b/>&amp;</a>\n"),
        ("java", "class A { char c = '}'; String s = \"{\"; /* ( */ }\n"),
        ("javascript", "const r = /[(]/g; f(`a ${b} )`);\n"),
        ("rust", "fn f<'a>(x: &'a str) -> char { '(' }\n"),
        ("", "((("),
        ("markdown", "((("),
    ],
)
def test_what_parses_has_no_fault(language, text):
    assert fault(text, language) is None


@pytest.mark.parametrize(
    ("language", "text", "line"),
    [
        ("python", "a = 1\ndef f(:\n", 2),
        ("python", "a = '\x00'\n", 1),
        ("json", '{\n"a": 1,\n}\n', 3),
        ("toml", "a = 1\nb =\n", 2),
        ("xml", "<a>\n<b>\n</a>\n", 3),
        ("java", "class A {\n  void f() {\n}\n", 1),
        ("java", "class A {\n}\n}\n", 3),
    ],
)
def test_what_does_not_parse_has_a_line(language, text, line):
    found = fault(text, language)
    assert found is not None
    assert found[0] == line


@pytest.mark.parametrize("text", ["(" * 5000 + ")" * 5000, "-" * 100_000 + "1", "[" * 200_000])
@pytest.mark.parametrize("language", ["python", "json"])
def test_a_parser_that_gives_up_breaks_nothing(text, language):
    found = fault(text, language)
    assert found is None or found[0] >= 1
