"""What the command line asks for, checked for sense before anything is read."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from apply_edit.errors import UsageError
from apply_edit.words import quote


@dataclass(frozen=True, slots=True)
class Order:
    """One call of the command. Texts are as the shell gave them; `flags` are the settings."""

    files: tuple[str, ...] = ()
    instruction: str | None = None
    instruction_file: str | None = None
    update: str | None = None
    stdin_filename: str | None = None
    diff: bool = False
    write: bool = False
    output: str | None = None
    check: bool = False
    lines: str | None = None
    json: bool = False
    report: str | None = None
    flags: Mapping[str, object] = field(default_factory=dict)

    @property
    def filters(self) -> bool:
        """Whether stdin is to come out on stdout, changed: then failures echo it."""
        plain = not (self.diff or self.check or self.json or self.output is not None)
        return plain and "-" in self.files

    @property
    def to_stdout(self) -> bool:
        """Whether the rewritten file is the answer on stdout."""
        other = self.diff or self.write or self.check or self.json
        return not other and self.output in (None, "-")

    @property
    def saves(self) -> bool:
        """Whether the answer goes into files."""
        return self.write or self.output not in (None, "-")

    def shown(self, file: str) -> str:
        """The name that `file` goes by in messages and diffs."""
        return self.stdin_filename or "-" if file == "-" else file

    @property
    def folder(self) -> Path:
        """Where the search for the project's configuration begins."""
        return self.folder_of(self.files[0]) if self.files else Path()

    def folder_of(self, file: str) -> Path:
        """The folder of one FILE, links not followed: a project is where the path says."""
        name = self.shown(file)
        return Path() if name == "-" else Path(name).parent

    def line_range(self) -> tuple[int, int] | None:
        """The two numbers of --lines, 1-based and inclusive. Raises UsageError `bad-lines`."""
        if self.lines is None:
            return None
        match = re.fullmatch(r"\s*(\d+)\s*(?:[:,-]\s*(\d+))?\s*", self.lines, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last:
            raise UsageError(
                "bad-lines",
                f"--lines takes A:B with 1 <= A <= B, both included, not {quote(self.lines)}",
            )
        return first, last

    def check_sense(self) -> None:
        """Raises UsageError for options that contradict each other or are missing."""
        if not self.files:
            raise UsageError(
                "no-file", "name the file to edit, or - for standard input (--help says more)"
            )
        if "" in self.files:
            raise UsageError("no-file", "a FILE is empty; name the file to edit (--help says more)")
        self._check_edit()
        self._check_stdin()
        self._check_answer()
        self.line_range()

    def _check_edit(self) -> None:
        given = [
            name
            for name, value in (
                ("--instruction", self.instruction),
                ("--instruction-file", self.instruction_file),
                ("--update", self.update),
            )
            if value is not None
        ]
        if not given:
            raise UsageError(
                "no-edit", "say what to change: --instruction TEXT, or a sketch with --update PATH"
            )
        if len(given) > 1:
            raise UsageError("conflict", f"{' and '.join(given)} exclude each other; keep one")
        if self.instruction is not None and not self.instruction.strip():
            raise UsageError("empty-instruction", "the instruction is empty; say what to change")

    def _check_stdin(self) -> None:
        readers = [*self.files, self.update, self.instruction_file].count("-")
        if readers > 1:
            raise UsageError("conflict", "only one thing can be read from standard input (-)")
        if self.stdin_filename is not None and "-" not in self.files:
            raise UsageError(
                "conflict", "--stdin-filename names the text of FILE -; give - as FILE"
            )
        if self.write and "-" in self.files:
            raise UsageError("conflict", "-w cannot write to standard input; name the file")

    def _check_answer(self) -> None:
        ways = [
            flag
            for flag, value in (
                ("--write", self.write),
                ("--output", self.output is not None),
                ("--check", self.check),
                ("--diff", self.diff and not self.check),
            )
            if value
        ]
        if len(ways) > 1:
            raise UsageError("conflict", f"{' and '.join(ways)} exclude each other; keep one")
        if self.output == "":
            raise UsageError("conflict", "--output names no file")
        if len(self.files) == 1:
            return
        if self.output is not None:
            raise UsageError(
                "conflict", "--output takes the result of one FILE; use -w for several"
            )
        if self.to_stdout:
            raise UsageError(
                "several-files", "several FILEs need one of -w, --diff, --check and --json"
            )
        if self.lines is not None:
            raise UsageError("conflict", "--lines means the lines of one FILE; call once for each")
        seen: dict[str, str] = {}
        for file in self.files:
            real = os.path.realpath(file)
            if real in seen:
                raise UsageError(
                    "same-file", f"{quote(seen[real])} and {quote(file)} are one file; name it once"
                )
            seen[real] = file


def asked_of(argv: list[str]) -> Order:
    """What can be told of a command line that did not parse: how its failure is to be reported."""
    stop = argv.index("--") if "--" in argv else len(argv)
    flags = set(argv[:stop])
    # A `-` behind one of these is its value and not FILE.
    takes = {"-u", "--update", "--instruction-file", "-o", "--output", "-i", "--instruction"}
    takes |= {"--report"}
    reads = any(word == "-" and (i == 0 or argv[i - 1] not in takes) for i, word in enumerate(argv))
    return Order(
        files=("-",) if reads else (),
        diff="--diff" in flags,
        check="--check" in flags,
        json="--json" in flags,
        output="" if flags & {"-o", "--output"} else None,
    )
