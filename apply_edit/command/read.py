"""What an edit needs to read: the FILEs, the sketch, the instruction, standard input."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from apply_edit.command.order import Order
from apply_edit.command.streams import Streams
from apply_edit.command.voice import Voice
from apply_edit.config import Settings
from apply_edit.edit import Request, check_request
from apply_edit.errors import ApplyEditError, InputError, UsageError
from apply_edit.text.save import Snapshot, snapshot
from apply_edit.words import name, quote


@dataclass(frozen=True, slots=True)
class Job:
    """One FILE to edit: its bytes, what is asked, and the file as it stood on disk.

    `error` is what was wrong with it already, in a --json call that goes on with the others.
    """

    file: str
    shown: str
    data: bytes
    request: Request
    before: Snapshot | None = None
    error: ApplyEditError | None = None


def read_jobs(order: Order, settings: Settings, streams: Streams, voice: Voice) -> list[Job]:
    """All FILEs, read and checked as far as that needs no model."""
    for file in order.files:
        if streams.answers_into(file):
            raise UsageError(
                "same-file",
                f"standard output is {quote(order.shown(file))} itself; use -w to rewrite it",
            )
    # Standard input first: whatever fails after this can give it back.
    data = _stdin(order, streams, voice)
    update = None if order.update is None else _text(order.update, settings, streams, "sketch")
    instruction = order.instruction
    if order.instruction_file is not None:
        instruction = _text(order.instruction_file, settings, streams, "instruction")
    elif instruction is not None:
        instruction = _argument(instruction)
    jobs = []
    for file in order.files:
        request = Request(
            instruction=instruction,
            update=update,
            name=order.shown(file),
            lines=order.line_range(),
            encoding=settings.encoding,
            allow=frozenset(settings.allow),
        )
        jobs.append(_job(file, request, data, goes_on=order.json and len(order.files) > 1))
    return jobs


def _job(file: str, request: Request, stdin: bytes, goes_on: bool) -> Job:
    before = None
    data = stdin
    try:
        if file != "-":
            before = snapshot(file)
            data = before.data
        check_request(data, request)
    except ApplyEditError as error:
        if isinstance(error, InputError):
            named(error, request.name)
        if not goes_on:
            raise
        return Job(file, request.name, data, request, before, error)
    return Job(file, request.name, data, request, before)


def named(error: ApplyEditError, file: str) -> ApplyEditError:
    """The error, saying which file it is about."""
    shown = "standard input" if file == "-" else name(file)
    if shown not in error.message and file not in error.message:
        error.message = f"{shown}: {error.message}"
    return error


def _stdin(order: Order, streams: Streams, voice: Voice) -> bytes:
    """What standard input holds, if anything is to come from there."""
    wanted = [
        what
        for what, paths in (
            ("the file", order.files),
            ("the sketch", (order.update,)),
            ("the instruction", (order.instruction_file,)),
        )
        if "-" in paths
    ]
    if not wanted:
        return b""
    if streams.is_terminal(0):
        voice.note(f"reading {wanted[0]} from the terminal; end it with Ctrl-D")
    return streams.read()


def _text(path: str, settings: Settings, streams: Streams, what: str) -> str:
    """The text of a sketch or an instruction: UTF-8, or encoded as FILE is."""
    if path == "-":
        raw = streams.read()
    else:
        try:
            raw = Path(path).read_bytes()
        except OSError as error:
            code = "not-found" if isinstance(error, FileNotFoundError) else "unreadable"
            message = f"the {what} {quote(path)} cannot be read: {error.strerror}"
            raise InputError(code, message) from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        try:
            if settings.encoding == "utf-8":
                raise
            return raw.decode(settings.encoding).removeprefix("\ufeff")
        except (UnicodeError, LookupError):
            message = (
                f"byte {error.start} of the {what} {quote(path)} is not UTF-8; "
                "save it as UTF-8, or name its encoding with --encoding"
            )
            raise InputError("not-utf8", message) from error


def _argument(text: str) -> str:
    """An argument as text: its bytes are UTF-8 even where the locale says ASCII."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError as error:
        message = "the instruction is not UTF-8; put it into a file for --instruction-file"
        raise UsageError("not-utf8", message) from error
