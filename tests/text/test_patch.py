# ruff: noqa: PTH103, PTH108, PTH116, PTH120
# Names are bytes here, which pathlib does not take.
from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from apply_edit.errors import Refusal
from apply_edit.text.gitname import quote, repository_path, shown
from apply_edit.text.patch import apply, check, diff

from .strategies import edited, names, texts

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
GNU_PATCH = shutil.which("patch")
needs_patch = pytest.mark.skipif(GNU_PATCH is None, reason="GNU patch is not installed")
slow = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
any_bytes = st.one_of(
    texts().map(str.encode),
    texts(4).map(lambda text: text.encode("utf-16")),
    st.binary(max_size=40),
).map(lambda data: data.replace(b"\0", b"\xff"))
byte_pairs = st.one_of(
    edited().map(lambda pair: (pair[0].encode(), pair[1].encode())),
    st.tuples(any_bytes, any_bytes),
)
sequence = itertools.count()
Show = Callable[..., bytes]


def run(
    *command: str | bytes, cwd: Path | bytes, **settings: str
) -> subprocess.CompletedProcess[bytes]:
    hostile = {f"GIT_CONFIG_KEY_{i}": key for i, key in enumerate(settings)}
    hostile |= {f"GIT_CONFIG_VALUE_{i}": value for i, value in enumerate(settings.values())}
    env = {
        **os.environ,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": str(len(settings)),
        "FORCE_COLOR": "1",
        "CLICOLOR_FORCE": "1",
        **hostile,
    }
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, check=False)


@pytest.fixture(scope="module")
def repository() -> Iterator[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        assert run("git", "init", "-q", cwd=Path(folder)).returncode == 0
        yield os.fsencode(os.path.realpath(folder))


def place(repository: bytes, name: bytes, data: bytes) -> tuple[bytes, bytes]:
    """Put a file into a folder of its own; its path and its name from the top."""
    inside = b"%d/%s" % (next(sequence), name)
    path = repository + b"/" + inside
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(os.fsdecode(path)).write_bytes(data)
    found, top = repository_path(os.fsdecode(path))
    assert os.fsencode(str(top)) == repository
    assert found == inside
    return path, inside


def read(path: bytes) -> bytes:
    return Path(os.fsdecode(path)).read_bytes()


def patched_by_git(
    repository: bytes, path: bytes, patch: bytes, cwd: bytes, *extra: str, **config: str
) -> bytes:
    file = repository + b"/.git/patch"
    Path(os.fsdecode(file)).write_bytes(patch)
    done = run("git", "apply", *extra, file, cwd=cwd, **config)
    assert done.returncode == 0, (done.stderr, patch)
    return read(path)


class TestApplied:
    @slow
    @given(byte_pairs, names())
    @example((b"a\n", b"b\n"), b"x b/x")
    @example((b"a\n", b"b\n"), b"a b/c b/a b/c")
    @example((b"a\n", b"b\n"), b"-x")
    @example((b"a\n", b"b\n"), b'q"\t \\ \xff\n/\xc3\xa9')
    def test_git_makes_the_new_bytes_from_any_folder(
        self, repository: bytes, pair: tuple[bytes, bytes], name: bytes
    ) -> None:
        old, new = pair
        assume(old != new)
        path, inside = place(repository, name, old)
        patch = diff(old, new, inside)
        check(patch, old, new)
        config = {"color.ui": "always", "color.diff": "always", "diff.noprefix": "true"}
        config["diff.mnemonicPrefix"] = "true"
        assert patched_by_git(repository, path, patch, repository, **config) == new
        back = diff(new, old, inside)
        assert patched_by_git(repository, path, back, os.path.dirname(path), **config) == old
        assert patched_by_git(repository, path, back, repository, "-R") == new

    @slow
    @given(byte_pairs)
    def test_same_hunks_apply_at_every_context(
        self, repository: bytes, pair: tuple[bytes, bytes]
    ) -> None:
        old, new = pair
        for context in (0, 1, 3, 50):
            patch = diff(old, new, b"f", context=context)
            assert apply(patch, old) == new
            check(patch, old, new)

    @needs_patch
    @slow
    @given(byte_pairs, st.sampled_from([b"f", b"a b", b" b", b"-x", b"a b/c", b'q"q', b"\xc3\xa9"]))
    def test_gnu_patch_makes_the_new_bytes(
        self, repository: bytes, pair: tuple[bytes, bytes], name: bytes
    ) -> None:
        old, new = pair
        assume(old != new)
        path, _ = place(repository, name, old)
        folder = (
            os.path.dirname(path) if b"/" not in name else os.path.dirname(os.path.dirname(path))
        )
        file = repository + b"/.git/patch"
        Path(os.fsdecode(file)).write_bytes(diff(old, new, name))
        done = run(str(GNU_PATCH), "-p1", b"-i", file, cwd=folder)
        assert done.returncode == 0, (done.stdout, done.stderr, read(file))
        assert read(path) == new

    @pytest.mark.parametrize("old", [b"a\r\nb\r\nc\r\n", b"a\r\nb\nc\r\n", b"a\nb\nc"])
    def test_settings_that_do_not_matter(self, repository: bytes, old: bytes) -> None:
        new = old.replace(b"b", b"b2")
        for config in (
            {"core.autocrlf": "false"},
            {"core.autocrlf": "input", "core.safecrlf": "false"},
            {"core.autocrlf": "true", "core.whitespace": "cr-at-eol"},
            {"core.eol": "crlf"},
            {"apply.whitespace": "error", "core.whitespace": "cr-at-eol"},
            {"core.quotePath": "false"},
            {"diff.external": "false", "core.pager": "false", "diff.context": "0"},
        ):
            path, inside = place(repository, b"f", old)
            patch = diff(old, new, inside)
            if config.get("core.autocrlf") == "true" and b"\r\nb\r" not in old:
                continue  # git itself rewrites all line ends of such a file
            assert patched_by_git(repository, path, patch, repository, **config) == new

    @pytest.mark.parametrize("added", [b"a \n", b"a\r\n", b"\ta\t\n", b"  \n", b"a\n\n\n"])
    def test_blanks_at_line_ends_need_only_the_documented_flag(
        self, repository: bytes, added: bytes
    ) -> None:
        path, inside = place(repository, b"f", b"x\n")
        patch = diff(b"x\n", b"x\n" + added, inside)
        config = {"apply.whitespace": "error"}
        assert run("git", "apply", "-", cwd=repository, **config).returncode != 0
        got = patched_by_git(repository, path, patch, repository, "--whitespace=nowarn", **config)
        assert got == b"x\n" + added

    def test_new_files(self, repository: bytes) -> None:
        for data in (b"", b"a\nb", b"a\n"):
            path, inside = place(repository, b"new file", b"")
            os.unlink(path)
            patch = diff(b"", data, inside, mode=0o755, new_file=True)
            assert patched_by_git(repository, path, patch, repository) == data
            assert os.stat(path).st_mode & 0o100
            assert apply(patch, b"") == data


class TestForm:
    """Byte for byte what git prints."""

    @pytest.fixture
    def by_git(self, tmp_path: Path) -> Show:
        assert run("git", "init", "-q", cwd=tmp_path).returncode == 0

        def show(name: bytes, old: bytes, new: bytes, mode: int = 0o644) -> bytes:
            path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(old)
            path.chmod(mode)
            assert run("git", "add", "-A", cwd=tmp_path).returncode == 0
            path.write_bytes(new)
            done = run("git", "diff", "--text", cwd=tmp_path)
            assert done.returncode == 0
            return done.stdout

        return show

    @pytest.mark.parametrize(
        "name",
        [b"f", b"a b", b" b", b"-x", b"a\tb", b'q"\\', b"\xff", b"\x01\x7f", b"d b/x b/x", b"a\nb"],
    )
    def test_names(self, by_git: Show, name: bytes) -> None:
        assert diff(b"a\n", b"b\n", name) == by_git(name, b"a\n", b"b\n")

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (b"a", b"b"),
            (b"a\n", b"a"),
            (b"a", b"a\n"),
            (b"a\nb\nc\nd", b"a\nb\nX\nd"),
            (b"a\nb\nc\nd", b"X\nb\nc\nd"),
            (b"a\nb\nc\nd\ne", b"a\nb\nc\nd"),
            (b"", b"a\nb\n"),
            (b"", b"a"),
            (b"a\n", b""),
            (b"a", b""),
            (b"a\r\nb\r\n", b"a\r\nc\r\n"),
            (b"a\r\nb\n", b"a\nb\n"),
            (b"a\x0cb\nc\rd\n\xc2\x85\xe2\x80\xa8x\n", b"a\x0cb\nc\rd2\n\xc2\x85\xe2\x80\xa8x\n"),
            (b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", b"x\n2\n3\n4\n5\n6\n7\n8\ny\n"),
            (b"1\n2\n3\n4\n5\n6\n7\n8\n", b"x\n2\n3\n4\n5\n6\n7\ny\n"),
            (b"1\n2\n3\n4\n5\n6\n7\n8\n", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
            (b"1\n2\n3\n4\n5\n6\n7\n8\n", b"0\n1\n2\n3\n4\n5\n6\n7\n8\n"),
            (b"\xff\xfe\n" * 3, b"\xff\xfe\n" * 4),
            (b"a\n\n\nb\n", b"a\n\nb\n"),
            (b"--- a\n+++ b\n@@ -1 +1 @@\n", b"-- a\n+++ b\n@@ -1 +1 @@\n"),
        ],
    )
    def test_content(self, by_git: Show, old: bytes, new: bytes) -> None:
        assert diff(old, new, b"f") == by_git(b"f", old, new)

    @pytest.mark.parametrize("drop", [(9, 13), (5, 9), (0, 5), (14, 18)])
    def test_groups_stand_where_git_puts_them(self, by_git: Show, drop: tuple[int, int]) -> None:
        functions = [
            f"def f{i}(x):\n    if x:\n        return {i}\n    return None\n\n"
            for i in (1, 2, 3, 4)
        ]
        old = "import os\n\n" + "class A:\n    x = 1\n\n" + "".join(functions)
        lines = old.splitlines(keepends=True)
        new = "".join(lines[: drop[0]] + lines[drop[1] :])
        assert diff(old.encode(), new.encode(), b"f") == by_git(b"f", old.encode(), new.encode())
        assert diff(new.encode(), old.encode(), b"f") == by_git(b"f", new.encode(), old.encode())

    def test_headings(self, by_git: Show) -> None:
        body = "".join(f"    line {i}\n" for i in range(20))
        for first in ("def f():  \n", "_x" + "y" * 100 + "\n", "é\n", "a" * 79 + "é\n"):
            old = (first + body).encode()
            new = old.replace(b"line 15", b"changed")
            got, wanted = diff(old, new, b"f"), by_git(b"f", old, new)
            if "é" in first[1:]:  # git cuts the letter in two
                wanted = wanted.replace(b"\xc3\n", b"\n")
            assert got == wanted
        old = ("a\x1b[31mred\n" + body).encode()
        assert b"\x1b" not in diff(old, old.replace(b"line 15", b"changed"), b"f")

    def test_executable(self, by_git: Show) -> None:
        assert diff(b"a\n", b"b\n", b"f", mode=0o100775) == by_git(b"f", b"a\n", b"b\n", 0o775)
        assert b" 100644\n" in diff(b"a\n", b"b\n", b"f", mode=0o100611)

    def test_equal_bytes_give_no_patch(self) -> None:
        assert diff(b"a", b"a", b"f") == b""
        check(b"", b"a", b"a")

    def test_large_rewrite_of_equal_lines(self) -> None:
        old = b"".join(b"row %d\n" % (i % 7) for i in range(20_000))
        new = b"".join(b"row %d\n" % (i * i % 7) for i in range(20_000))
        assert apply(diff(old, new, b"f"), old) == new


class TestCheck:
    OLD, NEW = b"a\nb\nc\nd\ne\nf\ng\n", b"a\nb\nX\nd\ne\nf\ng\n"

    @pytest.mark.parametrize(
        ("find", "put"),
        [
            (b"+X", b"+Y"),
            (b"-c", b"-x"),
            (b"\n b", b"\n x"),
            (b"-c\n", b""),
            (b"+X\n", b"+X\n+Y\n"),
            (b"@@ -1,6 +1,6 @@", b"@@ -2,6 +2,6 @@"),
            (b"@@ -1,6 +1,6 @@", b"@@ -1,6 +1,7 @@"),
            (b"@@ -1,6 +1,6 @@", b"\x1b[36m@@ -1,6 +1,6 @@"),
            (b"+X\n", b"+X\n\\ No newline at end of file\n"),
            (b"+X\n", b"\x1b[32m+X\n"),
            (b" f\n", b" f\ntrailing\n"),
            (b"--- a", b"-- a"),
            (b"diff --git ", b"\x1b[1mdiff --git "),
            (b"index ", b"similarity "),
        ],
    )
    def test_damaged(self, find: bytes, put: bytes) -> None:
        good = diff(self.OLD, self.NEW, b"f")
        check(good, self.OLD, self.NEW)
        assert find in good
        with pytest.raises(Refusal) as caught:
            check(good.replace(find, put, 1), self.OLD, self.NEW)
        assert caught.value.code == "bad-diff"

    def test_empty_or_missing(self) -> None:
        for patch in (b"", b"diff --git a/f b/f\n"):
            with pytest.raises(Refusal):
                check(patch, self.OLD, self.NEW)


class TestRepositoryPath:
    def test_from_anywhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        top = tmp_path / "top"
        (top / "a" / "b").mkdir(parents=True)
        run("git", "init", "-q", cwd=top)
        file = top / "a" / "b" / "f"
        file.write_text("x")
        monkeypatch.chdir(top / "a")
        assert repository_path("b/f") == (b"a/b/f", top)
        assert repository_path(file) == (b"a/b/f", top)
        link = tmp_path / "link"
        link.symlink_to(file)
        assert repository_path(link) == (b"a/b/f", top)
        (tmp_path / "folder").symlink_to(top / "a")
        assert repository_path(tmp_path / "folder" / "b" / "f") == (b"a/b/f", top)

    def test_outside(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / ".git").mkdir()  # empty: no repository
        monkeypatch.chdir(tmp_path)
        assert repository_path("in/f") == (b"in/f", None)
        monkeypatch.chdir(tmp_path / "in")
        assert repository_path("../f") == (b"f", None)

    def test_submodule_and_linked_tree(self, tmp_path: Path) -> None:
        run("git", "init", "-q", cwd=tmp_path)
        (tmp_path / "sub" / "d").mkdir(parents=True)
        (tmp_path / "sub" / ".git").write_text("gitdir: ../.git/modules/sub\n")
        assert repository_path(tmp_path / "sub" / "d" / "f") == (b"d/f", tmp_path / "sub")

    def test_inside_the_git_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run("git", "init", "-q", cwd=tmp_path)
        monkeypatch.chdir(tmp_path)
        assert repository_path(tmp_path / ".git" / "config") == (b".git/config", None)

    def test_undecodable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert repository_path(os.fsdecode(b"\xff\xfe")) == (b"\xff\xfe", None)


class TestNames:
    @given(names())
    def test_messages_are_printable(self, name: bytes) -> None:
        assert shown(name).isprintable()
        assert shown(os.fsdecode(name)) == shown(name)

    def test_quote(self) -> None:
        assert quote(b"a b'c$`") == b"a b'c$`"
        assert quote(b'\a\b\t\n\v\f\r"\\\x01\x7f\x80') == rb'"\a\b\t\n\v\f\r\"\\\001\177\200"'
