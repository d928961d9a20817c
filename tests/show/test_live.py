"""The display as a person sees it, through a terminal emulator."""

from __future__ import annotations

import os
import time

import pytest

from apply_edit.events import Event, Note, Piece, Stage
from apply_edit.show.live import Live
from apply_edit.show.look import Look, width_of
from apply_edit.show.painter import Painter
from apply_edit.show.scene import Scene
from apply_edit.show.terminal import Terminal, can_draw, wants_color
from tests.show.screen import Emulator, an_edit, wrote


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def shown(terminal: Emulator, *events: Event, file: str = "src/inventory.py") -> list[str]:
    """The screen after `events`."""
    clock = Clock()
    live = Live(terminal, file, "qwen2.5-coder-1.5b", clock=clock)
    for event in events:
        clock.now += 0.1
        live(event)
        live.draw()
    return terminal.lines


def test_a_run_on_a_terminal_of_80_by_24() -> None:
    lines = shown(Emulator(80, 24), *list(an_edit())[:30])
    assert lines[0].startswith("src/inventory.py · qwen2.5-coder-1.5b")
    assert lines[0].endswith("copied  »sketch  +new")
    assert lines[1:-2] == [
        *(f"  def copied_{n}(): return {n}" for n in range(11, 20)),
        *(f"+     new line {n}" for n in range(20, 24)),
        *(f"  def copied_{n}(): return {n}" for n in range(24, 30)),
        "",
    ]
    assert "━━━━" in lines[-2]
    assert " 50 %" in lines[-2]
    assert lines[-2].endswith(" left")
    assert lines[-1] == "796 tokens · 26.5/pass · 91 % accepted · k 32 · 3 s"
    assert len(lines) == 23


CLOSING = "\n</updated-code>"


def body(lines: list[str]) -> list[str]:
    """The lines of the file on a screen, their marks taken off."""
    return [line[2:] for line in lines[1:-2]]


@pytest.mark.parametrize("size", [1, 3, 5, 40])
@pytest.mark.parametrize("behind", ["", "\n", "\n\n"])
def test_the_closing_tag_of_the_prompt_is_no_text_of_the_file(size: int, behind: str) -> None:
    text = "first\n</updated-page>\n<b>last" + CLOSING + behind
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    terminal = Emulator(60, 20)
    clock = Clock()
    live = Live(terminal, "a.html", clock=clock)
    for number, part in enumerate(parts, 1):
        finish = "stop" if number == len(parts) else None
        # The draft runs past the end of the answer, as drafts of whole files do.
        live(wrote(("copy", part), rejected=text[number * size :], closing=CLOSING, finish=finish))
        live.draw()
        assert not any("updated-code" in line for line in terminal.lines)
    clock.now += 1.0  # the last draft that fell is no longer shown
    live.draw()
    assert body(terminal.lines) == ["first", "</updated-page>", "<b>last"]


def test_text_like_the_beginning_of_the_tag_is_shown_at_the_end() -> None:
    lines = shown(Emulator(60, 20), wrote(("target", "a\n</upd"), closing=CLOSING, finish="length"))
    assert body(lines) == ["a", "</upd"]


def test_parts_of_a_file_do_not_run_into_each_other() -> None:
    parts = [wrote(("copy", text + CLOSING), closing=CLOSING, finish="stop") for text in "ab"]
    assert body(shown(Emulator(60, 20), *parts)) == ["a", "b"]


def test_a_small_terminal_of_60_by_10() -> None:
    lines = shown(Emulator(60, 10), *list(an_edit())[:24])
    assert len(lines) == 9
    assert lines[0].startswith("src/inventory.py · qwen2.5-coder-1.5b")
    assert lines[1:7] == [
        "  def copied_19(): return 19",
        *(f"+     new line {n}" for n in range(20, 24)),
        "  ×old line 23",
    ]
    assert " 40 %" in lines[-2]
    assert lines[-1] == "616 tokens · 25.7/pass · 90 % accepted · k 4 · 2.4 s"


def test_twenty_columns() -> None:
    terminal = Emulator(20, 24)
    lines = shown(terminal, *list(an_edit())[:24])
    assert all(len(line) <= 19 for line in lines)
    assert lines[0] == "src/inventory.py"
    assert "+     new line 23" in lines
    assert "40 %" in lines[-2]


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("columns", [1, 5, 10, 200])
def test_any_size_is_kept_to(columns: int, rows: int) -> None:
    look = Look()
    scene = Scene("a.py", "model")
    for number, event in enumerate(an_edit(10)):
        scene.update(event, number / 10)
        lines = scene.lines(columns, rows, look, number / 10)
        assert len(lines) <= max(1, rows - 1)
        assert all(width_of(line) <= max(1, columns - 1) for line in lines)
    for unit in ("bytes", "tokens"):
        scene.update(Stage("download", 5, 10, unit, "a label that is rather long"), 3.0)
        for line in scene.lines(columns, rows, look, 5.0):
            assert width_of(line) <= max(1, columns - 1)


def test_sources_differ_in_color_and_without() -> None:
    events = [
        wrote(
            ("copy", "copied "),
            ("update", "sketch "),
            ("output", "again "),
            ("draft", "drafted "),
            ("target", "new"),
        )
    ]
    for color in (True, False):
        terminal = Emulator(80, 12, color=color)
        shown(terminal, *events)
        row = next(n for n, line in enumerate(terminal.screen.display) if "sketch again" in line)
        cells = terminal.screen.buffer[row]
        text = terminal.screen.display[row]
        looks = {}
        for word in ("copied", "sketch", "again", "drafted", "new"):
            cell = cells[text.index(word)]
            looks[word] = (cell.fg, cell.bold, cell.italics, cell.underscore)
            if not color:
                assert cell.fg == "default"
        assert len(set(looks.values())) == 5, looks


def test_the_gutter_tells_the_newest_source_of_each_line() -> None:
    lines = shown(
        Emulator(80, 12),
        wrote(("copy", "a\n")),
        wrote(("copy", "b "), ("update", "c\n")),
        wrote(("copy", "d "), ("update", "e "), ("target", "f\n")),
        wrote(("output", "g\n")),
    )
    assert lines[1:5] == ["  a", "» b c", "+ d e f", "= g"]


def test_what_was_rejected_flashes_by() -> None:
    terminal = Emulator(80, 12)
    clock = Clock()
    live = Live(terminal, "a.py", clock=clock)
    live(wrote(("copy", "x = "), rejected="wrong\nmore"))
    live.draw()
    assert "  x = ×wrong" in terminal.lines
    clock.now += 0.5
    live.draw()
    assert "  x =" in terminal.lines
    assert "wrong" not in "\n".join(terminal.lines)


def test_without_unicode_all_is_ascii() -> None:
    terminal = Emulator(80, 12, encoding="ascii")
    lines = shown(terminal, *list(an_edit())[:24], wrote(("update", "naïve ☃\n"), rejected="ü"))
    assert terminal.sent.isascii()
    assert "> na?ve ?" in lines
    assert any(line.startswith("####") for line in lines)


def test_text_of_the_file_cannot_move_the_cursor_or_be_markup() -> None:
    hostile = "\x1b[2J\x1b[31m[bold]x[/bold]\r\x07\x9b\u202e\u2028\x00end\n"
    lines = shown(Emulator(80, 12), wrote(("copy", hostile)), file="a[0]\x1b[2J.py")
    assert lines[0].startswith("a[0].[2J.py")
    assert "  .[2J.[31m[bold]x[/bold]......end" in lines


def test_tabs_and_wide_characters_keep_their_cells() -> None:
    terminal = Emulator(20, 12)
    lines = shown(terminal, wrote(("copy", "\tif 漢字漢字漢字漢字漢字漢字\n")))
    assert any(line.startswith("      if 漢") for line in lines)
    assert len(lines) == 5


def test_frames_replace_each_other_and_leave_nothing_behind() -> None:
    terminal = Emulator(60, 10)
    terminal.write("$ apply-edit a.py\r\n")
    clock = Clock()
    with Live(terminal, "a.py", clock=clock) as live:
        for event in an_edit():
            live(event)
            clock.now += 0.1
            live.draw()
            assert terminal.lines[0] == "$ apply-edit a.py" or len(terminal.lines) == 10
    assert [line for line in terminal.lines if line] == ["$ apply-edit a.py"]
    assert terminal.cursor_visible
    assert (terminal.screen.cursor.x, terminal.screen.cursor.y) == (0, 1)


def test_the_cursor_is_hidden_while_drawing_and_back_after_an_error() -> None:
    terminal = Emulator(60, 10)

    def fail() -> None:
        with Live(terminal, "a.py") as live:
            live(wrote(("copy", "x\n")))
            live.draw()
            assert not terminal.cursor_visible
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert terminal.cursor_visible
    assert terminal.lines == []


@pytest.mark.parametrize("size", [(100, 30), (40, 8), (80, 24)])
def test_resized_while_running(size: tuple[int, int]) -> None:
    terminal = Emulator(60, 14)
    clock = Clock()
    live = Live(terminal, "a.py", clock=clock)
    events = list(an_edit())
    for event in events[:20]:
        live(event)
        clock.now += 0.1
        live.draw()
    columns, rows = size
    terminal.screen.resize(rows, columns)
    for event in events[20:24]:
        live(event)
        clock.now += 0.1
        live.draw()
    assert sum("a.py" in line for line in terminal.lines) == 1
    assert sum("/pass" in line for line in terminal.lines) == 1
    live.close()
    assert terminal.lines == []


def test_a_terminal_that_wraps_anew_is_reckoned_with() -> None:
    terminal = Emulator(60, 14)
    terminal.reflows = True
    painter = Painter(terminal, Look())
    painter.draw([[("x" * 50, "")], [("y" * 10, "")]])
    terminal.screen.resize(14, 30)
    terminal.sent = b""
    painter.draw([[("z", "")]])
    # 50 cells take two rows of 30: the frame's first cell is two rows up, not one.
    assert b"\r\x1b[2A" in terminal.sent


def test_a_quiet_stretch_still_moves() -> None:
    terminal = Emulator(60, 10)
    clock = Clock()
    live = Live(terminal, "a.py", clock=clock)
    live.draw()
    first = terminal.lines
    assert "starting" in first[-1]
    clock.now += 0.1
    live.draw()
    assert terminal.lines == first
    clock.now += 0.2
    live.draw()
    assert terminal.lines != first


def test_the_clock_runs_on_during_a_slow_pass() -> None:
    terminal = Emulator(60, 10)
    clock = Clock()
    live = Live(terminal, "a.py", clock=clock)
    live(wrote(("copy", "x\n"), elapsed=3.0))
    live.draw()
    assert terminal.lines[-1].endswith(" 3 s")
    clock.now += 5
    live.draw()
    assert terminal.lines[-1].endswith(" 8 s")


def test_nothing_is_drawn_twice_for_one_state() -> None:
    terminal = Emulator(60, 10)
    live = Live(terminal, "a.py", clock=Clock())
    live.draw()
    sent = len(terminal.sent)
    live.draw()
    assert len(terminal.sent) == sent


def test_notes_stay_above_the_display() -> None:
    terminal = Emulator(60, 10)
    live = Live(terminal, "a.py", clock=Clock())
    live.draw()
    live.say("dtype is bfloat16")
    live.draw()
    live.say("seen at the end")
    live.close()
    assert terminal.lines == ["dtype is bfloat16", "seen at the end"]


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        (Stage("download", 120e6, 1117e6, "bytes", "part 3 of 22"), "downloading 120 of 1,117 MB"),
        (Stage("verify", 5e6, 10e6, "bytes"), "checking 5 of 10 MB"),
        (Stage("convert", 3, 339, "tensors"), "converting 3 of 339 tensors"),
        (Stage("load", 3, 339, "tensors"), "loading 3 of 339 tensors"),
        (Stage("calibrate", 3, 9, "passes"), "measuring this machine once: 3 of 9 passes"),
        (Stage("prefill", 128, 700, "tokens"), "reading the file 128 of 700 tokens"),
        (Stage("verify", 5, 10, "tokens"), "decoding plainly, to compare 5 of 10 tokens"),
        (Stage("load", 0, None, "tensors"), "loading  0.0 s"),
    ],
)
def test_stages_before_the_first_token(stage: Stage, said: str) -> None:
    terminal = Emulator(100, 10)
    clock = Clock()
    live = Live(terminal, "a.py", clock=clock)
    live(stage)
    live.draw()
    assert said in terminal.lines[-1]
    live(Note("not shown"))
    assert not live._dirty


def test_a_stage_tells_the_time_that_is_left() -> None:
    terminal = Emulator(100, 10)
    clock = Clock()
    live = Live(terminal, "a.py", clock=clock)
    live(Stage("download", 0, 1000e6, "bytes"))
    clock.now += 10
    live(Stage("download", 250e6, 1000e6, "bytes"))
    live.draw()
    assert "about 30 s left" in terminal.lines[-1]


def test_another_file_begins_anew() -> None:
    terminal = Emulator(60, 10)
    live = Live(terminal, "a.py", "m", clock=Clock())
    live(wrote(("copy", "of a\n")))
    live.begin("b.py")
    live.draw()
    assert terminal.lines[0] == "b.py · m"
    assert "of a" not in "\n".join(terminal.lines)


def test_of_several_files_the_first_unfinished_is_drawn() -> None:
    terminal = Emulator(70, 10)
    clock = Clock()
    live = Live(terminal, "a.py", "m", clock=clock, files=3)
    live(Stage("download", 1, 2, "bytes"))
    first = live.begin("a.py", 0)
    second = live.begin("b.py", 1)
    third = live.begin("c.py", 2)
    for hear, name in ((second, "b"), (first, "a"), (third, "c"), (second, "b")):
        clock.now += 2
        hear(wrote(("copy", f"of {name}\n")))
    live.draw()
    screen = "\n".join(terminal.lines)
    assert terminal.lines[0].startswith("a.py · 0 of 3 files done · m")
    assert ("of a" in screen, "of b" in screen, "of c" in screen) == (True, False, False)
    live.end(1)
    live.draw()
    assert terminal.lines[0].startswith("a.py · 1 of 3 files done · m")
    live.end(0)
    live.draw()
    screen = "\n".join(terminal.lines)
    assert terminal.lines[0].startswith("c.py · 2 of 3 files done · m")
    assert ("of a" in screen, "of c" in screen) == (False, True)
    live.end(2)
    live.draw()
    assert terminal.lines[0].startswith("c.py · 3 of 3 files done · m")


def test_of_shared_passes_the_clock_shows_what_a_person_waits() -> None:
    terminal = Emulator(80, 10)
    clock = Clock()
    live = Live(terminal, "a.py", clock=clock, files=2)
    hear = live.begin("a.py", 0)
    live.begin("b.py", 1)
    hear(Stage("prefill", 0, 10, "tokens"))
    for _ in range(4):
        clock.now += 10
        hear(wrote(("copy", "x\n")))
    live.draw()
    assert terminal.lines[-1].endswith("40 s")


def test_the_thread_draws_by_itself() -> None:
    terminal = Emulator(60, 10)
    with Live(terminal, "a.py") as live:
        live(wrote(("copy", "x\n")))
        deadline = time.monotonic() + 10
        while not terminal.sent and time.monotonic() < deadline:
            time.sleep(0.01)
        assert terminal.sent
    assert terminal.lines == []


def test_a_terminal_that_is_gone_is_no_failure() -> None:
    read, write = os.pipe()
    os.close(read)
    terminal = Terminal(write)
    with Live(terminal, "a.py") as live:
        live(wrote(("copy", "x\n")))
        live.draw()
    assert terminal.gone
    os.close(write)


def test_huge_pieces_cost_no_more_than_the_screen() -> None:
    scene = Scene("a.py")
    scene.update(wrote(("copy", "line\n" * 100_000 + "y" * 100_000)), 0.0)
    assert len(scene.finished) <= 100
    assert sum(len(text) for text, _ in scene.current) <= 400
    scene._append(Piece("copy", "\n"))
    assert scene.current == []


@pytest.mark.parametrize(
    ("term", "drawn"),
    [("xterm-256color", True), ("dumb", False), ("", False), (None, False), ("screen", True)],
)
def test_dumb_terminals(term: str | None, drawn: bool) -> None:
    assert can_draw({} if term is None else {"TERM": term}) is drawn


@pytest.mark.parametrize(
    ("choice", "environ", "terminal", "color"),
    [
        ("auto", {"TERM": "xterm"}, True, True),
        ("auto", {"TERM": "xterm"}, False, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ("auto", {"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "0"}, False, False),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("never", {"TERM": "xterm", "FORCE_COLOR": "1"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
    ],
)
def test_color_or_not(choice: str, environ: dict[str, str], terminal: bool, color: bool) -> None:
    assert wants_color(choice, environ, terminal) is color
