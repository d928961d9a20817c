"""The target's own weights in fewer bits as the draft: same vocabulary, same cache."""

from __future__ import annotations

from collections.abc import Sequence

from apply_edit.decode.types import Target
from apply_edit.draft.drafter import Guess, guess_of

LAG = 4
"""More unread tokens than this (the prompt's tail) cost a narrow model more than they gain."""


class SelfDrafter:
    """Drafts with `narrow`, whose committed positions are the target's own.

    Its rows stand behind the committed ones, where the verifying pass writes the target's over
    them; `end` sets the length back, so that nothing of a draft is ever taken for decided.
    """

    def __init__(self, narrow: Target) -> None:
        self._narrow = narrow
        self._base: int | None = None
        self._rows = 0

    def behind(self, tokens: Sequence[int]) -> int:
        # The last decided token is never in the cache: it rides with the next pass.
        return max(0, len(tokens) - self._narrow.length - 1)

    def begin(self, tokens: Sequence[int]) -> Guess | None:
        narrow = self._narrow
        unread = tokens[narrow.length :]
        if not 0 < len(unread) <= LAG or len(tokens) > narrow.limit:
            return None
        self._base = narrow.length
        self._rows = len(unread)
        return guess_of(narrow.score(unread, (), len(unread) - 1), 0)

    def more(self, token: int) -> Guess | None:
        narrow = self._narrow
        narrow.keep(self._rows)
        self._rows = 1
        if narrow.length >= narrow.limit:
            self._rows = 0
            return None
        return guess_of(narrow.score([token]), 0)

    def end(self) -> None:
        if self._base is not None:
            self._narrow.reset(self._base)
            self._base = None
