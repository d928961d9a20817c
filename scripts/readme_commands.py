"""Print the README's two set-up commands, one a line: what CI runs, word for word.

python scripts/readme_commands.py
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def shell_blocks(text: str) -> list[list[str]]:
    """The lines of each block marked as shell."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [[line for line in block.splitlines() if line] for block in blocks]


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    first, second, *_ = shell_blocks(README.read_text(encoding="utf-8"))
    if len(first) != 1 or len(second) != 1:
        raise SystemExit("README.md must set up in exactly two commands of one line each")
    print(first[0])
    print(second[0])


if __name__ == "__main__":
    main()
