"""The real models: blocks are bit-equal to single steps, drafted tokens equal to plain ones.

The small one alone on CPUs without native bf16, where the other takes minutes for an edit.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from apply_edit.editor import Edit, Editor, Request
from apply_edit.session import Options
from apply_edit.target.backend import TorchBackend, _cpu_has_bf16
from apply_edit.target.catalog import DEFAULT_MODEL
from apply_edit.target.prompt import build

pytestmark = pytest.mark.model

FIXTURE = Path(__file__).parents[2] / "fixtures" / "inventory"
MODELS = ["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]


@pytest.fixture(scope="module", params=MODELS if _cpu_has_bf16() else MODELS[:1])
def editor(request: pytest.FixtureRequest) -> Editor:
    return Editor.load(request.param)


def test_blocks_are_bit_equal_to_single_steps(editor: Editor) -> None:
    backend = editor.backend
    assert isinstance(backend, TorchBackend)
    engine = backend.target(lambda event: None)
    if not _cpu_has_bf16() and backend.facts()["exact"] != "bit":
        pytest.skip("passes in float32 do not agree bit for bit on this CPU")
    assert backend.facts()["exact"] == "bit"
    ids = backend.codec.encode((FIXTURE / "inventory.py").read_text(encoding="utf-8"))[:200]

    def scored(sizes: list[int]) -> torch.Tensor:
        engine.reset(160)
        rows: list[torch.Tensor] = []
        place = 160
        while place < len(ids):
            size = min(sizes[len(rows) % len(sizes)], len(ids) - place)
            rows.append(engine.score(ids[place : place + size]).logits.clone())
            engine.keep(size)
            place += size
        return torch.cat(rows)

    engine.reset(0)
    engine.prefill(ids[:160])
    single = scored([1])
    for sizes in ([2], [8], [40], [3, 1, 20]):
        assert torch.equal(scored(sizes), single), sizes
    engine.reset(0)


def test_a_real_edit_is_verified(editor: Editor) -> None:
    """A short file, so that decoding it plainly as well stays quick."""
    before = (
        "def area(width, height):\n"
        '    """The area of a rectangle."""\n'
        "    return width * height\n"
        "\n\n"
        "def perimeter(width, height):\n"
        '    """The way around a rectangle."""\n'
        "    return width + height\n"
    )
    sketch = (
        "# ... existing code ...\n\n\n"
        "def perimeter(width, height):\n"
        '    """The way around a rectangle."""\n'
        "    return 2 * (width + height)\n"
    )
    result = editor.edit(
        before.encode(), Request(update=sketch, name="shapes.py"), Options(verify=True)
    )
    assert result.stats.verified is True
    assert result.stats.passes < result.stats.output_tokens / 3
    assert b"    return 2 * (width + height)\n" in result.output
    if editor.backend.name == DEFAULT_MODEL:  # the small one may lose a blank line
        assert result.output.decode() == before.replace("width + height", "2 * (width + height)")


def test_edits_in_a_batch_are_those_made_alone() -> None:
    """Three short files in the small model, their tokens and their refusals."""
    editor = Editor.load("qwen2.5-coder-0.5b")
    items = [
        (
            b"def area(width, height):\n    return width + height\n",
            Request(instruction="Multiply width and height", name="area.py"),
        ),
        (
            b"NAMES = ['a', 'b']\n\n\ndef first():\n    return NAMES[0]\n",
            Request(instruction="Add a function last() that returns the last name", name="n.py"),
        ),
        (
            b"limit = 10\n",
            Request(update="limit = 20\nstep = 2\n", name="limit.py"),
        ),
    ]

    def shown(batch: int) -> list[object]:
        return [
            (r.output, [t for s in r.steps for t in s.tokens])
            if isinstance(r, Edit)
            else (r.code, r.message)
            for r in editor.edit_all(items, Options(max_new_tokens=120), batch=batch)
        ]

    alone = shown(1)
    assert any(isinstance(first, bytes) for first, _ in alone)  # type: ignore[misc]
    assert shown(3) == alone
    assert shown(2) == alone


def test_a_kept_beginning_is_what_the_model_computes(editor: Editor) -> None:
    """After the edits above it is kept; every bit must be the one of a pass of this machine."""
    backend = editor.backend
    assert isinstance(backend, TorchBackend)
    engine = backend.target(lambda event: None)
    editor.session.forget()
    prompt = build(backend.codec, "x = 1\n", update="x = 2\n")
    beginning = prompt.tokens[: prompt.fixed]
    assert len(beginning) > 40
    engine.reset(0)
    engine.prefill(beginning)
    wanted = engine.cache.read(len(beginning))
    assert backend.recall(engine, beginning) == len(beginning)
    assert torch.equal(engine.cache.read(len(beginning)), wanted)
    engine.reset(0)
