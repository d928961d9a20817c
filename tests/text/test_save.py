from __future__ import annotations

import errno
import os
import random
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from apply_edit.errors import ApplyEditError, InputError
from apply_edit.text import inplace, save, temporary
from apply_edit.text.save import remove_temporaries, snapshot, write_new
from apply_edit.text.save import save as save_file

KILLS = Path(__file__).with_name("kill_saves.py")


@pytest.fixture(params=["unnamed", "named", "unlinkable"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Systems with files that have no name, without them, and with ones that cannot be named."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    if request.param == "unlinkable":
        link = os.link

        def refuse(source: str, *args: object, **options: object) -> None:
            if str(source).startswith("/proc/"):
                raise OSError(errno.EPERM, "Operation not permitted")
            link(source, *args, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(os, "link", refuse)
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in which no passing file may stay."""
    yield tmp_path
    tmp_path.chmod(0o700)
    assert [p.name for p in tmp_path.rglob(".apply-edit-*")] == []
    assert temporary._named == set()


def fails(code: str, call: Callable[[], object]) -> str:
    with pytest.raises(ApplyEditError) as caught:
        call()
    assert caught.value.code == code, caught.value.message
    assert caught.value.message.isprintable()
    return caught.value.message


class TestSnapshot:
    def test_reads(self, folder: Path) -> None:
        file = folder / "f"
        file.write_bytes(b"a\r\n\xff")
        file.chmod(0o751)
        (folder / "l").symlink_to("f")
        found = snapshot(folder / "l")
        assert (found.data, found.target, found.mode) == (b"a\r\n\xff", file, 0o751)
        assert found.path == folder / "l"

    def test_refuses(self, folder: Path) -> None:
        fails("no-such-file", lambda: snapshot(folder / "f"))
        fails("no-such-file", lambda: snapshot("a\0b"))
        fails("no-such-file", lambda: snapshot("x" * 300))
        fails("is-a-directory", lambda: snapshot(folder))
        os.mkfifo(folder / "p")
        assert "'-'" in fails("not-a-file", lambda: snapshot(folder / "p"))
        fails("not-a-file", lambda: snapshot("/dev/null"))
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.relpath(folder / "s"))
            fails("not-a-file", lambda: snapshot(folder / "s"))
        (folder / "dangling").symlink_to("nothing")
        assert "link to nothing" in fails("no-such-file", lambda: snapshot(folder / "dangling"))
        (folder / "x").symlink_to("y")
        (folder / "y").symlink_to("x")
        fails("link-loop", lambda: snapshot(folder / "x"))
        (folder / "f").write_bytes(b"x" * 11)
        assert snapshot(folder / "f", limit=11).data == b"x" * 11
        fails("too-large", lambda: snapshot(folder / "f", limit=10))
        fails("no-such-file", lambda: snapshot(folder / "f" / "g"))

    def test_a_file_that_cannot_be_read(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (folder / "f").write_bytes(b"x")

        def refuse(*_: object) -> int:
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(os, "open", refuse)
        fails("unreadable", lambda: snapshot(folder / "f"))

    def test_names_of_any_bytes(self, folder: Path) -> None:
        path = folder / os.fsdecode(b"\xff\n\x1b[31m")
        assert r"\xff\n\x1b[31m does not exist" in fails("no-such-file", lambda: snapshot(path))
        path.write_bytes(b"a")
        found = snapshot(path)
        assert save_file(path, b"b", found)
        assert path.read_bytes() == b"b"
        assert r"\xff" in fails("changed-on-disk", lambda: save_file(path, b"c", found))


@pytest.mark.usefixtures("system")
class TestSave:
    def test_replaces(self, folder: Path) -> None:
        file = folder / "f"
        file.write_bytes(b"old\n")
        file.chmod(0o640)
        before = file.stat()
        assert save_file(file, b"new\r\n\xff", snapshot(file))
        assert file.read_bytes() == b"new\r\n\xff"
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        assert file.stat().st_ino != before.st_ino

    @pytest.mark.parametrize("mode", [0o600, 0o666, 0o755, 0o4755, 0o2777, 0o200])
    def test_mode(self, folder: Path, mode: int) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        found = snapshot(file)
        file.chmod(mode)
        if mode == 0o200 and os.geteuid():
            pytest.skip("only root can read such a file")
        assert save_file(file, b"new", found)
        assert stat.S_IMODE(file.stat().st_mode) == mode

    def test_owner_and_attributes(self, folder: Path) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        if os.geteuid() == 0:
            os.chown(file, 12345, 54321)
        attributes = hasattr(os, "setxattr")
        if attributes:
            try:
                os.setxattr(file, "user.note", b"\xffx")
            except OSError:
                attributes = False
        before = file.stat()
        save_file(file, b"new", snapshot(file))
        assert (file.stat().st_uid, file.stat().st_gid) == (before.st_uid, before.st_gid)
        assert not attributes or os.getxattr(file, "user.note") == b"\xffx"

    def test_same_content_is_not_written(self, folder: Path) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        file.chmod(0o400)
        os.utime(file, ns=(1, 2))
        before = file.stat()
        assert save_file(file, b"old", snapshot(file)) is False
        assert file.stat() == before or file.stat().st_mtime_ns == 2
        found = snapshot(file)
        file.chmod(0o600)
        file.write_bytes(b"new")
        assert save_file(file, b"new", found) is False  # someone did the same edit

    def test_chain_of_links(self, folder: Path) -> None:
        (folder / "real").mkdir()
        file = folder / "real" / "f"
        file.write_bytes(b"old")
        (folder / "one").symlink_to("real/f")
        (folder / "two").symlink_to(folder / "one")
        assert save_file(folder / "two", b"new", snapshot(folder / "two"))
        assert file.read_bytes() == b"new"
        assert (folder / "two").is_symlink()
        assert (folder / "one").is_symlink()

    def test_a_link_that_now_leads_elsewhere(self, folder: Path) -> None:
        for name in ("f", "g"):
            (folder / name).write_bytes(b"old")
        link = folder / "l"
        link.symlink_to("f")
        found = snapshot(link)
        link.unlink()
        link.symlink_to("g")
        fails("changed-on-disk", lambda: save_file(link, b"new", found))
        assert (folder / "g").read_bytes() == (folder / "f").read_bytes() == b"old"

    def test_hard_links(self, folder: Path) -> None:
        file, other = folder / "f", folder / "g"
        file.write_bytes(b"old content")
        os.link(file, other)
        before = file.stat()
        for new in (b"n", b"much longer new content", b""):
            assert save_file(file, new, snapshot(file))
            assert other.read_bytes() == new
            assert file.stat().st_ino == before.st_ino
        assert file.stat().st_nlink == 2

    @pytest.mark.parametrize("links", [1, 2])
    @pytest.mark.parametrize("change", [b"other", b"olD", b"old ", b""])
    def test_changed_on_disk(self, folder: Path, links: int, change: bytes) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        if links == 2:
            os.link(file, folder / "g")
        found, times = snapshot(file), file.stat()
        file.write_bytes(change)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        fails("changed-on-disk", lambda: save_file(file, b"new", found))
        assert file.read_bytes() == change

    def test_touched_is_not_changed(self, folder: Path) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        found = snapshot(file)
        file.unlink()
        file.write_bytes(b"old")
        os.utime(file, ns=(1, 2))
        assert save_file(file, b"new", found)

    def test_gone_or_another_kind(self, folder: Path) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        found = snapshot(file)
        file.unlink()
        fails("changed-on-disk", lambda: save_file(file, b"new", found))
        assert not file.exists()
        os.mkfifo(file)
        fails("changed-on-disk", lambda: save_file(file, b"new", found))

    def test_changed_at_the_last_moment(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        found = snapshot(file)
        show = temporary.Temporary.show

        def late(self: temporary.Temporary) -> str:
            file.write_bytes(b"theirs")
            return show(self)

        monkeypatch.setattr(temporary.Temporary, "show", late)
        fails("changed-on-disk", lambda: save_file(file, b"new", found))
        assert file.read_bytes() == b"theirs"

    def test_read_only(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        file.chmod(0o444)
        assert "chmod u+w" in fails("read-only", lambda: save_file(file, b"n", snapshot(file)))
        file.chmod(0o644)
        access = os.access
        monkeypatch.setattr(os, "access", lambda p, m: Path(p) != folder and access(p, m))
        assert "--output" in fails(
            "read-only-folder", lambda: save_file(file, b"n", snapshot(file))
        )
        assert file.read_bytes() == b"old"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else")
    def test_someone_elses_file(self, folder: Path) -> None:
        """A file of another owner, writable by all: its owner stays."""
        file = folder / "f"
        file.write_bytes(b"old")
        file.chmod(0o666)
        os.chown(file, 12345, 12345)
        for parent in (folder, folder.parent, folder.parent.parent):
            parent.chmod(0o777)

        def child() -> None:
            os.setgid(1000)
            os.setuid(1000)
            save_file(file, b"new", snapshot(file))

        assert in_child(child) == 0
        assert file.read_bytes() == b"new"
        assert file.stat().st_uid == 12345

    @pytest.mark.parametrize("links", [1, 2])
    @pytest.mark.parametrize(
        ("number", "code"),
        [
            (errno.ENOSPC, "disk-full"),
            (errno.EDQUOT, "disk-full"),
            (errno.EFBIG, "file-limit"),
            (errno.EROFS, "read-only"),
            (errno.EIO, "not-written"),
        ],
    )
    def test_failing_writes(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, links: int, number: int, code: str
    ) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        if links == 2:
            os.link(file, folder / "g")
        found, count, stop = snapshot(file), [0], [0]
        pwrite = os.pwrite

        def failing(fd: int, data: bytes, at: int) -> int:
            count[0] += 1
            if count[0] == stop[0]:
                raise OSError(number, os.strerror(number))
            return pwrite(fd, data[:1], at)

        monkeypatch.setattr(os, "pwrite", failing)
        for stop[0] in (1, 2, 3):
            count[0] = 0
            fails(code, lambda: save_file(file, b"new", found))
            assert file.read_bytes() == b"old"

    def test_a_mount_point_is_overwritten_in_place(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        before = file.stat().st_ino

        def busy(*_: object, **__: object) -> None:
            raise OSError(errno.EBUSY, "Device or resource busy")

        monkeypatch.setattr(os, "replace", busy)
        assert save_file(file, b"new", snapshot(file))
        assert file.read_bytes() == b"new"
        assert file.stat().st_ino == before

    def test_file_size_limit(self, folder: Path) -> None:
        file = folder / "f"
        file.write_bytes(b"old")

        def child() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            fails("file-limit", lambda: save_file(file, b"x" * 5000, snapshot(file)))

        assert in_child(child) == 0
        assert file.read_bytes() == b"old"

    def test_two_at_once(self, folder: Path) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        draw = random.Random(1)
        for links in (1, 2):
            if links == 2:
                os.link(file, folder / "g")
            for _ in range(10):
                found = snapshot(file)
                with ThreadPoolExecutor(4) as threads:
                    news = [b"%d" % draw.randrange(10**6) * number for number in range(1, 5)]
                    runs = [threads.submit(save_file, file, new, found) for new in news]
                codes = [getattr(run.exception(), "code", "saved") for run in runs]
                assert sorted(codes) == ["changed-on-disk"] * 3 + ["saved"]
                assert file.read_bytes() == news[codes.index("saved")]

    def test_a_lock_that_stays(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import fcntl

        file = folder / "f"
        file.write_bytes(b"old")
        found = snapshot(file)
        monkeypatch.setattr(save, "_PATIENCE", 0.02)
        with file.open("rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            fails("locked", lambda: save_file(file, b"new", found))
        assert save_file(file, b"new", found)


class TestInterrupted:
    @pytest.mark.parametrize("kind", ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"])
    @pytest.mark.parametrize("how", ["replace", "named", "hard-link"])
    def test_killed_at_random_moments(self, tmp_path: Path, kind: str, how: str) -> None:
        """The file is old or new; only SIGKILL may leave a trace, for the next save to remove."""
        memory = Path("/dev/shm")  # saves wait for the disk: without one, more moments are tried
        base = memory if os.access(memory, os.W_OK) else tmp_path
        with tempfile.TemporaryDirectory(dir=base) as where:
            done = subprocess.run(
                [sys.executable, str(KILLS), where, kind, how, "60"],
                capture_output=True,
                text=True,
                check=False,
            )
        assert done.returncode == 0, done.stdout + done.stderr

    @pytest.mark.parametrize("links", [1, 2])
    def test_a_signal_while_saving_waits(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, links: int
    ) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        if links == 2:
            os.link(file, folder / "g")
        fsync = os.fsync

        def interrupted(fd: int) -> None:
            signal.raise_signal(signal.SIGINT)
            fsync(fd)

        found = snapshot(file)
        monkeypatch.setattr(os, "fsync", interrupted)
        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            save_file(file, b"new", found)
        assert file.read_bytes() == b"new"
        assert signal.getsignal(signal.SIGINT) is before

    def test_ignored_signals_stay_ignored(self) -> None:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with temporary.signals_held():
                assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
                signal.raise_signal(signal.SIGHUP)
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_every_half_written_state_is_mended(self, folder: Path) -> None:
        file = folder / "f"
        for old, new in (
            (b"old content", b"new"),
            (b"old", b"newer content"),
            (b"aaaa", b"aaab"),
            (b"", b"x"),
        ):
            for cut in range(len(new) + 1):
                file.write_bytes(old)
                journal = inplace._journal(file, file.stat().st_ino, old, new)
                file.write_bytes(new[:cut] + old[cut:])
                found = snapshot(file)
                assert found.data in (old, new)
                assert found.data == file.read_bytes()
                assert not journal.exists()

    def test_an_edit_after_the_kill_is_not_undone(self, folder: Path) -> None:
        file = folder / "f"
        file.write_bytes(b"old content")
        journal = inplace._journal(file, file.stat().st_ino, b"old content", b"new")
        file.write_bytes(b"by hand")
        assert snapshot(file).data == b"by hand"
        assert journal.exists()
        file.write_bytes(b"newnew")
        damaged = journal.read_bytes()
        journal.write_bytes(damaged[:-1])
        assert snapshot(file).data == b"newnew"
        journal.unlink()

    def test_when_even_the_old_content_cannot_be_put_back(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "f"
        file.write_bytes(b"old")
        os.link(file, tmp_path / "g")
        found = snapshot(file)
        put = inplace._put

        def failing(fd: int, data: bytes) -> None:
            os.pwrite(fd, b"n", 0)
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(inplace, "_put", failing)
        message = fails("not-written", lambda: save_file(file, b"new", found))
        assert ".undo" in message
        monkeypatch.setattr(inplace, "_put", put)
        assert snapshot(file).data == b"old"
        assert list(tmp_path.glob(".*")) == []

    def test_what_others_left_is_swept_and_what_lives_is_not(self, folder: Path) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        child = subprocess.Popen([sys.executable, "-c", ""])
        child.wait()
        dead = folder / f".apply-edit-{child.pid}-{'0' * 16}.tmp"
        alive = folder / f".apply-edit-{os.getppid()}-{'0' * 16}.tmp"
        other = folder / ".apply-edit-notes"
        for path in (dead, alive, other):
            path.write_bytes(b"x")
        with temporary.temporary(folder) as held:
            name = held.show()
            save_file(file, b"new", snapshot(file))
            assert (folder / name).exists()
            assert not dead.exists()
            assert alive.exists()
            os.utime(alive, (1, 1))
            save_file(file, b"newer", snapshot(file))
            assert not alive.exists()
        assert other.exists()
        other.unlink()

    def test_remove_temporaries(self, folder: Path) -> None:
        with temporary.temporary(folder) as held:
            path = folder / held.show()
            assert path.exists()
            remove_temporaries()
            assert not path.exists()


@pytest.mark.usefixtures("system")
class TestWriteNew:
    def test_creates(self, folder: Path) -> None:
        umask = os.umask(0o027)
        try:
            assert write_new(folder / "f", b"x\xff")
        finally:
            os.umask(umask)
        assert (folder / "f").read_bytes() == b"x\xff"
        assert stat.S_IMODE((folder / "f").stat().st_mode) == 0o640
        assert write_new(folder / "empty", b"")
        assert (folder / "empty").read_bytes() == b""

    def test_existing(self, folder: Path) -> None:
        file = folder / "f"
        file.write_bytes(b"old")
        file.chmod(0o700)
        fails("exists", lambda: write_new(file, b"new"))
        assert file.read_bytes() == b"old"
        assert write_new(file, b"new", force=True)
        assert file.read_bytes() == b"new"
        assert stat.S_IMODE(file.stat().st_mode) == 0o700
        assert write_new(file, b"new", force=True) is False
        file.chmod(0o400)
        fails("read-only", lambda: write_new(file, b"newer", force=True))

    def test_refusals(self, folder: Path) -> None:
        fails("no-such-folder", lambda: write_new(folder / "no" / "f", b"x"))
        fails("is-a-directory", lambda: write_new(folder, b"x", force=True))

    def test_links(self, folder: Path) -> None:
        (folder / "l").symlink_to("f")
        assert write_new(folder / "l", b"x")
        assert (folder / "f").read_bytes() == b"x"
        os.link(folder / "f", folder / "g")
        assert write_new(folder / "l", b"y", force=True)
        assert (folder / "g").read_bytes() == b"y"

    def test_devices_and_pipes(self, folder: Path) -> None:
        assert write_new("/dev/null", b"x")
        read, write = os.pipe()
        try:
            assert write_new(f"/dev/fd/{write}", b"data")
            assert os.read(read, 10) == b"data"
        finally:
            os.close(read)
            os.close(write)

    def test_appears_meanwhile(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = folder / "f"

        def late(where: Path) -> None:
            file.write_bytes(b"theirs")

        monkeypatch.setattr(save, "sweep", late)
        fails("exists", lambda: write_new(file, b"x"))
        assert file.read_bytes() == b"theirs"


class TestFailure:
    def test_input_errors_are_input_errors(self) -> None:
        with pytest.raises(InputError):
            snapshot("/nonexistent")


def in_child(call: Callable[[], None]) -> int:
    """The exit status of a forked process that does `call`."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            call()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
