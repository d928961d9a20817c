"""How long an edit will still take, from what its passes have cost so far."""

from __future__ import annotations

from dataclasses import dataclass

MIN_PASSES = 3
MIN_SECONDS = 0.5
COPIED_SHARE = 0.75
"""A pass counts as copying when this share of its tokens came from drafts."""


@dataclass(slots=True)
class Remaining:
    """Two rates are kept apart: tokens of copying passes, and tokens of writing passes.

    What is left of the file will be copied at best (`low`), or go on being edited as often as so
    far (`high`); nobody knows which, so both bounds are given.
    """

    copied: int = 0
    copy_seconds: float = 0.0
    written: int = 0
    write_seconds: float = 0.0
    passes: int = 0
    position: float = 0.0

    def add(self, tokens: int, accepted: int, seconds: float, position: float) -> None:
        """One pass gave `tokens`, `accepted` of them drafted, and took `seconds`."""
        self.passes += 1
        self.position = position
        if tokens and accepted >= COPIED_SHARE * tokens:
            self.copied += tokens
            self.copy_seconds += seconds
        else:
            self.written += tokens
            self.write_seconds += seconds

    def bounds(self) -> tuple[float, float] | None:
        """(low, high) seconds, or None while it would be guesswork."""
        tokens = self.copied + self.written
        seconds = self.copy_seconds + self.write_seconds
        if self.passes < MIN_PASSES or seconds < MIN_SECONDS or not 0.0 < self.position <= 1.0:
            return None
        left = tokens * (1.0 - self.position) / self.position
        high = left * seconds / tokens
        low = left * self.copy_seconds / self.copied if self.copied else high
        return min(low, high), high

    def words(self, short: bool = False) -> str:
        """``about 3 s left``, ``3 to 8 s left``, or nothing yet."""
        bounds = self.bounds()
        if bounds is None:
            return ""
        low, high = (_rounded(b) for b in bounds)
        if short:
            return duration(high)
        if high <= 1:
            return "about 1 s left"
        if high - low <= max(1.0, 0.3 * high):
            return f"about {duration(high)} left"
        if high < 60:
            return f"{low:.0f} to {high:.0f} s left"
        return f"{duration(low)} to {duration(high)} left"


def _rounded(seconds: float) -> float:
    return float(max(1, round(seconds) if seconds < 20 else 5 * round(seconds / 5)))


def duration(seconds: float) -> str:
    """``0.4 s``, ``12 s``, ``3:05 min``, ``2:10 h``."""
    if seconds < 9.95:
        whole = abs(seconds - round(seconds)) < 0.05 and seconds >= 1
        return f"{seconds:.0f} s" if whole else f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes}:{rest:02d} min"
    return f"{minutes // 60}:{minutes % 60:02d} h"
