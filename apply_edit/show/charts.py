"""Charts as inline SVG that needs no script and no measuring: widths are shares of the page.

Shapes live in an inner drawing that stretches, texts in the outer one that does not, so a chart is
as readable on a phone as on a desk. Every chart has its numbers in a table beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, sqrt

from apply_edit.show.html import figure
from apply_edit.show.recording import Pass

MOST = 400
"""Bars of a chart; of more passes, neighbours share one."""
WIDE = 1000.0
"""Units across a drawing."""
TALL = 140.0
"""Pixels from the top of the time line to its bottom."""
APART = 13.0
"""Pixels between two words of an axis."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Consecutive passes drawn, and tabled, as one. Seconds count from the first prompt token."""

    first: int
    count: int
    start: int
    tokens: int
    rows: int
    drafted: int
    accepted: int
    k: float
    began: float
    ended: float
    draft_seconds: float

    @property
    def wasted(self) -> int:
        return self.drafted - self.accepted

    @property
    def name(self) -> str:
        if self.count == 1:
            return f"{self.first + 1:,}"
        return f"{self.first + 1:,}\u2013{self.first + self.count:,}"


def bins(passes: Sequence[Pass], most: int = MOST) -> list[Bin]:
    """The passes in at most `most` groups of equal size."""
    size = max(1, ceil(len(passes) / most))
    return [_bin(passes[i : i + size], i) for i in range(0, len(passes), size)]


def _bin(group: Sequence[Pass], first: int) -> Bin:
    return Bin(
        first=first,
        count=len(group),
        start=group[0].start,
        tokens=sum(p.tokens for p in group),
        rows=sum(p.rows for p in group),
        drafted=sum(p.drafted for p in group),
        accepted=sum(p.accepted for p in group),
        k=sum(p.k for p in group) / len(group),
        began=group[0].began,
        ended=group[-1].began + group[-1].seconds,
        draft_seconds=sum(p.draft_seconds for p in group),
    )


def timeline(groups: Sequence[Bin], prefill: float) -> str:
    """Passes over time: tokens that a pass gave above the line, drafted rows that fell below."""
    end = max((g.ended for g in groups), default=0.0) or 1e-9
    top = max((g.tokens / g.count for g in groups), default=1.0)
    low = max((g.wasted / g.count for g in groups), default=0.0)
    # Both sides share the scale; the line between them lies where the taller one leaves it.
    scale = (sqrt(top) + sqrt(low)) / TALL or 1.0
    up = sqrt(top) / scale
    grid, marks = _roots(top, low, scale, up)
    drawn = [f"<rect class=pf x=0 y={up - 8:.4g} width={_x(prefill, end)} height=8 />"]
    for g in groups:
        x, width = _x(g.began, end), _wide((g.ended - g.began) / end * WIDE)
        given = sqrt(g.tokens / g.count) / scale
        lost = sqrt(g.wasted / g.count) / scale
        words = f"pass {g.name}: {_ms(g)}, {g.rows:,} rows, {g.tokens:,} tokens, {g.wasted:,} lost"
        path = f"M{x} {up:.4g}v{-given:.4g}h{width}V{up:.4g}z"
        drawn.append(f'<path class=ok d="{path}"><title>{words}</title></path>')
        if g.wasted:
            path = f"M{x} {up:.4g}v{lost:.4g}h{width}V{up:.4g}z"
            drawn.append(f'<path class=no d="{path}"><title>{words}</title></path>')
    axis = f'<path class=ax d="M0 {up:.4g}H{WIDE:g}"/>'
    texts = [*marks, *_ticks(end, TALL + 16)]
    return _svg(TALL, 20, grid + "".join(drawn) + axis, texts, "passes over time")


def along(groups: Sequence[Bin], tokens: int) -> str:
    """Along the output: the draft length k by powers of two, and the share that held as bars."""
    whole = max(tokens, 1)
    high = max((g.k for g in groups), default=1.0)
    steps = max(1, ceil(log2(high + 1)))
    tall, share_tall, gap = 80.0, 40.0, 18.0
    base = tall + gap + share_tall
    drawn: list[str] = []
    line: list[str] = []
    for power in range(0, steps + 1, 1 if steps < 5 else 2):
        y = tall - tall * power / steps
        drawn.append(f'<path class=gr d="M0 {y:.4g}H{WIDE:g}"/>')
    for g in groups:
        left, width = _x(g.start, whole), _wide(g.tokens / whole * WIDE)
        y = tall - tall * log2(g.k + 1) / steps
        line.append(f"{'L' if line else 'M'}{left} {y:.4g}h{width}")
        if g.drafted:
            held = share_tall * g.accepted / g.drafted
            words = f"pass {g.name}: {g.accepted:,} of {g.drafted:,} drafted held, k {g.k:.3g}"
            back = f'<path class=bk d="M{left} {base:g}v{-share_tall:g}h{width}V{base:g}z"/>'
            bar = f'<path class=ok d="M{left} {base:g}v{-held:.4g}h{width}V{base:g}z">'
            drawn.append(f"{back}{bar}<title>{words}</title></path>")
    drawn.append(f'<path class=ln d="{"".join(line)}"/>')
    drawn.append(f'<path class=ax d="M0 {base:g}H{WIDE:g}"/>')
    texts = [
        _text("2", 11, f"k {2**steps - 1:,}"),
        _text("2", tall - 3, "k 0"),
        _text("2", tall + gap - 3, "100 %"),
        *_count_ticks(whole, base + 16),
    ]
    return _svg(base, 20, "".join(drawn), texts, "draft length and acceptance along the output")


def costs(table: Sequence[tuple[int, float]], passes: Sequence[Pass]) -> str:
    """Milliseconds of a pass by rows: the measured table as a line, this run's passes as dots."""
    # The first pass carries the prompt's tail, which is no row of its own.
    seen = [(p.rows, p.seconds * 1000) for p in passes[1:] if p.rows]
    widest = max([r for r, _ in table] + [r for r, _ in seen] + [2])
    slowest = sorted(ms for _, ms in seen)[int(len(seen) * 0.98)] if seen else 0.0
    top = max([ms for _, ms in table] + [slowest, 1e-6]) * 1.05
    tall = 120.0
    drawn = [f'<path class=gr d="M0 {y:g}H{WIDE:g}"/>' for y in (0.0, tall / 2)]

    def place(rows: float, ms: float) -> tuple[str, str]:
        x = 6 + (WIDE - 12) * log2(max(rows, 1)) / log2(widest)
        return f"{x:.4g}", f"{tall * (1 - min(1.0, ms / top)):.4g}"

    kept = seen[:: max(1, ceil(len(seen) / MOST))]
    dots = "".join("M{} {}h0".format(*place(r, ms)) for r, ms in kept)
    if dots:
        drawn.append(f'<path class=dt d="{dots}"/>')
    if table:
        points = " ".join(",".join(place(r, ms)) for r, ms in table)
        drawn.append(f'<polyline class=ln points="{points}"/>')
    drawn.append(f'<path class=ax d="M0 {tall:g}H{WIDE:g}"/>')
    texts = [
        _text("2", 11, f"{figure(top)} ms"),
        _text("2", tall / 2 + 11, f"{figure(top / 2)} ms"),
    ]
    powers = range(0, int(log2(widest)) + 1, 2)
    for power in powers:
        share = 100 * (6 + (WIDE - 12) * power / log2(widest)) / WIDE
        anchor = "start" if power == 0 else "end" if share > 97 else "middle"
        words = f"{2**power:,}" + (" row" if power == 0 else "")
        texts.append(_text(f"{share:.3g}%", tall + 16, words, anchor))
    return _svg(tall, 20, "".join(drawn), texts, "milliseconds of a pass by its rows")


def share_bar(parts: Sequence[tuple[str, float, str]], what: str) -> str:
    """One bar cut into parts: (class, share from 0 to 1, words)."""
    x = 0.0
    drawn = []
    for kind, share, words in parts:
        width = max(0.0, share) * WIDE
        drawn.append(
            f"<rect class={kind} x={x:.5g} y=0 width={width:.5g} height=18>"
            f"<title>{words}</title></rect>"
        )
        x += width
    return _svg(18, 0, "".join(drawn), [], what)


def _svg(height: float, below: float, shapes: str, texts: Sequence[str], what: str) -> str:
    inner = (
        f'<svg viewBox="0 0 {WIDE:g} {height:g}" width="100%" height={height:g} '
        f"preserveAspectRatio=none>{shapes}</svg>"
    )
    return (
        f'<svg class=g width="100%" height={height + below:g} role=img aria-label="{what}; the '
        f'table below has the numbers">{inner}{"".join(texts)}</svg>'
    )


def _text(x: str, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y:g}" text-anchor={anchor}>{words}</text>'


def _x(value: float, whole: float) -> str:
    return f"{value / whole * WIDE:.5g}"


def _wide(width: float) -> str:
    """A width in units; never so small that a pass cannot be seen."""
    return f"{max(width, 1.0):.4g}"


def _ms(group: Bin) -> str:
    return f"{figure(1000 * (group.ended - group.began))} ms"


def _roots(top: float, low: float, scale: float, zero: float) -> tuple[str, list[str]]:
    """Grid lines of a square-root scale and their words."""
    lines, words = [], []
    above = below = 0.0
    for value in (1, 8, 32, 128, 512, 2048):
        height = sqrt(value) / scale
        if value <= top and height >= above + APART:
            above = height
            lines.append(f'<path class=gr d="M0 {zero - height:.4g}H{WIDE:g}"/>')
            words.append(_text("2", zero - height + 10, f"{value} token{'s' if value > 1 else ''}"))
        if value <= low and height >= below + APART:
            below = height
            lines.append(f'<path class=gr d="M0 {zero + height:.4g}H{WIDE:g}"/>')
            words.append(_text("2", zero + height - 2, f"{value} lost"))
    return "".join(lines), words


def _ticks(seconds: float, y: float) -> list[str]:
    marks = [_text("0", y, "0 s")]
    for share, anchor in ((0.5, "middle"), (1.0, "end")):
        marks.append(_text(f"{100 * share:g}%", y, f"{seconds * share:.3g} s", anchor))
    return marks


def _count_ticks(tokens: int, y: float) -> list[str]:
    marks = [_text("0", y, "token 0")]
    for share, anchor in ((0.5, "middle"), (1.0, "end")):
        marks.append(_text(f"{100 * share:g}%", y, f"{round(tokens * share):,}", anchor))
    return marks
