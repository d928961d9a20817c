"""Copying with a drafter beside copying alone, on recorded guesses, priced by tables of costs.

  python scripts/guesses.py record CASES.jsonl --limit 18 --draft self --out guesses.jsonl
  python scripts/guesses.py invent CASES.jsonl --right 0.99 --out guesses.jsonl
  python scripts/guesses.py price CASES.jsonl guesses.jsonl --cost 1:71,4:79,8:93,16:122 --step 28

`record` lets the model write each case's answer once, and notes beside every place in and around
an edit what the drafter would write there; what was recorded before is kept. `invent` needs no
model: the answers are the known ones, and a guess is right as often as said. `price` replays the
answers with each rule and counts what passes and guesses cost by `--cost` (rows:milliseconds of
the target's passes) and `--step` (milliseconds of a guess). So rules for when to ask a drafter
are compared exactly, for machines that are not at hand, and in seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apply_edit.decode.schedule import AdaptiveSchedule, CostTable
from apply_edit.draft.drafter import Drafter, Guess
from apply_edit.drafting import beside_copying
from apply_edit.target.catalog import DEFAULT_MODEL
from apply_edit.target.codec import Codec

sys.path.insert(0, str(Path(__file__).resolve().parent))
from decoders import edited
from replay import Case, case_of, codec_of, copying, read, written

DEEP = 9
"""Guesses recorded in a row."""
BEYOND = 2
"""Guesses recorded behind one that is wrong."""
AROUND = 3
"""Places recorded behind each edit, and behind each token that fell."""
WIDE = 16
"""Passes that bring as many tokens are copies, and ask no drafter."""
SURE, DOUBTED = 0.995, 0.7
"""The stated chances of invented guesses that are right, and of those that are wrong."""
FIXED = 97
"""Tokens of a prompt's fixed beginning, which a run finds in the cache."""


@dataclass
class Record:
    """One case: the answer, the target's best tokens at each place, and the drafter's chains."""

    answer: list[int]
    tops: list[list[int]]
    chains: dict[int, list[Guess]]

    def as_json(self, name: str) -> str:
        chains = {
            place: [
                [g.token, round(g.chance, 5), g.second, round(g.second_chance, 5)] for g in chain
            ]
            for place, chain in self.chains.items()
        }
        return json.dumps({"id": name, "answer": self.answer, "tops": self.tops, "chains": chains})


def load(path: Path) -> dict[str, Record]:
    found = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            chains = {int(p): [Guess(*g) for g in chain] for p, chain in row["chains"].items()}
            found[row["id"]] = Record(row["answer"], row["tops"], chains)
    return found


def places(case: Case, answer: Sequence[int]) -> list[int]:
    """Where copying may be at a loss: in every edit, and a little behind it."""
    wanted: set[int] = set()
    for start, stop in edited(case.prompt.reference, answer):
        wanted.update(range(start, min(stop + AROUND, len(answer))))
    # What was left out has no span of its own: wherever the answer skips original tokens.
    table = CostTable()
    proposer = copying(case, table, frozenset())
    for step in written(case, answer, proposer, AdaptiveSchedule()):
        if not step.runs:  # it ended
            break
        start = step.runs[0].start
        stop = start + len(step.tokens)
        if step.rejected:
            wanted.update(range(stop, min(stop + AROUND, len(answer))))
        elif stop - start < WIDE:
            wanted.add(start)
    return sorted(place for place in wanted if place > 0)


class Recorded:
    """A drafter that says what was recorded; its clock goes on by `step` at every guess."""

    def __init__(self, chains: Mapping[int, Sequence[Guess]], prompt: int, step: float) -> None:
        self._chains = chains
        self._prompt = prompt
        self._step = step
        self._left: list[Guess] = []
        self.time = 0.0
        self.guesses = self.missing = 0

    def clock(self) -> float:
        return self.time

    def behind(self, tokens: Sequence[int]) -> int:
        return 0

    def begin(self, tokens: Sequence[int]) -> Guess | None:
        place = len(tokens) - self._prompt
        if place not in self._chains:
            self.missing += place > 0
            self._left = []
            return None
        self._left = list(self._chains[place])
        return self._next()

    def more(self, token: int) -> Guess | None:
        return self._next()

    def end(self) -> None:
        self._left = []

    def _next(self) -> Guess | None:
        if not self._left:
            self.missing += 1
            return None
        self.guesses += 1
        self.time += self._step / 1e3
        return self._left.pop(0)


@dataclass
class Priced:
    """One case under one rule: passes, guesses, and milliseconds with the prefill."""

    passes: int
    guesses: int
    ms: float
    missing: int = 0


def price(
    case: Case, record: Record, costs: Sequence[tuple[int, float]], step: float, draft: str | None
) -> Priced:
    table = CostTable(costs)
    schedule = AdaptiveSchedule(costs)
    prefill = max(0, len(case.prompt.tokens) - FIXED) * table(256) / 256
    proposer: Any = copying(case, schedule.cost, frozenset())
    chosen: Any = schedule
    drafter = Recorded(record.chains, len(case.prompt.tokens), step)
    if draft is not None:
        proposer, chosen = beside_copying(
            drafter,
            draft,
            case.prompt,
            proposer,
            schedule,
            (),
            clock=drafter.clock,
            held=FIXED,
        )
    steps = written(case, record.answer, proposer, chosen, record.tops)
    ms = prefill + sum(table(s.rows) for s in steps) + 1e3 * drafter.time
    return Priced(len(steps), drafter.guesses, ms, drafter.missing)


def recording(options: argparse.Namespace) -> None:
    from apply_edit.editor import Editor

    editor = Editor.load(options.model)
    backend = editor.backend
    known = load(options.out)
    target = backend.target(lambda event: None)
    drafter: Drafter | None = None
    for row in list(read(options.cases))[options.skip : options.skip + options.limit]:
        if row["id"] in known:
            continue
        case = case_of(row, options.mode, backend.codec)
        from apply_edit.session import Options

        editor.session.forget()
        answer = editor.session.answer(case.prompt, Options(draft="copy")).tokens
        start = len(case.prompt.tokens)
        target.reset(start - 1)
        tops: list[list[int]] = []
        fed = [case.prompt.tokens[-1], *answer]
        for at in range(0, len(fed), 64):
            part = fed[at : at + 64]
            scores = target.score(part)
            tops += [scores.top(i, 4) for i in range(len(part))]
            target.keep(len(part))
        if drafter is None:
            drafter = backend.drafter(options.draft, lambda event: None)  # type: ignore[attr-defined]
            if drafter is None:
                raise SystemExit(f"{options.draft}: no such draft on this machine")
        chains: dict[int, list[Guess]] = {}
        # From the last place to the first: a chain overwrites what stands behind its place.
        for place in reversed(places(case, answer)):
            target.reset(start + place - 1)
            chains[place] = _chain(drafter, [*case.prompt.tokens, *answer[:place]], answer[place:])
        record = Record(answer, tops, chains)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(record.as_json(row["id"]) + "\n")
        print(f"{row['id']}: {len(answer)} tokens, {len(chains)} places", file=sys.stderr)


def inventing(options: argparse.Namespace) -> None:
    codec = codec_of(options.model)
    chance = random.Random(options.seed)
    with options.out.open("w", encoding="utf-8") as file:
        for row in list(read(options.cases)):
            case = case_of(row, options.mode, codec)
            answer = case.answer
            chains = {}
            for place in places(case, answer):
                chain = chains[place] = []
                wrong = 0
                for token in answer[place : place + DEEP]:
                    wrong += wrong > 0 or chance.random() > options.right
                    if wrong > BEYOND:
                        break
                    chain.append(
                        Guess(chance.choice(answer), DOUBTED, token, 1.0 - DOUBTED)
                        if wrong
                        else Guess(token, SURE, None, 0.0)
                    )
            file.write(Record(answer, [], chains).as_json(row["id"]) + "\n")


def _chain(drafter: Drafter, tokens: Sequence[int], truth: Sequence[int]) -> list[Guess]:
    chain: list[Guess] = []
    wrong = 0
    try:
        guess = drafter.begin(tokens)
        while guess is not None:
            chain.append(guess)
            at = len(chain) - 1
            wrong += bool(wrong) or at >= len(truth) or guess.token != truth[at]
            if len(chain) >= DEEP or wrong > BEYOND:
                break
            guess = drafter.more(guess.token)
    finally:
        drafter.end()
    return chain


def pricing(options: argparse.Namespace) -> None:
    codec: Codec = codec_of(options.model)
    costs = [(int(r), float(ms)) for r, ms in (p.split(":") for p in options.cost.split(","))]
    known = load(options.guesses)
    names = {row["id"]: row for row in read(options.cases)}
    total = {"copy": 0.0, options.draft: 0.0}
    worst = (0.0, "")
    print(f"{'case':<28} {'copy':>8} {'passes':>6} {'beside':>8} {'passes':>6} {'asked':>5}  ratio")
    for name, record in known.items():
        if name not in names:
            continue
        case = case_of(names[name], options.mode, codec)
        alone = price(case, record, costs, options.step, None)
        beside = price(case, record, costs, options.step, options.draft)
        ratio = beside.ms / alone.ms
        worst = max(worst, (ratio, name))
        total["copy"] += alone.ms
        total[options.draft] += beside.ms
        note = f"  {beside.missing} not recorded" if beside.missing else ""
        print(
            f"{name[:28]:<28} {alone.ms:>8.0f} {alone.passes:>6} {beside.ms:>8.0f} "
            f"{beside.passes:>6} {beside.guesses:>5}  {ratio:.3f}{note}"
        )
    print(f"all {total[options.draft] / total['copy']:.3f}, worst {worst[0]:.3f} ({worst[1]})")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--mode", choices=("instruction", "update"), default="instruction")
    parser.add_argument("--draft", default="self")
    parts = parser.add_subparsers(required=True)
    part = parts.add_parser("record", help="let the model and the drafter write")
    part.add_argument("cases", type=Path)
    part.add_argument("--out", type=Path, required=True)
    part.add_argument("--limit", type=int, default=18)
    part.add_argument("--skip", type=int, default=0)
    part.set_defaults(act=recording)
    part = parts.add_parser("invent", help="guesses on the known answers, without a model")
    part.add_argument("cases", type=Path)
    part.add_argument("--out", type=Path, required=True)
    part.add_argument("--right", type=float, default=0.99, help="how many guesses are right")
    part.add_argument("--seed", type=int, default=1)
    part.set_defaults(act=inventing)
    part = parts.add_parser("price", help="replay what was recorded")
    part.add_argument("cases", type=Path)
    part.add_argument("guesses", type=Path)
    part.add_argument("--cost", default="1:71,4:79,8:93,16:122,32:192,64:322,128:578,256:1121")
    part.add_argument("--step", type=float, default=28.0)
    part.set_defaults(act=pricing)
    options = parser.parse_args()
    act: Callable[[argparse.Namespace], None] = options.act
    act(options)


if __name__ == "__main__":
    main()
