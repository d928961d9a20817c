"""Record the real command on a terminal, as text and as a picture that moves, for the docs.

The command runs in a terminal of its own (a pty), in a folder that holds only a copy of FILE, and
what it draws goes through a terminal emulator. OUT.txt gets a few moments of it, OUT.svg all of
them; where motion is not wanted the picture shows the last one.

  python scripts/record.py fixtures/inventory/inventory.py --out docs/recording -- -i "Make ..."

Everything after -- goes to apply-edit behind the name of the file. Needs pyte.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import shlex
import shutil
import struct
import sys
import tempfile
import termios
import time
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pyte

Cell = tuple[str, str]
"""A character and its style."""
Frame = tuple[tuple[Cell, ...], ...]

TICK = 0.1
MOST_FRAMES = 80
LONGEST = 15.0
"""Seconds of the picture; a longer run is shown faster, and the picture says so."""
REST = 4.0
"""Seconds for which the last frame stands."""
CELL, LINE = 8.4, 18
GROUND, INK = "#16191d", "#d8dce2"
COLORS = {
    "black": "#16191d",
    "red": "#ff8a80",
    "green": "#8bd97b",
    "brown": "#e6c36a",
    "blue": "#8ab4ff",
    "magenta": "#d79cf5",
    "cyan": "#5fd0dc",
    "white": "#d8dce2",
    "brightblack": "#8a929c",
}


@dataclass
class Shot:
    """The screen at a moment, in seconds from the start."""

    at: float
    frame: Frame


class Screen(pyte.Screen):
    """An emulated screen on which faint text is grey, since the emulator knows no faint."""

    def select_graphic_rendition(self, *attrs: int, private: bool = False) -> None:
        super().select_graphic_rendition(*(90 if a == 2 else a for a in attrs or (0,)))

    def frame(self) -> Frame:
        """What can be seen."""
        rows = []
        for y in range(self.lines):
            cells = [self.buffer[y][x] for x in range(self.columns)]
            rows.append(tuple((cell.data or " ", style_of(cell)) for cell in cells))
        return tuple(rows)


def style_of(cell: pyte.screens.Char) -> str:
    """The cell's look as SVG attributes."""
    parts = []
    if cell.fg != "default":
        parts.append(f'fill="{COLORS.get(cell.fg, "#" + cell.fg)}"')
    if cell.bold:
        parts.append('font-weight="bold"')
    if cell.italics:
        parts.append('font-style="italic"')
    lines = [
        name
        for name, on in (("underline", cell.underscore), ("line-through", cell.strikethrough))
        if on
    ]
    if lines:
        parts.append(f'text-decoration="{" ".join(lines)}"')
    return " ".join(parts)


def record(argv: list[str], folder: Path, shown: str, columns: int, rows: int) -> list[Shot]:
    """Run `argv` on a terminal in `folder`; every tick's screen that differs from the last."""
    screen = Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    stream.feed(f"\x1b[1m$\x1b[0m {shown}\r\n".encode())
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ.update(TERM="xterm-256color", LANG="C.UTF-8")
        os.execvp(argv[0], argv)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    started = time.monotonic()
    shots = [Shot(0.0, screen.frame())]
    due = started
    while True:
        ready, _, _ = select.select([fd], [], [], TICK)
        if ready:
            try:
                data = os.read(fd, 1 << 16)
            except OSError:  # Linux's way to say that the other end is gone
                data = b""
            if not data:
                break
            stream.feed(data)
        now = time.monotonic()
        if now >= due:
            due = now + TICK
            add(shots, Shot(now - started, screen.frame()))
    _, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit("the command failed:\n" + text_of(screen.frame()))
    add(shots, Shot(time.monotonic() - started, screen.frame()))
    return shots


def add(shots: list[Shot], shot: Shot) -> None:
    if shot.frame != shots[-1].frame:
        shots.append(shot)


def text_of(frame: Frame) -> str:
    lines = ["".join(data for data, _ in row).rstrip() for row in frame]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines)


def moments(shots: list[Shot], count: int) -> list[Shot]:
    """`count` shots, evenly spread over time, the last among them."""
    end = shots[-1].at
    wanted = [end * (i + 1) / count for i in range(count)]
    return [max((s for s in shots if s.at <= at), key=lambda s: s.at) for at in wanted]


def text(shots: list[Shot], columns: int) -> str:
    """A few moments as text."""
    parts = []
    for shot in moments(shots, 4):
        head = f"--- after {shot.at:.1f} s "
        parts.append(head + "-" * (columns - len(head)) + "\n" + text_of(shot.frame) + "\n")
    return "\n".join(parts)


def picture(shots: list[Shot], columns: int, rows: int) -> str:
    """The recording as one SVG: all frames above each other, moved past a window."""
    speed = max(1.0, shots[-1].at / LONGEST)
    if len(shots) > MOST_FRAMES:
        shots = [*shots[:: len(shots) // MOST_FRAMES + 1], shots[-1]]
    tall = rows * LINE + 24
    wide = columns * CELL + 24
    length = shots[-1].at / speed + REST
    lines: dict[tuple[Cell, ...], int] = {}
    frames = []
    steps = []
    for number, shot in enumerate(shots):
        uses = []
        for y, row in enumerate(shot.frame):
            if any(data != " " for data, _ in row):
                name = lines.setdefault(row, len(lines))
                uses.append(f'<use href="#l{name}" y="{y * LINE}"/>')
        frames.append(f'<g transform="translate(12 {number * tall + 26})">{"".join(uses)}</g>')
        share = 100 * shot.at / speed / length
        steps.append(f"{share:.3f}%{{transform:translateY(-{number * tall}px)}}")
    last = (len(shots) - 1) * tall
    steps.append(f"100%{{transform:translateY(-{last}px)}}")
    defs = "".join(f'<g id="l{name}">{svg_line(row)}</g>' for row, name in lines.items())
    pace = f", shown {speed:.1f} times as fast" if speed > 1.05 else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {tall}" '
        f'width="{wide:g}" height="{tall}" role="img">\n'
        f"<title>apply-edit edits a file in {shots[-1].at:.1f} seconds{pace}</title>\n<style>"
        f"text{{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        f"white-space:pre}}#a{{fill:{INK};animation:m {length:.2f}s step-end infinite}}"
        f"@keyframes m{{{''.join(steps)}}}"
        f"@media (prefers-reduced-motion:reduce){{#a{{animation:none;"
        f"transform:translateY(-{last}px)}}}}</style>\n"
        f'<defs>{defs}<clipPath id="c"><rect width="{wide:g}" height="{tall}"/></clipPath></defs>\n'
        f'<rect width="{wide:g}" height="{tall}" rx="8" fill="{GROUND}"/>\n'
        f'<g clip-path="url(#c)"><g id="a">\n' + "\n".join(frames) + "\n</g></g>\n</svg>\n"
    )


def svg_line(row: tuple[Cell, ...]) -> str:
    """One line of the screen: a text for each stretch of one style, held to its cells."""
    parts = []
    x = 0
    while x < len(row):
        end = x
        while end < len(row) and row[end][1] == row[x][1]:
            end += 1
        words = "".join(data for data, _ in row[x:end])
        bare = words.strip(" ")
        if bare:
            left = x + len(words) - len(words.lstrip(" "))
            parts.append(
                f'<text x="{left * CELL:.1f}" textLength="{len(bare) * CELL:.1f}" {row[x][1]}>'
                f"{escape(bare)}</text>"
            )
        x = end
    return "".join(parts)


def typed(words: list[str], columns: int) -> str:
    """The command line as a careful person types it: one that is long goes over several lines."""
    lines = [words[0]]
    for word in words[1:]:
        quoted = shlex.quote(word)
        if len(lines[-1]) + len(quoted) + 5 < columns:
            lines[-1] += " " + quoted
        else:
            lines.append("    " + quoted)
    return " \\\r\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="where to, without a suffix")
    parser.add_argument("--columns", type=int, default=88)
    parser.add_argument("--rows", type=int, default=28)
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    asked, options = parser.parse_args(sys.argv[1:cut]), sys.argv[cut + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(asked.file, folder)
        words = [asked.file.name, *options]
        shown = typed(["apply-edit", *words], asked.columns)
        argv = [sys.executable, "-m", "apply_edit", *words]
        shots = record(argv, Path(folder), shown, asked.columns, asked.rows)
    asked.out.with_suffix(".txt").write_text(text(shots, asked.columns), encoding="utf-8")
    drawn = picture(shots, asked.columns, asked.rows)
    asked.out.with_suffix(".svg").write_text(drawn, encoding="utf-8")
    print(f"{len(shots)} frames in {shots[-1].at:.1f} s; the picture has {len(drawn):,} bytes")


if __name__ == "__main__":
    main()
