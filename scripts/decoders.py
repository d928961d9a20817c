"""Every decoder on the same cases, in one table: seconds, tokens per pass, time inside edits.

  python scripts/decoders.py fixtures/inventory
  python scripts/decoders.py CASES.jsonl --limit 4 --decoders plain,copy,self+copy
  python scripts/decoders.py CASES.jsonl --draft-model qwen2.5-coder-0.5b --json

Decoders: plain (one token a pass), copy, model, self and heads (that draft alone), model+copy,
self+copy and heads+copy (copying where it hits, the draft inside edits), auto (heads+copy where
there are heads, else self+copy; it can lose no more than 3 %). Each case runs through all of them
in turn, in one process, after a warm-up; times exclude loading. "edit ms" is the time
per token between the first token that leaves the original and the last before it is joined again,
by the alignment of the output with the original, so it is the same tokens for every decoder; "edit
t/p" is how many of these tokens a pass brought. Outputs are compared with those of the first
decoder; "x copy" is the ratio to copying alone, above 1 where a decoder loses.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from apply_edit.decode.types import Step
from apply_edit.draft.model import ModelDrafter
from apply_edit.drafting import beside_copying
from apply_edit.editor import Editor, Options
from apply_edit.session import Answer, Session
from apply_edit.target.prompt import Prompt

sys.path.insert(0, str(Path(__file__).resolve().parent))
from bench import Case, Ours, cases

DRAFTS = ("model", "self", "heads")
DECODERS = ("plain", "copy", *DRAFTS, *(f"{draft}+copy" for draft in DRAFTS), "auto")
NEAR = 3
"""Original tokens between two changes that still count as inside the edit."""


@dataclass
class Row:
    """One decoder on one case. Times are seconds; `edit_ms` is milliseconds per token in edits,
    `edit_passes` the passes they took."""

    decoder: str
    case: str
    seconds: float
    prefill: float
    tokens: int
    passes: int
    edit_tokens: int
    edit_ms: float
    edit_passes: float
    same: bool


class Decoders:
    """Runs cases through decoders on one loaded target."""

    def __init__(self, editor: Editor, draft_model: str) -> None:
        self.editor = editor
        self.draft_model = draft_model
        self.session = _Choosing(editor.session)

    def run(self, case: Case, decoder: str) -> tuple[Answer, Prompt, float]:
        question = Ours(self.editor).question(case)
        prompt, predicted = question.prompt, question.predicted
        name, _, copying = decoder.partition("+")
        draft = {
            "plain": "none",
            "model": f"model:{self.draft_model}",
        }.get(name, name)
        self.session.alone = name in DRAFTS and not copying
        session = self.editor.session
        session.forget()
        if name in DRAFTS:
            drafter = self.editor.backend.drafter(draft, lambda event: None)  # type: ignore[attr-defined]
            if drafter is None:
                raise SystemExit(f"{draft}: no such draft on this machine")
            if isinstance(drafter, ModelDrafter):
                # Read the prompt anew, as the target does.
                drafter.read([0], lambda done, total: None)
        started = perf_counter()
        answer = session.answer(prompt, Options(draft=draft), predicted=predicted)
        return answer, prompt, perf_counter() - started


class _Choosing:
    """Takes copying out of a session's draft while `alone`."""

    def __init__(self, session: Session) -> None:
        self.alone = False
        inner = session._drafting

        def drafting(
            prompt: Prompt, options: Options, predicted: str | None, drafter: Any, held: int
        ) -> Any:
            if not self.alone:
                return inner(prompt, options, predicted, drafter, held)
            _, schedule = inner(prompt, options, predicted, None, held)
            forbidden = session.backend.codec.stop
            return beside_copying(drafter, options.draft, prompt, None, schedule, forbidden)  # type: ignore[arg-type]

        session._drafting = drafting  # type: ignore[method-assign]


def edited(original: Sequence[int], output: Sequence[int]) -> list[tuple[int, int]]:
    """Spans of output tokens that are not the original's, close ones joined."""
    matcher = difflib.SequenceMatcher(None, original, output, autojunk=False)
    spans: list[tuple[int, int]] = []
    for tag, _, _, start, stop in matcher.get_opcodes():
        if tag not in ("replace", "insert"):
            continue
        if spans and start - spans[-1][1] <= NEAR:
            spans[-1] = spans[-1][0], stop
        else:
            spans.append((start, stop))
    return spans


def inside(steps: Sequence[Step], spans: Sequence[tuple[int, int]]) -> tuple[int, float, float]:
    """Tokens inside the spans, the seconds and the passes they took: each pass is shared by its
    tokens inside and outside, but a rejected copy before an edit is the edit's doing as much as the
    copy's, so a pass counts by its output alone."""
    tokens, seconds, passes, place = 0, 0.0, 0.0, 0
    for step in steps:
        stop = place + len(step.tokens)
        held = sum(max(0, min(stop, b) - max(place, a)) for a, b in spans)
        if held:
            tokens += held
            passes += held / (stop - place)
            seconds += (step.seconds + step.draft_seconds) * held / (stop - place)
        place = stop
    return tokens, seconds, passes


def measure(
    runner: Decoders, chosen: Sequence[Case], decoders: Sequence[str], repeat: int
) -> Iterator[Row]:
    for case in chosen:
        first: list[int] | None = None
        fastest = {decoder: runner.run(case, decoder) for decoder in decoders}
        for _ in range(repeat - 1):
            for decoder in decoders:
                again = runner.run(case, decoder)
                fastest[decoder] = min(fastest[decoder], again, key=lambda run: run[2])
        for decoder, (answer, prompt, seconds) in fastest.items():
            if first is None:
                first = answer.tokens
            spans = edited(prompt.reference, answer.tokens)
            count, inner, passes = inside(answer.steps, spans)
            yield Row(
                decoder,
                case.name,
                seconds,
                answer.stats.prefill_seconds,
                len(answer.tokens),
                answer.stats.passes,
                count,
                inner / count * 1000.0 if count else 0.0,
                passes,
                answer.tokens == first,
            )


def show(rows: Sequence[Row], decoders: Sequence[str]) -> None:
    names = list(dict.fromkeys(row.case for row in rows))
    copy = {row.case: row.seconds for row in rows if row.decoder == "copy"}
    head = f"{'case':<24} {'decoder':<11} {'seconds':>8} {'x copy':>7} {'prefill':>8}"
    print(
        f"{head} {'tokens':>7} {'passes':>7} {'tok/pass':>8} {'edit tok':>8} {'edit t/p':>8} "
        f"{'edit ms':>8}  same"
    )
    for name in names:
        for row in rows:
            if row.case == name:
                print(_line(row, copy.get(name)))
    print()
    for decoder in decoders:
        mine = [row for row in rows if row.decoder == decoder]
        tokens, passes = sum(r.tokens for r in mine), sum(r.passes for r in mine)
        count = sum(r.edit_tokens for r in mine)
        inner = sum(r.edit_ms * r.edit_tokens for r in mine)
        total = Row(
            decoder,
            "all",
            sum(r.seconds for r in mine),
            sum(r.prefill for r in mine),
            tokens,
            passes,
            count,
            inner / count if count else 0.0,
            sum(r.edit_passes for r in mine),
            all(r.same for r in mine),
        )
        print(_line(total, sum(copy[r.case] for r in mine) if copy else None))
        if copy and decoder != "copy":
            worst = max(mine, key=lambda r: r.seconds / copy[r.case])
            ratio = worst.seconds / copy[worst.case]
            print(f"{'':<24} worst against copy: {ratio:.2f} ({worst.case})")


def _line(row: Row, copy: float | None) -> str:
    ratio = f"{row.seconds / copy:.2f}" if copy else ""
    return (
        f"{row.case[:24]:<24} {row.decoder:<11} {row.seconds:>8.2f} {ratio:>7} {row.prefill:>8.2f} "
        f"{row.tokens:>7} {row.passes:>7} {row.tokens / max(row.passes, 1):>8.2f} "
        f"{row.edit_tokens:>8} "
        f"{row.edit_tokens / max(row.edit_passes, 1e-9):>8.2f} {row.edit_ms:>8.1f}  "
        f"{'yes' if row.same else 'NO'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", type=Path, help="a JSONL file of cases or a fixture folder")
    parser.add_argument("--limit", type=int, default=3, help="cases to run [3]")
    parser.add_argument("--skip", type=int, default=0, help="cases to pass over first [0]")
    parser.add_argument("--mode", choices=("instruction", "update"), default="instruction")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--draft-model", default="qwen2.5-coder-0.5b")
    parser.add_argument("--decoders", default=",".join(DECODERS), help="which, in which order")
    parser.add_argument("--repeat", type=int, default=1, help="rounds; the fastest counts [1]")
    parser.add_argument("--json", action="store_true", help="rows as JSON instead of the table")
    options = parser.parse_args()
    decoders = options.decoders.split(",")
    unknown = set(decoders) - set(DECODERS)
    if unknown:
        parser.error(f"unknown decoders: {', '.join(sorted(unknown))}")
    editor = Editor.load(options.model)
    runner = Decoders(editor, options.draft_model)
    chosen = list(cases(options.cases, options.mode))
    chosen = chosen[options.skip : options.skip + options.limit]
    warm = Case("warm-up", "x = 1\ny = 2\n", "Rename x to z.", None)
    for decoder in decoders:
        runner.run(warm, decoder)
    rows = list(measure(runner, chosen, decoders, options.repeat))
    if options.json:
        print(json.dumps([row.__dict__ for row in rows], indent=2))
    else:
        show(rows, decoders)


if __name__ == "__main__":
    main()
