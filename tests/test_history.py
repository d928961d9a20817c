"""The history: figures only, one line a run, whatever else happens to the file."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path

import pytest

from apply_edit import history
from apply_edit.decode.stats import Stats
from apply_edit.editor import Request
from apply_edit.history import Record, append, clear, language_of, place, read, size_of

STATS = Stats(
    model="qwen2.5-coder-1.5b",
    dtype="bfloat16",
    device="cuda:0",
    exact="bit",
    draft="copy",
    prompt_tokens=100,
    output_tokens=90,
    passes=9,
    drafted=100,
    accepted=81,
    first_run_seconds=0.51234567,
    total_seconds=2.5,
    floor_seconds=2.0,
    finish="stop",
)


def record(**more: object) -> Record:
    request = Request(instruction="x", name="f.py")
    made = Record.of(request, b"a\n", STATS, today=date(2026, 11, 30))
    return replace(made, **more)  # type: ignore[arg-type]


def at(tmp_path: Path) -> Path:
    return tmp_path / "state" / "apply-edit" / "history.jsonl"


def test_nothing_of_names_and_contents_is_kept(tmp_path: Path) -> None:
    request = Request(instruction="secret-words", update="secret-sketch", name="/secret/path.py")
    stats = replace(STATS, model="/secret/model", draft="model:/secret/draft")
    made = Record.of(request, b"secret-content\n" * 300, stats, status="refused", code="lost")
    append(made, at(tmp_path))
    assert "secret" not in at(tmp_path).read_text()
    kept = read(at(tmp_path)).records[0]
    assert (kept.kind, kept.size, kept.language) == ("both", "201-500", "python")
    assert (kept.model, kept.draft, kept.device) == ("custom", "model", "cuda")
    assert (kept.status, kept.code, kept.passes) == ("refused", "lost", 9)


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    records = [record(passes=n) for n in range(3)]
    for each in records:
        append(each, at(tmp_path))
    assert read(at(tmp_path)) == history.Past(tuple(records), 0)
    assert read(at(tmp_path)).records[0].first_run_seconds == 0.5123


def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    append(record(), at(tmp_path))
    assert stat.S_IMODE(at(tmp_path).stat().st_mode) == 0o600
    assert stat.S_IMODE(at(tmp_path).parent.stat().st_mode) == 0o700


GOOD = json.dumps({"v": 1, **asdict(record())}).encode()


@pytest.mark.parametrize(
    "line",
    [
        GOOD[:-9],
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"{}",
        b"[]",
        b"1e999",
        GOOD.replace(b'"v": 1', b'"v": 2'),
        GOOD.replace(b'"passes": 9', b'"passes": "9"'),
        GOOD.replace(b'"passes": 9', b'"passes": -9'),
        GOOD.replace(b'"passes": 9', b'"passes": true'),
        GOOD.replace(b'"passes": 9', b'"passes": 9.5'),
        GOOD.replace(b'"passes": 9', b'"more": 1, "passes": 9'),
        GOOD.replace(b'"passes": 9, ', b""),
        GOOD.replace(b"2.5", b"NaN"),
        GOOD.replace(b"2.5", b"Infinity"),
        GOOD.replace(b"2.5", b"null"),
    ],
)
def test_damaged_lines_are_skipped(tmp_path: Path, line: bytes) -> None:
    append(record(passes=1), at(tmp_path))
    with at(tmp_path).open("ab") as stream:
        stream.write(line)
    append(record(passes=2), at(tmp_path))
    past = read(at(tmp_path))
    assert [each.passes for each in past.records] == [1, 2]
    assert past.skipped == 1


def test_the_good_line_of_those_tests_is_good(tmp_path: Path) -> None:
    at(tmp_path).parent.mkdir(parents=True)
    at(tmp_path).write_bytes(GOOD + b"\n\n")
    assert read(at(tmp_path)) == history.Past((record(),), 0)


def test_a_full_file_is_put_aside_and_the_oldest_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "CAP", 3 * (len(GOOD) + 1))
    for n in range(1, 21):
        append(record(passes=n), at(tmp_path))
    kept = [each.passes for each in read(at(tmp_path)).records]
    assert kept == list(range(21 - len(kept), 21))
    assert 4 <= len(kept) <= 8
    assert sorted(p.name for p in at(tmp_path).parent.iterdir()) == [
        "history.1.jsonl",
        "history.jsonl",
        "history.lock",
    ]
    assert all(p.stat().st_size <= history.CAP for p in at(tmp_path).parent.iterdir())


def _append_many(path: Path, number: int) -> None:
    for n in range(50):
        append(record(passes=number * 100 + n), path)


def test_runs_at_once_lose_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "CAP", 110 * (len(GOOD) + 1))
    monkeypatch.setattr(history, "PATIENCE", 60.0)
    fork = multiprocessing.get_context("fork")
    runs = [fork.Process(target=_append_many, args=(at(tmp_path), n)) for n in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
        assert run.exitcode == 0
    past = read(at(tmp_path))
    assert past.skipped == 0
    assert sorted(each.passes for each in past.records) == sorted(
        number * 100 + n for number in range(4) for n in range(50)
    )


def test_a_pipe_or_folder_in_its_place_is_an_error_and_no_wait(tmp_path: Path) -> None:
    at(tmp_path).parent.mkdir(parents=True)
    os.mkfifo(at(tmp_path))
    with pytest.raises(OSError, match="plain file"):
        append(record(), at(tmp_path))
    at(tmp_path).unlink()
    at(tmp_path).mkdir()
    with pytest.raises(OSError, match=r"."):
        append(record(), at(tmp_path))
    assert read(at(tmp_path)) == history.Past()


def test_clear_removes_all_and_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert clear(at(tmp_path)) == 0
    assert not at(tmp_path).parent.exists()
    monkeypatch.setattr(history, "CAP", 3 * (len(GOOD) + 1))
    for _ in range(5):
        append(record(), at(tmp_path))
    assert clear(at(tmp_path)) == 5
    assert read(at(tmp_path)) == history.Past()


def test_where_it_is() -> None:
    assert place({"XDG_STATE_HOME": "/s", "HOME": "/h"}) == Path("/s/apply-edit/history.jsonl")
    home = Path("/h/.local/state/apply-edit/history.jsonl")
    assert place({"XDG_STATE_HOME": "relative", "HOME": "/h"}) == home
    assert place({"HOME": "/h"}) == home
    assert place({}) is None


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", "1-50"),
        (b"a\n" * 50, "1-50"),
        (b"a\n" * 50 + b"a", "51-200"),
        (b"a\n" * 51, "51-200"),
        (b"a\n" * 2000, "1001-2000"),
        (b"a\n" * 2001, "2001-"),
    ],
)
def test_sizes(data: bytes, wanted: str) -> None:
    assert size_of(data) == wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("a/b.py", "python"),
        ("B.PY", "python"),
        ("x.test.tsx", "typescript"),
        ("Makefile", "other"),
        (".py", "other"),
        ("-", "other"),
        ("", "other"),
        ("my.secret-project", "other"),
    ],
)
def test_languages(name: str, wanted: str) -> None:
    assert language_of(name) == wanted
