"""The estimate of the time that is left."""

from __future__ import annotations

import pytest

from apply_edit.show.remaining import Remaining, duration


def after(*passes: tuple[int, int, float, float]) -> Remaining:
    """An estimate fed with (tokens, accepted, seconds, position)."""
    remaining = Remaining()
    for one in passes:
        remaining.add(*one)
    return remaining


def test_nothing_is_claimed_before_there_is_something_to_go_by() -> None:
    assert after().words() == ""
    assert after((30, 30, 0.2, 0.1), (30, 30, 0.2, 0.2)).words() == ""
    assert after(*[(1, 0, 1.0, 0.0)] * 5).words() == ""


def test_plain_copying_goes_on_at_its_rate() -> None:
    # 90 tokens a second, 900 tokens for a quarter of the file: 2,700 left.
    remaining = after(*[(90, 90, 1.0, n / 40) for n in range(1, 11)])
    assert remaining.bounds() == pytest.approx((30.0, 30.0))
    assert remaining.words() == "about 30 s left"
    assert remaining.words(short=True) == "30 s"


def test_an_edit_behind_us_may_or_may_not_be_the_last() -> None:
    copied = [(100, 100, 0.1, n / 20) for n in range(1, 6)]
    edited = [(1, 0, 0.1, 0.25)] * 45
    remaining = after(*copied, *edited)
    low, high = remaining.bounds() or (0, 0)
    assert low == pytest.approx(545 * 3 * 0.001)
    assert high == pytest.approx(3 * 5.0)
    assert remaining.words() == "2 to 15 s left"


def test_at_the_end_nothing_is_left() -> None:
    assert after(*[(100, 100, 1.0, n / 4) for n in range(1, 5)]).bounds() == (0.0, 0.0)


def test_only_new_text_has_one_rate() -> None:
    remaining = after(*[(1, 0, 1.0, n / 100) for n in range(1, 11)])
    assert remaining.bounds() == pytest.approx((90.0, 90.0))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (0.44, "0.4 s"),
        (2.0, "2 s"),
        (8.43, "8.4 s"),
        (9.96, "10 s"),
        (83, "83 s"),
        (185, "3:05 min"),
        (7800, "2:10 h"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
