"""`--timeout` counts whatever takes the time, and leaves nothing half done behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from apply_edit import deadline
from apply_edit.deadline import Deadline
from apply_edit.errors import Refusal
from apply_edit.events import Event, Note, OnEvent, Stage, ignore
from apply_edit.target.catalog import CatalogEntry
from apply_edit.target.fetch import fetch, partial_of
from apply_edit.target.store import Slot
from tests.command import Command
from tests.target.tiny import FakeIndex, cut

DATA = bytes(range(256)) * 40


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(deadline, "perf_counter", made)
    return made


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPLY_EDIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def after(clock: Clock, listen: OnEvent, seconds: float, event: Event) -> None:
    clock.now += seconds
    listen(event)


def test_the_message_names_what_took_the_time(clock: Clock) -> None:
    seen: list[Event] = []
    listen = Deadline(10.0).listening(seen.append)
    after(clock, listen, 1.0, Stage("download", 0, 100, "bytes"))
    after(clock, listen, 6.0, Stage("download", 100, 100, "bytes"))
    after(clock, listen, 1.0, Stage("load", 0, None, "tensors"))
    with pytest.raises(Refusal) as refused:
        after(clock, listen, 3.0, Stage("load", 1, 9, "tensors"))
    assert refused.value.code == "timeout"
    assert "no whole answer in time; fetching the weights took 7.0 s" in refused.value.message
    assert "apply-edit models pull" in refused.value.message
    assert len(seen) == 4


def test_what_is_just_finished_may_be_kept(clock: Clock) -> None:
    listen = Deadline(10.0).listening(ignore)
    after(clock, listen, 0.5, Stage("calibrate", 0, 13, "passes"))
    after(clock, listen, 20.0, Stage("calibrate", 13, 13, "passes"))
    with pytest.raises(Refusal, match="measuring this machine"):
        after(clock, listen, 0.0, Note("measured"))


def test_starting_counts_and_is_called_so(clock: Clock) -> None:
    listen = Deadline(1.0).listening(ignore)
    with pytest.raises(Refusal, match=r"in time; starting took 2\.0 s; raise --timeout"):
        after(clock, listen, 2.0, Stage("load", 0, None, "tensors"))


def test_no_limit(clock: Clock) -> None:
    after(clock, Deadline(None).listening(ignore), 1e9, Stage("load", 0, None, "tensors"))


def test_a_download_is_broken_off_and_goes_on_later(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apply_edit.target.fetch._TELL_EVERY", 0.0)
    entry: CatalogEntry = cut(DATA, tmp_path / "index")
    index = FakeIndex(tmp_path / "index")
    work = tmp_path / "work"

    def slow(requirement: str, folder: Path, watch: object) -> None:
        clock.now += 4.0
        index(requirement, folder, watch)  # type: ignore[arg-type]

    def get(seconds: float | None) -> Path:
        listen = Deadline(seconds).listening(ignore)
        return fetch(entry, work, offline=False, on_event=listen, download=slow)

    with pytest.raises(Refusal, match="fetching the weights took"):
        get(9.0)
    kept = partial_of(entry, work)
    assert [path.name for path in work.iterdir()] == [kept.name]
    assert DATA.startswith(kept.read_bytes())
    asked = len(index.asked)
    assert get(None).read_bytes() == DATA
    assert len(set(index.asked[:asked]) & set(index.asked[asked:])) <= 1


def test_waiting_for_another_run_counts() -> None:
    slot = Slot("tiny", "0" * 64)
    with (
        slot.lock(),
        pytest.raises(Refusal, match="waiting for another run"),
        slot.lock(Deadline(0.001).listening(ignore)),
    ):
        pytest.fail("the lock is held")
    with slot.lock():
        pass


LOADING = """
import time
from apply_edit.events import Stage
from apply_edit.target import replay
def target(self, on_event):
    for count in range(100):
        on_event(Stage("load", count, 100, "tensors"))
        time.sleep(0.05)
    raise SystemExit("loaded to the end")
replay.ReplayBackend.target = target
"""


def test_the_command_gives_up_while_it_loads(tmp_path: Path) -> None:
    command = Command.make(tmp_path)
    before = (command.folder / "f.py").read_bytes()
    done = command.edit("-w", "--timeout", "0.5", code=LOADING)
    assert (done.code, done.out) == (2, b"")
    assert "loading the weights took" in done.err
    assert done.err.rstrip().endswith("[timeout]")
    assert (command.folder / "f.py").read_bytes() == before
    assert command.files() == {"f.py", "g.py"}
