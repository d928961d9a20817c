from __future__ import annotations

import pytest

from apply_edit.decode.prefix import shared_prefix


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([], [1], 0),
        ([1, 2], [1, 2], 2),
        ([1, 2], [1, 2, 3], 2),
        ([1, 2, 3], [1, 9, 3], 1),
        ([2], [1], 0),
    ],
)
def test_shared_prefix(a: list[int], b: list[int], expected: int) -> None:
    assert shared_prefix(a, b) == shared_prefix(tuple(b), a) == expected
