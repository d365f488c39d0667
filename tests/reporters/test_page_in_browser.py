from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from tests.reporters.pages import HOSTILE, column, contrast, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


def test_a_page_opens_without_a_complaint_and_asks_for_nothing_else(browser: Browser, path: Path) -> None:
    with opened(browser, path) as (page, seen):
        page.mouse.wheel(0, 5000)
        page.wait_for_load_state("networkidle")

        assert seen.complaints == []
        assert [url for url in seen.requests if not url.startswith("data:")] == [path.as_uri()]


def test_a_page_forbids_what_it_does_not_need(browser: Browser, path: Path) -> None:
    with opened(browser, path) as (page, seen):
        page.evaluate("fetch('https://example.invalid/').catch(() => {})")
        page.evaluate("document.body.append(Object.assign(new Image(), {src: 'https://example.invalid/x.png'}))")
        page.wait_for_timeout(100)

        assert len([line for line in seen.complaints if "Content Security Policy" in line]) >= 2


def test_light_and_dark_differ(browser: Browser, path: Path) -> None:
    colours = {}
    for scheme in SCHEMES:
        with opened(browser, path, color_scheme=scheme) as (page, _):
            colours[scheme] = page.locator("body").evaluate(
                "(body) => [getComputedStyle(body).color, getComputedStyle(body).backgroundColor]"
            )

    assert colours["light"][0] != colours["dark"][0]
    assert colours["light"][1] != colours["dark"][1]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_and_outcomes_are_readable(browser: Browser, path: Path, scheme: Scheme) -> None:
    with opened(browser, path, color_scheme=scheme) as (page, _):
        assert contrast(page, "body, h1, h2, p, li, td.number") >= 4.5
        assert contrast(page, "body, h1, li:not(.quiet), #results td.number") >= 7
        for selector in ("td.faster", "td.slower", "td.undecided", "td.unsupported", ".quiet", "a"):
            assert contrast(page, selector) >= 4.5, selector


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_written_in_pictures_can_be_told_from_the_page(browser: Browser, path: Path, scheme: Scheme) -> None:
    with opened(browser, path, color_scheme=scheme) as (page, _):
        assert page.locator("figure svg text").count() > 10
        assert contrast(page, "figure svg text", "fill") >= 2.1


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_nothing_is_wider_than_the_window_but_what_scrolls_in_itself(
    browser: Browser, path: Path, width: int
) -> None:
    with opened(browser, path, width=width) as (page, _):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        too_wide = page.evaluate(
            """(width) => Array.from(document.querySelectorAll("body *"))
              .filter((element) => element.getBoundingClientRect().right > width + 0.5)
              .filter((element) => !element.closest(".wide > *, figure > *"))
              .map((element) => element.outerHTML.slice(0, 80))""",
            width,
        )
        assert too_wide == []


def test_pictures_are_large_enough_to_read_on_a_telephone(browser: Browser, path: Path) -> None:
    with opened(browser, path, width=400) as (page, _):
        heights = page.evaluate(
            "Array.from(document.querySelectorAll('figure svg text'), (text) => text.getBoundingClientRect().height)"
        )

    assert min(heights) >= 8


def test_without_scripts_everything_is_shown_and_what_needs_them_is_not(browser: Browser, path: Path) -> None:
    with opened(browser, path) as (page, _):
        every = len(column(page, "mode"))
    with opened(browser, path, java_script_enabled=False) as (page, _):
        rows = page.locator("#results tbody tr")

        assert rows.count() == every
        assert all(row.is_visible() for row in rows.all())
        assert not page.locator(".filters").is_visible()


@pytest.mark.parametrize("name", ["one", "several"])
def test_hostile_texts_run_nothing_and_make_no_element(browser: Browser, files: dict[str, Path], name: str) -> None:
    path = files[f"hostile {name}"]
    with opened(browser, path) as (page, seen):
        page.locator(".filters input").fill("alert")
        for button in page.locator("#results th button").all():
            button.click()
        page.wait_for_timeout(200)

        assert seen.dialogs == []
        assert seen.complaints == []
        assert [url for url in seen.requests if not url.startswith("data:")] == [path.as_uri()]
        assert page.locator("script").count() == 1
        assert page.locator("img, [onerror], [onload], [onfocus], a:not([href^='#'])").count() == 0
        assert HOSTILE in " ".join(page.locator("h1").inner_text().split())


def test_the_places_where_several_differ_are_marked(browser: Browser, files: dict[str, Path]) -> None:
    with opened(browser, files["several"]) as (page, _):
        marked = page.locator("tr.marked")
        colours = [
            page.locator(selector).first.evaluate("(field) => getComputedStyle(field).backgroundColor")
            for selector in (".marked td", "tr:not(.marked) td")
        ]

        assert marked.count() == 4
        assert all(text.endswith("differs") for text in marked.all_inner_texts())
        assert colours[0] != colours[1]


def test_what_is_printed_shows_every_result_as_wide_as_the_paper_and_no_filters(browser: Browser, path: Path) -> None:
    with opened(browser, path, width=703) as (page, _):  # A4 without its margins
        page.emulate_media(media="print")
        too_wide = page.locator("table, figure svg").evaluate_all(
            "(found) => found.filter((element) => element.getBoundingClientRect().right > 703.5).length"
        )

        assert too_wide == 0
        assert not page.locator(".filters").is_visible()
        assert page.locator("#results .wide").evaluate("(table) => table.scrollHeight <= table.clientHeight")
