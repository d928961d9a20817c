"""The whole way of an edit, through the replay target."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from apply_edit.editor import Edit, Editor, Options, Request
from apply_edit.errors import ApplyEditError, InputError, Refusal, UsageError
from apply_edit.events import Event, Stage, Wrote
from apply_edit.target.replay import ReplayBackend

BEFORE = "".join(f"line_{i} = {i}\n" for i in range(60))
AFTER = BEFORE.replace("line_30 = 30\n", "line_30 = 'thirty'\nline_30b = None\n")


def edit(
    tmp_path: Path,
    before: str | bytes,
    answer: str | bytes,
    *,
    raw: bool = False,
    request: Request | None = None,
    options: Options | None = None,
    events: list[Event] | None = None,
) -> Edit:
    path = tmp_path / "answer"
    path.write_bytes(answer.encode() if isinstance(answer, str) else answer)
    editor = Editor.load(f"{'replay-raw' if raw else 'replay'}:{path}")
    return editor.edit(
        before.encode() if isinstance(before, str) else before,
        request or Request(instruction="Spell line 30 out"),
        options,
        (lambda event: None) if events is None else events.append,
    )


def test_an_edit_comes_out_as_the_target_writes_it(tmp_path: Path) -> None:
    events: list[Event] = []
    result = edit(tmp_path, BEFORE, AFTER, events=events)
    assert result.output == AFTER.encode()
    assert result.changed
    wrote = [e for e in events if isinstance(e, Wrote)]
    assert "".join(p.text for e in wrote for p in e.pieces).startswith(AFTER[:-1])
    assert [e.tokens for e in wrote] == sorted(e.tokens for e in wrote)
    assert any(isinstance(e, Stage) and e.name == "prefill" for e in events)
    stats = result.stats
    assert stats.finish == "stop"
    assert stats.output_tokens == sum(len(s.tokens) for s in result.steps)
    assert stats.tokens_per_pass > 5
    assert {p.source for p in result.pieces} >= {"copy", "target"}


@pytest.mark.parametrize("k", [None, 0, 1, 7, 64])
@pytest.mark.parametrize("draft", ["copy", "none"])
def test_drafting_changes_passes_and_nothing_else(
    tmp_path: Path, k: int | None, draft: str
) -> None:
    result = edit(tmp_path, BEFORE, AFTER, options=Options(k=k, draft=draft))
    assert result.output == AFTER.encode()
    if draft == "none" or k == 0:
        assert result.stats.passes == result.stats.output_tokens + 1
    else:
        assert result.stats.passes < result.stats.output_tokens


def test_verify_compares_with_plain_decoding(tmp_path: Path) -> None:
    result = edit(tmp_path, BEFORE, AFTER, options=Options(verify=True))
    assert result.stats.verified is True


def test_bytes_the_edit_leaves_alone_stay(tmp_path: Path) -> None:
    before = b"\xef\xbb\xbfa = 'e\xcc\x81'\r\nb = 1\n\x0cc = 2  \r\nd = 3"
    answer = "a = 'e\u0301'\nb = 2\n\x0cc = 2  \nd = 3"
    result = edit(tmp_path, before, answer, request=Request(instruction="b is 2"))
    assert result.output == before.replace(b"b = 1", b"b = 2")


def test_an_unchanged_answer_is_no_change(tmp_path: Path) -> None:
    for before in (BEFORE, "", "x", "x\n", "\n\n\n"):
        result = edit(tmp_path, before, before)
        assert not result.changed
        assert result.output == before.encode()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (AFTER[: len(AFTER) // 2], "truncated"),
        ("", "empty"),
        ("```python\n" + AFTER + "```\n", "fenced"),
        ("Here is the code:\n" + AFTER, "fenced"),
        (BEFORE[:200] + "# ... existing code ...\n" + BEFORE[400:], "elided"),
        (AFTER + AFTER, "duplicated"),
        (BEFORE[:300] + "x = x\n" * 500, "looping"),
    ],
    ids=["truncated", "empty", "fenced", "prose", "elided", "twice", "loop"],
)
def test_damaged_answers_are_refused(tmp_path: Path, answer: str, code: str) -> None:
    raw = code == "truncated"
    options = Options(max_new_tokens=len(answer) // 8) if raw else None
    with pytest.raises(Refusal) as refused:
        edit(tmp_path, BEFORE, answer, raw=raw, options=options)
    assert refused.value.code == code
    assert "\n" not in refused.value.message


def test_a_refusal_can_be_let_through_knowingly(tmp_path: Path) -> None:
    answer = BEFORE[:200] + "# ... existing code ...\n" + BEFORE[400:]
    with pytest.raises(Refusal):
        edit(tmp_path, BEFORE, answer)
    request = Request(instruction="Spell line 30 out", allow=frozenset({"elided", "lost"}))
    result = edit(tmp_path, BEFORE, answer, request=request)
    assert result.output == answer.encode()
    assert "elided" in result.allowed


@pytest.mark.parametrize(
    ("data", "request_", "code"),
    [
        (b"x", Request(), "no-edit"),
        (b"x", Request(instruction=" \n"), "empty-instruction"),
        (b"x", Request(update=""), "empty-sketch"),
        (b"x", Request(update="# ... existing code ...\n"), "empty-sketch"),
        (b"x\x00y", Request(instruction="x"), "binary"),
        (b"caf\xe9\n", Request(instruction="x"), "not-utf8"),
        (b"x\n", Request(instruction="x", lines=(2, 9)), "lines"),
        (b"x\n", Request(instruction="\udcff"), "not-utf8"),
    ],
)
def test_bad_requests_never_reach_the_model(
    tmp_path: Path, data: bytes, request_: Request, code: str
) -> None:
    with pytest.raises(ApplyEditError) as refused:
        edit(tmp_path, data, b"anything", request=request_)
    assert refused.value.code == code
    assert isinstance(refused.value, (UsageError, InputError))


def test_a_file_longer_than_the_window_is_refused_before_decoding(tmp_path: Path) -> None:
    (tmp_path / "answer").write_text(AFTER)
    editor = Editor(ReplayBackend(tmp_path / "answer", window=300))
    with pytest.raises(InputError) as refused:
        editor.edit(BEFORE.encode(), Request(instruction="x"))
    assert refused.value.code == "too-long"


def test_timeout_is_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        edit(tmp_path, BEFORE, AFTER, options=Options(timeout=0.0))
    assert refused.value.code == "timeout"


def test_unknown_draft(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        edit(tmp_path, BEFORE, AFTER, options=Options(draft="magic"))
    assert refused.value.code == "unknown-draft"


def test_a_session_edits_again(tmp_path: Path) -> None:
    (tmp_path / "answer").write_text(AFTER)
    editor = Editor.load(f"replay:{tmp_path / 'answer'}")
    for _ in range(3):
        result = editor.edit(BEFORE.encode(), Request(instruction="Spell line 30 out"))
        assert result.output == AFTER.encode()


def test_the_editor_imports_no_torch() -> None:
    code = (
        "import sys, apply_edit.editor, apply_edit.target.replay;"
        "heavy = {'torch', 'transformers', 'rich', 'typer', 'numpy'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
