"""The scripts that measure real models run from end to end, here on a tiny random one.

What they print is no result here; that they ask, decode and compare is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from apply_edit.target.tokenizer import HubCodec
from tests.target.conftest import cache, one_thread  # noqa: F401
from tests.target.tiny import write_gguf

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
pytestmark = pytest.mark.usefixtures("one_thread", "cache")


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    rows = [
        {
            "id": f"own/{name}",
            "language": "python",
            "path": f"{name}.py",
            "original": f"def {name}(a):\n    return a\n",
            "instruction": "Return b.",
            "update": f"def {name}(a):\n    return b\n",
            "expected": f"def {name}(a):\n    return b\n",
        }
        for name in ("one", "two")
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model that writes until its budget ends, which is short."""
    monkeypatch.setattr(HubCodec, "stop", frozenset())
    monkeypatch.setattr("apply_edit.target.prompt.Prompt.ample", 20)
    return str(write_gguf(tmp_path / "tiny.gguf", context=2048))


def run(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object
) -> str:
    """What `main` of a script prints."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setattr(sys, "argv", [script, *map(str, words)])
    module = __import__(script)
    module.main()
    return capsys.readouterr().out


def test_every_decoder_writes_the_same(
    model: str, cases: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (cases, "--model", model, "--decoders", "plain,copy", "--limit", 2, "--json")
    rows = json.loads(run("decoders", monkeypatch, capsys, *words))
    assert [(row["case"], row["decoder"]) for row in rows] == [
        (f"own/{name}", decoder) for name in ("one", "two") for decoder in ("plain", "copy")
    ]
    assert all(row["same"] and row["tokens"] == 20 for row in rows)


def test_the_bench_compares_with_plain_decoding(
    model: str, cases: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (cases, "--model", model, "--peers", "plain", "--limit", 1, "--mode", "update")
    out = run("bench", monkeypatch, capsys, *words)
    assert "own/one" in out
    assert "tokens equal to plain        1.000" in out


def test_batches_come_out_as_one_after_another(
    model: str, cases: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run("batches", monkeypatch, capsys, cases, "--model", model, "--batches", "1,2", "--json")
    rows = json.loads(out[out.index("[\n") :])
    assert [row["batch"] for row in rows] == [1, 2]
    assert all(row["same"] for row in rows)


def test_recorded_guesses_are_priced_without_a_model(
    model: str,
    cases: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    guesses = tmp_path / "guesses.jsonl"
    words = ("--model", model, "--draft", f"model:{model}")
    record = ("record", cases, "--out", guesses, "--limit", 2)
    run("guesses", monkeypatch, capsys, *words, *record)
    known = [json.loads(line) for line in guesses.read_text().splitlines()]
    assert [row["id"] for row in known] == ["own/one", "own/two"]
    for row in known:
        assert len(row["answer"]) == 20
        assert row["chains"]
        for place, chain in row["chains"].items():
            truth = row["answer"][int(place) :]
            wrong = [i for i, guess in enumerate(chain) if [guess[0]] != truth[i : i + 1]]
            assert 0 < len(chain) <= (wrong[0] + 3 if wrong else 12)
    run("guesses", monkeypatch, capsys, *words, *record)
    assert len(guesses.read_text().splitlines()) == 2  # each case once
    # A drafter that is always right, and sure of it.
    for row in known:
        for place, chain in row["chains"].items():
            truth = row["answer"][int(place) :][:12]
            chain[:] = [[token, 0.999, None, 0.0] for token in truth] or chain
    guesses.write_text("".join(json.dumps(row) + "\n" for row in known))
    free = run("guesses", monkeypatch, capsys, *words, "price", cases, guesses, "--step", 0.001)
    assert float(free.rsplit("all ", 1)[1].split(",")[0]) < 0.8
    dear = run("guesses", monkeypatch, capsys, *words, "price", cases, guesses, "--step", 1000)
    assert float(dear.rsplit("all ", 1)[1].split(",")[0]) > 1.0


@pytest.mark.parametrize(("right", "least", "most"), [(1.0, 1.0, 1.0), (0.5, 0.2, 0.8)])
def test_invented_guesses_are_right_as_often_as_said(
    model: str,
    cases: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    right: float,
    least: float,
    most: float,
) -> None:
    guesses = tmp_path / "guesses.jsonl"
    invent = ("invent", cases, "--out", guesses, "--right", right)
    run("guesses", monkeypatch, capsys, "--model", model, *invent)
    rows = [json.loads(line) for line in guesses.read_text().splitlines()]
    assert [row["id"] for row in rows][:2] == ["own/one", "own/two"]
    firsts = [
        chain[0][0] == row["answer"][int(place)]
        for row in rows
        for place, chain in row["chains"].items()
    ]
    assert least <= sum(firsts) / len(firsts) <= most
