# ruff: noqa: PTH208
"""Kill processes that save a file again and again, at random moments.

Usage: kill_saves.py FOLDER SIGNAL replace|named|hard-link ROUNDS

Every round: the file holds one of the two contents, whole; what stays beside it is nothing, or,
after SIGKILL, gone after the next save.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from apply_edit.text.save import save, snapshot

CONTENTS = b"one\n" * 50_000, b"the other\r\n" * 40_000


def work(file: Path, ready: int) -> None:
    turn = 0
    while True:
        save(file, CONTENTS[turn], snapshot(file))
        if turn == 1:
            os.write(ready, b".")
        turn = 1 - turn


def main() -> None:
    folder, kind, how, rounds = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    if how == "named" and hasattr(os, "O_TMPFILE"):
        del os.O_TMPFILE
    file = folder / "f"
    file.write_bytes(CONTENTS[1])
    names = {"f"}
    if how == "hard-link":
        os.link(file, folder / "g")
        names.add("g")
    draw, left = random.Random(f"{kind} {how}"), 0
    for number in range(rounds):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                work(file, write)
            finally:
                os._exit(0)
        os.close(write)
        assert os.read(read, 1) == b".", "the child never saved"
        time.sleep(draw.random() * 0.006)
        os.kill(pid, getattr(signal, kind))
        os.waitpid(pid, 0)
        os.close(read)
        beside = set(os.listdir(folder)) - names
        left += bool(beside)
        if kind != "SIGKILL":
            assert not beside, (number, beside)
            assert file.read_bytes() in CONTENTS, (number, "neither old nor new")
        now = snapshot(file)
        assert now.data in CONTENTS, (number, "neither old nor new")
        if beside:
            save(file, CONTENTS[now.data == CONTENTS[0]], now)
            assert set(os.listdir(folder)) == names, (number, os.listdir(folder))
        if how == "hard-link":
            assert file.samefile(folder / "g")
    print(f"{rounds} kills, {left} left something for the next save to sweep")


main()
