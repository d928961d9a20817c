"""What passes cost on this machine, and which of them agree bit for bit. Measured once, kept.

A row's logits must not depend on the rows beside it or on the (masked) keys behind it; on CPUs
the kernels keep that for most row counts and key lengths, but not for all, and which ones
differs from machine to machine. So both are measured: `widths` are the ones that agree. Where too
few do, layers are multiplied in `blocks` of rows and values are mixed in chunks of keys.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter, time
from typing import Any

import torch

from apply_edit.events import OnEvent, Stage, ignore
from apply_edit.target import blocks
from apply_edit.target.attention import attend
from apply_edit.target.engine import STEP, Engine, Widths
from apply_edit.target.probe import cancelling

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 320)
"""Up to the widest pass there is: a chunk's worth of draft and the tail of the prompt."""
LOOKS = (8, 48, 128)
"""Row counts compared before anything is timed."""
CONTEXT = 600
STALE_DAYS = 60
TOO_FAST = 0.6
PATIENCE = 12.0
"""Seconds after which calibration stops repeating itself."""
FEW = 8
SAME = 1.03
"""Times that differ by less than this are the same."""
FORMAT = 8


@dataclass(frozen=True, slots=True)
class Calibration:
    """`costs`: (rows, milliseconds) of a pass behind `CONTEXT` positions, ascending in both.

    `exact` is ``bit`` where passes of every row count agree bit for bit, else ``margin``; then
    `noise` is the greatest difference of a logit between them, and is never 0. `most` rows of a
    layer, by its shape, are to be multiplied at once (see `blocks`).
    """

    costs: tuple[tuple[int, float], ...]
    widths: Widths
    exact: str
    noise: float = 0.0
    most: Mapping[blocks.Shape, int] = field(default_factory=dict)


def calibrate(engine: Engine, *, vocab: int, on_event: OnEvent = ignore) -> Calibration:
    """Measure `engine` and set it accordingly (its cache is emptied).

    Takes about twenty passes' time, and twice that where passes disagree at first.
    """
    blocks.apply(engine.model, {})
    spans, chunk = usable_spans(engine), 0
    if not _enough(spans, engine):
        spans, chunk = usable_spans(engine, STEP), STEP
    widths = Widths(1, spans, chunk)
    most: Mapping[blocks.Shape, int] = {}
    if _enough(spans, engine) and not _agrees(engine, widths, vocab):
        cut = blocks.find(engine.model, on_event)
        if cut is not None:
            widths, most = replace(widths, least=cut.least), cut.most
            blocks.apply(engine.model, most)
    found = _measure(engine, widths, vocab, on_event)
    if most and found.exact != "bit":
        blocks.apply(engine.model, {})
        return _measure(engine, Widths(1, spans, chunk), vocab, on_event)
    return replace(found, most=most)


def _asked(engine: Engine, vocab: int) -> list[int]:
    """Tokens to measure with, the first `CONTEXT` of them committed."""
    generator = torch.Generator().manual_seed(0)
    ids: list[int] = torch.randint(0, vocab, (CONTEXT + ROWS[-1],), generator=generator).tolist()
    engine.reset(0)
    engine.prefill(ids[:CONTEXT])
    return ids[CONTEXT:]


def _agrees(engine: Engine, widths: Widths, vocab: int) -> bool:
    """Whether passes of a few row counts agree, as a first look."""
    engine.widths = widths
    ids = _asked(engine, vocab)
    reference = engine.score(ids).logits.clone()
    return all(torch.equal(engine.score(ids[:n]).logits, reference[:n]) for n in LOOKS)


def _measure(engine: Engine, widths: Widths, vocab: int, on_event: OnEvent) -> Calibration:
    """The costs of passes of at least `widths.least` rows, and whether they agree."""
    engine.widths = widths
    ids = _asked(engine, vocab)
    engine.score(ids)  # the first pass of a width also builds its kernels
    reference = engine.score(ids).logits.clone()
    costs = []
    agree = {}
    # Passes may agree here and differ elsewhere, by a rounding of the greatest logit at least.
    noise = torch.finfo(reference.dtype).eps * float(reference.abs().max())
    begun = perf_counter()
    for count, rows in enumerate(ROWS):
        on_event(Stage("calibrate", count, len(ROWS), "passes"))
        row_ids = ids[:rows]
        # On a busy machine one pass can take seconds: then each is timed once, and a later run
        # that finds passes faster has the table measured anew.
        late = perf_counter() - begun > PATIENCE
        if not late:
            engine.score(row_ids)
        times = []
        for _ in range(1 if late else 3 if rows <= 64 else 2):
            started = perf_counter()
            scores = engine.score(row_ids)
            scores.greedy()
            times.append(perf_counter() - started)
        costs.append((rows, min(times) * 1000.0))
        agree[rows] = torch.equal(scores.logits, reference[:rows])
        if not agree[rows]:
            noise = max(noise, float((scores.logits.float() - reference[:rows]).abs().max()))
    on_event(Stage("calibrate", len(ROWS), len(ROWS), "passes"))
    engine.reset(0)
    least = _least(agree)
    if least is None or not _enough(widths.spans, engine):
        engine.widths = replace(widths, least=max(widths.least, least or 2))
        return Calibration(_rising(costs), engine.widths, "margin", noise)
    if least > widths.least:
        least = _cheapest(costs, least)
        padded = [(rows, ms) for rows, ms in costs if rows >= least]
        costs = [(rows, padded[0][1]) for rows, _ in costs if rows < least] + padded
    engine.widths = replace(widths, least=max(widths.least, least))
    return Calibration(_rising(costs), engine.widths, "bit")


def _enough(spans: tuple[int, ...], engine: Engine) -> bool:
    """Whether key lengths agree so often that rounding up to the next costs little."""
    return 2 * len(spans) * STEP >= _longest(engine)


def _longest(engine: Engine) -> int:
    return -(-min(engine.limit, 32 * STEP) // STEP) * STEP


def _least(agree: dict[int, bool]) -> int | None:
    """The smallest row count from which on all agree; None where even wide passes differ."""
    least = None
    for rows in sorted(agree, reverse=True):
        if not agree[rows]:
            break
        least = rows
    return least if least is not None and least <= blocks.LEAST else None


def _cheapest(costs: list[tuple[int, float]], least: int) -> int:
    """The row count to pad narrower passes to: `least`, or a little more where that runs faster
    (kernels for two rows can be slower than those for four)."""
    few = [(rows, ms) for rows, ms in costs if least <= rows <= max(FEW, least)]
    best = min(ms for _, ms in few)
    return next(rows for rows, ms in few if ms <= SAME * best)


def _rising(costs: list[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """The table with a busy machine's noise taken out.

    No pass costs more than a wider one, nor than two of half its rows.
    """
    cheapest = float("inf")
    table: dict[int, float] = {}
    for rows, ms in reversed(costs):
        table[rows] = cheapest = min(cheapest, ms)
    for rows in sorted(table):
        half = min((r for r in table if 2 * r >= rows), default=rows)
        if half < rows:
            table[rows] = min(table[rows], 2 * table[half])
    return tuple((rows, round(table[rows], 3)) for rows in sorted(table))


def outdated(calibration: Calibration, passes: Sequence[tuple[int, float]]) -> bool:
    """Whether passes (rows, milliseconds) ran so much faster than the table that it must have
    been measured on a busier machine. Slower ones prove nothing: the machine is busy now.
    """
    known = dict(calibration.costs)
    faster = [
        ms < TOO_FAST * known[min(r for r in known if r >= rows)]
        for rows, ms in passes
        if rows <= max(known)
    ]
    return len(faster) >= 4 and sum(faster) > len(faster) / 2


def usable_spans(engine: Engine, chunk: int = 0) -> tuple[int, ...]:
    """Key lengths at which attention gives a row the same bits as at the next usable one, values
    mixed `chunk` keys at a time (0: all at once).

    From the longest down: a length is kept if, for few rows and for many, the values mix to
    the same bits as with the shortest length kept so far and masked keys in between. Where the
    longest is not, nothing is known about those beyond, and there is none.
    """
    heads, groups, dim, dtype, device = engine.shape
    longest = _longest(engine)
    generator = torch.Generator().manual_seed(1)
    keys, values = (
        torch.randn(groups, longest + STEP, dim, generator=generator).to(device, dtype)
        for _ in range(2)
    )
    query = torch.randn(heads, 128, dim, generator=generator).to(device, dtype)
    seen: dict[tuple[int, int, int], torch.Tensor] = {}

    def mixed(rows: int, span: int, used: int) -> torch.Tensor:
        """Of random keys and values, and of keys alike with values that cancel."""
        key = (rows, span, used)
        if key not in seen:
            mask = torch.zeros(rows, span - used, dtype=dtype, device=device)
            mask.fill_(float("-inf"))
            even = torch.zeros_like(values[:, :span])
            even[:, :used] = cancelling(dim, used).T.to(device, dtype)
            seen[key] = torch.cat(
                [
                    attend(asking, keys[:, :span], mixing, mask, dim**-0.5, chunk)
                    for asking, mixing in (
                        (query[:, :rows], values[:, :span]),
                        (torch.zeros_like(query[:, :rows]), even),
                    )
                ],
                dim=1,
            )
        return seen[key]

    kept: list[int] = [longest + STEP]
    for span in range(longest, 0, -STEP):
        used = span - 1
        wide = mixed(128, kept[-1], used)
        same = all(
            torch.equal(mixed(rows, length, used), wide[:rows])
            for rows in (1, 2, 8, 33, 128)
            for length in (span, kept[-1])
        )
        seen.clear()
        if same:
            kept.append(span)
        elif span == longest:
            break
    return tuple(sorted(kept[1:]))


def machine() -> dict[str, str | int]:
    """What the figures depend on beside the model."""
    return {
        "torch": torch.__version__,
        "cpu": " ".join([platform.machine(), *_kernels(), str(os.cpu_count())]),
        "threads": torch.get_num_threads(),
        "format": FORMAT,
    }


def _kernels() -> list[str]:
    """What the choice of kernels depends on: the widest vectors, and matrix tiles among others."""
    special = {"amx", "avx10", "avx512", "avx", "sve", "sme", "bf16", "i8mm"}
    has: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    flags = {str(name) for name, there in has.items() if there is True}
    known = sorted(flag for flag in flags if flag.split("_")[0] in special)
    return [torch.backends.cpu.get_cpu_capability(), *known]


def load(path: Path) -> Calibration | None:
    """A kept calibration, unless it is stale or from another machine or build of torch."""
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if kept["machine"] != machine() or time() - kept["time"] > STALE_DAYS * 86_400:
            return None
        return Calibration(
            tuple((int(rows), float(ms)) for rows, ms in kept["costs"]),
            Widths(int(kept["least"]), tuple(int(s) for s in kept["spans"]), int(kept["chunk"])),
            str(kept["exact"]),
            float(kept["noise"]),
            {(int(out), int(in_)): int(most) for out, in_, most in kept["most"]},
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save(path: Path, calibration: Calibration) -> None:
    """Keep a calibration; a folder that cannot be written costs only the next run's time."""
    kept = {
        "machine": machine(),
        "time": time(),
        "costs": calibration.costs,
        "least": calibration.widths.least,
        "spans": calibration.widths.spans,
        "chunk": calibration.widths.chunk,
        "most": [(*shape, most) for shape, most in calibration.most.items()],
        "exact": calibration.exact,
        "noise": calibration.noise,
    }
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(kept), encoding="utf-8")
        aside.replace(path)
    except OSError:
        with suppress(OSError):
            aside.unlink()
