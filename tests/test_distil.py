"""Training of draft heads from files to a file of heads, on a tiny model."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from apply_edit import distil
from apply_edit.distil import Report, train_heads
from apply_edit.editor import Editor, Request
from apply_edit.errors import ApplyEditError, InputError
from apply_edit.events import Event, Stage, ignore
from apply_edit.session import Options
from apply_edit.target.backend import TorchBackend
from apply_edit.target.store import heads_path
from apply_edit.target.tokenizer import HubCodec
from apply_edit.target.traces import Traces
from tests.clock import Clock
from tests.target.conftest import cache, one_thread  # noqa: F401
from tests.target.tiny import write_gguf

pytestmark = pytest.mark.usefixtures("one_thread", "cache")

SOURCE = '''\
def {name}(items):
    """Add them up."""
    total = 0
    for item in items:
        total += item.price
    return total


def {name}_of(path):
    with open(path) as file:
        return [line for line in file
                if line]
'''


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TorchBackend:
    """A random model that never ends its answers: there is something to learn from each."""
    monkeypatch.setattr(HubCodec, "stop", frozenset())
    opened = TorchBackend.open(
        str(write_gguf(tmp_path / "tiny.gguf", "qwen2")),
        revision=None,
        device="cpu",
        dtype="float32",
        offline=True,
        on_event=ignore,
    )
    opened._window = 2048
    return opened


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    found = []
    for name in ("alpha", "beta", "gamma"):
        path = tmp_path / f"{name}.py"
        path.write_text(SOURCE.replace("{name}", name))
        found.append(path)
    return found


def trained(backend: TorchBackend, files: list[Path], events: list[Event]) -> Report:
    return train_heads(backend, files, minutes=1.0, on_event=events.append, clock=Clock())


def test_heads_are_trained_kept_and_used(backend: TorchBackend, files: list[Path]) -> None:
    editor = Editor(backend)
    data = files[0].read_bytes()
    request = Request(instruction="add a comment", allow=frozenset(("unparsable",)))

    def tokens(draft: str) -> list[int]:
        options = Options(draft=draft, max_new_tokens=40, verify=True)
        found: list[int] = []
        with pytest.raises(ApplyEditError):  # what such a model writes is no whole answer
            editor.edit(data, request, options, lambda event: found.extend(_written(event)))
        return found

    with pytest.raises(ApplyEditError) as caught:
        editor.edit(data, request, Options(draft="heads"))
    assert caught.value.code == "no-heads"
    assert backend._engine is None  # before the weights were loaded
    events: list[Event] = []
    report = trained(backend, files, events)
    assert report.path == heads_path(backend.resolved.weights_id)
    assert report.bytes == report.path.stat().st_size
    assert report.edits >= 1
    assert report.positions > report.inside > 0
    assert report.fit.last_loss < report.fit.first_loss
    stages = {event.name for event in events if isinstance(event, Stage)}
    assert {"practise", "train"} <= stages
    # Nothing of what the model wrote is left.
    assert [path.name for path in report.path.parent.iterdir()] == [report.path.name]
    assert b"alpha" not in report.path.read_bytes()
    assert tokens("heads") == tokens("none") != []


def _written(event: Event) -> tuple[int, ...]:
    step = getattr(event, "step", None)
    return () if step is None else step.tokens


def test_a_killed_run_is_taken_up(
    backend: TorchBackend, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = Traces(backend.resolved.weights_id)

    def killed(event: Event) -> None:
        if isinstance(event, Stage) and event.name == "practise" and len(traces) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_heads(backend, files, minutes=1.0, on_event=killed, clock=Clock())
    kept = {path.name: path.stat().st_mtime_ns for path in traces.folder.glob("*.safetensors")}
    assert len(kept) == 4
    assert stat.S_IMODE(traces.folder.stat().st_mode) == 0o700
    assert traces.state()["collecting"] == 4.0

    # During the training it is killed again; then nothing is left to be written.
    def later(event: Event) -> None:
        if isinstance(event, Stage) and event.name == "train" and event.done > 50:
            raise KeyboardInterrupt

    monkeypatch.setattr("apply_edit.target.fit.SAVED_SECONDS", 1.0)
    with pytest.raises(KeyboardInterrupt):
        train_heads(backend, files, minutes=1.0, on_event=later, clock=Clock())
    for name, when in kept.items():
        assert (traces.folder / name).stat().st_mtime_ns == when
    wrote: list[object] = []
    monkeypatch.setattr(distil.Collector, "_write", lambda *task: wrote.append(task))
    report = train_heads(backend, files, minutes=1.0, clock=Clock())
    assert wrote == []
    assert report.collecting_seconds >= 4.0
    assert not traces.folder.exists()


def test_no_files_no_training(backend: TorchBackend) -> None:
    with pytest.raises(InputError) as caught:
        train_heads(backend, [])
    assert caught.value.code == "no-sources"
    assert backend._engine is None


def test_better_heads_are_not_lost_to_a_short_training(
    backend: TorchBackend, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = trained(backend, files, [])
    assert first.before is None
    kept = first.path.read_bytes()
    # What heads accept of a random model's edits is chance; here it is said.
    monkeypatch.setattr(
        distil.Fitting,
        "measure",
        lambda self, heads=None: ((0.0,) * 4, 0.1 if heads is None else 0.9),
    )
    second = trained(backend, files, [])
    assert (second.before, second.fit.accepted) == (0.9, 0.1)
    assert first.path.read_bytes() == kept
    first.path.write_bytes(kept[:-8])  # damaged heads are none
    third = trained(backend, files, [])
    assert third.before is None
    assert first.path.stat().st_size == len(kept)


def test_what_is_read_is_labelled_with_what_the_target_would_write(
    backend: TorchBackend, files: list[Path]
) -> None:
    engine = backend.target(ignore)
    traces = Traces(backend.resolved.weights_id)
    traces.open()
    collector = distil.Collector(backend, engine, traces, Clock())
    tokens = backend.codec.encode(files[0].read_text())
    engine.tap().on_rows = collector._hear
    trace = collector._read(tokens)
    assert trace is not None
    assert trace.tokens.tolist() == tokens[1:]
    engine.reset(0)
    assert trace.choices.tolist() == engine.score(tokens[:-1]).greedy()
    assert trace.choices.tolist() != trace.tokens.tolist()
    assert trace.hidden.shape[0] == len(tokens) - 1


def test_readings_go_round_the_files(backend: TorchBackend, tmp_path: Path) -> None:
    """No file is read a second time before all were read once, and none for ever."""
    traces = Traces(backend.resolved.weights_id)
    collector = distil.Collector(backend, backend.target(ignore), traces, Clock())
    long, short = tmp_path / "long.py", tmp_path / "short.py"
    long.write_text("".join(f"value_{i} = {i}\n" for i in range(2000)))
    short.write_text("x = 1\n")
    keys = [key for key, _ in collector._readings([long, short, tmp_path / "missing.py"])]
    assert len(keys) == len(set(keys)) == distil.READINGS + 1
    assert keys[1] == next(key for key, _ in collector._readings([short]))
