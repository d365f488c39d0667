"""The charts of a verdict, drawn by the real mermaid in a real browser: what GitHub does with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import pytest

from normbench.records import Cell, DType, Mode
from normbench.reporters import markdown
from tests.browser import mermaid
from tests.runs import TIMES, Times, make_plan, make_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

Draw: TypeAlias = Callable[[str], str]

_DRAW = """async (source) => (await mermaid.render("chart", source)).svg"""


@pytest.fixture(params=["default", "dark"])
def draw(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Draw]:
    """Mermaid text to SVG, in a light and in a dark theme."""
    page = browser.new_page()
    page.set_content("<body></body>")
    page.add_script_tag(path=mermaid())
    page.evaluate("(theme) => mermaid.initialize({startOnLoad: false, theme})", request.param)

    def drawn(source: str) -> str:
        return str(page.evaluate(_DRAW, source))

    yield drawn
    page.close()


def charts(text: str) -> list[str]:
    return re.findall(r"^```mermaid\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def lines(svg: str) -> list[str]:
    """The path of each line."""
    return re.findall(r'<path d="(M[\d.,L]+)" fill="none" stroke="#', svg)


def spread_out(cell: Cell) -> Times:
    """Times whose ratios reach from a thousandth to a thousand."""
    factor = 10.0 ** (cell.width % 7 - 3)
    return {**TIMES, "eager-rmsnorm": 4e-6 * factor, "nn-rmsnorm": 4e-6 / factor}


def test_every_chart_of_a_verdict_is_drawn_with_a_line_for_each_that_the_text_names(draw: Draw) -> None:
    plan = make_plan(widths=(64, 128, 1000, 65536), dtypes=tuple(DType), modes=(Mode.FORWARD, Mode.BACKWARD))
    text = markdown.render(make_run(plan, spread_out))
    named = re.findall(r"^Lines: (.*?)\.", text, re.MULTILINE)

    assert len(charts(text)) == len(named) == 6
    for source, names in zip(charts(text), named, strict=True):
        svg = draw(source)
        assert "NaN" not in svg
        assert len(lines(svg)) == len(names.split(", ")) == 3
        assert all(len(re.findall("[ML]", path)) == 4 for path in lines(svg))


def test_a_series_that_is_too_short_gives_nan_without_an_error(draw: Draw) -> None:
    """What the charts have to avoid, and what the test above would see."""
    (source,) = charts(markdown.render(make_run(make_plan(widths=(64, 128, 256)))))
    short = re.sub(r"line \[([\d.]+), [\d.]+, [\d.]+\]\s*$", r"line [\1]", source)

    assert short != source
    assert "NaN" in draw(short)


def test_names_that_mermaid_would_read_as_its_own_are_drawn_as_text(draw: Draw) -> None:
    nasty = 'nn-"]; %%{init: {}}%% <b>`x`</b> #quot; \\ layernorm'
    plan = make_plan(widths=(64, 128), implementations=("copy", "eager-rmsnorm", nasty), baseline=nasty)
    run = make_run(plan, {"copy": 1e-6, "eager-rmsnorm": 8e-6, nasty: 4e-6})
    (source,) = charts(markdown.render(run))
    svg = draw(source)

    assert "NaN" not in svg
    assert "<b>" not in svg
    assert len(lines(svg)) == 2
