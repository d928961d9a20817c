"""The answer, given once at the end: on stdout, as a diff, or into files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from apply_edit.command.order import Order
from apply_edit.command.signals import ending
from apply_edit.command.streams import Streams
from apply_edit.command.voice import Voice
from apply_edit.edit import Edit
from apply_edit.errors import ApplyEditError, InputError, SaveError
from apply_edit.text.gitname import repository_path, skipped_by_git
from apply_edit.text.patch import check, diff
from apply_edit.text.save import Snapshot, check_room, save, snapshot, write_new
from apply_edit.words import name, quote


@dataclass(frozen=True, slots=True)
class Done:
    """What came of one FILE. `file` is as given, `shown` the name it goes by."""

    file: str
    shown: str
    before: Snapshot | None
    result: Edit | ApplyEditError

    @property
    def edit(self) -> Edit:
        """The edit; raises the error that came in its place."""
        if isinstance(self.result, ApplyEditError):
            raise self.result
        return self.result

    @property
    def changed(self) -> bool:
        """Whether the edit came out, and changes the file."""
        return isinstance(self.result, Edit) and self.result.changed


@dataclass(frozen=True, slots=True)
class Written:
    """The path written by FILE (None: unchanged), and the FILE whose save failed, if one did."""

    paths: dict[str, str | None]
    failed: Done | None = None
    error: SaveError | None = None


def deliver(order: Order, done: Sequence[Done], streams: Streams, voice: Voice) -> int:
    """Give the answer the order asks for; returns the exit code."""
    if order.diff:
        patch = b"".join(diff_of(one) for one in done)
        # A diff is data: only a flag of this very call may colour it, no variable and no file.
        if order.flags.get("color") == "always":
            from apply_edit.show.diff import painted

            patch = painted(patch)
        streams.write(patch)
        _say_where(done, voice)
    elif order.saves:
        if (error := write(order, done).error) is not None:
            raise error
    elif not order.check:
        streams.write(b"".join(one.edit.output for one in done))
    _say_unchanged(order, done, streams, voice)
    if not order.check:
        return 0
    for one in done:
        if one.changed and not order.diff:
            voice.note(f"would change {name(one.shown)}")
    return 1 if any(one.changed for one in done) else 0


def _say_unchanged(order: Order, done: Sequence[Done], streams: Streams, voice: Voice) -> None:
    """An empty diff looks like a failure; but a filter's stderr may end up in the text."""
    if order.to_stdout or streams.is_terminal(2):
        return
    for one in done:
        if not one.changed:
            voice.note(f"no changes in {name(one.shown)}")


def _say_where(done: Sequence[Done], voice: Voice) -> None:
    """`git apply` leaves out what is not below the folder it is run in, and does not say so."""
    folders = {
        folder: None
        for one in done
        if one.changed and one.shown != "-"
        for folder in [skipped_by_git(one.shown)]
        if folder is not None
    }
    for folder in folders:
        where = shlex.quote(name(str(folder)))
        voice.note(f"git apply would pass this over in this folder; use git -C {where} apply")


def diff_of(one: Done) -> bytes:
    """The git-form diff of one FILE, checked; empty where nothing changes."""
    edit = one.edit
    if not edit.changed:
        return b""
    path = b"stdin" if one.shown == "-" else repository_path(one.shown)[0]
    mode = one.before.mode if one.before is not None else 0o644
    patch = diff(edit.original, edit.output, path, mode=mode)
    check(patch, edit.original, edit.output)
    return patch


def write(order: Order, done: Sequence[Done]) -> Written:
    """Write every result where it belongs, all of them or none.

    Where one of several saves fails, those before it are taken back. A signal during the saves
    lets them finish: each takes milliseconds, and half of several files would be neither the old
    state nor the new one.
    """
    written: dict[str, str | None] = {one.file: None for one in done}
    saved: list[Done] = []
    with ending.held():
        other = next((one for one in done if not _unchanged(one)), None)
        if other is not None:
            message = (
                f"{name(other.file)} changed on disk while the edit was made, and was left alone"
            )
            return Written(
                written, other, _kept(done, other, SaveError("changed-on-disk", message))
            )
        for one in done:
            if order.output is not None:
                _write_output(order.output, one)
                written[one.file] = order.output
            elif one.changed and one.before is not None:
                try:
                    save(one.before.path, one.edit.output, one.before)
                except SaveError as error:
                    stuck = _take_back(saved)
                    written = {
                        file: path if file in stuck else None for file, path in written.items()
                    }
                    return Written(written, one, _kept(done, one, _said(error, stuck)))
                saved.append(one)
                written[one.file] = one.file
    return Written(written)


def _take_back(saved: Sequence[Done]) -> list[str]:
    """Give files that were saved their old content again; those where that cannot be done."""
    stuck: list[str] = []
    for one in reversed(saved):
        assert one.before is not None
        now = replace(one.before, data=one.edit.output)
        try:
            save(one.before.path, one.before.data, now)
        except SaveError:
            stuck.insert(0, one.file)
    return stuck


def _said(error: SaveError, stuck: Sequence[str]) -> SaveError:
    """The error, and which files could not be taken back."""
    if stuck:
        names = ", ".join(name(file) for file in stuck)
        error.message = f"{error.message}; {names} had been written and could not be taken back"
    return error


def _unchanged(one: Done) -> bool:
    """Whether a FILE to be written still is what was read: to be seen before the first of
    several saves, and not between two of them."""
    if one.before is None or not one.changed:
        return True
    try:
        return snapshot(one.before.path).data == one.before.data
    except InputError:
        return False


def _kept(done: Sequence[Done], failed: Done, error: SaveError) -> SaveError:
    """The error; the results, which may have taken minutes, are put beside their files."""
    ordered = [failed, *(one for one in done if one is not failed)]
    beside = [_put_beside(one) for one in ordered if one.changed]
    places = [name(str(path)) for path in beside if path is not None]
    if places:
        texts = "the edited text is" if len(places) == 1 else "the edited texts are"
        error.message = f"{error.message}; {texts} in {', '.join(places)}"
    if sum(one.changed for one in done) > 1 and "taken back" not in error.message:
        error.message = f"{error.message}; no file was written"
    return error


def _put_beside(one: Done) -> Path | None:
    """A result in a new file beside its FILE; None where that cannot be."""
    beside = Path(one.file)
    for number in range(1, 100):
        suffix = ".edited" if number == 1 else f".edited-{number}"
        path = beside.with_name(beside.name + suffix)
        try:
            write_new(path, one.edit.output)
        except SaveError as problem:
            if problem.code == "exists":
                continue
            return None
        return path
    return None


def _write_output(path: str, one: Done) -> None:
    """The result at `path`: a new or replaced file, or into a pipe or device that is there."""
    before = one.before
    if before is not None and os.path.realpath(path) == str(before.target):
        save(path, one.edit.output, before)
    else:
        write_new(path, one.edit.output, force=True)


def check_places(order: Order, before: Sequence[Snapshot]) -> None:
    """Refuse places that cannot be written while that has cost nothing yet. Raises SaveError."""
    if order.write:
        for one in before:
            writable = one.mode & 0o222 and os.access(one.target, os.W_OK)
            if not writable:
                message = f"{name(str(one.path))} is read-only; make it writable (chmod u+w) first"
                raise SaveError("read-only", message)
            check_room(one.path)
    if not order.saves or order.output is None:
        return
    path = Path(order.output)
    if path.is_dir():
        raise SaveError("is-a-directory", f"{quote(order.output)} is a folder; name a file in it")
    if not path.parent.is_dir():
        message = f"the folder of {quote(order.output)} does not exist; make it first"
        raise SaveError("no-such-folder", message)
    check_room(path)
