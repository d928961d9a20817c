"""Loops against tables, while the text grows."""

import pytest

from apply_edit.text.loop_watch import LoopWatch

ROWS = "".join("    { 0, 0, 0, 0 },\n" for _ in range(300))


def fires(original, output, step=7):
    watch = LoopWatch(original)
    for i in range(0, len(output), step):
        watch.feed(output[i : i + step])
    return watch.looping


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize(
    "loop",
    [
        "    total += 1\n" * 60,
        "if a:\n    b()\n" * 40,
        "def f():\n    x = 1\n    if x:\n        y()\n    }\n    }\n    return x\n\n" * 8,
        "\n" * 100,
        "x = f(" + "very " * 400,
        "=" * 1500,
    ],
)
def test_a_loop_is_seen(loop, step):
    assert fires("a = 1\n", "a = 1\nb = 2\n" + loop, step)


def test_it_is_seen_early():
    watch = LoopWatch("")
    fed = 0
    while not watch.feed("the same line again\n"):
        fed += 1
        assert fed < 40
    assert watch.line is not None
    assert watch.feed("anything") is True


@pytest.mark.parametrize(
    ("original", "output"),
    [
        (ROWS, ROWS + "    { 0, 0, 0, 0 },\n" * 20),
        ("t\n", "".join(f"    [{i}, {i * i}],\n" for i in range(500))),
        ("t\n", "    }\n" * 3 + "a\n" + "    }\n" * 3),
        ("t\n", "\n\n\n\nx\n" * 2),
        ("Title\n" + "=" * 900 + "\n", "Title!\n" + "=" * 900 + "\n"),
        ("t\n", "case 1:\n    break;\ncase 2:\n    break;\ncase 3:\n    break;\n" * 1),
        ("t\n", "{" + ",".join(f'"k{i}":{i}' for i in range(2000)) + "}"),
        ("t\n", "# " + "-" * 200 + "\n"),
    ],
)
def test_rows_and_tables_are_none(original, output):
    assert not fires(original, output)


def test_rows_of_the_original_may_still_run_away():
    assert fires(ROWS, ROWS * 10)
