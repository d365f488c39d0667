from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.reporters.pages import NAMES, column, opened, page_of_one
from tests.runs import make_plan, make_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


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


def test_several_runs_can_be_told_apart_in_the_table(browser: Browser, files: dict[str, Path]) -> None:
    with opened(browser, files["several"]) as (page, _):
        choose(page, "device", "Beta")

        assert set(column(page, "device")) == {"Beta"}
