"""The report's page in a real browser: sizes, schemes, keyboard, and that it asks for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from apply_edit.events import Piece
from apply_edit.history import Past
from apply_edit.show.report import write
from apply_edit.show.stats_table import DEFAULT_BY, page
from tests.show.browser import Browser, found
from tests.show.reports import NOW, edited, source
from tests.test_history import record

pytestmark = [
    pytest.mark.skipif(found() is None, reason="there is no Chromium; set CHROMIUM to its path"),
]

PHONE, DESK = (360, 740), (1280, 900)
VIEWS = [(PHONE, False), (PHONE, True), (DESK, False), (DESK, True)]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with long lines, several sources and text that would act if it could."""
    folder = tmp_path_factory.mktemp("report")
    one = edited(folder, source(40), source(40, range(10, 12)), costs=((1, 5.0), (64, 20.0)))
    bad = "<script>document.title='taken'</script><img src=http://127.0.0.1:9/x onerror=alert(1)>"
    pieces = (Piece("update", f"{bad}\n{'wide_' * 80}\n"), *one.passes[0].pieces)
    one = replace(one, passes=(replace(one.passes[0], pieces=pieces), *one.passes[1:]))
    write(str(folder / "out.html"), [one, one], NOW)
    write(str(folder / "one.html"), [one], NOW)
    past = Past((record(), record(kind="sketch", size="1001-2000", language="typescript")))
    (folder / "past.html").write_text(page(past, DEFAULT_BY, NOW), encoding="utf-8")
    return folder / "one.html"


@pytest.mark.parametrize(("size", "dark"), VIEWS)
def test_it_fits_and_asks_for_nothing(
    browser: Browser, path: Path, size: tuple[int, int], dark: bool
) -> None:
    browser.open(path, *size, dark=dark)
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]
    assert browser.ask("document.title") == "apply-edit: f.py"
    assert browser.ask("document.documentElement.scrollWidth") == size[0]
    assert browser.ask("document.compatMode") == "CSS1Compat"
    ground = browser.ask("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")
    assert browser.picture().startswith(b"\x89PNG")


def test_several_files_fit_a_phone_too(browser: Browser, path: Path) -> None:
    browser.open(path.with_name("out.html"), *PHONE)
    assert browser.ask("document.documentElement.scrollWidth") == PHONE[0]
    assert browser.ask("document.querySelectorAll('section').length") == 2


@pytest.mark.parametrize("name", ["out.html", "past.html"])
def test_tables_scroll_and_do_not_crumble(browser: Browser, path: Path, name: str) -> None:
    browser.open(path.with_name(name), *PHONE)
    browser.ask("document.querySelectorAll('details').forEach(e => e.open = true)")
    cells = "[...document.querySelectorAll('th, td:not(.x)')]"
    assert browser.ask(f"{cells}.length") > 20
    # A word that is broken inside gives a cell many lines.
    assert browser.ask(f"Math.max(...{cells}.map(e => e.getClientRects()[0].height))") < 110
    assert browser.ask("document.documentElement.scrollWidth") == PHONE[0]


def test_charts_are_as_wide_as_the_page(browser: Browser, path: Path) -> None:
    browser.open(path, *DESK)
    widths = browser.ask(
        "[...document.querySelectorAll('svg.g')].map(e => e.getBoundingClientRect().width)"
    )
    room = browser.ask("document.querySelector('main').getBoundingClientRect().width")
    assert len(widths) >= 5
    assert all(width == pytest.approx(room, abs=1) for width in widths)


def test_rejected_drafts_are_reached_with_the_keyboard(browser: Browser, path: Path) -> None:
    browser.open(path, *PHONE)
    here = "document.activeElement"
    marks = browser.ask("document.querySelectorAll('li b[tabindex]').length")
    assert marks > 0
    for _ in range(50):
        browser.press("Tab")
        if browser.ask(f"{here}.matches('li b')"):
            break
    label = browser.ask(f"{here}.getAttribute('aria-label')")
    assert label.startswith("pass ")
    assert "rejected" in label
    shown = f"getComputedStyle({here}, '::after')"
    assert browser.ask(f"{shown}.content").strip('"')[:5] == label[:5]
    assert browser.ask(f"{shown}.position") == "absolute"
    assert browser.ask("document.documentElement.scrollWidth") == PHONE[0]


def test_it_prints_light_whatever_the_scheme(browser: Browser, path: Path) -> None:
    browser.open(path, 800, 1100, dark=True, media="print")
    assert browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.ask("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    pages = browser.call("Page.printToPDF", preferCSSPageSize=False)["data"]
    assert pages


def test_the_listing_can_be_copied(browser: Browser, path: Path) -> None:
    browser.open(path, *DESK)
    text = browser.ask(
        "[...document.querySelectorAll('.f li')].map(e => e.textContent).join('\\n')"
    )
    for line in source(40, range(10, 12)).splitlines():
        assert line in text
