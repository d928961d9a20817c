"""The frame of our pages: one file, no script, no network, and a policy that says so."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from apply_edit.show.escape import plain


@cache
def style() -> str:
    """The style sheet all pages carry."""
    return files("apply_edit.show").joinpath("page.css").read_text(encoding="utf-8")


def document(title: str, body: str, footer: str) -> str:
    """A whole page. `title` is plain text, `body` and `footer` are HTML."""
    css = "\n" + style()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    # The hash lets in this style sheet and nothing else: what a file smuggled in could do nothing.
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
        f'<meta http-equiv=Content-Security-Policy content="{policy}">\n'
        '<meta name=viewport content="width=device-width,initial-scale=1">\n'
        "<meta name=referrer content=no-referrer>\n<meta name=generator content=apply-edit>\n"
        f"<title>{plain(title)}</title>\n<style>{css}</style>\n</head>\n<body>\n"
        f"<main>\n{body}\n</main>\n<footer class=say>{footer}</footer>\n</body>\n</html>\n"
    )


def cards(rows: Sequence[tuple[str, str, str]]) -> str:
    """Figures that matter most: (what, how much, a remark). Plain text."""
    parts = []
    for what, value, remark in rows:
        small = f" <small>{plain(remark)}</small>" if remark else ""
        parts.append(f"<div><dt>{plain(what)}<dd>{plain(value)}{small}</div>")
    return f"<dl class=cards>{''.join(parts)}</dl>"


def names(rows: Sequence[tuple[str, str]]) -> str:
    """Names and values. Plain text."""
    parts = [f"<dt>{plain(name)}<dd>{plain(value)}" for name, value in rows if value]
    return f"<dl class=set>{''.join(parts)}</dl>"


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], what: str, texts: bool = False
) -> str:
    """A table of plain text; with `texts` the last column holds text, not figures."""
    last = len(head) - 1

    def cells(tag: str, row: Sequence[str], more: str = "") -> str:
        return "".join(
            f"<{tag}{more}{' class=x' if texts and i == last else ''}>{plain(cell)}"
            for i, cell in enumerate(row)
        )

    body = "".join(f"\n<tr>{cells('td', row)}" for row in rows)
    return (
        f'<div class=wide tabindex=0 role=region aria-label="{plain(what)}"><table><thead>'
        f"<tr>{cells('th', head, ' scope=col')}</thead><tbody>{body}</tbody></table></div>"
    )


def details(summary: str, body: str) -> str:
    """Something to unfold."""
    return f"<details><summary>{plain(summary)}</summary>\n{body}\n</details>"


def key(parts: Sequence[tuple[str, str]]) -> str:
    """A legend of a chart: (class, words)."""
    items = [
        "<li><svg class=sw width=11 height=11 aria-hidden=true>"
        f"<rect class={kind} width=11 height=11 /></svg>{plain(words)}"
        for kind, words in parts
    ]
    return f"<ul class=key>{''.join(items)}</ul>"


def heading(level: int, words: str) -> str:
    """A heading; `words` is HTML."""
    return f"<h{level}>{words}</h{level}>"


def ratio(value: float | None) -> str:
    """Total over floor, or that it is not known."""
    return "unknown" if value is None else f"{value:.2f}"


def precise(seconds: float) -> str:
    """Seconds as a figure, where a duration in words would be too coarse."""
    return f"{seconds:.3f} s" if seconds < 10 else f"{seconds:.1f} s"


def figure(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
