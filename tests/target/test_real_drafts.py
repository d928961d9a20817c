"""Drafts of real models: the 4-bit self, a smaller model, and a model of another family."""

from __future__ import annotations

import pytest

from apply_edit.editor import Editor, Request
from apply_edit.errors import ModelError
from apply_edit.session import Options
from apply_edit.target.backend import _cpu_has_bf16
from apply_edit.target.quantised import can_quantise

pytestmark = pytest.mark.model

BEFORE = (
    b'def area(width, height):\n    """The area of a rectangle."""\n    return width * height\n'
)
REQUEST = Request(
    instruction="Raise a ValueError with a helpful message if width or height is negative.",
    name="shapes.py",
)


@pytest.fixture(scope="module")
def editor() -> Editor:
    # Without native bf16 the larger one takes minutes for an edit.
    return Editor.load("qwen2.5-coder-1.5b" if _cpu_has_bf16() else "qwen2.5-coder-0.5b")


@pytest.mark.parametrize(
    "options",
    [
        Options(draft="self", verify=True),
        Options(draft="self", verify=True, k=4),
        Options(draft="self", verify=True, temperature=0.7, top_p=0.9, seed=2),
        Options(draft="model:qwen2.5-coder-0.5b", verify=True),
    ],
    ids=["self", "self, k = 4", "self, sampled", "model"],
)
def test_drafted_edits_are_verified(editor: Editor, options: Options) -> None:
    if not _cpu_has_bf16() and (options.k is not None or options.temperature):
        pytest.skip("no native bf16 on this CPU: one edit with each drafter is enough of waiting")
    if options.draft == "self" and not can_quantise():
        pytest.skip("no 4-bit kernels on this CPU")
    result = editor.edit(BEFORE, REQUEST, options)
    assert result.stats.verified
    # How much is asked depends on what passes cost; the edit is longer than a drafter is doubted.
    assert result.stats.by_source["draft"].accepted > 0
    assert b"ValueError" in result.output


def test_another_vocabulary_is_refused(editor: Editor) -> None:
    with pytest.raises(ModelError) as caught:
        editor.edit(BEFORE, REQUEST, Options(draft="model:smollm2-135m"))
    assert caught.value.code == "vocab-mismatch"
