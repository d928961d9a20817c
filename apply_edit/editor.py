"""The use case: bytes -> view -> prompt -> decode -> guard -> Edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from apply_edit.decode.accept import Greedy, Rule, Sampled
from apply_edit.decode.loop import decode
from apply_edit.decode.schedule import AdaptiveSchedule, FixedSchedule
from apply_edit.decode.stats import Stats
from apply_edit.decode.types import Draft, Finish, Proposer, Schedule, Step, Target
from apply_edit.draft.lookup import CopyProposer
from apply_edit.errors import InputError, Refusal, UsageError
from apply_edit.events import Note, OnEvent, Piece, Stage, Wrote, ignore
from apply_edit.target.catalog import DEFAULT_MODEL
from apply_edit.target.codec import Backend, Codec
from apply_edit.target.prompt import body_of, build, read_answer
from apply_edit.text import guard, sketch
from apply_edit.text.document import Document
from apply_edit.text.loop_watch import LoopWatch

CHUNK = 128
"""Prompt tokens per pass of the prefill: where a CPU's rows per second level off."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to change: an `instruction` in words, an `update` sketch, or both.

    `lines` (1-based, inclusive) limits the rewriting to a range, the rest is context; `allow`
    names refusals accepted knowingly.
    """

    instruction: str | None = None
    update: str | None = None
    name: str = ""
    lines: tuple[int, int] | None = None
    encoding: str = "utf-8"
    allow: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Options:
    """How to decode. `k=None` adapts the draft length; `max_new_tokens=None` follows the file's
    length; `timeout` is in seconds; temperature 0 is greedy."""

    max_new_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    draft: str = "copy"
    k: int | None = None
    verify: bool = False
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """A finished edit: the bytes before and after, and how they came about."""

    original: bytes
    output: bytes
    stats: Stats
    steps: tuple[Step, ...] = ()
    pieces: tuple[Piece, ...] = ()
    allowed: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return self.output != self.original


def check_request(data: bytes, request: Request) -> Document:
    """Every refusal that needs no model; returns the document, or the part that `lines` names.

    Raises `UsageError` (no edit, an empty one), `InputError` (not text, impossible lines).
    """
    if request.instruction is None and request.update is None:
        raise UsageError("no-edit", "say what to change with --instruction or --update")
    if request.instruction is not None and not request.instruction.strip():
        raise UsageError("empty-instruction", "the instruction is empty; say what to change")
    for text in (request.instruction, request.update):
        if text is not None and any("\ud800" <= c <= "\udfff" for c in text):
            raise UsageError("not-utf8", "the edit holds bytes that are not UTF-8 text")
    document = Document.from_bytes(data, request.encoding)
    if request.update is not None:
        sketch.parse(_lf(request.update), document.view)
    if request.lines is not None:
        return document.slice(*request.lines)[1]
    return document


@dataclass(slots=True)
class Editor:
    """A model ready to edit files. Tokens of a prompt's beginning that the last edit shared are
    not computed again.

    >>> editor = Editor.load("replay:after.py")                               # doctest: +SKIP
    >>> editor.edit(b"x = 1\\n", Request(instruction="make x two")).output     # doctest: +SKIP
    b'x = 2\\n'
    """

    backend: Backend
    load_seconds: float = 0.0
    _held: list[int] = field(default_factory=list)

    @classmethod
    def load(
        cls,
        model: str = DEFAULT_MODEL,
        *,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        offline: bool = False,
        on_event: OnEvent = ignore,
    ) -> Editor:
        """Find the model, fetch it where it is missing, and load its tokenizer; weights follow
        at the first edit, after the checks that need only tokens.

        Raises `ModelError`: unknown model, no weights, no memory, a model that cannot be run.
        """
        started = perf_counter()
        for prefix, raw in (("replay:", False), ("replay-raw:", True)):
            if model.startswith(prefix):
                from apply_edit.target.replay import ReplayBackend

                return cls(ReplayBackend(Path(model.removeprefix(prefix)), raw=raw))
        from apply_edit.target.backend import TorchBackend

        backend = TorchBackend.open(
            model,
            revision=revision,
            device=device,
            dtype=dtype,
            offline=offline,
            on_event=on_event,
        )
        return cls(backend, perf_counter() - started)

    def edit(
        self,
        data: bytes,
        request: Request,
        options: Options | None = None,
        on_event: OnEvent = ignore,
    ) -> Edit:
        """Let the model make the edit; whole or nothing.

        Raises `UsageError`, `InputError`, `ModelError`, and `Refusal` for a damaged answer.
        """
        options = options or Options()
        document = check_request(data, request)
        before, behind = b"", b""
        if request.lines is not None:
            whole = Document.from_bytes(data, request.encoding)
            before, document, behind = whole.slice(*request.lines)
        writing = _Writing(self, document, request, options, on_event, before, behind)
        view, allowed = writing.run()
        output = before + document.restore(view, writing.prompt_seen) + behind
        return Edit(
            original=data,
            output=output,
            stats=writing.stats,
            steps=tuple(writing.steps),
            pieces=_merged(writing.pieces),
            allowed=allowed,
        )


class _Writing:
    """One edit under way."""

    def __init__(
        self,
        editor: Editor,
        document: Document,
        request: Request,
        options: Options,
        on_event: OnEvent,
        before: bytes,
        behind: bytes,
    ) -> None:
        self.editor = editor
        self.codec = editor.backend.codec
        self.document = document
        self.request = request
        self.options = options
        self.on_event = on_event
        self.steps: list[Step] = []
        self.pieces: list[Piece] = []
        self.stats = Stats(draft=options.draft)
        self.started = perf_counter()
        self.update = None if request.update is None else _lf(request.update)
        self.prompt = build(
            self.codec,
            document.view,
            instruction=request.instruction,
            update=self.update,
            before=_context(before, request.encoding),
            behind=_context(behind, request.encoding),
        )
        self.budget = self._budget()

    @property
    def prompt_seen(self) -> str:
        """The document's view as the tokenizer shows it."""
        return self.prompt.seen + self.document.view[len(body_of(self.document.view)) :]

    def run(self) -> tuple[str, tuple[str, ...]]:
        """The new view, and the problems that were let through."""
        backend = self.editor.backend
        frame = getattr(backend, "frame", None)
        if frame is not None:
            frame(self.prompt.closing_text)
        loading = perf_counter()
        target = backend.target(self.on_event)
        self.stats.load_seconds = self.editor.load_seconds + perf_counter() - loading
        self.editor.load_seconds = 0.0
        started = perf_counter()
        tail = self._prefill(target)
        self.stats.prefill_seconds = perf_counter() - started
        proposer, schedule = self._drafting()
        output = self._decode(target, tail, proposer, schedule, started)
        self.stats.total_seconds = perf_counter() - started
        self._figures(target)
        if self.options.verify:
            self._verify(target, output)
        return self._judge(output)

    def _budget(self) -> int:
        """Tokens the answer may have: the file's, the edit's, and room to move."""
        prompt = self.prompt
        whole = len(prompt.file) + len(prompt.closing) + 1
        room = self.editor.backend.window - len(prompt.tokens)
        if room < whole:
            raise InputError(
                "too-long",
                f"the file needs {len(prompt.tokens) + whole:,} tokens (prompt and answer) and the "
                f"model's window holds {self.editor.backend.window:,}; rewrite a part of it with "
                "--lines A:B",
            )
        wanted = self.options.max_new_tokens
        if wanted is None:
            wanted = whole + len(prompt.file) // 4 + 2 * len(prompt.update) + 768
        return min(wanted, room)

    def _prefill(self, target: Target) -> list[int]:
        """Commit the prompt but for its last chunk, which the first draft rides along with."""
        tokens = self.prompt.tokens
        held = self.editor._held
        shared = min(_shared(held, tokens[:-1]), target.length)
        target.reset(shared)
        del held[shared:]
        total = len(tokens)
        while total - target.length > CHUNK:
            self._check_time()
            self.on_event(Stage("prefill", target.length, total, "tokens"))
            chunk = tokens[target.length : target.length + CHUNK]
            target.prefill(chunk)
            held.extend(chunk)
        self.stats.prompt_tokens = total
        return list(tokens[target.length :])

    def _drafting(self) -> tuple[Proposer, Schedule]:
        """The proposer and the schedule that the options name."""
        if self.options.draft == "none" or self.options.k == 0:
            return _Silent(), FixedSchedule(0)
        if self.options.draft != "copy":
            raise UsageError(
                "unknown-draft", f"--draft {self.options.draft} is not known; use copy or none"
            )
        predicted: Sequence[int] | None = None
        if self.update is not None:
            prediction = sketch.predict(self.document.view, self.update)
            predicted = self.codec.encode(body_of(prediction.text))
        proposer = CopyProposer(
            self.prompt.file,
            closing=self.prompt.closing,
            update=self.prompt.update,
            instruction=self.prompt.instruction,
            predicted=predicted,
            forbidden=self.codec.stop,
        )
        costs = self.editor.backend.costs()
        schedule: Schedule = (
            AdaptiveSchedule(costs) if self.options.k is None else FixedSchedule(self.options.k)
        )
        return proposer, schedule

    def _rule(self) -> Rule:
        if self.options.temperature <= 0.0:
            return Greedy()
        o = self.options
        return Sampled(o.temperature, o.top_p, o.top_k, o.seed)

    def _decode(
        self,
        target: Target,
        tail: list[int],
        proposer: Proposer,
        schedule: Schedule,
        started: float,
    ) -> list[int]:
        """All output tokens; events and figures on the way."""
        output: list[int] = []
        stream = _TextStream(self.codec)
        watch = LoopWatch(self.prompt.seen)

        def watching(tokens: Sequence[int]) -> Finish | None:
            return "loop" if watch.feed(self.codec.decode(tokens)) else None

        self.on_event(Stage("prefill", len(self.prompt.tokens), len(self.prompt.tokens), "tokens"))
        looping = None if "looping" in self.request.allow else watching
        steps = decode(
            target,
            proposer,
            schedule,
            tail=tail,
            rule=self._rule(),
            stop=self.codec.stop,
            budget=self.budget,
            watch=looping,
        )
        held = self.editor._held
        held.extend(tail)
        for step in steps:
            if not self.steps:
                self.stats.first_run_seconds = perf_counter() - started
            self.steps.append(step)
            self.stats.add(step)
            output.extend(step.tokens)
            held.extend(step.tokens)
            pieces = stream.feed(step)
            self.pieces.extend(pieces)
            self.on_event(
                Wrote(
                    pieces=pieces,
                    rejected=self.codec.decode(step.rejected),
                    step=step,
                    position=self._position(step, len(output)),
                    tokens=len(output),
                    seconds=perf_counter() - started,
                )
            )
            self._check_time()
        # The last token, or tokens behind the end of text, may not stand in the cache.
        del held[target.length :]
        return output

    def _position(self, step: Step, written: int) -> float:
        """How far into the original the output has come, 0 to 1."""
        whole = max(1, len(self.prompt.file))
        for run in reversed(step.runs):
            if run.origin is not None and run.source == "copy":
                return min(1.0, (run.origin + len(run.tokens)) / whole)
        return min(1.0, written / whole)

    def _figures(self, target: Target) -> None:
        """What the backend knows about the run's worth."""
        stats = self.stats
        for key, value in self.editor.backend.facts().items():
            setattr(stats, key, value)
        costs = self.editor.backend.costs()
        if costs:
            fastest = max(rows / ms for rows, ms in costs) * 1000.0
            stats.floor_seconds = (stats.prompt_tokens + stats.output_tokens) / fastest

    def _verify(self, target: Target, output: list[int]) -> None:
        """Decode once more, one token a pass, and compare.

        Raises `Refusal` ``not-exact`` naming the first token that differs.
        """
        self.on_event(Note("decoding plainly, one token a pass, to verify"))
        target.reset(len(self.prompt.tokens) - 1)
        del self.editor._held[target.length :]
        tail = list(self.prompt.tokens[target.length :])
        plain: list[int] = []
        for step in decode(
            target,
            _Silent(),
            FixedSchedule(0),
            tail=tail,
            rule=self._rule(),
            stop=self.codec.stop,
            budget=self.budget,
        ):
            plain.extend(step.tokens)
            self.on_event(Stage("verify", len(plain), len(output), "tokens"))
            self._check_time()
            if plain != output[: len(plain)]:
                break
        self.editor._held.clear()
        target.reset(0)
        self.stats.verified = plain == output
        if not self.stats.verified:
            place = _shared(plain, output)
            theirs = self.codec.decode(output[place : place + 1])
            ours = self.codec.decode(plain[place : place + 1])
            raise Refusal(
                "not-exact",
                f"drafted and plain decoding differ at token {place}: {theirs!r} against {ours!r}; "
                "please report this with the output of -v",
            )

    def _judge(self, output: list[int]) -> tuple[str, tuple[str, ...]]:
        """The new view that the answer holds, if nothing is wrong with it."""
        finish = self.stats.finish
        answer, closed = read_answer(self.codec.decode(output), self.prompt.closing_text)
        if finish == "length":
            answer = answer if closed else self.codec.decode(output)
        view = answer + "\n" if answer else ""
        seen = self.prompt_seen
        if answer.count("\ufffd") > seen.count("\ufffd"):
            self._refuse(
                "garbled", "the answer holds bytes that are not text; try again or another model"
            )
        problems = guard.check(
            seen,
            view,
            finished=closed or finish == "stop",
            instruction=self.request.instruction,
            update=self.update,
            name=self.request.name,
        )
        allowed = []
        for problem in problems:
            if problem.code not in self.request.allow:
                message = problem.message
                if problem.code == "truncated":
                    message += f" (the answer stopped at its budget of {self.budget:,} tokens)"
                raise Refusal(problem.code, message)
            allowed.append(problem.code)
        return view, tuple(allowed)

    def _refuse(self, code: str, message: str) -> None:
        if code not in self.request.allow:
            raise Refusal(code, message)

    def _check_time(self) -> None:
        limit = self.options.timeout
        if limit is not None and perf_counter() - self.started > limit:
            raise Refusal("timeout", f"no answer within {limit:g} seconds; raise --timeout")


class _Silent:
    """Drafts nothing: plain decoding."""

    def propose(self, limit: int) -> Draft:
        return Draft()

    def observe(self, tokens: Sequence[int], draft: Draft, accepted: int) -> None:
        pass


class _TextStream:
    """Tokens to text as they land; bytes of a character that is not whole yet wait."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._waiting: list[int] = []

    def feed(self, step: Step) -> tuple[Piece, ...]:
        pieces = []
        for run in step.runs:
            self._waiting.extend(run.tokens)
            text = self._codec.decode(self._waiting)
            if text.endswith("\ufffd") and len(self._waiting) < 16 + len(run.tokens):
                continue
            self._waiting.clear()
            pieces.append(Piece(run.source, text))
        return tuple(pieces)


def _merged(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Neighbours of one source as one piece."""
    merged: list[Piece] = []
    for piece in pieces:
        if merged and merged[-1].source == piece.source:
            merged[-1] = Piece(piece.source, merged[-1].text + piece.text)
        else:
            merged.append(piece)
    return tuple(merged)


def _shared(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading tokens agree."""
    count = 0
    for x, y in zip(a, b):  # noqa: B905 - the shorter one ends the prefix
        if x != y:
            break
        count += 1
    return count


def _lf(text: str) -> str:
    """A sketch as a view: no BOM, LF line ends."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _context(data: bytes, encoding: str) -> str:
    """Bytes around a range as text for the model to read."""
    return Document.from_bytes(data, encoding).view if data else ""
