"""The answer, given once at the end: on stdout, as a diff, or into files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
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
        write(order, done)
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


def write(order: Order, done: Sequence[Done]) -> dict[str, str | None]:
    """Write every result where it belongs; returns the path written by FILE (None: unchanged).

    A signal during the saves lets them finish: each takes milliseconds, and half of several
    files would be neither the old state nor the new one.
    """
    written: dict[str, str | None] = {one.file: None for one in done}
    with ending.held():
        for one in done:
            _check_unchanged(one)
        for one in done:
            if order.output is not None:
                _write_output(order.output, one)
                written[one.file] = order.output
            elif one.changed and one.before is not None:
                try:
                    save(one.before.path, one.edit.output, one.before)
                except SaveError as error:
                    raise _kept(one, error) from error
                written[one.file] = one.file
    return written


def _check_unchanged(one: Done) -> None:
    """Refuse before the first of several saves, and not between two of them."""
    if one.before is None or not one.changed:
        return
    try:
        same = snapshot(one.before.path).data == one.before.data
    except InputError:
        same = False
    if not same:
        message = f"{name(one.file)} changed on disk while the edit was made, and was left alone"
        raise _kept(one, SaveError("changed-on-disk", message))


def _kept(one: Done, error: SaveError) -> SaveError:
    """The error; the result, which may have taken minutes, is put beside the file."""
    beside = Path(one.file)
    for number in range(1, 100):
        suffix = ".edited" if number == 1 else f".edited-{number}"
        path = beside.with_name(beside.name + suffix)
        try:
            write_new(path, one.edit.output)
        except SaveError as problem:
            if problem.code == "exists":
                continue
            return error
        error.message = f"{error.message}; the edited text is in {name(str(path))}"
        return error
    return error


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
