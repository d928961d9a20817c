"""What happened during decoding: counts and times as data, summarised here and nowhere else."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from apply_edit.decode.types import Step


@dataclass(slots=True)
class Tally:
    """Rows drafted, and of them accepted, for one source."""

    drafted: int = 0
    accepted: int = 0


@dataclass(slots=True)
class Stats:
    """The figures of one edit. Times are seconds; token counts are the target's tokens.

    `cached_tokens` are those of the prompt whose keys and values were held already.
    `floor_seconds` is the time to push the others and the output through the target once at its
    best measured rows per second; None where the cost of a pass was never measured. `batch` is the
    greatest number of edits that shared a pass with this one, itself included (1: alone); seconds
    are then its share of the passes, by rows, and those of all edits add up to the time spent.
    """

    model: str = ""
    dtype: str = ""
    device: str = ""
    threads: int = 0
    exact: str = ""
    draft: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    passes: int = 0
    rows: int = 0
    drafted: int = 0
    accepted: int = 0
    by_source: dict[str, Tally] = field(default_factory=dict)
    load_seconds: float = 0.0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    draft_seconds: float = 0.0
    first_run_seconds: float = 0.0
    total_seconds: float = 0.0
    floor_seconds: float | None = None
    finish: str = ""
    verified: bool | None = None
    batch: int = 1

    @property
    def wasted(self) -> int:
        """Drafted rows that fell."""
        return self.drafted - self.accepted

    @property
    def tokens_per_pass(self) -> float:
        """Output tokens per pass of the target after the prompt."""
        return self.output_tokens / self.passes if self.passes else 0.0

    @property
    def acceptance(self) -> float:
        """Accepted share of the drafted rows (0 when nothing was drafted)."""
        return self.accepted / self.drafted if self.drafted else 0.0

    @property
    def over_floor(self) -> float | None:
        """total / floor, the figure that says how good a run was (load time not counted)."""
        return self.total_seconds / self.floor_seconds if self.floor_seconds else None

    def add(self, step: Step) -> None:
        """Count one pass."""
        self.passes += 1
        self.rows += step.rows
        self.drafted += step.drafted
        self.accepted += step.accepted
        self.output_tokens += len(step.tokens)
        self.decode_seconds += step.seconds
        self.draft_seconds += step.draft_seconds
        for source, (drafted, accepted) in step.sources.items():
            tally = self.by_source.setdefault(source, Tally())
            tally.drafted += drafted
            tally.accepted += accepted
        if step.finish is not None:
            self.finish = step.finish

    def as_dict(self) -> dict[str, object]:
        """All figures, derived ones too, ready for JSON."""
        data: dict[str, object] = asdict(self)
        data["wasted"] = self.wasted
        data["tokens_per_pass"] = round(self.tokens_per_pass, 3)
        data["acceptance"] = round(self.acceptance, 4)
        data["over_floor"] = None if self.over_floor is None else round(self.over_floor, 3)
        return data
