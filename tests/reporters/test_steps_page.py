"""The page of steps: what it says, that it is whole, and that nothing in it acts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from normbench.records import StepRun
from normbench.reporters import plots, steps, steps_page
from normbench.reporters.plots import steps as drawn
from tests.hostile_texts import TEXTS
from tests.reporters.pages import HOSTILE, contrast, opened
from tests.reporters.reading import flat, parsed
from tests.reporters.test_steps_markdown import hostile, hostile_training
from tests.step_runs import complete_run, empty_run, failed_run, training_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RUNS = {"complete": complete_run(), "failed": failed_run(), "empty": empty_run(), "training": training_run()}


def page(run: StepRun) -> str:
    files = enumerate(drawn.draw(run))
    return steps_page.render(
        run, [(name, plots.inline_svg(data, f"p{n}")) for n, (name, data) in files if name.endswith("svg")]
    )


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_the_page_is_headed_by_the_answer_and_closes_everything_it_opens(run: StepRun) -> None:
    text = page(run)
    shown = " ".join(" ".join(parsed(text).text).split())

    assert flat(steps.headline(run)) in flat("".join(parsed(text).text))
    assert "Again:" in shown
    assert text.count("<table>") == text.count("</table>")
    assert text.count("<figure") == len(drawn.planned(run)) == text.count("</svg>")


def test_only_what_there_is_has_a_part() -> None:
    parts = {
        name: [part for part in ("steps", "learnt", "predicted", "without") if f'id="{part}"' in page(run)]
        for name, run in RUNS.items()
    }

    assert parts == {
        "complete": ["steps", "predicted"],
        "failed": ["steps", "without"],
        "empty": [],
        "training": ["learnt"],
    }


@pytest.mark.parametrize("make", [hostile, hostile_training])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_from_outside_makes_an_element(make: object, text: str) -> None:
    assert callable(make)

    assert parsed(steps_page.render(make(text))).elements == parsed(steps_page.render(make("a"))).elements


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("steps")
    runs = {**RUNS, "hostile": hostile(HOSTILE), "hostile training": hostile_training(HOSTILE)}
    for name, run in runs.items():
        (folder / f"{name}.html").write_text(page(run), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in runs}


NAMES = (*RUNS, "hostile", "hostile training")


@pytest.mark.browser
@pytest.mark.parametrize("name", NAMES)
def test_a_page_opens_without_a_complaint_runs_nothing_and_asks_for_nothing(
    browser: Browser, files: dict[str, Path], name: str
) -> None:
    with opened(browser, files[name]) as (shown, seen):
        shown.wait_for_load_state("networkidle")

        assert seen.complaints == []
        assert seen.dialogs == []
        assert [url for url in seen.requests if not url.startswith("data:")] == [files[name].as_uri()]


Scheme = Literal["light", "dark"]


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_outcomes_and_pictures_are_readable(browser: Browser, files: dict[str, Path], scheme: Scheme) -> None:
    with opened(browser, files["complete"], color_scheme=scheme) as (shown, _):
        for selector in ("h1", "li", "td.number", "td.faster", "td.slower", "td.undecided", ".quiet", "a"):
            assert contrast(shown, selector) >= 4.5, selector
        assert contrast(shown, "figure svg text:not([style*='#'])", "fill") >= 4.5


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 800, 1280])
@pytest.mark.parametrize("name", RUNS)
def test_only_tables_and_pictures_are_wider_than_a_window(
    browser: Browser, files: dict[str, Path], name: str, width: int
) -> None:
    with opened(browser, files[name], width) as (shown, _):
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
