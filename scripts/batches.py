"""Several edits in shared passes beside the same edits one after another.

Takes the first `--files` cases of each source (a case file or a fixture folder) that fit, edits
them with every batch size in turn, in one process, `--repeat` times, and prints for each size the
least seconds of the call, the ratio to one after another, and whether every output, or the error
in its place, is the same. Times exclude loading.

  python scripts/batches.py fixtures/inventory CASES.jsonl --files 4
  python scripts/batches.py CASES.jsonl --files 8 --batches 1,2,4,8 --simulate

`--simulate` runs no model: known answers are replayed on the model's tokenizer, and a pass costs
what the table of costs says. It takes a second, and says what to expect; its tokens are the
cases' expected results, and not what the model would write.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from apply_edit.decode.accept import Greedy
from apply_edit.decode.batch import Batch, Share
from apply_edit.decode.loop import decoding
from apply_edit.decode.rows import Asking, Rows, serve
from apply_edit.decode.schedule import DEFAULT_COST, CostTable
from apply_edit.decode.types import Scores
from apply_edit.editor import Edit, Editor, Options, Request
from apply_edit.errors import InputError, UsageError
from apply_edit.question import Question
from apply_edit.session import CHUNK, TAIL, Session
from apply_edit.target.codec import Backend
from apply_edit.target.replay import ReplayTarget

sys.path.insert(0, str(Path(__file__).resolve().parent))
from bench import cases


@dataclass
class Row:
    """One batch size on one set of files. `passes` are those of the target, prompts included."""

    source: str
    files: int
    prompt: int
    output: int
    batch: int
    seconds: float
    ratio: float
    passes: int
    same: bool


@dataclass
class Item:
    """One edit: its name, the request, its question, and the answer's text where it is known."""

    name: str
    data: bytes
    request: Request
    question: Question
    expected: str | None


def items(editor: Editor, source: Path, mode: str, only: set[str], most: int) -> Iterator[Item]:
    """The edits of a source whose prompts have at most `most` tokens."""
    known = {}
    if source.is_file():
        rows = map(json.loads, source.read_text(encoding="utf-8").splitlines())
        known = {row["id"]: row["expected"] for row in rows}
    for case in cases(source, mode):
        if only and case.name not in only:
            continue
        request = Request(case.instruction, case.update, name=case.name)
        data = case.original.encode()
        try:
            asked = editor.ask(data, request, Options())
        except (InputError, UsageError):
            continue
        if len(asked.questions) == 1 and len(asked.questions[0].prompt.tokens) <= most:
            yield Item(case.name, data, request, asked.questions[0], known.get(case.name))


class Real:
    """Runs edits on the model and counts its passes."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self.passes = 0
        engine = editor.backend.target(lambda event: None)
        together = engine.together  # type: ignore[attr-defined]

        def counted(wanted: Sequence[Rows]) -> object:
            self.passes += 1
            return together(wanted)

        engine.together = counted  # type: ignore[attr-defined]

    def run(self, chosen: Sequence[Item], batch: int) -> tuple[float, int, list[object], int]:
        """Seconds, passes, what came out, and output tokens."""
        self.editor.session.forget()
        self.passes = 0
        began = perf_counter()
        results = self.editor.edit_all([(i.data, i.request) for i in chosen], batch=batch)
        seconds = perf_counter() - began
        edits = [r for r in results if isinstance(r, Edit)]
        texts = [r.output if isinstance(r, Edit) else (r.code, r.message) for r in results]
        return seconds, self.passes, list(texts), sum(e.stats.output_tokens for e in edits)


class _Known(ReplayTarget):
    """Writes a known answer and then a token that ends a model's answers."""

    def __init__(self, answer: Sequence[int], end: int) -> None:
        super().__init__(answer, lambda: end + 1, 1 << 20)
        self.end = end

    def _at(self, place: int) -> int:
        return self._answer[place] if place < len(self._answer) else self.end


class Simulated:
    """Replays known answers; a pass costs what the table says."""

    def __init__(self, editor: Editor, costs: Sequence[tuple[int, float]]) -> None:
        self.backend = editor.backend
        self.backend.costs = lambda: costs  # type: ignore[method-assign]
        self.table = CostTable(costs)

    def run(self, chosen: Sequence[Item], batch: int) -> tuple[float, int, list[object], int]:
        spent: list[float] = []

        def together(wanted: Sequence[Rows]) -> list[Scores | None]:
            spent.append(self.table(sum(rows.count for rows in wanted)))
            return [serve(rows) for rows in wanted]

        running: Batch[list[int]] = Batch(together)
        waiting = list(enumerate(chosen))
        found: dict[int, list[int]] = {}
        held: Sequence[int] = ()
        while waiting or len(running):
            while waiting and len(running) < batch and not running.reading:
                number, item = waiting.pop(0)
                asking = self._asking(
                    item, lambda: max(1, min(batch, len(running) + len(waiting))), held
                )
                held = item.question.prompt.tokens
                found.update(running.add(number, asking, Share()))
            found.update(running.turn())
        outputs: list[object] = [found[number] for number in range(len(chosen))]
        return sum(spent) / 1000.0, len(spent), outputs, sum(map(len, found.values()))

    def _asking(
        self, item: Item, requests: Callable[[], int], held: Sequence[int]
    ) -> Asking[list[int]]:
        codec, prompt = self.backend.codec, item.question.prompt
        assert item.expected is not None
        answer = codec.encode(item.expected.removesuffix("\n") + prompt.closing_text)
        target = _Known(answer, next(iter(codec.stop)))
        tokens, total = prompt.tokens, len(prompt.tokens)
        shared = next((i for i, (a, b) in enumerate(zip(tokens, held, strict=False)) if a != b), 0)
        target.prefill(tokens[: min(shared, total - 1)])
        while total - target.length > TAIL:
            chunk = tokens[target.length : min(target.length + CHUNK, total - TAIL)]
            yield Rows(target, chunk, first=None)
        session = _Counting(self.backend, requests)
        proposer, schedule = session._drafting(prompt, Options(), item.question.predicted, None)
        output: list[int] = []
        yield from decoding(
            target,
            proposer,
            schedule,
            tail=tokens[target.length :],
            rule=Greedy(),
            stop=codec.stop,
            budget=prompt.ample,
            each=lambda step: output.extend(step.tokens),
        )
        return output


class _Counting(Session):
    """A session that asks how many share the passes."""

    def __init__(self, backend: Backend, count: Callable[[], int]) -> None:
        self._count = count
        super().__init__(backend)

    @property
    def requests(self) -> int:
        return self._count()

    @requests.setter
    def requests(self, _count: int) -> None:
        pass


Run = Callable[[Sequence[Item], int], "tuple[float, int, list[object], int]"]


def measured(
    run: Run, chosen: Sequence[Item], source: str, batches: Sequence[int], repeat: int
) -> list[Row]:
    """One row for each batch size, the sizes in turn."""
    least: dict[int, tuple[float, int, list[object], int]] = {}
    for _ in range(repeat):
        for batch in batches:
            result = run(chosen, batch)
            if batch not in least or result[0] < least[batch][0]:
                least[batch] = result
    base, _, wanted, _ = least[batches[0]]
    prompt = sum(len(item.question.prompt.tokens) for item in chosen) // len(chosen)
    return [
        Row(
            source,
            len(chosen),
            prompt,
            output // len(chosen),
            batch,
            round(seconds, 2),
            round(seconds / base, 3),
            passes,
            texts == wanted,
        )
        for batch, (seconds, passes, texts, output) in least.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", type=Path, nargs="+", metavar="SOURCE")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--mode", choices=("instruction", "update"), default="instruction")
    parser.add_argument("--files", type=int, default=4, help="cases of each source")
    parser.add_argument("--only", default="", help="names of cases, with commas between")
    parser.add_argument("--most", type=int, default=2500, help="tokens of a prompt at most")
    parser.add_argument("--batches", default="1,4", help="the first one is what others are set to")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--costs", help="of the simulation: ROWS:MS,ROWS:MS,…")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    editor = Editor.load(args.model, offline=True)
    batches = [int(word) for word in args.batches.split(",")]
    only = set(filter(None, args.only.split(",")))
    run: Run
    if args.simulate:
        costs = DEFAULT_COST
        if args.costs:
            pairs = (word.split(":") for word in args.costs.split(","))
            costs = tuple((int(rows), float(ms)) for rows, ms in pairs)
        run = Simulated(editor, costs).run
    else:
        run = Real(editor).run
    print(
        f"{args.model}, {args.mode}s"
        + (", simulated" if args.simulate else f", exact: {editor.backend.facts()['exact']}")
    )
    print("| source | files | prompt | out | batch | seconds | ratio | passes | same |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    rows = []
    for source in args.sources:
        chosen: list[Item] = []
        for item in items(editor, source, args.mode, only, args.most):
            if len(chosen) < args.files and (item.expected is not None or not args.simulate):
                chosen.append(item)
        if source.is_dir():
            chosen *= args.files
        if not chosen:
            print(f"{source}: no such cases", file=sys.stderr)
            continue
        for row in measured(run, chosen, source.stem, batches, args.repeat):
            rows.append(row)
            cells = [*asdict(row).values()]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
