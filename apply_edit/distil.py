"""The use case of training draft heads: files -> edits the target writes -> states -> heads.

Self-distillation: what the heads learn to foretell is what this target writes about files like
the user's. All that was collected is deleted when the heads are kept.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic

import torch

from apply_edit.errors import ApplyEditError, InputError, ModelError
from apply_edit.events import Note, OnEvent, Stage, ignore
from apply_edit.question import Asker
from apply_edit.session import Answer, Options, Session
from apply_edit.target.ahead import output_table
from apply_edit.target.backend import TorchBackend
from apply_edit.target.engine import Engine
from apply_edit.target.fit import Fit, Fitting
from apply_edit.target.heads import load, save
from apply_edit.target.hidden import positions
from apply_edit.target.store import heads_path, locked
from apply_edit.target.traces import Trace, Traces
from apply_edit.text.document import Document
from apply_edit.text.sources import read_source
from apply_edit.text.tasks import Task, tasks
from apply_edit.windowed import whole

MINUTES = 40.0
"""The default budget: enough for a model of 0.5 billion weights on two cores."""
COLLECTING = 0.6
"""The share of the time in which the target writes; the rest trains."""
PER_FILE = 4
"""Edits of one file."""
READING = 0.5
"""The share of the collecting in which source text is read: its hidden states come many times as
fast as those of edits, and what the target would have written in each place is known as well."""
READ, CHUNK = 1024, 256
"""Tokens of one reading, and of one pass of it."""
READINGS = 8
"""Readings of one file."""
LONGER, MORE = 1.5, 160
"""An answer may be so many times its file's length, and so many tokens, long: a longer one only
repeats itself."""
MOST_POSITIONS = 250_000
"""Hidden states kept: 0.5 GB at a hidden size of 896."""
INSIDE, COPIED, PLAIN = 1.0, 0.05, 0.2
"""Weights of positions whose next token the target wrote itself, copied, or that are source text
which was read: only inside edits are heads asked."""


Lesson = tuple[str, Callable[[], Trace | None]]
"""A name, and what to do for the hidden states that it stands for."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it: the file of the heads and its bytes, edits written, positions collected,
    seconds spent on collecting and training, and how the training went. `before` is what heads
    trained before accept of the same edits, where they accept more: then those were kept."""

    path: Path
    bytes: int
    edits: int
    positions: int
    inside: int
    collecting_seconds: float
    training_seconds: float
    fit: Fit
    before: float | None


def train_heads(
    backend: TorchBackend,
    files: Sequence[Path],
    *,
    minutes: float = MINUTES,
    on_event: OnEvent = ignore,
    clock: Callable[[], float] = monotonic,
) -> Report:
    """Train draft heads for `backend`'s model on edits of `files`, and keep them in the cache.

    A run that was killed is taken up where it was: what it collected, and its training.

    Raises `InputError` ``no-sources``, `ModelError` ``no-practice`` and those of loading a model
    and of writing to the cache.
    """
    if not files:
        raise InputError("no-sources", "there are no source files to practise on; name a folder")
    weights_id = backend.resolved.weights_id
    with locked(f"heads-{weights_id}", backend.name, "that trains these heads", on_event):
        return _train(backend, files, minutes * 60.0, on_event, clock)


def _train(
    backend: TorchBackend,
    files: Sequence[Path],
    budget: float,
    on_event: OnEvent,
    clock: Callable[[], float],
) -> Report:
    """`budget` is in seconds."""
    resolved = backend.resolved
    engine = backend.target(on_event)
    traces = Traces(resolved.weights_id)
    traces.open()
    Collector(backend, engine, traces, clock).run(files, COLLECTING * budget, on_event)
    kept = list(traces)
    edits = sum(1 for key, _ in kept if key[0] != "t")
    count = sum(trace.tokens.numel() for _, trace in kept)
    inside = sum(int((t.weight >= INSIDE).sum()) for key, t in kept if key[0] != "t")
    on_event(Note(f"{edits} edits, {count:,} positions, {inside:,} of them inside edits"))
    embedding = engine.model.get_input_embeddings().weight.detach().cpu()
    output = output_table(engine, resolved.folder).cpu()
    with torch.inference_mode(False):
        fitting = Fitting(kept, embedding, output, stored=traces)
        fit = fitting.run(budget - COLLECTING * budget, on_event, clock)
    path = heads_path(resolved.weights_id)
    before = _accepted_before(path, backend, fitting)
    if before is None or before <= fit.accepted:
        before = None
        facts = {
            "edits": str(edits),
            "positions": str(count),
            "accepted": f"{fit.accepted:.3f}",
        }
        save(path, fitting.trained, resolved.weights_id, facts)
    spent = traces.state().get("collecting", 0.0)
    traces.clear()
    size = path.stat().st_size
    return Report(path, size, edits, count, inside, spent, fitting.spent, fit, before)


def _accepted_before(path: Path, backend: TorchBackend, fitting: Fitting) -> float | None:
    """What the heads that are there accept of the edits held out; None where there are none that
    could be used."""
    if not path.is_file():
        return None
    try:
        known = load(path, backend.name, backend.resolved.weights_id, fitting.shape)
    except ModelError:
        return None
    return fitting.measure(known)[1]


class Collector:
    """Lets the target write edits, and keeps the hidden states of what it wrote."""

    def __init__(
        self,
        backend: TorchBackend,
        engine: Engine,
        traces: Traces,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._backend = backend
        self._engine = engine
        self._traces = traces
        self._clock = clock
        self._session = Session(backend)
        self._rows: list[tuple[int, torch.Tensor]] = []
        self._positions = 0

    def run(self, files: Sequence[Path], seconds: float, on_event: OnEvent = ignore) -> None:
        """Collect for `seconds`, those of a killed run included, or until every file gave what it
        can, or there is as much as can be held."""
        traces = self._traces
        self._positions = sum(trace.tokens.numel() for _, trace in traces)
        noted = traces.state()
        spent = noted.get("collecting", 0.0)
        reading = noted.get("reading", 0.0)
        last = self._clock()
        order = list(files)
        random.Random(0).shuffle(order)
        readings, edits = self._readings(order), self._edits(order)
        tap = self._engine.tap()
        tap.on_rows = self._hear
        try:
            while spent < seconds and self._positions < MOST_POSITIONS:
                read = reading <= READING * spent
                lesson = next(readings, None) if read else next(edits, None)
                if lesson is None:
                    read = not read
                    lesson = next(readings, None) if read else next(edits, None)
                if lesson is None:
                    return
                key, make = lesson
                if key not in traces:
                    trace = make()
                    traces.add(key, trace)
                    self._positions += 0 if trace is None else trace.tokens.numel()
                now = self._clock()
                spent, reading = spent + now - last, reading + read * (now - last)
                last = now
                traces.note(collecting=spent, reading=reading)
                share = max(spent / seconds, self._positions / MOST_POSITIONS)
                label = f"{self._positions:,} positions"
                on_event(Stage("practise", round(100 * min(1.0, share)), 100, "%", label))
        finally:
            tap.on_rows = None
            self._session.forget()
            self._engine.reset(0)

    def _readings(self, files: Sequence[Path]) -> Iterator[Lesson]:
        """A stretch of each file, then another one of each; names say nothing about them."""
        left = list(files)
        for turn in range(READINGS):
            files, left = left, []
            for file in files:
                text = read_source(file)
                if text is None:
                    continue
                tokens = self._backend.codec.encode(text)
                starts = list(range(0, len(tokens), READ))
                if turn >= len(starts):
                    continue
                left.append(file)
                # The first lines of files are much alike: licences and imports.
                random.Random(_name(text)).shuffle(starts)
                start = starts[turn]
                part = tokens[start : start + READ + 1]
                yield "t" + _name(text, str(start)), partial(self._read, part)

    def _edits(self, files: Sequence[Path]) -> Iterator[Lesson]:
        """Some edits of each file."""
        for file in files:
            text = read_source(file)
            if text is not None:
                for task in tasks(text, file.name, PER_FILE):
                    yield _name(task.text, task.instruction), partial(self._write, task)

    def _hear(self, position: int, rows: torch.Tensor) -> None:
        self._rows.append((position, rows.clone()))

    def _read(self, tokens: Sequence[int]) -> Trace | None:
        """Hidden states of source text as it stands, in wide passes."""
        if len(tokens) < 3:
            return None
        engine = self._engine
        self._session.forget()
        engine.reset(0)
        self._rows = []
        choices: list[int] = []
        for start in range(0, len(tokens) - 1, CHUNK):
            part = tokens[start : min(start + CHUNK, len(tokens) - 1)]
            choices += engine.score(part).greedy()
            engine.keep(len(part))
        return self._trace(0, tokens[1:], choices, torch.full((len(tokens) - 1,), PLAIN))

    def _write(self, task: Task) -> Trace | None:
        """Hidden states of an edit's answer, as the passes that verified it left them."""
        data = task.text.encode("utf-8")
        backend = self._backend
        try:
            document = Document.from_bytes(data)
            asker = Asker(backend.codec, backend.window, document, task.instruction)
            prompt = asker.question(whole(document, len(data), None)).prompt
            self._rows = []
            most = int(len(prompt.reference) * LONGER) + MORE
            answer = self._session.answer(prompt, Options(max_new_tokens=most))
        except ApplyEditError:
            # A piece too long for the window, or one that is no text: nothing is learnt from it.
            return None
        if len(answer.tokens) < 3:
            return None
        weight = torch.full((len(answer.tokens),), COPIED)
        own = torch.tensor(_written(answer))
        # The guess behind token i is that of token i + 1.
        weight[:-1][own[1:]] = INSIDE
        return self._trace(len(prompt.tokens) - 1, answer.tokens, answer.tokens, weight)

    def _trace(
        self, start: int, tokens: Sequence[int], choices: Sequence[int], weight: torch.Tensor
    ) -> Trace | None:
        hidden = positions(self._rows, start, start + len(tokens))
        self._rows = []
        if hidden is None:
            return None
        # Training forgives the rounding, and the states are most of what is kept.
        hidden = hidden.to(torch.bfloat16)
        return Trace(hidden, torch.tensor(tokens), torch.tensor(choices), weight)


def _written(answer: Answer) -> list[bool]:
    """Of each output token, whether it came from elsewhere than a copy of the original."""
    runs = [run for step in answer.steps for run in step.runs]
    return [run.source != "copy" for run in runs for _ in run.tokens]


def _name(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]
