"""A report of residual adds and norms says so wherever a reader begins."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

from normbench import bounds, swaps, verdict
from normbench.records import Mode, Run
from normbench.reporters import document, headline, html, markdown, statements
from normbench.reporters.plots import styles
from normbench.swaps import Answer
from tests.reporters.pages import source
from tests.reporters.plots.looking import draw, texts
from tests.runs import ADDING_TIMES, make_adding_plan, make_cell, make_info, make_run

NAMES = ("add-copy", "nn-add-layernorm", "nn-add-rmsnorm", "compile-add-rmsnorm")
PLAN = make_adding_plan(implementations=NAMES, widths=(64, 128))
RUN: Run = make_run(PLAN, {**ADDING_TIMES, "nn-add-rmsnorm": 3e-6})


def plain(page: str) -> str:
    """A page's text without its tags."""
    return unescape(re.sub(r"<[^>]*>", "", page))


def test_the_first_line_says_what_was_measured() -> None:
    said = headline.headline(RUN, verdict.of_run(RUN), bounds.flags(RUN)).use

    assert said.startswith("On Some CPU, residual add and norm, 32 rows: use compile-add-rmsnorm for ")


def test_a_norms_first_line_and_titles_stay_as_they_were() -> None:
    run = make_run()

    assert headline.headline(run, verdict.of_run(run), bounds.flags(run)).use.startswith("On Some CPU, 32 rows: ")
    assert statements.describe_group(make_cell()) == "fp32 forward, 32 rows, warm cache"
    assert statements.describe_cell(make_cell()) == "32×64 fp32 forward"


def test_titles_of_tables_name_the_operation() -> None:
    cell = replace(next(iter(PLAN.cells())), mode=Mode.BACKWARD)

    assert statements.describe_group(cell) == "add-norm fp32 backward, 32 rows, warm cache"
    assert statements.describe_cell(cell) == "add-norm 32×64 fp32 backward"


def test_verdict_and_page_name_it_in_their_first_line_the_method_and_the_command() -> None:
    page = html.render(document.of_run(RUN), [source(RUN)])
    for text in (markdown.render(RUN), plain(page)):
        assert "residual add and norm, 32 rows" in text
        assert "the norm of h" in text
        assert "--operation add-norm" in text


def test_pictures_name_it_below_their_titles() -> None:
    files = draw(RUN)

    for name in ("time-forward.svg", "speedup-forward.svg"):
        assert any(text.startswith("add-norm forward, 32 rows, warm cache - ") for text in texts(files[name]))


def test_an_rmsnorm_with_a_residual_is_held_against_the_layernorm_with_one() -> None:
    found = {swap.provider: swap for swap in swaps.of_cells(RUN, RUN.results_by_cell)}

    assert set(found) == {"nn", swaps.BEST}
    assert found["nn"].answer is found[swaps.BEST].answer is Answer.PAYS
    assert found["nn"].comparisons[0].baseline == "nn-add-layernorm"


def test_a_line_is_dashed_where_its_norm_takes_no_mean_off_and_the_floor_is_dotted() -> None:
    of_name = styles.of_implementations([make_info(name) for name in NAMES])

    assert {name: style.dashes for name, style in of_name.items()} == {
        "add-copy": ":",
        "nn-add-layernorm": "-",
        "nn-add-rmsnorm": "--",
        "compile-add-rmsnorm": "--",
    }
    assert of_name["nn-add-layernorm"].marker == of_name["nn-add-rmsnorm"].marker == "o"
