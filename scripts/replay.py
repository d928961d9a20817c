"""Replay known edits: how many passes each way of drafting needs, exactly, without a model.

Each case has `original`, `instruction`, `update` and `expected`; the target is made to write
`expected`, so passes and wasted rows are exact numbers, and seconds follow from a cost table.
`--compare` puts transformers' prompt lookup (n <= 2, k = 10, leftmost match) and a longest match
(n <= 16, k = 64, latest match), both over prompt and output, beside our drafting.

  python scripts/replay.py CASES.jsonl --compare
  python scripts/replay.py CASES.jsonl --mode update --tokenizer words
  python scripts/replay.py CASES.jsonl --sizes 1000,2000,4000,8000

`--sizes` joins the cases into files of about so many tokens and shows that drafting stays a small,
constant part of the run. The tokenizer is a catalog name, a hub id, a folder, or `words`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from apply_edit.decode.accept import Greedy
from apply_edit.decode.loop import decode
from apply_edit.decode.schedule import DEFAULT_COST, AdaptiveSchedule, CostTable, FixedSchedule
from apply_edit.decode.types import Branch, Draft, Proposer, Schedule, Step
from apply_edit.draft.lookup import CopyProposer
from apply_edit.errors import ApplyEditError, UsageError
from apply_edit.target.catalog import DEFAULT_MODEL
from apply_edit.target.codec import Codec
from apply_edit.target.prompt import Prompt, body_of, build
from apply_edit.target.replay import ReplayCodec
from apply_edit.text.merge import predict

END = -1
"""The end of text; no tokenizer has it."""


@dataclass(frozen=True, slots=True)
class Case:
    """One edit in tokens. `answer` is what the target writes, `predicted` the merge expected."""

    name: str
    prompt: Prompt
    answer: list[int]
    predicted: list[int] | None


@dataclass(frozen=True, slots=True)
class Result:
    """One case under one rule. `seconds` is the decoding by the cost table, `drafting` real."""

    name: str
    tokens: int
    passes: int
    wasted: int
    seconds: float
    plain: float
    prefill: float
    floor: float
    drafting: float


class Known:
    """A target that writes a known answer; `tops[i]` are its best tokens at place i, if known."""

    limit = 1 << 40

    def __init__(self, answer: Sequence[int], tops: Sequence[Sequence[int]] = ()) -> None:
        self._answer = answer
        self._tops = tops
        self._written = 0
        self.length = 0

    def prefill(self, tokens: Sequence[int]) -> None:
        self.length += len(tokens)

    def score(
        self, tokens: Sequence[int], branches: Sequence[Branch] = (), first: int = 0
    ) -> Certain:
        places = [self._written + i for i in range(len(tokens) - first)]
        for branch in branches:
            places += [self._written + branch.fork + 1 + i for i in range(len(branch.tokens))]
        tops = [self._tops[at] if at < len(self._tops) else () for at in places]
        return Certain([self._at(at) for at in places], tops)

    def keep(self, rows: int, branch: int | None = None, branch_rows: int = 0) -> None:
        self.length += rows + branch_rows
        self._written += rows + branch_rows

    def reset(self, length: int = 0) -> None:
        self.length = length
        self._written = 0

    def _at(self, place: int) -> int:
        return self._answer[place] if place < len(self._answer) else END


class Certain:
    """Scores that leave no doubt: one token per row, and perhaps what else was considered."""

    def __init__(self, tokens: list[int], tops: Sequence[Sequence[int]]) -> None:
        self._tokens = tokens
        self._tops = tops

    def __len__(self) -> int:
        return len(self._tokens)

    def greedy(self) -> list[int]:
        return self._tokens

    def row(self, index: int) -> Sequence[float]:
        raise NotImplementedError("a known answer has no logits")

    def top(self, index: int, count: int) -> list[int]:
        return list(self._tops[index] or [self._tokens[index]])[:count]


class Lookup:
    """The n-gram rules of other engines, over prompt and output.

    The longest n-gram at the end of the text that stood before, its leftmost or latest place, and
    the `k` tokens behind it.
    """

    def __init__(self, prompt: Sequence[int], longest: int, *, leftmost: bool) -> None:
        self._text: list[int] = []
        self._longest = longest
        self._leftmost = leftmost
        self._places: dict[tuple[int, ...], int] = {}
        self._add(prompt)

    def propose(self, limit: int) -> Draft:
        text = self._text
        for n in range(min(self._longest, len(text)), 0, -1):
            place = self._places.get(tuple(text[-n:]))
            if place is not None:
                return Draft(tuple(text[place : place + limit]))
        return Draft()

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        self._add(tokens)

    def _add(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            # What ends here has something behind it only now.
            end = len(self._text)
            for n in range(1, min(self._longest, end) + 1):
                key = tuple(self._text[end - n :])
                if self._leftmost:
                    self._places.setdefault(key, end)
                else:
                    self._places[key] = end
            self._text.append(token)


def copying(case: Case, table: CostTable, stop: Collection[int]) -> CopyProposer:
    """Our copying for one case, on a machine of these costs."""
    return CopyProposer(
        case.prompt.reference,
        update=case.prompt.update,
        instruction=case.prompt.instruction,
        predicted=case.predicted,
        forbidden=stop,
        free=table.free_rows,
        price=table.row_price,
    )


def written(
    case: Case,
    answer: Sequence[int],
    proposer: Proposer,
    schedule: Schedule,
    tops: Sequence[Sequence[int]] = (),
) -> list[Step]:
    """The passes that write `answer`; raises AssertionError should the output be another."""
    target = Known(answer, tops)
    target.prefill(case.prompt.tokens[:-1])
    steps = list(
        decode(
            target,
            proposer,
            schedule,
            tail=case.prompt.tokens[-1:],
            rule=Greedy(),
            stop={END},
            budget=len(answer) + 1,
        )
    )
    output = [token for step in steps for token in step.tokens]
    assert output == list(answer), f"{case.name}: drafting changed the output"
    return steps


Rule = Callable[[Case], tuple[Proposer, Schedule]]


def ours(codec: Codec, cost: Sequence[tuple[int, float]], k: int | None) -> Rule:
    """Our drafting, with k from the cost table or fixed."""
    table = CostTable(cost)

    def rule(case: Case) -> tuple[Proposer, Schedule]:
        proposer = copying(case, table, codec.stop)
        return proposer, AdaptiveSchedule(cost) if k is None else FixedSchedule(k)

    return rule


def peers() -> dict[str, Rule]:
    return {
        "lookup n<=2 k=10": lambda case: (
            Lookup(case.prompt.tokens, 2, leftmost=True),
            FixedSchedule(10),
        ),
        "longest n<=16 k=64": lambda case: (
            Lookup(case.prompt.tokens, 16, leftmost=False),
            FixedSchedule(64),
        ),
    }


def replay(case: Case, rule: Rule, cost: CostTable) -> Result:
    """Decode one case; raises AssertionError should the output not be the answer."""
    proposer, schedule = rule(case)
    passes = wasted = 0
    seconds = drafting = 0.0
    for step in written(case, case.answer, proposer, schedule):
        passes += 1
        wasted += step.drafted - step.accepted
        seconds += cost(step.rows) / 1e3
        drafting += step.draft_seconds
    tokens = len(case.answer) + 1
    best = min(cost(rows) / rows for rows in (64, 128, 256)) / 1e3
    prompt = len(case.prompt.tokens)
    plain = tokens * cost(1) / 1e3
    return Result(
        case.name,
        tokens,
        passes,
        wasted,
        seconds,
        plain,
        prompt * best,
        (prompt + tokens) * best,
        drafting,
    )


def read(path: Path) -> Iterator[dict[str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def case_of(row: dict[str, str], mode: str, codec: Codec) -> Case:
    update = row["update"] if mode == "update" else None
    prompt = build(
        codec,
        row["original"],
        instruction=None if mode == "update" else row["instruction"],
        update=update,
    )
    predicted = None
    if update is not None:
        try:
            merge = predict(row["original"], update).text
            predicted = codec.encode(body_of(merge) + prompt.closing_text)
        except UsageError:
            predicted = None
    answer = codec.encode(body_of(row["expected"]) + prompt.closing_text)
    return Case(row["id"], prompt, answer, predicted)


def joined(rows: list[dict[str, str]], size: int, codec: Codec) -> dict[str, str]:
    """The first rows as one big file of at least `size` tokens, with all their edits."""
    taken: list[dict[str, str]] = []
    tokens = 0
    while tokens < size:
        row = rows[len(taken) % len(rows)]
        taken.append(row)
        tokens += len(codec.encode(row["original"]))
    whole = {
        name: "\n".join(row[name].rstrip("\n") for row in taken) + "\n"
        for name in ("original", "instruction", "update", "expected")
    }
    return {"id": f"{size} tokens", **whole}


def summary(name: str, results: list[Result]) -> dict[str, object]:
    tokens = sum(r.tokens for r in results)
    passes = sum(r.passes for r in results)
    seconds = sum(r.seconds for r in results)
    drafting = sum(r.drafting for r in results)
    return {
        "rule": name,
        "tokens": tokens,
        "passes": passes,
        "tokens_per_pass": tokens / passes,
        "wasted_per_token": sum(r.wasted for r in results) / tokens,
        "seconds": seconds,
        "to_plain": seconds / sum(r.plain for r in results),
        "to_plain_worst": max(r.seconds / r.plain for r in results),
        "over_floor": statistics.median((r.prefill + r.seconds) / r.floor for r in results),
        "drafting_ms_per_pass": 1e3 * drafting / passes,
        "drafting_share": drafting / (seconds + drafting),
    }


COLUMNS = (
    ("tokens/pass", "tokens_per_pass", "{:.2f}"),
    ("wasted/token", "wasted_per_token", "{:.3f}"),
    ("passes", "passes", "{}"),
    ("est. s", "seconds", "{:.1f}"),
    ("of plain", "to_plain", "{:.4f}"),
    ("worst case", "to_plain_worst", "{:.3f}"),
    ("over floor", "over_floor", "{:.2f}"),
    ("draft ms/pass", "drafting_ms_per_pass", "{:.2f}"),
    ("draft share", "drafting_share", "{:.2%}"),
)


def show(rows: list[dict[str, object]]) -> None:
    table = [["rule", *(title for title, _, _ in COLUMNS)]]
    table += [[str(r["rule"]), *(form.format(r[key]) for _, key, form in COLUMNS)] for r in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    for line in table:
        first, *others = line
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *cells]))


def codec_of(name: str) -> Codec:
    if name == "words":
        return ReplayCodec()
    from apply_edit.target.load import load_tokenizer, resolve
    from apply_edit.target.tokenizer import HubCodec

    return HubCodec(load_tokenizer(resolve(name).folder))


def table_of(path: Path | None) -> list[tuple[int, float]]:
    if path is None:
        return list(DEFAULT_COST)
    return [(int(rows), float(time)) for rows, time in json.loads(path.read_text(encoding="utf-8"))]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", type=Path, metavar="CASES.jsonl")
    parser.add_argument("--mode", choices=("instruction", "update"), default="instruction")
    parser.add_argument("--tokenizer", default=DEFAULT_MODEL, metavar="NAME")
    parser.add_argument("--compare", action="store_true", help="other engines' rules too")
    parser.add_argument("--no-prediction", action="store_true", help="no merge of the sketch")
    parser.add_argument("--k", type=int, help="a fixed draft length instead of the adaptive one")
    parser.add_argument("--cost", type=Path, metavar="JSON", help="[[rows, milliseconds], …]")
    parser.add_argument("--limit", type=int, help="only the first cases")
    parser.add_argument("--sizes", help="join the cases into files of these many tokens")
    parser.add_argument("--each", action="store_true", help="one line per case as well")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    codec = codec_of(args.tokenizer)
    points = table_of(args.cost)
    cost = CostTable(points)
    rows = list(read(args.cases))[: args.limit]
    rules = {"ours" if args.k is None else f"ours k={args.k}": ours(codec, points, args.k)}
    if args.compare:
        rules |= peers()
    if args.sizes:
        rows = [joined(rows, int(size), codec) for size in args.sizes.split(",")]
    cases = [case_of(row, args.mode, codec) for row in rows]
    if args.no_prediction:
        cases = [Case(c.name, c.prompt, c.answer, None) for c in cases]
    results = {name: [replay(case, rule, cost) for case in cases] for name, rule in rules.items()}
    if args.json:
        json.dump(
            {
                "summary": [summary(name, found) for name, found in results.items()],
                "cases": {name: [asdict(r) for r in found] for name, found in results.items()},
            },
            sys.stdout,
            indent=1,
        )
        print()
        return 0
    if args.sizes or args.each:
        show([summary(f"{r.name} {name}", [r]) for name, found in results.items() for r in found])
    if not args.sizes:
        show([summary(name, found) for name, found in results.items()])
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ApplyEditError as error:
        sys.exit(f"replay: {error.message}")
