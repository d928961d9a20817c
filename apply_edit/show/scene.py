"""What the live display shows: events go in, lines of any size come out. Draws nothing itself."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from apply_edit.events import Event, Piece, Stage, Wrote
from apply_edit.show.look import Line, Look, clean, cut, width_of
from apply_edit.show.remaining import Remaining, duration
from apply_edit.stream import Body

KEPT_LINES = 100
TALLEST = 24
"""Rows of the display on a tall terminal."""
WIDEST_LINE = 400
FLASH_SECONDS = 0.3
NEWEST = ("target", "draft", "update", "output", "copy")
"""Which source's mark stands before a line that has several."""

DOING = {
    "wait": "waiting for another run that prepares",
    "download": "downloading",
    "verify": "checking",
    "convert": "converting",
    "load": "loading",
    "calibrate": "measuring this machine once:",
    "prefill": "reading the file",
    "practise": "writing edits to learn from",
    "train": "training the heads",
}


@dataclass(slots=True)
class Scene:
    """The state of one run's display."""

    file: str
    model: str = ""
    stage: Stage | None = None
    stage_since: float = 0.0
    finished: deque[Line] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    current: Line = field(default_factory=list)
    body: Body | None = None
    """The text of the answer under way, its frame taken off; None before it and behind it."""
    rejected: str = ""
    rejected_at: float = 0.0
    passes: int = 0
    tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    k: int = 0
    position: float = 0.0
    seconds: float = 0.0
    seconds_at: float = 0.0
    remaining: Remaining = field(default_factory=Remaining)
    among: str = ""
    """How far the files of the call are, in words, where there are several."""
    begun: float | None = None
    """When the prompt began to be read."""

    def update(self, event: Event, now: float) -> None:
        """Take in one event; `now` in seconds of any steady clock."""
        if self.begun is None and (isinstance(event, Wrote) or _reads(event)):
            self.begun = now
        if isinstance(event, Stage):
            if self.stage is None or self.stage.name != event.name:
                self.stage_since = now
            self.stage = event
        elif isinstance(event, Wrote):
            self.stage = None
            self._wrote(event, now)

    def _wrote(self, event: Wrote, now: float) -> None:
        step = event.step
        if self.body is None:
            self.body = Body(event.closing)
            if self.passes:  # another part of the file: its first line is a line of its own
                self._append(Piece("copy", "\n"))
        ended = step.finish is not None
        for piece in self.body.feed(event.pieces, ended):
            self._append(piece)
        rejected = self.body.cut(event.rejected)
        if rejected:
            self.rejected, self.rejected_at = rejected[:WIDEST_LINE], now
        if ended:
            self.body = None
        self.passes += 1
        # Not the event's count: an edit made part by part begins to count anew in each.
        self.tokens += len(step.tokens)
        self.drafted += step.drafted
        self.accepted += step.accepted
        self.k = step.k
        # A proposer that looks back in the file must not make the bar run back.
        self.position = max(self.position, min(1.0, event.position))
        seconds = step.seconds + step.draft_seconds
        written = event.seconds
        if self.among and self.begun is not None:
            # Of a pass that is shared the event counts a share, and a person waits for the whole.
            seconds = now - (self.seconds_at or self.begun)
            written = now - self.begun
        self.seconds, self.seconds_at = written, now
        self.remaining.add(len(step.tokens), step.accepted, seconds, self.position)

    def _append(self, piece: Piece) -> None:
        lines = piece.text.rsplit("\n", KEPT_LINES)
        for number, text in enumerate(lines):
            if number:
                self.finished.append(self.current)
                self.current = []
            if text and len(self.current) < WIDEST_LINE:
                self.current.append((text[:WIDEST_LINE], piece.source))

    def lines(self, columns: int, rows: int, look: Look, now: float) -> list[Line]:
        """The frame for a terminal: at most `rows` - 1 lines of `columns` - 1 cells."""
        height = max(1, min(rows - 1, TALLEST))
        width = max(1, columns - 1)
        if self.stage is not None or not self.passes:
            foot = [self._stage_line(width, look, now)]
        else:
            foot = [self._bar_line(width, look), self._figures(width, look, now)]
        head = [self._head(width, look)]
        if height < 4:
            return [cut(line, width) for line in foot[:height]]
        body = self._body(height - len(head) - len(foot), look, now) if self.passes else []
        return [cut(line, width) for line in [*head, *body, *foot]]

    def _head(self, width: int, look: Look) -> Line:
        line: Line = [(clean(self.file), "title")]
        for words in (self.among, clean(self.model)):
            if words and width_of(line) + len(words) + 3 <= width:
                line += [(look.dot, "faint"), (words, "faint")]
        if not self.passes:
            return line
        legend: Line = []
        for source, word in (("copy", "copied"), ("update", "sketch"), ("target", "new")):
            legend += [("  " + (look.marks[source] + word).strip(), source)]
        free = width - width_of(line) - width_of(legend)
        return [*line, (" " * free, ""), *legend] if free >= 0 else line

    def _body(self, rows: int, look: Look, now: float) -> list[Line]:
        recent = list(self.finished)[-(rows - 1) :] if rows > 1 else []
        lines = [self._marked(line, look) for line in recent]
        last = self._marked(self.current, look)
        if self.rejected and now - self.rejected_at < FLASH_SECONDS:
            fallen = clean(self.rejected.strip("\n").split("\n", 1)[0])
            last.append((look.cross + fallen, "rejected"))
        return [*lines, last]

    def _marked(self, line: Line, look: Look) -> Line:
        sources = {source for _, source in line}
        newest = next((s for s in NEWEST if s in sources), "copy")
        return [
            (look.marks[newest] + " ", newest),
            *((clean(text), source) for text, source in line),
        ]

    def _bar_line(self, width: int, look: Look) -> Line:
        percent = f" {100 * self.position:3.0f} %"
        left = self.remaining.words(short=width < 44)
        words = percent + (f"  {left}" if left else "")
        if len(words) + 4 > width:
            words = percent
        # The room for the longest words is kept free, so that the bar does not jump about.
        room = width - max(len(words), 26 if width >= 44 else 12)
        bar = look.bar(min(50, room), self.position) if room >= 4 else []
        return [*bar, (words, "")]

    def _figures(self, width: int, look: Look, now: float) -> Line:
        per_pass = self.tokens / self.passes
        parts = [f"{self.tokens:,} tokens", f"{per_pass:.1f}/pass"]
        if self.drafted:
            parts.append(f"{100 * self.accepted / self.drafted:.0f} % accepted")
        # The clock runs on while a slow pass is under way.
        parts += [f"k {self.k}", duration(self.seconds + max(0.0, now - self.seconds_at))]
        while len(parts) > 1 and len(look.dot.join(parts)) > width:
            parts.pop(-2 if len(parts) > 2 else -1)
        return [(look.dot.join(parts), "faint")]

    def _stage_line(self, width: int, look: Look, now: float) -> Line:
        stage = self.stage
        elapsed = now - self.stage_since
        spin = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if look.unicode else "|/-\\")[
            int(now * 8) % (10 if look.unicode else 4)
        ]
        if stage is None:
            return [(spin + " ", "bar"), ("starting", ""), (f"  {duration(elapsed)}", "faint")]
        word = DOING[stage.name]
        if stage.name == "verify" and stage.unit == "tokens":
            word = "decoding plainly, to compare"
        label = clean(stage.label)
        total = stage.total
        if not total:
            tail = f"  {_amount(stage.done, stage.unit)}" if stage.done else ""
            line: Line = [(spin + " ", "bar"), (word, "")]
            line += [(f" {label}", "faint")] if label else []
            return [*line, (f"{tail}  {duration(elapsed)}", "faint")]
        share = min(1.0, stage.done / total)
        figures = f" {_amount(stage.done, '')} of {_amount(total, stage.unit)}"
        if stage.unit == "bytes":
            figures = f" {stage.done / 1e6:,.0f} of {total / 1e6:,.0f} MB"
        rest = ""
        if elapsed > 1.0 and 0.02 < share < 1.0:
            rest = f"  about {duration(elapsed * (1 - share) / share)} left"
        line = [(spin + " ", "bar"), (word, "")]
        for text in (figures, rest, f" {label}" if label else ""):
            if text and width_of(line) + len(text) + 12 <= width:
                line.append((text, "faint"))
        room = min(30, width - width_of(line) - 1)
        return [*line, (" ", ""), *look.bar(room, share)] if room >= 4 else line


def _reads(event: Event) -> bool:
    return isinstance(event, Stage) and event.name == "prefill"


def _amount(count: float, unit: str) -> str:
    if unit == "bytes":
        return f"{count / 1e6:,.0f} MB"
    return f"{count:,.0f} {unit}".rstrip()
