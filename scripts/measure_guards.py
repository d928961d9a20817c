"""Measure the guards: how many damaged answers are refused, and how many good ones.

From each case of a case file (JSON lines with `original`, `instruction`, `update`, `expected`,
and perhaps `path`) makes good answers (the expected one and small variations of it) and damaged
ones by kind, all with a fixed seed, and asks `apply_edit.text.guard.check` about each, once with
the instruction and once with the sketch. Also says how often the predicted merge of the sketch is
the expected text.

    python scripts/measure_guards.py CASES.jsonl... [--json] [--show N] [--seed N]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from apply_edit.text.guard import check
from apply_edit.text.merge import predict
from apply_edit.text.outline import outline
from apply_edit.text.syntax import fault, language_of

FAR = 5  # lines from any change that count as far from the edit


@dataclass
class Case:
    """One case, with what its expected answer keeps: line of the answer -> line of the original."""

    identity: str
    original: str
    instruction: str
    update: str
    expected: str
    name: str

    def __post_init__(self) -> None:
        self.old = self.original.split("\n")
        self.lines = self.expected.split("\n")
        matcher = SequenceMatcher(None, self.old, self.lines, autojunk=False)
        self.kept: dict[int, int] = {}
        changed: list[int] = []
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag == "equal":
                self.kept.update(zip(range(j1, j2), range(i1, i2), strict=True))
            else:
                changed += [j1, max(j1, j2 - 1)]
        self.changed = sorted(set(changed))
        self.comment = "#" if self.name.endswith((".py", ".sh", ".rb", ".toml", ".yaml")) else "//"

    def far(self, start: int, end: int) -> bool:
        """Whether the answer's lines start..end are the original's and far from any change."""
        return all(i in self.kept for i in range(start, end)) and all(
            c < start - FAR or c >= end + FAR for c in self.changed
        )

    def without(self, start: int, end: int) -> str:
        return "\n".join(self.lines[:start] + self.lines[end:])

    def told(self, text: str) -> bool:
        """Whether the instruction speaks of a name that the text defines or begins with."""
        words = {w.lower() for w in re.findall(r"\w{3,}", self.instruction)}
        return any(w.lower() in words for w in re.findall(r"\w{3,}", text))


def cases(path: Path) -> Iterator[Case]:
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            row = json.loads(line)
            yield Case(
                str(row.get("id", "")),
                row["original"],
                row["instruction"],
                row["update"],
                row["expected"],
                row.get("path", ""),
            )


# --- good answers -----------------------------------------------------------------------------


def good(case: Case, dice: random.Random) -> Iterator[tuple[str, str]]:
    """The expected answer, and answers that differ from it as real ones do."""
    yield "expected", case.expected
    yield (
        "final newline",
        (case.expected.rstrip("\n") if case.expected.endswith("\n") else case.expected + "\n"),
    )
    if case.changed:
        at = min(dice.choice(case.changed), len(case.lines) - 1)
        depth = case.lines[at][: len(case.lines[at]) - len(case.lines[at].lstrip())]
        told = [*case.lines[:at], f"{depth}{case.comment} see the note above", *case.lines[at:]]
        if fault("\n".join(told), language_of(case.name)) is None:
            yield "a comment more", "\n".join(told)
    lines = list(case.lines)
    for index in range(len(lines) - 1, 0, -1):
        if not lines[index].strip() and not lines[index - 1].strip() and dice.random() < 0.5:
            del lines[index]
    yield "blank lines", "\n".join(line.rstrip() for line in lines)
    renamed = rename(case, dice)
    if renamed:
        yield "a local renamed", renamed


def rename(case: Case, dice: random.Random) -> str | None:
    """A name of the changed lines renamed throughout (no good answer to a sketch)."""
    near = " ".join(case.lines[c] for c in case.changed if c < len(case.lines))
    names = sorted(set(re.findall(r"\b[a-z]\w{3,}\b", near)))
    names = [n for n in names if 2 <= len(re.findall(rf"\b{n}\b", case.expected)) <= 8]
    if not names:
        return None
    name = dice.choice(names)
    text = re.sub(rf"\b{name}\b", name + "Value", case.expected)
    return text if fault(text, language_of(case.name)) is None else None


# --- damaged answers ----------------------------------------------------------------------------

Damage = Callable[[Case, random.Random], "str | None"]


def cut(case: Case, dice: random.Random) -> str | None:
    """Ends anywhere in what the edit leaves alone, with lines of the original still to come."""
    text = case.expected.rstrip()
    lines = text.split("\n")
    first = min(case.changed, default=len(lines))
    last = max(case.changed, default=-1)
    for _ in range(40):
        at = dice.randrange(1, max(2, len(text)))
        line = text.count("\n", 0, at)
        before = line < first and any(re.search(r"\w", x) for x in lines[line + 1 : first])
        after = line > last + 1 and any(re.search(r"\w", x) for x in lines[line + 1 :])
        if before or after:
            return text[:at]
    return None


def tail_lost(case: Case, dice: random.Random) -> str | None:
    last = len(case.expected.rstrip().split("\n"))
    same = last
    while same > 0 and same - 1 in case.kept:
        same -= 1
    if last - same < 3:
        return None
    start = dice.randrange(same + 1, last)
    if not any(re.search(r"\w", line) for line in case.lines[start:last]):
        return None
    return case.without(start, last)


def head_lost(case: Case, dice: random.Random) -> str | None:
    end = 0
    while end in case.kept and end < len(case.lines) // 2:
        end += 1
    end -= FAR
    if end < 3:
        return None
    return case.without(0, dice.randrange(3, end + 1))


def elide(case: Case, dice: random.Random) -> str | None:
    """Three lines or more of the original give way to a marker."""
    spots = [i for i in range(len(case.lines) - 3) if all(j in case.kept for j in range(i, i + 3))]
    spots = [i for i in spots if any(re.search(r"\w", x) for x in case.lines[i : i + 3])]
    if not spots:
        return None
    at = dice.choice(spots)
    end = at + 3
    while end < len(case.lines) - 1 and end in case.kept and dice.random() < 0.8:
        end += 1
    depth = case.lines[at][: len(case.lines[at]) - len(case.lines[at].lstrip())]
    mark = dice.choice(
        ["... existing code ...", "... rest of the code remains unchanged ...", "... (unchanged)",
         "rest of the code unchanged", "…", "... other methods ..."]
    )  # fmt: skip
    return "\n".join([*case.lines[:at], f"{depth}{case.comment} {mark}", *case.lines[end:]])


def fence(case: Case, dice: random.Random) -> str:
    word = dice.choice(["", "python", "java", "js"])
    body = case.expected.rstrip("\n")
    return dice.choice([f"```{word}\n{body}\n```\n", f"```{word}\n{body}\n", f"{body}\n```\n"])


def prose_before(case: Case, dice: random.Random) -> str:
    said = [
        "Here is the updated code:",
        "Sure! Here's the file with the change applied:",
        "The following code implements the requested change.",
        "I've updated the function as requested.",
        "Certainly, below is the complete file.",
    ]
    return dice.choice(said) + dice.choice(["\n", "\n\n"]) + case.expected


def prose_after(case: Case, dice: random.Random) -> str:
    said = [
        "This change makes the code faster.",
        "Note that the rest of the file is unchanged.",
        "I have removed the unused variable and added a check.",
        "Let me know if you need anything else!",
        "The code above handles the empty case as well.",
        "Explanation: the loop now stops early.",
    ]
    return case.expected.rstrip("\n") + dice.choice(["\n", "\n\n"]) + dice.choice(said) + "\n"


def tags(case: Case, dice: random.Random) -> str:
    tag = dice.choice(["updated-code", "code", "answer", "file"])
    body = case.expected.rstrip("\n")
    return dice.choice(
        [f"<{tag}>\n{body}\n</{tag}>\n", f"{body}\n</{tag}>\n", f"{body}\n<|im_end|>\n"]
    )


def definition_dropped(case: Case, dice: random.Random) -> str | None:
    spots = [
        d
        for d in outline(case.lines)
        if d.end - d.start > 1 and case.far(d.start, d.end) and not case.told(d.name)
        and d.name not in case.update
    ]  # fmt: skip
    if not spots:
        return None
    found = dice.choice(spots)
    return case.without(found.lead if case.far(found.lead, found.end) else found.start, found.end)


def comments_dropped(case: Case, dice: random.Random) -> str | None:
    runs = []
    start = None
    for i, line in enumerate([*case.lines, "x"]):
        if re.match(r"\s*(//|/\*|\*|#(?!include|define|if|el|end|pragma)|<!--)", line):
            start = i if start is None else start
        elif start is not None:
            if case.far(start, i) and any(re.search(r"\w", x) for x in case.lines[start:i]):
                runs.append((start, i))
            start = None
    runs = [r for r in runs if not re.search(r"(?i)comment|doc|remove|unused", case.instruction)]
    return case.without(*dice.choice(runs)) if runs else None


def part_lost(case: Case, dice: random.Random) -> str | None:
    """A large stretch far from the edit is gone."""
    size = max(10, len(case.lines) // 5)
    spots = [i for i in range(FAR, len(case.lines) - size - FAR) if case.far(i, i + size)]
    if not spots:
        return None
    at = dice.choice(spots)
    return case.without(at, at + size)


def twice(case: Case, dice: random.Random) -> str:
    body = case.expected.rstrip("\n")
    names = [{d.name for d in outline(x)} for x in (case.old, case.lines)]
    same = names[0] <= names[1] and names[0]  # else it may be a new definition beside the old one
    other = dice.choice([case.expected, case.original]) if same else case.expected
    return body + dice.choice(["\n", "\n\n"]) + other


def block_twice(case: Case, dice: random.Random) -> str | None:
    size = dice.randrange(4, 9)
    spots = [
        i
        for i in range(len(case.lines) - size)
        if all(j in case.kept for j in range(i, i + size))
        and sum(1 for x in case.lines[i : i + size] if re.search(r"[^\W\d]", x)) >= 3
    ]
    if not spots:
        return None
    at = dice.choice(spots)
    return "\n".join(case.lines[: at + size] + case.lines[at:])


def definition_twice(case: Case, dice: random.Random) -> str | None:
    spots = [d for d in outline(case.lines) if d.end - d.start > 1 and d.parent is None] or [
        d for d in outline(case.lines) if d.end - d.start > 1
    ]
    if not spots:
        return None
    found = dice.choice(spots)
    block = case.lines[found.start : found.end]
    return "\n".join([*case.lines[: found.end], "", *block, *case.lines[found.end :]])


def loop(case: Case, dice: random.Random) -> str | None:
    spots = [i for i, x in enumerate(case.lines) if re.search(r"[^\W\d]", x)]
    if not spots:
        return None
    at = dice.choice(spots)
    size = dice.choice([1, 1, 2, 3, 5])
    block = case.lines[at : at + size]
    return "\n".join(case.lines[:at] + block * (200 // size))


def line_loop(case: Case, dice: random.Random) -> str | None:
    at = dice.randrange(len(case.lines))
    word = dice.choice(["very ", "foo(bar, ", "0, ", "x"])
    return "\n".join([*case.lines[:at], "    " + word * (2000 // len(word))])


def sketch_line_missing(case: Case, dice: random.Random) -> str | None:
    """A line that the sketch brings in does not arrive (sketch mode only)."""
    wanted = {x.strip() for x in case.update.split("\n")}
    count = Counter(x.strip() for x in case.lines)
    spots = [
        i
        for i, x in enumerate(case.lines)
        if i not in case.kept and x.strip() in wanted and count[x.strip()] == 1
        and re.search(r"\w", x)
    ]  # fmt: skip
    return (
        case.without(spots[at], spots[at] + 1) if (at := _pick(spots, dice)) is not None else None
    )


def sketch_line_misplaced(case: Case, dice: random.Random) -> str | None:
    """A new line that the sketch has directly behind a line of the file slips further down."""
    rows = [x.strip() for x in case.update.split("\n") if x.strip()]
    beside = set(pairwise(rows))
    old, count = (Counter(x.strip() for x in lines) for lines in (case.old, case.lines))
    spots = []
    for i in range(1, len(case.lines) - 1):
        above, line = case.lines[i - 1].strip(), case.lines[i].strip()
        if (above, line) not in beside or old[line] or count[line] != 1:
            continue
        if re.match(r"import|from|using|use |#include", line):
            continue  # imports may be sorted
        end = i + 1
        passed = 0
        while end in case.kept and passed < 2:
            text = case.lines[end].strip()
            passed += re.match(r"[^\W\d]\w*\W", text) is not None and text not in rows
            end += 1
        if i - 1 in case.kept and old[above] == count[above] == 1 and passed == 2:
            spots.append((i, end))
    if not spots:
        return None
    at, end = dice.choice(spots)
    lines = case.lines
    return "\n".join([*lines[:at], *lines[at + 1 : end], lines[at], *lines[end:]])


def _pick(spots: list[int], dice: random.Random) -> int | None:
    return dice.randrange(len(spots)) if spots else None


def bracket_lost(case: Case, dice: random.Random) -> str | None:
    """One closing bracket of an original line is gone (only where the original parses)."""
    kind = language_of(case.name)
    if fault(case.original, kind) is not None or fault(case.expected, kind) is not None:
        return None
    quoted = [0]
    for x in case.lines:
        quoted.append(quoted[-1] + x.count('"""') + x.count("'''"))
    spots = [
        (i, k)
        for i, x in enumerate(case.lines)
        if i in case.kept and quoted[i] % 2 == 0 and not re.search(r"[\"'#`]|//|\*", x)
        for k, char in enumerate(x)
        if char in ")]}"
    ]
    if not spots or kind == "":
        return None
    i, k = dice.choice(spots)
    line = case.lines[i]
    return "\n".join([*case.lines[:i], line[:k] + line[k + 1 :], *case.lines[i + 1 :]])


def empty(case: Case, dice: random.Random) -> str:
    return dice.choice(["", "\n", "  \n"])


DAMAGES: dict[str, Damage] = {
    "cut off": cut,
    "tail lost": tail_lost,
    "head lost": head_lost,
    "elided": elide,
    "fence": fence,
    "prose before": prose_before,
    "prose after": prose_after,
    "tags": tags,
    "definition dropped": definition_dropped,
    "comments dropped": comments_dropped,
    "part lost": part_lost,
    "file twice": twice,
    "block twice": block_twice,
    "definition twice": definition_twice,
    "loop": loop,
    "loop in a line": line_loop,
    "sketch line missing": sketch_line_missing,
    "sketch line misplaced": sketch_line_misplaced,
    "bracket lost": bracket_lost,
    "empty": empty,
}


ONE_MODE = {
    ("sketch line missing", "instruction"),
    ("sketch line misplaced", "instruction"),
    ("good: a local renamed", "update"),
}

# --- the measurement ----------------------------------------------------------------------------


@dataclass
class Tally:
    refused: int = 0
    total: int = 0
    codes: Counter[str] | None = None

    def add(self, codes: list[str]) -> None:
        self.total += 1
        self.refused += bool(codes)
        self.codes = self.codes or Counter()
        self.codes.update(codes[:1])


def measure(path: Path, seed: int, rounds: int, show: int, only: str) -> dict[str, object]:
    tallies: dict[str, dict[str, Tally]] = {"instruction": {}, "update": {}}
    exact = count = 0
    ratio = 0.0
    shown = 0
    for case in cases(path):
        dice = random.Random(f"{seed}:{case.identity}")
        count += 1
        merged = predict(case.original, case.update).text
        exact += merged.rstrip("\n") == case.expected.rstrip("\n")
        ratio += SequenceMatcher(None, merged.split("\n"), case.lines, autojunk=False).ratio()
        answers = [(f"good: {kind}", text) for kind, text in good(case, dice)]
        for kind, damage in DAMAGES.items():
            made = {text for _ in range(rounds) if (text := damage(case, dice)) is not None}
            answers += [(kind, text) for text in sorted(made)]
        for mode, rows in tallies.items():
            for kind, text in answers:
                if (kind, mode) in ONE_MODE:
                    continue
                problems = check(
                    case.original,
                    text,
                    finished=True,
                    instruction=case.instruction if mode == "instruction" else None,
                    update=case.update if mode == "update" else None,
                    name=case.name,
                )
                rows.setdefault(kind, Tally()).add([p.code for p in problems])
                if bool(problems) == kind.startswith("good") and shown < show and only in kind:
                    shown += 1
                    print(f"--- {case.identity} ({mode}) {kind}: {problems}", file=sys.stderr)
                    told = unified_diff(case.lines, text.split("\n"), lineterm="", n=2)
                    print("\n".join(list(told)[2:40]), file=sys.stderr)
    return {
        "file": path.name,
        "cases": count,
        "merge exact": exact,
        "merge similarity": round(ratio / max(1, count), 4),
        "modes": {
            mode: {
                kind: {"refused": t.refused, "total": t.total, "codes": dict(t.codes or {})}
                for kind, t in rows.items()
            }
            for mode, rows in tallies.items()
        },
    }


def table(results: list[dict[str, object]]) -> None:
    for mode in ("instruction", "update"):
        sums: dict[str, Counter[str]] = {}
        print(f"\n{mode:<24} refused / made   by code")
        for result in results:
            for kind, row in result["modes"][mode].items():  # type: ignore[index]
                entry = sums.setdefault(kind, Counter())
                entry["refused"] += row["refused"]
                entry["total"] += row["total"]
                for code, n in row["codes"].items():
                    entry["code:" + code] += n
        for kind, entry in sums.items():
            codes = ", ".join(
                f"{k[5:]} {n}" for k, n in entry.most_common() if k.startswith("code:")
            )
            print(f"{kind:<24} {entry['refused']:>5} / {entry['total']:<5}    {codes}")
        fine = [e for k, e in sums.items() if k.startswith("good")]
        bad = [e for k, e in sums.items() if not k.startswith("good")]
        for label, group in (("good ones refused", fine), ("damaged ones refused", bad)):
            refused, total = (sum(e[key] for e in group) for key in ("refused", "total"))
            print(f"{label:<24} {refused:>5} / {total:<5}    {100 * refused / max(1, total):.2f} %")
    print()
    for result in results:
        print(
            f"{result['file']}: merge as expected {result['merge exact']} of {result['cases']}, "
            f"similarity {result['merge similarity']}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("cases", nargs="+", type=Path, metavar="CASES.jsonl")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="show N misses on stderr")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="show only kinds that hold this")
    parser.add_argument("--rounds", type=int, default=2, help="damages per kind and case")
    options = parser.parse_args()
    results = [
        measure(p, options.seed, options.rounds, options.show, options.only) for p in options.cases
    ]
    if options.json:
        json.dump(results, sys.stdout, indent=1)
        print()
    else:
        table(results)


if __name__ == "__main__":
    main()
