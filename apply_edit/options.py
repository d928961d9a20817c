"""How to decode: what a caller may choose about one edit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from apply_edit.decode.accept import Greedy, Rule, Sampled

BATCH = 4
"""Edits that share the target's passes; chosen by measurement (docs/benchmarks.md)."""


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

    def after(self, seconds: float) -> Options:
        """What is left of these when `seconds` are spent."""
        if self.timeout is None:
            return self
        return replace(self, timeout=max(0.0, self.timeout - seconds))

    def rule(self) -> Rule:
        """How the target decides on a token."""
        if self.temperature <= 0.0:
            return Greedy()
        return Sampled(self.temperature, self.top_p, self.top_k, self.seed)
