"""Several edits at once, through replays that have slots: who waits, who fails, who is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from apply_edit.decode.batch import WIDEST
from apply_edit.decode.types import Target
from apply_edit.editor import Edit, Editor, Options, Request
from apply_edit.errors import ApplyEditError, Refusal
from apply_edit.events import Event, OnEvent, Stage, Wrote, ignore
from apply_edit.seats import Seats
from apply_edit.session import Session
from apply_edit.target.replay import ReplayBackend
from tests.slotted import SlottedReplay


def before(number: int, lines: int = 30) -> str:
    return f"name = 'file {number}'\n" + "".join(
        f"value_{number}_{i} = {i}\n" for i in range(lines)
    )


def after(number: int, lines: int = 30) -> str:
    return before(number, lines).replace("_3 = 3\n", "_3 = 'three'\nmore = None\n")


def several(count: int) -> tuple[SlottedReplay, list[tuple[bytes, Request]]]:
    lines = [10 + 17 * n for n in range(count)]
    answers = {f"'file {n}'": after(n, lines[n]) for n in range(count)}
    items = [
        (before(n, lines[n]).encode(), Request(instruction="three", name=f"f{n}.py"))
        for n in range(count)
    ]
    return SlottedReplay(answers), items


def outputs(results: list[Edit | ApplyEditError]) -> list[str]:
    return [r.output.decode() if isinstance(r, Edit) else r.code for r in results]


@pytest.mark.parametrize("batch", [1, 2, 3, 5, 9])
def test_every_edit_is_the_one_made_alone(batch: int) -> None:
    backend, items = several(5)
    results = Editor(backend).edit_all(items, batch=batch)
    assert outputs(results) == [after(n, 10 + 17 * n) for n in range(5)]
    assert backend.most == (min(batch, 5) if batch > 1 else 0)
    assert all(width <= WIDEST for width in backend.widths)
    # Slots are made for those that come beside the first, and for no more.
    assert len(backend.slots) < 5 * (batch > 1) or not backend.slots


def test_the_beginning_of_a_prompt_is_copied_and_not_read_again() -> None:
    backend, items = several(4)
    Editor(backend).edit_all(items, batch=4)
    assert len(backend.copied) == 3
    assert min(backend.copied) > 50


def test_passes_are_shared() -> None:
    backend, items = several(4)
    editor = Editor(backend)
    options = Options(draft="none")
    alone = editor.edit_all(items, options, batch=1)
    together = editor.edit_all(items, options, batch=4)
    assert outputs(alone) == outputs(together)
    longest = max(r.stats.passes for r in alone if isinstance(r, Edit))
    total = sum(r.stats.passes for r in alone if isinstance(r, Edit))
    assert len(backend.widths) < longest + 40 < total
    for one in together:
        assert isinstance(one, Edit)
        assert one.stats.batch == 4
        assert 0 < one.stats.first_run_seconds <= one.stats.total_seconds


def test_one_that_fails_hurts_no_other() -> None:
    backend, items = several(4)
    backend.answers = {**backend.answers, "'file 1'": "name = 'file 1'\n"}  # loses the rest
    items.insert(3, (b"\0\0", Request(instruction="x")))
    items.append((items[0][0], Request()))
    results = Editor(backend).edit_all(items, batch=3)
    codes = [r.code if isinstance(r, ApplyEditError) else "ok" for r in results]
    assert isinstance(results[1], Refusal)
    assert (codes[0], codes[2], codes[4]) == ("ok", "ok", "ok")
    assert codes[3] in ("binary", "not-utf8", "not-text")
    assert codes[5] == "no-edit"


def test_a_time_limit_is_each_ones_own() -> None:
    backend, items = several(3)
    results = Editor(backend).edit_all(items, Options(timeout=1e-9), batch=3)
    assert outputs(results) == ["timeout"] * 3
    assert outputs(Editor(backend).edit_all(items, Options(timeout=60.0), batch=3)) == [
        after(n, 10 + 17 * n) for n in range(3)
    ]


def test_events_tell_whose_they_are() -> None:
    backend, items = several(3)
    heard: dict[int, list[Event]] = {n: [] for n in range(3)}
    results = Editor(backend).edit_all(items, None, lambda n, e: heard[n].append(e), batch=3)
    for number, result in enumerate(results):
        assert isinstance(result, Edit)
        wrote = [e for e in heard[number] if isinstance(e, Wrote)]
        assert len(wrote) == len(result.steps)
        text = "".join(p.text for e in wrote for p in e.pieces)
        assert f"'file {number}'" in text
        assert [e.seconds for e in wrote] == sorted(e.seconds for e in wrote)
        assert any(isinstance(e, Stage) and e.name == "prefill" for e in heard[number])
    # They were under way at the same time, and not one after another.
    assert backend.most == 3


def test_results_come_as_they_are_there_and_the_rest_can_be_left() -> None:
    backend, items = several(4)
    editor = Editor(backend)
    begun: list[int] = []

    def listen(index: int) -> OnEvent:
        begun.append(index)
        return ignore

    each = editor.edit_each(list(reversed(items)), None, listen, batch=4)
    _, result = next(each)
    assert isinstance(result, Edit)
    assert begun[0] == 0
    passes = len(backend.widths)
    each.close()
    assert len(backend.widths) == passes
    # The editor is as good as new.
    assert editor.edit(*items[1]).output.decode() == after(1, 27)


def test_memory_bounds_how_many_there_are() -> None:
    backend, items = several(5)
    backend.bytes = 1000
    backend.free = 0
    results = Editor(backend).edit_all(items, batch=4)
    assert outputs(results) == [after(n, 10 + 17 * n) for n in range(5)]
    assert (backend.most, backend.slots) == (1, [])
    # Room for one beside the first, however many may be under way.
    backend, items = several(5)
    editor = Editor(backend)
    asked = [editor.ask(*item, Options()) for item in items]
    longest = max(
        len(q.prompt.tokens) + editor.session.budget(q.prompt) for a in asked for q in a.questions
    )
    backend.free = 2 * longest
    results = editor.edit_all(items, batch=4)
    assert outputs(results) == [after(n, 10 + 17 * n) for n in range(5)]
    assert backend.most >= 2
    assert all(positions <= longest for positions in backend.slots)


def test_who_leaves_gives_back_its_memory() -> None:
    """As many caches as may be under way, though as many were made as there are edits."""
    import gc
    import weakref

    backend, items = several(7)
    made: list[weakref.ref[object]] = []
    plain_slot = backend.slot
    most = 0

    def slot(positions: int) -> Target:
        nonlocal most
        target = plain_slot(positions)
        made.append(weakref.ref(target))
        gc.collect()
        most = max(most, sum(ref() is not None for ref in made))
        return target

    backend.slot = slot  # type: ignore[method-assign]
    results = Editor(backend).edit_all(items, batch=3)
    assert outputs(results) == [after(n, 10 + 17 * n) for n in range(7)]
    assert len(made) >= 4
    assert most <= 2  # beside the editor's own
    gc.collect()
    assert not any(ref() for ref in made)


def test_seats_are_counted_in_bytes_and_given_back() -> None:
    backend, _ = several(1)
    backend.bytes = 10
    seats = Seats(Session(backend), backend, most=3, room=1000)
    first = seats.take(0, 10**9)
    assert first is not None  # somebody has to be able to sit
    assert seats.take(1, 60) is not None
    assert seats.take(2, 60) is None
    assert seats.take(2, 40) is not None
    assert seats.take(3, 1) is None
    seats.leave(1)
    assert seats.take(3, 61) is None
    assert seats.take(3, 60) is not None
    seats.leave(0)
    assert seats.take(4, 10**9) is first


@pytest.mark.parametrize("draft", ["self", "model:small"])
def test_learned_drafts_go_one_after_another(draft: str) -> None:
    backend, items = several(2)
    results = Editor(backend).edit_all(items, Options(draft=draft), batch=4)
    assert backend.widths == []
    if draft == "model:small":
        assert outputs(results) == ["no-draft-model"] * 2
    else:
        assert outputs(results) == [after(n, 10 + 17 * n) for n in range(2)]


def test_auto_shares_passes_rather_than_ask_a_drafter() -> None:
    backend, items = several(2)
    results = Editor(backend).edit_all(items, Options(draft="auto"), batch=4)
    assert backend.widths  # shared passes
    assert outputs(results) == [after(n, 10 + 17 * n) for n in range(2)]
    assert [r.stats.draft for r in results if isinstance(r, Edit)] == ["copy"] * 2


def test_a_backend_without_slots_goes_one_after_another(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}").write_text(after(number))
    items = [(before(n).encode(), Request(instruction="three")) for n in range(3)]
    results = Editor(ReplayBackend(tmp_path)).edit_all(items, batch=3)
    assert outputs(results) == [after(n) for n in range(3)]
    assert all(isinstance(r, Edit) and r.stats.batch == 1 for r in results)


def test_parts_of_a_long_file_follow_one_another_in_a_batch() -> None:
    """A file beyond the window is asked for in several questions, beside the other edits."""
    lines = [f"line_{i} = {i}\n" for i in range(400)]
    long = "".join(lines)
    rest = "# ... existing code ...\n"
    sketch = rest + "".join(
        f"line_{n - 1} = {n - 1}\nline_{n} = 'a'\nline_{n + 1} = {n + 1}\n{rest}" for n in (20, 350)
    )
    wanted = long.replace("= 20\n", "= 'a'\n").replace("= 350\n", "= 'a'\n")
    request = Request(update=sketch, name="long.py")
    backend, items = several(2)
    alone = SlottedReplay({}, window=2600)
    asked = Editor(alone).ask(long.encode(), request, Options())
    assert len(asked.questions) == 2
    answers = {}
    for question in asked.questions:
        assert question.predicted is not None
        answers[f"<code>\n{question.seen}"] = question.predicted + "\n"
    backend = SlottedReplay({**backend.answers, **answers}, window=2600)
    results = Editor(backend).edit_all([(long.encode(), request), *items], batch=3)
    assert outputs(results) == [wanted, after(0, 10), after(1, 27)]


def test_a_batch_leaves_the_next_edit_its_own_schedule() -> None:
    backend, items = several(3)
    editor = Editor(backend)
    editor.edit_all(items, batch=3)
    assert editor.session.requests == 1
    alone = editor.edit(*items[0])
    fresh = Editor(several(3)[0]).edit(*items[0])
    assert replace(alone.stats, total_seconds=0).passes == fresh.stats.passes
