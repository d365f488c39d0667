from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from normbench.records import Cell, Status
from tests.reporters.pages import NAMES, column, contrast, made, opened, page_of_one, page_of_several, times
from tests.runs import Times, make_environment, make_plan, make_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
HOSTILE = (
    '<script>alert(1)</script>"><img src=x onerror=alert(2)></style><svg onload=alert(3)>{{7*7}}'
    "<a href='javascript:alert(4)' onfocus=alert(5) autofocus>"
)


def other_times(cell: Cell) -> Times:
    """Another winner than with ``times``, at the two narrow widths."""
    found = dict(times(cell))
    if cell.width < 200:
        found["nn-rmsnorm"], found["eager-rmsnorm"] = found["eager-rmsnorm"], found["nn-rmsnorm"]
    return found


def hostile() -> tuple[str, str]:
    run = made(
        HOSTILE,
        lambda cell: {**times(cell), "eager-rmsnorm": Status.FAILED},
        reason=HOSTILE,
        environment=make_environment(torch=HOSTILE, packages=((HOSTILE, HOSTILE),)),
        command=("normbench", HOSTILE),
    )
    return page_of_one(run), page_of_several([run, made("Other")])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of one run and of several, and the same with hostile texts."""
    folder = tmp_path_factory.mktemp("pages")
    bad_one, bad_several = hostile()
    pages = {
        "one": page_of_one(made()),
        "several": page_of_several([made("Alpha"), made("Beta", other_times)]),
        "hostile one": bad_one,
        "hostile several": bad_several,
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


@pytest.fixture(params=["one", "several"])
def path(request: pytest.FixtureRequest, files: dict[str, Path]) -> Path:
    """The page of one run, then that of several."""
    return files[str(request.param)]


def seconds(text: str) -> float | None:
    if text == "-":
        return None
    value, unit = text.split()
    return float(value) * UNITS[unit]


def is_sorted(values: list[float | None], *, down: bool = False) -> bool:
    """Whether numbers are in order, with what is absent last."""
    present = [value for value in values if value is not None]
    return values[len(present) :] == [None] * (len(values) - len(present)) and present == sorted(
        present, reverse=down
    )


def head(page: Page, title: str) -> tuple[Callable[[], None], Callable[[], str | None]]:
    """What clicks on the head of a column, and what says how it is sorted."""
    button = page.locator("#results th button", has_text=title).first
    return button.click, lambda: button.locator("..").get_attribute("aria-sort")


def choose(page: Page, title: str, value: str) -> None:
    page.locator(".filters label", has_text=title).locator("select").select_option(value)


def count(page: Page) -> str:
    return page.locator("#results .count").inner_text()


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


def test_times_are_sorted_as_numbers_and_absent_ones_come_last_both_ways(browser: Browser, path: Path) -> None:
    with opened(browser, path) as (page, _):
        click, order = head(page, "time")
        assert order() is None

        click()
        up = column(page, "time")
        assert (order(), is_sorted([seconds(text) for text in up])) == ("ascending", True)

        click()
        down = column(page, "time")
        assert (order(), is_sorted([seconds(text) for text in down], down=True)) == ("descending", True)

    assert {text.split()[-1] for text in up} == {"µs", "ms", "-"}
    assert sorted(up) == sorted(down)


def test_names_are_sorted_as_words_and_only_the_last_head_says_how(browser: Browser, path: Path) -> None:
    with opened(browser, path) as (page, _):
        head(page, "time")[0]()
        click, order = head(page, "implementation")
        click()

        assert column(page, "implementation") == sorted(column(page, "implementation"))
        assert (order(), head(page, "time")[1]()) == ("ascending", None)


def test_rows_that_are_equal_in_one_column_keep_the_order_of_the_one_before(browser: Browser, path: Path) -> None:
    with opened(browser, path) as (page, _):
        head(page, "time")[0]()
        head(page, "implementation")[0]()
        both = list(zip(column(page, "implementation"), column(page, "time"), strict=True))

    assert all(is_sorted([seconds(time) for name, time in both if name == own]) for own in NAMES)


def test_samples_are_sorted_and_results_without_any_come_last(browser: Browser, path: Path) -> None:
    with opened(browser, path) as (page, _):
        head(page, "samples")[0]()
        texts = column(page, "samples")

    assert texts[-1] == "-"
    assert texts[0].startswith("8 samples: median")


def test_a_choice_leaves_only_its_rows_and_says_how_many(browser: Browser, path: Path) -> None:
    with opened(browser, path) as (page, _):
        every = len(column(page, "mode"))
        assert count(page) == f"{every} of {every} results"

        choose(page, "implementation", "nn-rmsnorm")
        choose(page, "mode", "backward")
        assert set(column(page, "implementation")) == {"nn-rmsnorm"}
        assert set(column(page, "mode")) == {"backward"}
        assert count(page) == f"{every // 10} of {every} results"

        choose(page, "implementation", "")
        choose(page, "mode", "")
        assert count(page) == f"{every} of {every} results"


def test_words_leave_only_the_rows_that_have_all_of_them(browser: Browser, path: Path) -> None:
    with opened(browser, path) as (page, _):
        page.locator(".filters input").fill("BACKWARD  128 rms")
        shown = [column(page, title) for title in ("mode", "width", "implementation")]

        assert set(shown[0]) == {"backward"}
        assert set(shown[1]) == {"128"}
        assert set(shown[2]) == {"nn-rmsnorm", "eager-rmsnorm", "compile-rmsnorm"}

        page.locator(".filters input").fill("nothing like that")
        assert column(page, "mode") == []
        assert count(page).startswith("0 of ")


def test_words_are_not_found_across_fields_or_in_what_describes_a_picture(browser: Browser, path: Path) -> None:
    with opened(browser, path) as (page, _):
        for words in ("forwardfp32", "median"):
            page.locator(".filters input").fill(words)
            assert column(page, "mode") == []


def test_there_is_a_choice_only_among_several_values(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page_of_one(make_run(make_plan(widths=(64, 128)))), encoding="utf-8")
    with opened(browser, path) as (page, _):
        labels = [label for label in page.locator(".filters label").all() if label.is_visible()]

        assert [label.inner_text().split()[0] for label in labels] == ["Search", "implementation", "outcome"]


def test_what_is_absent_is_no_choice(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page_of_one(replace(make_run(), comparisons=())), encoding="utf-8")
    with opened(browser, path) as (page, _):
        options = page.locator(".filters label", has_text="outcome").locator("option").all_inner_texts()

        assert "-" in column(page, "outcome")
        assert options == ["all", "floor", "baseline"]


def test_what_is_hidden_stays_hidden_when_the_rest_is_sorted(browser: Browser, path: Path) -> None:
    with opened(browser, path) as (page, _):
        choose(page, "implementation", "copy")
        head(page, "time")[0]()

        assert set(column(page, "implementation")) == {"copy"}
        assert is_sorted([seconds(text) for text in column(page, "time")])


def test_a_head_is_reached_and_sorts_by_the_keyboard(browser: Browser, path: Path) -> None:
    with opened(browser, path) as (page, _):
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "time":
                break
        assert page.evaluate("document.activeElement.matches('th button:focus-visible')")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"

        page.keyboard.press("Enter")
        assert head(page, "time")[1]() == "ascending"
        page.keyboard.press("Space")
        assert head(page, "time")[1]() == "descending"


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


def test_several_runs_can_be_told_apart_in_the_table(browser: Browser, files: dict[str, Path]) -> None:
    with opened(browser, files["several"]) as (page, _):
        choose(page, "device", "Beta")

        assert set(column(page, "device")) == {"Beta"}


def test_what_is_printed_shows_every_result_as_wide_as_the_paper_and_no_filters(browser: Browser, path: Path) -> None:
    with opened(browser, path, width=703) as (page, _):  # A4 without its margins
        page.emulate_media(media="print")
        too_wide = page.locator("table, figure svg").evaluate_all(
            "(found) => found.filter((element) => element.getBoundingClientRect().right > 703.5).length"
        )

        assert too_wide == 0
        assert not page.locator(".filters").is_visible()
        assert page.locator("#results .wide").evaluate("(table) => table.scrollHeight <= table.clientHeight")
