"""Edit files beside the field's ways of decoding: same weights, threads, prompt and budget.

Each case runs in turn with our drafting, our plain decoding, transformers' greedy search and its
prompt lookup (best of several k), in one process. Prints seconds, tokens, passes, tokens per
pass, total over floor, the ratio to the best prompt lookup, and whether the tokens agree with our
plain decoding ("plain") or with transformers' greedy.

  python scripts/bench.py fixtures/inventory
  python scripts/bench.py CASES.jsonl --limit 10 --mode update --peers lookup
  python scripts/bench.py CASES.jsonl --peers lookup,openvino --openvino FOLDER

Times exclude loading. Peers: plain, greedy, lookup, openvino (needs openvino-genai and an exported
folder or a GGUF file of the same model).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from apply_edit.editor import Editor, Options
from apply_edit.question import Asker, Question
from apply_edit.target.prompt import Prompt
from apply_edit.text.document import Document
from apply_edit.windowed import whole

LOOKUP_K = (10, 32, 64)


@dataclass
class Case:
    name: str
    original: str
    instruction: str | None
    update: str | None


@dataclass
class Result:
    seconds: float
    tokens: list[int]
    passes: int | None = None
    more: dict[str, Any] = field(default_factory=dict)


def cases(path: Path, mode: str) -> Iterator[Case]:
    """The cases of a JSONL file, or the one of a fixture folder (original, instruction, update)."""
    if path.is_dir():
        original = next(p for p in sorted(path.iterdir()) if _is_original(p, path))
        instruction = path / "instruction.txt"
        update = next(iter(sorted(path.glob("update.*"))), None)
        wanted = mode == "update"
        yield Case(
            path.name,
            original.read_text(encoding="utf-8"),
            None if wanted else instruction.read_text(encoding="utf-8"),
            update.read_text(encoding="utf-8") if wanted and update else None,
        )
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        wanted = mode == "update"
        yield Case(
            row["id"],
            row["original"],
            None if wanted else row["instruction"],
            row["update"] if wanted else None,
        )


def _is_original(path: Path, folder: Path) -> bool:
    return path.stem in ("original", folder.name)


class Ours:
    """Our engine, drafted or plain."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor

    def question(self, case: Case) -> Question:
        data = case.original.encode()
        backend, document = self.editor.backend, Document.from_bytes(data)
        asker = Asker(backend.codec, backend.window, document, case.instruction)
        return asker.question(whole(document, len(data), case.update))

    def run(self, question: Question, options: Options) -> Result:
        self.editor.session.forget()
        started = perf_counter()
        answer = self.editor.session.answer(question.prompt, options, predicted=question.predicted)
        seconds = perf_counter() - started
        stats = answer.stats
        return Result(
            seconds,
            answer.tokens,
            stats.passes,
            {
                "finish": stats.finish,
                "prefill": stats.prefill_seconds,
                "wasted": stats.wasted,
                "floor": stats.floor_seconds,
                "over_floor": seconds / stats.floor_seconds if stats.floor_seconds else None,
                "draft_seconds": stats.draft_seconds,
            },
        )


class Transformers:
    """transformers' own generate() on the same folder of weights."""

    def __init__(self, folder: Path, dtype: Any, device: Any, stop: frozenset[int]) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        self.torch = torch
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device).eval()
        self.stop = stop
        self.passes = 0
        self.model.register_forward_hook(self._count)

    def _count(self, *_: object) -> None:
        self.passes += 1

    def run(self, prompt: Prompt, budget: int, k: int | None) -> Result:
        ids = self.torch.tensor([prompt.tokens], device=self.model.device)
        more = {} if k is None else {"prompt_lookup_num_tokens": k}
        self.passes = 0
        started = perf_counter()
        with self.torch.inference_mode():
            out = self.model.generate(
                ids,
                attention_mask=self.torch.ones_like(ids),
                do_sample=False,
                max_new_tokens=budget,
                eos_token_id=sorted(self.stop),
                pad_token_id=min(self.stop),
                repetition_penalty=1.0,
                **more,
            )
        seconds = perf_counter() - started
        tokens = out[0, ids.shape[1] :].tolist()
        return Result(seconds, _until(tokens, self.stop), self.passes)


class OpenVino:
    """OpenVINO GenAI's continuous batching with prompt lookup."""

    def __init__(self, path: str, stop: frozenset[int], k: int) -> None:
        import openvino_genai as genai

        self.genai = genai
        self.pipe = genai.LLMPipeline(path, "CPU", prompt_lookup=True)
        self.stop = stop
        self.k = k

    def run(self, prompt: Prompt, budget: int) -> Result:
        import numpy
        import openvino

        config = self.genai.GenerationConfig()
        config.max_new_tokens = budget
        config.num_assistant_tokens = self.k
        config.max_ngram_size = 2
        config.stop_token_ids = set(self.stop)
        ids = openvino.Tensor(numpy.array([prompt.tokens], dtype=numpy.int64))
        mask = openvino.Tensor(numpy.ones((1, len(prompt.tokens)), dtype=numpy.int64))
        started = perf_counter()
        out = self.pipe.generate(self.genai.TokenizedInputs(ids, mask), config)
        return Result(perf_counter() - started, _until(list(out.tokens[0]), self.stop))


def _until(tokens: list[int], stop: frozenset[int]) -> list[int]:
    for index, token in enumerate(tokens):
        if token in stop:
            return tokens[:index]
    return tokens


def agreement(tokens: list[int], other: list[int]) -> str:
    """ "yes", or where the first difference is."""
    if tokens == other:
        return "yes"
    place = next((i for i, (a, b) in enumerate(zip(tokens, other)) if a != b), None)  # noqa: B905
    return f"no@{place if place is not None else min(len(tokens), len(other))}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", type=Path, help="a JSONL case file or a fixture folder")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--mode", choices=["instruction", "update"], default="instruction")
    parser.add_argument("--peers", default="plain,greedy,lookup", help="comma-separated, or none")
    parser.add_argument("--openvino", help="model for the openvino peer")
    parser.add_argument("--limit", type=int, help="at most so many cases, spread over the file")
    parser.add_argument("--only", help="case ids, comma-separated")
    parser.add_argument("--draft", default="copy", help="what ours drafts with")
    parser.add_argument("--k", type=int, help="fixed draft length for ours")
    parser.add_argument("--json", action="store_true", help="one JSON object per case and run")
    options = parser.parse_args()

    chosen = list(cases(options.cases, options.mode))
    if options.only:
        chosen = [c for c in chosen if c.name in options.only.split(",")]
    if options.limit and options.limit < len(chosen):
        step = len(chosen) / options.limit
        chosen = [chosen[int(i * step)] for i in range(options.limit)]
    peers = [p for p in options.peers.split(",") if p and p != "none"]
    editor = Editor.load(options.model)
    ours = Ours(editor)
    backend: Any = editor.backend
    backend.target(lambda event: None)
    theirs = None
    if {"greedy", "lookup"} & set(peers):
        theirs = Transformers(
            backend._resolved.folder, backend._dtype, backend._device, backend.codec.stop
        )
    vino = OpenVino(options.openvino, backend.codec.stop, 10) if "openvino" in peers else None

    ratios: dict[str, list[float]] = {}
    for case in chosen:
        question = ours.question(case)
        prompt = question.prompt
        budget = editor.session.budget(prompt)
        runs: dict[str, Callable[[], Result]] = {
            "ours": lambda q=question: ours.run(q, Options(k=options.k, draft=options.draft))
        }
        if "plain" in peers:
            runs["plain"] = lambda q=question: ours.run(q, Options(draft="none"))
        if theirs and "lookup" in peers:
            for k in LOOKUP_K:
                runs[f"lookup k={k}"] = lambda p=prompt, b=budget, k=k: theirs.run(p, b, k)
        if theirs and "greedy" in peers:
            runs["greedy"] = lambda p=prompt, b=budget: theirs.run(p, b, None)
        if vino:
            runs["openvino k=10"] = lambda p=prompt, b=budget: vino.run(p, b)
        results = {}
        for name, run in runs.items():
            results[name] = run()
            print(f"  {case.name}: {name} {results[name].seconds:.2f} s", file=sys.stderr)
        report(case, prompt, results, ratios, options.json)
    if not options.json and ratios:
        print("\nmedians over", len(chosen), "cases")
        for name, values in ratios.items():
            print(f"  {name:<28} {statistics.median(values):.3f}  (max {max(values):.3f})")


def report(
    case: Case,
    prompt: Prompt,
    results: dict[str, Result],
    ratios: dict[str, list[float]],
    as_json: bool,
) -> None:
    """One case's table, and its ratios added to `ratios`."""
    mine = results["ours"]
    base = results.get("plain")
    if as_json:
        for name, result in results.items():
            row = {
                "case": case.name,
                "run": name,
                "seconds": result.seconds,
                "prompt": len(prompt.tokens),
                "tokens": len(result.tokens),
                "passes": result.passes,
                "agrees": agreement(result.tokens, mine.tokens),
                **result.more,
            }
            print(json.dumps(row), flush=True)
    else:
        print(f"\n{case.name}: prompt {len(prompt.tokens)} tokens")
        print(f"  {'run':<16}{'seconds':>9}{'tokens':>8}{'passes':>8}{'tok/pass':>10}  agrees")
        for name, result in results.items():
            passes = result.passes or 0
            per = len(result.tokens) / passes if passes else float("nan")
            print(
                f"  {name:<16}{result.seconds:>9.2f}{len(result.tokens):>8}{passes:>8}{per:>10.1f}"
                f"  {agreement(result.tokens, mine.tokens)}"
                + (
                    f"  wasted {result.more['wasted']}, over floor {result.more['over_floor']:.2f}"
                    if result.more.get("over_floor")
                    else ""
                ),
                flush=True,
            )
    lookups = [r.seconds for name, r in results.items() if name.startswith("lookup")]

    def note(name: str, value: float | None) -> None:
        if value is not None:
            ratios.setdefault(name, []).append(value)

    note("ours / best lookup", mine.seconds / min(lookups) if lookups else None)
    for name in ("greedy", "openvino k=10", "plain"):
        if name in results:
            note(f"ours / {name}", mine.seconds / results[name].seconds)
    note("total / floor", mine.more.get("over_floor"))
    if base is not None:
        note("tokens equal to plain", 1.0 if base.tokens == mine.tokens else 0.0)


if __name__ == "__main__":
    main()
