"""A smaller model as the draft: the target's vocabulary, its own weights and its own cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from apply_edit.decode.prefix import shared_prefix
from apply_edit.decode.types import Target
from apply_edit.draft.drafter import Guess, guess_of
from apply_edit.errors import ModelError

CHUNK = 256
"""Unread tokens per pass while catching up."""
NARROW = 4
"""Passes of at most so many rows go to the narrow engine, where there is one."""


class ModelDrafter:
    """Drafts with `wide`, a model of its own; `narrow` may do the short passes in its cache.

    The cache is truncated to what was decided when the next draft begins: guesses that held stay,
    and the target's own token rides in the first row, so catching up costs no pass. `known`
    bounds the tokens that mean something to both models.
    """

    def __init__(self, wide: Target, known: int, narrow: Target | None = None) -> None:
        self._wide = wide
        self._narrow = narrow or wide
        self._known = known
        self._held: list[int] = []
        self._rows: list[int] = []

    def read(self, tokens: Sequence[int], on_chunk: Callable[[int, int], None]) -> None:
        """Read a prompt in chunks; `on_chunk(done, total)` is told, and may raise to cancel."""
        self._truncate(tokens)
        wide = self._wide
        total = min(len(tokens) - 1, wide.limit)
        while len(self._held) < total:
            on_chunk(len(self._held), total)
            chunk = tokens[len(self._held) : min(total, len(self._held) + CHUNK)]
            wide.prefill(chunk)
            self._held.extend(chunk)
        on_chunk(total, total)

    def behind(self, tokens: Sequence[int]) -> int:
        return max(0, len(tokens) - shared_prefix(self._held, tokens) - 1)

    def begin(self, tokens: Sequence[int]) -> Guess | None:
        if len(tokens) > self._wide.limit or not tokens:
            return None
        self._truncate(tokens[:-1])
        unread = list(tokens[len(self._held) :])
        while len(unread) > CHUNK:
            self._wide.prefill(unread[:CHUNK])
            self._held.extend(unread[:CHUNK])
            del unread[:CHUNK]
        engine = self._narrow if len(unread) <= NARROW else self._wide
        self._rows = unread
        return self._guess(engine, len(unread) - 1)

    def more(self, token: int) -> Guess | None:
        if self._narrow.length >= self._narrow.limit:
            return None
        self._rows = [token]
        return self._guess(self._narrow, 0)

    def end(self) -> None:
        """Nothing of the target's was touched; guesses are cut back when the next draft begins."""
        self._rows = []

    def _guess(self, engine: Target, first: int) -> Guess | None:
        scores = engine.score(self._rows, (), first)
        engine.keep(len(self._rows))
        self._held.extend(self._rows)
        guess = guess_of(scores, 0)
        if guess.token >= self._known:
            return None
        if guess.second is not None and guess.second >= self._known:
            return Guess(guess.token, guess.chance)
        return guess

    def _truncate(self, tokens: Sequence[int]) -> None:
        shared = shared_prefix(self._held, tokens)
        if shared < len(self._held):
            del self._held[shared:]
            self._wide.reset(shared)


def check_vocabulary(
    target: Mapping[str, int], draft: Mapping[str, int], name: str, draft_name: str
) -> int:
    """The count of tokens that two models share: all that both tokenizers know.

    Raises `ModelError` ``vocab-mismatch`` unless one of the maps from text to token is the other,
    or the other with tokens behind its last one.
    """
    small, large = sorted((target, draft), key=len)
    shared = max(small.values(), default=-1) + 1
    different = [text for text, token in small.items() if large.get(text) != token]
    more = [text for text, token in large.items() if token < shared and text not in small]
    if different or more or not shared:
        count = len(different) + len(more)
        raise ModelError(
            "vocab-mismatch",
            f"{draft_name} cannot draft for {name}: {count:,} tokens of their vocabularies differ; "
            "choose a draft model of the same family, or --draft copy",
        )
    return shared
