"""Choosing a draft by name, and what --verify says when a target contradicts itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from apply_edit.decode.margin import MarginTarget
from apply_edit.decode.types import Branch, Scores
from apply_edit.draft.self import SelfDrafter
from apply_edit.drafting import check_draft, open_drafter, settled
from apply_edit.editor import Editor, Request
from apply_edit.errors import ApplyEditError, ModelError, Refusal
from apply_edit.events import Event, Note, OnEvent, ignore
from apply_edit.session import Options
from apply_edit.target.replay import ReplayBackend, ReplayScores, ReplayTarget

BEFORE = b"def area(a, b):\n    return a * b\n\n\ndef side(a):\n    return a\n"
AFTER = BEFORE.replace(b"a * b", b"round(a * b, 2)")


@pytest.mark.parametrize("name", ["auto", "copy", "none", "self", "heads", "model:small"])
def test_drafts_there_are(name: str) -> None:
    check_draft(name)


@pytest.mark.parametrize("name", ["", "model:", "copying", "self:x", "MODEL:x", "heads:x"])
def test_drafts_there_are_not(name: str) -> None:
    with pytest.raises(ApplyEditError) as caught:
        check_draft(name)
    assert caught.value.code == "unknown-draft"


class Beside(ReplayBackend):
    """A replay that has a drafter: the same text, read in the target's place."""

    drafts = 0

    def check_drafter(self, name: str) -> None:
        if name == "heads":
            raise ModelError("no-heads", "train them")

    def target(self, on_event: OnEvent) -> ReplayTarget:
        if not hasattr(self, "engine"):
            self.engine = super().target(on_event)
        return self.engine

    def drafter(self, name: str, on_event: OnEvent) -> SelfDrafter | None:
        assert name == "self"
        backend = self

        class Narrow:
            length = property(lambda self: backend.engine.length)
            limit = property(lambda self: backend.engine.limit)

            def prefill(self, tokens: Sequence[int]) -> None:
                raise AssertionError

            def score(
                self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
            ) -> Scores:
                backend.drafts += 1
                return backend.engine.score(tokens, branches, first)

            def keep(self, rows: int, branch: int | None = None, branch_rows: int = 0) -> None:
                backend.engine._length += rows

            def reset(self, length: int = 0) -> None:
                backend.engine._length = length

        return SelfDrafter(Narrow())


@pytest.fixture
def replay(tmp_path: Path) -> Path:
    path = tmp_path / "after.py"
    path.write_bytes(AFTER)
    return path


@pytest.mark.parametrize("draft", ["none", "copy", "self", "auto"])
@pytest.mark.parametrize("k", [None, 3])
def test_the_output_is_the_same_with_every_draft(replay: Path, draft: str, k: int | None) -> None:
    backend = Beside(replay)
    result = Editor(backend).edit(
        BEFORE, Request(instruction="round the area"), Options(draft=draft, k=k, verify=True)
    )
    assert result.output == AFTER
    assert result.stats.verified
    assert (backend.drafts > 0) == (draft in ("self", "auto"))
    assert ("draft" in result.stats.by_source) >= (draft in ("self", "auto"))


@pytest.mark.parametrize("heads", ["trained", "damaged", "none"])
def test_auto_takes_heads_where_there_are_some(replay: Path, heads: str) -> None:
    class Headed(Beside):
        opened: ClassVar[list[str]] = []

        def check_drafter(self, name: str) -> None:
            assert name == "heads"
            if heads == "none":
                raise ModelError("no-heads", "train them")

        def drafter(self, name: str, on_event: OnEvent) -> SelfDrafter | None:
            self.opened.append(name)
            if name == "heads" and heads == "damaged":
                raise ModelError("bad-heads", "the file is damaged; train them anew")
            return super().drafter("self", on_event)

    backend = Headed(replay)
    said: list[Event] = []
    Headed.opened.clear()
    assert open_drafter(backend, "auto", said.append) is not None
    opened = {"trained": ["heads"], "damaged": ["heads", "self"], "none": ["self"]}
    assert backend.opened == opened[heads]
    # Who asked for nothing in particular hears of the damage with -v, and loses nothing.
    assert [note.text for note in said if isinstance(note, Note)] == (
        ["no draft heads: the file is damaged; train them anew"] if heads == "damaged" else []
    )


def test_a_backend_without_drafters_copies(replay: Path) -> None:
    backend = ReplayBackend(replay)
    assert open_drafter(backend, "auto", ignore) is None
    assert open_drafter(backend, "self", ignore) is None
    result = Editor(backend).edit(BEFORE, Request(instruction="x"), Options(draft="auto"))
    assert result.output == AFTER
    for name in ("model:small", "heads"):
        with pytest.raises(ApplyEditError) as caught:
            open_drafter(backend, name, ignore)
        assert caught.value.code == "no-draft-model"


class Uncertain(ReplayBackend):
    """Says another token in wide passes than in narrow ones."""

    noise = 0.0

    def target(self, on_event: OnEvent) -> ReplayTarget:
        whole = super().target(on_event)
        right = self.codec.encode("round")[0]
        wrong = self.codec.encode("floor")[0]

        class Scored(ReplayScores):
            def __init__(self, tokens: list[int], vocab: int, wide: bool) -> None:
                self.near = [i for i, token in enumerate(tokens) if token == right]
                super().__init__([wrong if wide and t == right else t for t in tokens], vocab)
                self.wide = wide

            def row(self, index: int) -> list[float]:
                row = list(super().row(index))
                if index in self.near:
                    row[right], row[wrong] = (2.0, 2.25) if self.wide else (2.5, 2.25)
                return row

            def top(self, index: int, count: int) -> list[int]:
                order = [wrong, right] if self.wide else [right, wrong]
                return order[:count] if index in self.near else [self._tokens[index], 0][:count]

        class Target(ReplayTarget):
            def score(
                self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
            ) -> ReplayScores:
                scores = super().score(tokens, branches, first)
                return Scored(scores._tokens, self._vocab(), len(tokens) > 1)

            def reset(self, length: int = 0) -> None:
                # A replay forgets where its answer began; a model does not.
                start = self._start
                super().reset(length)
                self._start = start if length else None

        return Target(whole._answer, whole._vocab, whole._limit)


def test_verify_names_tokens_logits_and_margin(replay: Path) -> None:
    with pytest.raises(Refusal) as caught:
        Editor(Uncertain(replay)).edit(
            BEFORE,
            Request(instruction="round", allow=frozenset({"incomplete"})),
            Options(k=2, verify=True),
        )
    assert caught.value.code == "not-exact"
    message = caught.value.message
    assert "drafted 'floor'" in message
    assert "plain 'round'" in message
    assert "at 2.25" in message
    assert "at 2.5" in message
    assert "margin 0.25" in message


def test_near_ties_are_settled_where_passes_disagree(replay: Path) -> None:
    backend = Uncertain(replay)
    backend.noise = 0.2
    assert isinstance(settled(backend, backend.target(ignore)), MarginTarget)
    result = Editor(backend).edit(BEFORE, Request(instruction="round"), Options(verify=True))
    assert result.output == AFTER
    assert result.stats.verified
    backend.noise = 0.0
    assert not isinstance(settled(backend, backend.target(ignore)), MarginTarget)
