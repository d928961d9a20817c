"""A table-driven target without torch, and proposers that are always right, wrong, or silent."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from apply_edit.decode.types import Branch, Draft

VOCAB = 16
END = 0


class FakeScores:
    def __init__(self, rows: list[list[float]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def greedy(self) -> list[int]:
        return [max(range(len(r)), key=lambda t: (r[t], -t)) for r in self._rows]

    def row(self, index: int) -> Sequence[float]:
        return self._rows[index]

    def top(self, index: int, count: int) -> list[int]:
        row = self._rows[index]
        return sorted(range(len(row)), key=lambda t: (-row[t], t))[:count]


class FakeTarget:
    """Logits are a pure function of the whole prefix; checks the cache discipline as it goes."""

    def __init__(
        self, logits: Callable[[tuple[int, ...]], list[float]], limit: int = 10_000
    ) -> None:
        self._logits = logits
        self._limit = limit
        self.committed: list[int] = []
        self.passes = 0
        self.rows = 0
        self._pass: tuple[list[int], list[Branch], int] | None = None

    @property
    def length(self) -> int:
        return len(self.committed)

    @property
    def limit(self) -> int:
        return self._limit

    def prefill(self, tokens: Sequence[int]) -> None:
        self.committed.extend(tokens)

    def score(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> FakeScores:
        assert tokens
        assert 0 <= first < len(tokens)
        assert len(self.committed) + len(tokens) <= self._limit
        self.passes += 1
        self.rows += len(tokens) + sum(len(b.tokens) for b in branches)
        self._pass = (list(tokens), list(branches), first)
        prefix = list(self.committed)
        rows = []
        for index, token in enumerate(tokens):
            prefix.append(token)
            if index >= first:
                rows.append(self._logits(tuple(prefix)))
        for branch in branches:
            path = [*self.committed, *tokens[: first + 1 + branch.fork]]
            for token in branch.tokens:
                path.append(token)
                rows.append(self._logits(tuple(path)))
        return FakeScores(rows)

    def keep(self, rows: int, branch: int | None = None, branch_rows: int = 0) -> None:
        assert self._pass is not None
        tokens, branches, first = self._pass
        assert 1 <= rows <= len(tokens)
        self.committed.extend(tokens[:rows])
        if branch is not None:
            assert rows == first + 1 + branches[branch].fork
            self.committed.extend(branches[branch].tokens[:branch_rows])
        self._pass = None

    def reset(self, length: int = 0) -> None:
        del self.committed[length:]


def writes(text: Sequence[int], prompt: int, *, vocab: int = VOCAB) -> FakeTarget:
    """A target that writes `text`, whatever is drafted, after a prompt of `prompt` tokens."""

    def logits(prefix: tuple[int, ...]) -> list[float]:
        place = len(prefix) - prompt
        token = text[place] if place < len(text) else END
        return [1.0 if t == token else 0.0 for t in range(vocab)]

    return FakeTarget(logits)


def hashed(seed: int, vocab: int = VOCAB, *, end_weight: float = 0.0) -> FakeTarget:
    """A target whose logits depend on the last three tokens in a way nothing predicts."""

    def logits(prefix: tuple[int, ...]) -> list[float]:
        rng = random.Random(f"{seed}:{prefix[-3:]}")
        row = [rng.random() for _ in range(vocab)]
        row[END] = end_weight * rng.random()
        return row

    return FakeTarget(logits)


class Silent:
    """Drafts nothing."""

    def propose(self, limit: int) -> Draft:
        return Draft()

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        pass


class Scripted:
    """Drafts from a known sequence by output position; `wrong` shifts every token."""

    def __init__(self, text: Sequence[int], *, wrong: bool = False) -> None:
        self.text = list(text)
        self.wrong = wrong
        self.place = 0

    def propose(self, limit: int) -> Draft:
        tokens = self.text[self.place : self.place + limit]
        if self.wrong:
            tokens = [1 + (t % (VOCAB - 1)) for t in tokens]
        return Draft(tuple(tokens), "copy", self.place)

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        self.place += len(tokens)


class Fixed:
    """Always k tokens."""

    def __init__(self, k: int) -> None:
        self.limit = k

    def choose(self, draft: Draft) -> int:
        return self.limit

    def record(self, draft: Draft, accepted: int, seconds: float) -> None:
        pass
