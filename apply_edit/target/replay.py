"""A target that writes a known text, on a small built-in tokenizer, with no torch.

It goes through the same loop, guards and outputs as a real model, so that every promise about
bytes, refusals, signals and display can be tested in milliseconds and drafting measured exactly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from apply_edit.decode.types import Branch
from apply_edit.errors import ModelError
from apply_edit.events import OnEvent

END = 0
START = 1
FIRST_BYTE = 2
FIRST_PIECE = FIRST_BYTE + 256
_PIECE = re.compile(r"[^\W_]+|[ \t]+|\n|.", re.ASCII | re.DOTALL)


class ReplayCodec:
    """Words, runs of blanks, and single bytes; ids are given out as pieces are met.

    >>> codec = ReplayCodec()
    >>> codec.decode(codec.encode("x = f(1)  # é"))
    'x = f(1)  # é'
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._pieces: list[bytes] = [b"", b"", *(bytes([i]) for i in range(256))]

    def __len__(self) -> int:
        return len(self._pieces)

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = []
        for piece in _PIECE.findall(text):
            if len(piece) == 1:
                tokens.extend(FIRST_BYTE + b for b in piece.encode("utf-8", "surrogatepass"))
                continue
            token = self._ids.get(piece)
            if token is None:
                token = self._ids[piece] = len(self._pieces)
                self._pieces.append(piece.encode())
            tokens.append(token)
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        return b"".join(self._pieces[t] for t in tokens).decode("utf-8", "replace")

    def chat(self, system: str, user: str) -> tuple[list[int], list[int]]:
        return [START, *self.encode(f"{system}\n{user}")], [START]

    @property
    def stop(self) -> frozenset[int]:
        return frozenset({END, START})


class ReplayScores:
    """One certain token per row."""

    def __init__(self, tokens: list[int], vocab: int) -> None:
        self._tokens = tokens
        self._vocab = vocab

    def __len__(self) -> int:
        return len(self._tokens)

    def greedy(self) -> list[int]:
        return self._tokens

    def row(self, index: int) -> Sequence[float]:
        logits = [-1e9] * self._vocab
        logits[self._tokens[index]] = 0.0
        return logits

    def top(self, index: int, count: int) -> list[int]:
        return [self._tokens[index]][:count]


class ReplayTarget:
    """Writes `answer` and then ends, token by token, whatever stands in the prompt or the draft.

    The answer begins behind the first scored row of the first pass after a `prefill` or `reset`.
    """

    def __init__(self, answer: Sequence[int], vocab: Callable[[], int], limit: int) -> None:
        self._answer = list(answer)
        self._vocab = vocab
        self._limit = limit
        self._length = 0
        self._start: int | None = None
        self._pass: tuple[int, int] = (0, 0)

    @property
    def length(self) -> int:
        return self._length

    @property
    def limit(self) -> int:
        return self._limit

    def prefill(self, tokens: Sequence[int]) -> None:
        self._length += len(tokens)
        self._start = None

    def reset(self, length: int = 0) -> None:
        self._length = min(self._length, length)
        self._start = None

    def score(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> ReplayScores:
        if self._start is None:
            self._start = self._length + first
        place = self._length + first - self._start
        rows = [self._at(place + i) for i in range(len(tokens) - first)]
        for branch in branches:
            rows += [self._at(place + branch.fork + 1 + i) for i in range(len(branch.tokens))]
        return ReplayScores(rows, self._vocab())

    def keep(self, rows: int, branch: int | None = None, branch_rows: int = 0) -> None:
        self._length += rows + branch_rows

    def _at(self, place: int) -> int:
        return self._answer[place] if place < len(self._answer) else END


class ReplayBackend:
    """``replay:PATH`` answers with the text of PATH; ``replay-raw:PATH`` with just that, unframed.

    Where PATH is a folder, its files, in the order of their names, answer one question each (the
    last of them all that follow).

    Raises `ModelError` ``no-replay`` where PATH cannot be read as UTF-8 text.
    """

    def __init__(self, path: Path, *, raw: bool = False, window: int = 1 << 20) -> None:
        try:
            files = sorted(file for file in path.iterdir()) if path.is_dir() else [path]
            self._texts = [file.read_bytes().decode("utf-8") for file in files]
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise ModelError(
                "no-replay", f"cannot replay {str(path)!r} ({why}); name a UTF-8 text file"
            ) from error
        if not self._texts:
            raise ModelError("no-replay", f"the folder {str(path)!r} is empty; put answers into it")
        self._asked = 0
        self._raw = raw
        self._codec = ReplayCodec()
        self._window = window
        self._closing = ""

    @property
    def name(self) -> str:
        return "replay"

    @property
    def codec(self) -> ReplayCodec:
        return self._codec

    @property
    def window(self) -> int:
        return self._window

    def frame(self, closing: str) -> None:
        """The template's closing text, which a whole answer ends with."""
        self._closing = closing

    def target(self, on_event: OnEvent) -> ReplayTarget:
        text = self._texts[min(self._asked, len(self._texts) - 1)]
        self._asked += 1
        if self._raw:
            answer = text
        else:
            view = text.removeprefix("\ufeff").replace("\r\n", "\n")
            if "\n" not in view:
                view = view.replace("\r", "\n")
            answer = view.removesuffix("\n") + self._closing
        tokens = self._codec.encode(answer)
        return ReplayTarget(tokens, lambda: len(self._codec), self._window)

    def facts(self) -> dict[str, str | int]:
        return {"model": "replay", "dtype": "", "device": "none", "threads": 1, "exact": "bit"}

    def costs(self) -> None:
        return None

    def observe(self, passes: Sequence[tuple[int, float]]) -> None:
        """A replay costs nothing that would matter again."""
