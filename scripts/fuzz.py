"""Edit random files with random sketches and damaged answers; look for broken promises.

Each case is made from the seed and its number alone, so a failure is run again with --case. What
is promised: no exception but ours, no byte changed that the answer leaves alone, an unchanged
answer gives the same bytes, a diff that makes the output, and, for the command, the exit code,
the streams and the files that its contract says.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz_cases import Case, make
from fuzz_checks import Broken, check_case
from fuzz_command import check_command

COMMAND_EVERY = 64
"""One case in so many goes through the command as a process of its own."""


def run(seed: int, number: int, folder: Path) -> str | None:
    """One case; what it broke, or None."""
    case = make(Random(f"{seed}:{number}"))
    why = _why(case, folder, number)
    if why is None:
        return None
    if number % COMMAND_EVERY:
        case = _smaller(case, folder, number, why)
    return f"{why}\n{case.shown()}"


def _why(case: Case, folder: Path, number: int) -> str | None:
    try:
        if number % COMMAND_EVERY == 0:
            check_command(case, folder, Random(number))
        else:
            check_case(case, folder)
    except Broken as broken:
        return str(broken)
    except Exception:
        return traceback.format_exc()
    return None


def _smaller(case: Case, folder: Path, number: int, why: str) -> Case:
    """The case with as few lines as still break the same promise."""
    kind = why.strip().rsplit("\n", 1)[-1][:24]
    deadline = time.monotonic() + 20
    size = max(1, len(case.file.lines) // 2)
    while size and time.monotonic() < deadline:
        for smaller in _without(case, size):
            found = _why(smaller, folder, number)
            if found is not None and found.strip().rsplit("\n", 1)[-1][:24] == kind:
                case = smaller
                break
        else:
            size //= 2
    return case


def _without(case: Case, size: int) -> Iterator[Case]:
    """Cases of which `size` lines are taken out, of the file, of its answer, or of both."""
    file = case.file
    if case.lines is not None or case.window is not None:
        return
    for at in range(0, max(len(file.lines), len(case.answer)), size):
        fewer = replace(
            file,
            lines=file.lines[:at] + file.lines[at + size :],
            ends=file.ends[:at] + file.ends[at + size :],
        )
        answer = case.answer[:at] + case.answer[at + size :]
        if len(fewer.lines) < len(file.lines):
            yield replace(case, file=fewer, answer=answer)
            if not case.unchanged:
                yield replace(case, file=fewer)
        if len(answer) < len(case.answer) and not case.unchanged:
            yield replace(case, answer=answer)


def _work(task: tuple[int, range]) -> tuple[int, list[tuple[int, str]]]:
    seed, numbers = task
    failures = []
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=where) as folder:
        for number in numbers:
            why = run(seed, number, Path(folder))
            if why is not None:
                failures.append((number, why))
    return len(numbers), failures


def _tasks(seed: int, cases: int, deadline: float | None) -> Iterator[tuple[int, range]]:
    number = 0
    while (number < cases) if deadline is None else (time.monotonic() < deadline):
        end = number + 100 if deadline is not None else min(cases, number + 100)
        yield seed, range(number, end)
        number = end


def _results(
    seed: int, cases: int, deadline: float | None, jobs: int
) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """What came of each task, as they end."""
    # Fresh interpreters: what they hold is what they imported, wherever this runs.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        pending = set()
        for task in _tasks(seed, cases, deadline):
            pending.add(pool.submit(_work, task))
            if len(pending) >= 2 * jobs:
                ended, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in ended)
        yield from (future.result() for future in pending)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000, help="how many [10000]")
    parser.add_argument("--seed", type=int, default=1, help="which ones [1]")
    parser.add_argument("--minutes", type=float, help="go on for so long instead")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes [all cores]")
    parser.add_argument("--case", type=int, help="run this one alone and show it")
    options = parser.parse_args()
    if options.case is not None:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            why = run(options.seed, options.case, Path(folder))
        print(why or make(Random(f"{options.seed}:{options.case}")).shown())
        return 1 if why else 0
    started = time.monotonic()
    deadline = None if options.minutes is None else started + 60 * options.minutes
    done = failed = 0
    for count, failures in _results(options.seed, options.cases, deadline, options.jobs):
        for number, why in failures:
            failed += 1
            again = f"python scripts/fuzz.py --seed {options.seed} --case {number}"
            print(f"case {number} broke a promise ({again}):\n{why}\n", flush=True)
        done += count
        if done % 1000 == 0:
            print(f"{done:,} cases, {failed} failed", file=sys.stderr, flush=True)
    seconds = time.monotonic() - started
    print(f"{done:,} cases in {seconds:.0f} s, {failed} failed, seed {options.seed}")
    return 1 if failed or not done else 0


if __name__ == "__main__":
    sys.exit(main())
