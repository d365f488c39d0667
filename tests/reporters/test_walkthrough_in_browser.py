"""The page of an example in a browser: its script works out what Python does, wherever the sliders are."""

from __future__ import annotations

import json
import math
import random
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from normbench import units
from normbench.reporters.walkthrough_page import groups, render, rows
from normbench.walkthrough import Walkthrough
from tests.cli.command import normbench
from tests.reporters.examples import PLAIN, ROUND, UNDEFINED, walked
from tests.reporters.pages import contrast, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

EXAMPLES = {
    "round": ROUND,
    "plain": PLAIN,
    "undefined": UNDEFINED,
    "one": walked(-2.0, scale=-3.0),
    "many": walked(
        *(math.sin(n) * 10 for n in range(32)),
        gain=tuple(n / 7 for n in range(32)),
        bias=tuple(n / 9 for n in range(32)),
    ),
    "tiny": walked(1e-4, 2e-4, 3e-4, -2.5e-4, eps=1e-6, scale=1e3),
    "huge": walked(1e25, -3e24, 2e25, shift=1e24, eps=3e-40),
    "thirds": walked(1 / 3, 2 / 3, -1 / 7, 0.0078125, eps=1e-6 / 3, gain=(1 / 3,), bias=(-2 / 3,)),
    "long": walked(
        *(-123456789.125 * (n + 1) for n in range(17)),
        gain=tuple(-0.00458977123 * (n + 1) for n in range(17)),
        bias=tuple(-1.23457e-17 * (n + 1) for n in range(17)),
    ),
    "zeros": walked(0.0, 0.0, bias=(2.0,)),
}
SCHEMES = ("light", "dark")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of each example."""
    folder = tmp_path_factory.mktemp("explained")
    for name, walk in EXAMPLES.items():
        (folder / f"{name}.html").write_text(render(walk), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in EXAMPLES}


def move(page: Page, *positions: tuple[str, float]) -> None:
    """Put sliders somewhere, one after the other, as a hand does."""
    page.evaluate(
        """(positions) => {
          for (const [path, to] of positions) {
            const slider = document.getElementById(path);
            slider.value = to;
            for (const kind of ["input", "change"]) slider.dispatchEvent(new Event(kind, {bubbles: true}));
          }
        }""",
        [[path, str(position)] for path, position in positions],
    )


def state(page: Page) -> dict[str, Any]:
    """What Python works out of the command that the page shows."""
    words = shlex.split(page.locator(".again code").inner_text())
    done = normbench(*words[1:], "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert isinstance(found, dict)
    return found


def figures(page: Page) -> dict[str, list[str]]:
    """Every figure of the page by its place; ten steps, outputs and changes of both norms."""
    found = page.locator("[data-figures]").evaluate_all(
        "(all) => all.map((place) => [place.dataset.figures, Array.from(place.children, (one) => one.textContent)])"
    )
    assert len(dict(found)) == len(found) == 17 + 3 * 2 + 2 * 2 + 2
    return dict(found)


def expected(found: dict[str, Any], path: str) -> list[float | None]:
    part: Any = found["norms"]
    for name in path.split("."):
        part = part[name]
    return part if isinstance(part, list) else [part]


def check(page: Page) -> dict[str, Any]:
    """Every figure of the page is Python's, to 1e-6, and is written as Python writes it."""
    found = state(page)
    for path, texts in figures(page).items():
        values = expected(found, path)
        if path.endswith("from_invariance") and values == [None]:
            assert texts == ["-"]
            continue
        assert len(texts) == len(values), path
        for text, value in zip(texts, values, strict=True):
            if value is None:
                assert text in ("NaN", "inf", "-inf"), path
            else:
                assert float(text) == pytest.approx(value, rel=1e-6, abs=1e-6), path
        if None not in values:
            assert texts == list(units.figures([value for value in values if value is not None])), path
    return found


def drawn(page: Page) -> dict[str, list[list[float]]]:
    """The heights of the bars of each chart, measured on the screen, in units of its axis."""
    return dict(
        page.locator(".row").evaluate_all(
            """(rows) => rows.map((row) => [row.dataset.row, Array.from(row.querySelectorAll(".area"), (area) => {
              const reach = Number(area.parentElement.querySelector(".end.top").textContent);
              const {top, height} = area.getBoundingClientRect();
              return Array.from(area.querySelectorAll(".bar"), (bar) => {
                const box = bar.getBoundingClientRect();
                const [above, below] = [top + height / 2 - box.top, box.bottom - top - height / 2];
                return ((above > below ? above : -below) / (height / 2)) * reach;
              });
            })])"""
        )
    )


def check_bars(page: Page, found: dict[str, Any]) -> None:
    """Bars on the screen are as high as their numbers, to a pixel of the chart."""
    norms = found["norms"].values()
    values = {
        "input": [found["values"]] * 2,
        "output": [norm["output"] for norm in norms],
        "shifted": [norm["shifted"]["after"] for norm in norms],
        "scaled": [norm["scaled"]["after"] for norm in norms],
    }
    heights = drawn(page)
    assert list(heights) == list(values)
    for kind, charts in values.items():
        reach = float(page.locator(f"[data-row={kind}] .end.top").first.inner_text())
        for bars, own in zip(heights[kind], charts, strict=True):
            assert bars == pytest.approx([value or 0 for value in own], abs=reach / 50), kind


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_script_changes_nothing_of_what_python_wrote(browser: Browser, pages: dict[str, Path], name: str) -> None:
    with opened(browser, pages[name], java_script_enabled=False) as (page, _):
        before = [place.all_inner_texts() for place in _places(page)]
    with opened(browser, pages[name]) as (page, seen):
        after = [place.all_inner_texts() for place in _places(page)]
        found = state(page)
        assert seen.complaints == []

    assert before == after
    assert sum(map(len, before)) > 40
    own = vars(EXAMPLES[name].example)
    assert {key: found[key] for key in own} == {k: list(v) if isinstance(v, tuple) else v for k, v in own.items()}


def _places(page: Page) -> list[Any]:
    return [
        page.locator(selector)
        for selector in ("[data-figures] span", ".tag", ".end", ".row h3", ".of", ".from", ".unit", "output")
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_figure_is_pythons_at_first(browser: Browser, pages: dict[str, Path], name: str) -> None:
    with opened(browser, pages[name], reduced_motion="reduce") as (page, _):
        check_bars(page, check(page))


def settings(walk: Walkthrough, seed: int) -> Iterator[tuple[str, float]]:
    """A random position for each slider of a page, in random order."""
    chance = random.Random(seed)
    sliders = [slider for group in groups(walk.example) for slider in group.sliders]
    for slider in chance.sample(sliders, len(sliders)):
        steps = round((slider.high - slider.low) / slider.step)
        yield slider.path, slider.low + chance.randint(0, steps) * slider.step


@pytest.mark.parametrize("name", ["round", "many", "thirds", "tiny", "one"])
def test_wherever_the_sliders_are_every_figure_and_every_bar_is_pythons(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    with opened(browser, pages[name], reduced_motion="reduce") as (page, seen):
        found = [state(page)]
        for seed in range(5):
            move(page, *settings(EXAMPLES[name], seed))
            found.append(check(page))
            check_bars(page, found[-1])

        assert len({str(one["values"]) for one in found}) == 6
        assert seen.complaints == []


@pytest.mark.parametrize("path", ["values.0", "values.5", "shift", "scale", "eps", "gain", "bias"])
def test_a_slider_is_moved_by_the_keyboard_and_says_its_number(
    browser: Browser, pages: dict[str, Path], path: str
) -> None:
    with opened(browser, pages["round"], reduced_motion="reduce") as (page, _):
        before = state(page)
        slider = page.locator(f"[id='{path}']")
        slider.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        found = check(page)
        check_bars(page, found)
        name, _, place = path.partition(".")
        own = found[name][int(place or 0)] if isinstance(found[name], list) else found[name]
        old = before[name][int(place or 0)] if isinstance(before[name], list) else before[name]

        assert own > old
        assert units.plain(own) == slider.locator("xpath=../output").inner_text()
        assert units.plain(own) == slider.get_attribute("aria-valuetext")
        assert {key for key in before if key != "norms" and before[key] != found[key]} == {name}


def test_eps_goes_by_powers_of_ten_and_ends_with_zero(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["plain"]) as (page, _):
        said = page.locator("[id='eps'] >> xpath=../output")
        page.locator("[id='eps']").focus()
        for _step in range(10):
            page.keyboard.press("ArrowRight")
        assert said.inner_text() == "1e-05"
        assert state(page)["eps"] == 1e-5
        page.keyboard.press("ArrowRight")
        assert said.inner_text() == "1.26e-05"
        assert state(page)["eps"] == 1.26e-5
        page.keyboard.press("End")
        assert said.inner_text() == "10"
        page.keyboard.press("Home")
        assert said.inner_text() == "0"
        assert state(page)["eps"] == 0


def test_a_shift_moves_rmsnorms_bars_alone(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["round"], reduced_motion="reduce") as (page, _):
        move(page, ("shift", 0))
        before = drawn(page)
        move(page, ("shift", 8))
        after = drawn(page)

    assert after["shifted"][0] == pytest.approx(before["shifted"][0], abs=0.01)
    assert max(abs(a - b) for a, b in zip(after["shifted"][1], before["shifted"][1], strict=True)) > 0.5
    assert {kind: after[kind] for kind in ("input", "output", "scaled")} == {
        kind: before[kind] for kind in ("input", "output", "scaled")
    }


def test_where_a_root_is_zero_it_is_said_and_else_it_is_not(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["undefined"]) as (page, _):
        problem = page.locator("[data-problem]")
        assert problem.is_visible()
        move(page, ("eps", -6))
        assert not problem.is_visible()
        move(page, ("eps", -12))
        assert problem.is_visible()


def test_reset_gives_back_the_commands_numbers_unrounded(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["thirds"]) as (page, _):
        before = state(page)
        move(page, *settings(EXAMPLES["thirds"], 1))
        assert state(page) != before
        page.get_by_role("button", name="Reset").press("Enter")

        assert state(page) == before
        assert page.locator("output").first.inner_text() == units.plain(1 / 3)
        check(page)


def test_every_slider_has_a_name_and_is_reached_by_the_keyboard_with_a_visible_focus(
    browser: Browser, pages: dict[str, Path]
) -> None:
    with opened(browser, pages["round"]) as (page, _):
        names = []
        for _press in range(12):
            page.keyboard.press("Tab")
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            names.append(page.evaluate("(document.activeElement.labels?.[0] ?? document.activeElement).textContent"))
        assert names == [*(f"x {n}" for n in range(1, 7)), "shift", "scale", "eps", "gain", "bias", "Reset"]
        assert [page.get_by_role("slider", name=name, exact=True).count() for name in names[:-1]] == [1] * 11


def test_a_slider_that_was_moved_has_the_outputs_said(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["plain"]) as (page, _):
        assert page.get_by_role("status").last.inner_text() == ""
        move(page, ("gain", 2))

        assert page.locator(".unseen").inner_text() == "LayerNorm: -2.45, 0, 2.45. RMSNorm: 0.926, 1.85, 2.78."


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_page_asks_for_nothing_else_and_complains_of_nothing(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    with opened(browser, pages[name]) as (page, seen):
        move(page, *settings(EXAMPLES[name], 0))
        page.wait_for_load_state("networkidle")

        assert seen.complaints == []
        assert [url for url in seen.requests if not url.startswith("data:")] == [pages[name].as_uri()]


def test_a_page_forbids_what_it_does_not_need(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["plain"]) as (page, seen):
        page.evaluate("fetch('https://example.invalid/').catch(() => {})")
        page.wait_for_timeout(100)

        assert any("Content Security Policy" in line for line in seen.complaints)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_and_bars_can_be_told_from_the_page(browser: Browser, pages: dict[str, Path], scheme: Any) -> None:
    with opened(browser, pages["undefined"], color_scheme=scheme) as (page, _):
        assert contrast(page, "h1, p.lead, td span, label, output, .tag, li") >= 4.5
        assert contrast(page, "b.layernorm, b.rmsnorm, figcaption, .formula, legend, .end") >= 4.5
        assert contrast(page, "[data-row=output] .bar", "backgroundColor") >= 3


def test_light_and_dark_differ(browser: Browser, pages: dict[str, Path]) -> None:
    shots = []
    for scheme in SCHEMES:
        with opened(browser, pages["round"], color_scheme=scheme) as (page, _):
            shots.append(page.screenshot())
            shots.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    assert shots[0] != shots[2]
    assert (shots[1], shots[3]) == ("rgb(255, 255, 255)", "rgb(13, 17, 23)")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_bars_are_seen_in_a_readers_own_few_colours(browser: Browser, pages: dict[str, Path], scheme: Any) -> None:
    with opened(browser, pages["round"], color_scheme=scheme, forced_colors="active") as (page, _):
        for row in ("input", "output", "shifted"):
            chart = page.locator(f"[data-row={row}] .plot").first
            shown = chart.screenshot()
            page.add_style_tag(content=f"[data-row={row}] .bar {{ visibility: hidden; }}")
            assert chart.screenshot() != shown, row


def test_bars_are_printed_although_they_are_backgrounds(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["round"]) as (page, _):
        page.emulate_media(media="print")
        adjusted = page.locator(".bar, .band, .plot").evaluate_all(
            "(all) => all.map((one) => getComputedStyle(one).printColorAdjust)"
        )

    assert set(adjusted) == {"exact"}


def test_every_table_has_the_name_of_what_is_above_it(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["round"]) as (page, _):
        headings = page.locator(".shown h2").all_inner_texts()
        assert len(headings) == 3
        for name in headings:
            assert page.get_by_role("table", name=name, exact=True).count() == 1


def test_a_page_that_is_loaded_again_or_come_back_to_has_figures_and_sliders_that_agree(
    browser: Browser, pages: dict[str, Path]
) -> None:
    with opened(browser, pages["round"]) as (page, _):
        for leave in (lambda: page.reload(), lambda: (page.goto(pages["plain"].as_uri()), page.go_back())):
            move(page, ("values.0", 2.0), ("eps", -3))
            leave()
            positions = page.locator("input").evaluate_all("(all) => all.slice(0, 6).map((one) => one.valueAsNumber)")
            assert positions == check(page)["values"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_window_is_scrolled_sideways_and_no_number_is_cut(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    with opened(browser, pages[name]) as (page, _):
        for width in (280, 320, 400, 800, 960, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            assert cut(page, width) == [], width


def test_numbers_that_get_longer_while_a_slider_moves_have_room(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["plain"], width=400) as (page, _):
        move(page, ("values.0", 0), ("values.1", 0.05), ("values.2", 0))

        assert figures(page)["rmsnorm.steps.mean_of_squares"] == ["8.333333e-04"]
        assert cut(page, 400) == []


def cut(page: Page, width: int) -> list[str]:
    """The figures that do not fit into their field; the page itself does into its window."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = page.locator("td .figures").evaluate_all(
        """(all) => all.filter((place) => {
          const cell = place.closest("td").getBoundingClientRect();
          return Array.from(place.children, (one) => one.getBoundingClientRect())
            .some((box) => box.right > cell.right + 1 || box.left < cell.left - 1) ||
            Array.from(place.children).some((one) => one.scrollWidth > one.clientWidth);
        }).map((place) => place.dataset.figures)"""
    )
    return [str(name) for name in found]


def test_bars_glide_unless_the_reader_wants_less_motion(browser: Browser, pages: dict[str, Path]) -> None:
    durations = {}
    for wanted in ("no-preference", "reduce"):
        with opened(browser, pages["plain"], reduced_motion=wanted) as (page, _):
            bar = page.locator(".bar").first
            durations[wanted] = bar.evaluate("(bar) => getComputedStyle(bar).transitionDuration")

    assert set(durations["no-preference"].split(", ")) == {"0.12s"}
    assert durations["reduce"] == "0s"


def test_without_scripting_there_are_tables_and_bars_and_no_sliders(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["round"], java_script_enabled=False) as (page, _):
        assert not page.locator(".controls").is_visible()
        assert not page.locator(".again").is_visible()
        assert page.locator(".steps tbody tr").count() == 10
        assert page.locator("noscript p").is_visible()
    with opened(browser, pages["round"]) as (page, _):
        assert page.locator(".controls").is_visible()
        assert not page.locator("noscript p").is_visible()


def test_bars_are_drawn_without_scripting_as_well(browser: Browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["round"], java_script_enabled=False) as (page, _):
        heights = page.locator("[data-row=output] .bar").evaluate_all(
            "(bars) => bars.map((bar) => bar.getBoundingClientRect().height)"
        )
    outputs = [abs(bar.height) for chart in rows(ROUND)[1].charts for bar in chart.bars]

    assert heights == pytest.approx([share / max(outputs) * max(heights) for share in outputs], abs=1)
