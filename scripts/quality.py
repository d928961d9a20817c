"""Real edits by a real model: how many are refused, damaged, right.

For every case of the case files (JSON lines with `original`, `instruction`, `update`, `expected`,
perhaps `test` and `context`) lets the model make the edit through `apply_edit.Editor` and says
how many answers the guards would refuse, by code; how many equal `expected` (the final newline
aside), and how many more but for blank lines at the file's ends; how many lines are gone that
`expected` keeps; how many leave the file as it was; and, for Python cases with a test, how many
pass it, beside how often `expected` itself does. Only answers that no guard refuses count as
equal or passed.

  python scripts/quality.py CASES.jsonl --limit 20
  python scripts/quality.py A.jsonl B.jsonl --mode update --wording current,markers --half first

THIS EXECUTES THE CODE OF THE CASE FILES AND OF THE MODEL'S ANSWERS, in a subprocess with limits on
time, memory and file size and in a folder of its own, but without any other confinement: run it
only on case files you trust.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from quality_sandbox import passes
from quality_wordings import WORDINGS

from apply_edit.editor import Editor, Options, Request
from apply_edit.errors import ApplyEditError, Refusal
from apply_edit.target import prompt
from apply_edit.target.catalog import DEFAULT_MODEL
from apply_edit.target.prompt import Wording
from apply_edit.text import guard

SEEN = frozenset(guard.CODES) - {"looping"} | {"garbled"}
"""Codes let through, so that the refused text can be looked at; a loop would cost its budget."""


@dataclass(frozen=True)
class Case:
    name: str
    path: str
    language: str
    original: str
    instruction: str
    update: str
    expected: str
    context: str
    test: str | None


@dataclass
class Verdict:
    """One edit. `lost` counts lines; `edges`: only blank lines at the file's start or end are not
    as expected; `passed` is None where nothing can be executed."""

    case: str
    wording: str
    refused: list[str]
    exact: bool = False
    edges: bool = False
    unchanged: bool = False
    lost: int = 0
    passed: bool | None = None
    prompt_tokens: int = 0
    seconds: float = 0.0

    @property
    def delivered(self) -> bool:
        return not self.refused


def cases(path: Path) -> Iterator[Case]:
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not line.strip():
            continue
        row = json.loads(line)
        language = row.get("language", "")
        yield Case(
            row["id"],
            row.get("path", ""),
            language,
            row["original"],
            row["instruction"],
            row["update"],
            row["expected"],
            row.get("context", ""),
            row.get("test") if language == "python" else None,
        )


def spread(found: list[Case], limit: int | None) -> list[Case]:
    """At most `limit` cases, evenly over the file."""
    if not limit or limit >= len(found):
        return found
    return [found[int(i * len(found) / limit)] for i in range(limit)]


def lost_lines(original: str, expected: str, output: str) -> int:
    """How many lines of the original that `expected` keeps are not in the output (blank ones
    aside)."""
    old, wanted, now = (Counter(t.split("\n")) for t in (original, expected, output))
    return sum(n for line, n in ((old & wanted) - now).items() if line.strip())


def plain(text: str) -> str:
    return text.removesuffix("\n")


def use(wording: Wording, mode: str, case: Case) -> None:
    """Let prompts be built with a wording."""
    filled = replace(wording, rules=wording.rules.replace("{path}", case.path))
    if mode == "update":
        prompt.UPDATE = filled
    else:
        prompt.INSTRUCTION = filled


def judge(editor: Editor, case: Case, mode: str, name: str, options: Options) -> Verdict:
    """One edit, and what came of it."""
    use(WORDINGS[mode][name], mode, case)
    request = Request(
        instruction=case.instruction if mode == "instruction" else None,
        update=case.update if mode == "update" else None,
        name=case.path,
        allow=SEEN,
    )
    started = time.perf_counter()
    try:
        edit = editor.edit(case.original.encode(), request, options)
    except Refusal as refusal:
        seconds = time.perf_counter() - started
        failed = None if case.test is None else False
        return Verdict(case.name, name, [refusal.code], passed=failed, seconds=seconds)
    verdict = Verdict(case.name, name, list(edit.allowed))
    verdict.seconds = edit.stats.total_seconds
    verdict.prompt_tokens = edit.stats.prompt_tokens
    output = edit.output.decode()
    verdict.lost = lost_lines(case.original, case.expected, output)
    verdict.unchanged = plain(output) == plain(case.original)
    verdict.exact = verdict.delivered and plain(output) == plain(case.expected)
    same = output.strip("\n") == case.expected.strip("\n")
    verdict.edges = verdict.delivered and same and not verdict.exact
    if case.test is not None:
        verdict.passed = verdict.delivered and passes(output, case.context, case.test)
    return verdict


def summary(verdicts: list[Verdict], baseline: list[bool]) -> dict[str, object]:
    tested = [v.passed for v in verdicts if v.passed is not None]
    return {
        "cases": len(verdicts),
        "refused": sum(not v.delivered for v in verdicts),
        "codes": dict(Counter(code for v in verdicts for code in v.refused)),
        "unchanged": sum(v.unchanged for v in verdicts),
        "cases that lost lines": sum(v.lost > 0 for v in verdicts),
        "lines lost": sum(v.lost for v in verdicts),
        "exact": sum(v.exact for v in verdicts),
        "exact but for blank ends": sum(v.edges for v in verdicts),
        "passed": sum(tested),
        "tested": len(tested),
        "expected passes": sum(baseline),
        "prompt tokens": sum(v.prompt_tokens for v in verdicts),
        "seconds": round(sum(v.seconds for v in verdicts), 1),
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", type=Path, nargs="+", help="JSONL case files")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--mode", choices=sorted(WORDINGS), default="instruction")
    parser.add_argument("--limit", type=int, help="cases per file, spread over it")
    parser.add_argument("--longest", type=int, help="only originals of at most so many lines")
    parser.add_argument("--language", help="only these, comma-separated")
    parser.add_argument("--half", choices=["first", "second"], help="every other case")
    parser.add_argument("--wording", default="current", help="names, comma-separated, or all")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds per edit")
    parser.add_argument("--json", action="store_true", help="a JSON object per edit and summary")
    options = parser.parse_args()
    known = list(WORDINGS[options.mode])
    names = known if options.wording == "all" else options.wording.split(",")
    if unknown := [name for name in names if name not in known]:
        parser.error(f"unknown wording {unknown[0]}; there are {', '.join(known)}")
    options.names = names
    return options


def chosen(options: argparse.Namespace) -> list[Case]:
    found: list[Case] = []
    for path in options.cases:
        fitting = [
            case
            for case in cases(path)
            if (not options.language or case.language in options.language.split(","))
            and (not options.longest or case.original.count("\n") <= options.longest)
        ]
        found += spread(fitting, options.limit)
    if options.half:
        found = found[options.half == "second" :: 2]
    return found


def main() -> None:
    options = parse()
    found = chosen(options)
    try:
        editor = Editor.load(options.model)
    except ApplyEditError as error:
        sys.exit(f"{error.code}: {error.message}")
    baseline = [passes(c.expected, c.context, c.test) for c in found if c.test is not None]
    decoding = Options(timeout=options.timeout)
    for name in options.names:
        verdicts = []
        for case in found:
            verdict = judge(editor, case, options.mode, name, decoding)
            verdicts.append(verdict)
            if options.json:
                print(json.dumps(asdict(verdict)), flush=True)
        figures = summary(verdicts, baseline)
        if options.json:
            print(json.dumps({"summary": name, "mode": options.mode, **figures}), flush=True)
            continue
        print(f"{name} ({options.mode}, {editor.backend.name})")
        for key, value in figures.items():
            print(f"  {key:<26} {value}", flush=True)


if __name__ == "__main__":
    main()
