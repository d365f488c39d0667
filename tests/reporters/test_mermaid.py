"""Charts as text that mermaid draws without an error and without losing a line."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench.records import Cell, Flag, Run, Status
from normbench.reporters import mermaid
from normbench.reporters.mermaid import Chart
from tests.runs import TIMES, Times, flagged, make_plan, make_run

PLAN = make_plan(widths=(64, 128, 256))
NUMBER = r"\d+(?:\.\d+)?"


def chart_of(run: Run) -> Chart | None:
    flags = {result.case: result.flags for result in run.results}
    return mermaid.chart(run, list(run.results_by_cell), flags)


def drawn(times: Times | Callable[[Cell], Times] = TIMES) -> Chart:
    chart = chart_of(make_run(PLAN, times))
    assert chart is not None
    return chart


def series(chart: Chart) -> list[list[float]]:
    """The numbers of each line; anything but plain decimals is an error."""
    found = re.findall(r"^    line \[(.*)\]$", chart.source, re.MULTILINE)
    assert all(re.fullmatch(rf"{NUMBER}(?:, {NUMBER})*", line) for line in found), found
    return [[float(number) for number in line.split(", ")] for line in found]


def axis(chart: Chart) -> list[str]:
    (found,) = re.findall(r"^    x-axis \"width\" \[(.*)\]$", chart.source, re.MULTILINE)
    return [width.strip('"') for width in found.split(", ")]


def palette(chart: Chart) -> list[str]:
    (found,) = re.findall(r'"plotColorPalette": "([^"]*)"', chart.source)
    return found.split(", ")


def test_the_baseline_is_a_line_at_1_and_each_candidate_one_of_its_speedups() -> None:
    chart = drawn(lambda cell: {**TIMES, "nn-rmsnorm": 4e-6 * 64 / cell.width})

    assert chart.title == "fp32 forward, 32 rows, warm cache: speedup over nn-layernorm"
    assert axis(chart) == ["64", "128", "256"]
    assert [name for _, name in chart.lines] == ["nn-layernorm", "eager-rmsnorm", "nn-rmsnorm"]
    assert series(chart) == [[1, 1, 1], [0.5, 0.5, 0.5], [1, 2, 4]]


def test_each_line_has_a_colour_of_the_palette_in_its_order() -> None:
    chart = drawn()

    assert len(palette(chart)) == len(series(chart)) == len(chart.lines)
    assert all(re.fullmatch("#[0-9A-Fa-f]{6}", colour) for colour in palette(chart))


def test_the_axis_begins_at_0_and_ends_above_every_line() -> None:
    chart = drawn({**TIMES, "nn-rmsnorm": 4e-6 / 37})
    (top,) = re.findall(rf'^    y-axis "speedup" 0 --> ({NUMBER})$', chart.source, re.MULTILINE)

    assert float(top) > max(max(line) for line in series(chart))


def test_a_series_with_a_gap_is_left_out_and_named_with_how_many_are_missing() -> None:
    """Mermaid draws one that is shorter than the axis as NaN and says nothing."""
    chart = drawn(lambda cell: {**TIMES, "eager-rmsnorm": Status.FAILED} if cell.width > 64 else TIMES)

    assert [name for _, name in chart.lines] == ["nn-layernorm", "nn-rmsnorm"]
    assert chart.left_out == (("eager-rmsnorm", 2),)
    assert {len(line) for line in series(chart)} == {len(axis(chart))}


@given(st.lists(st.floats(1e-9, 1e3), min_size=2, max_size=8))
def test_whatever_the_speedups_numbers_are_plain_and_every_line_is_as_long_as_the_axis(times: list[float]) -> None:
    plan = make_plan(widths=tuple(range(64, 64 + len(times))))
    chart = chart_of(make_run(plan, lambda cell: {**TIMES, "nn-rmsnorm": times[cell.width - 64]}))

    assert chart is not None
    assert {len(line) for line in series(chart)} == {len(times)} == {len(axis(chart))}


def test_a_single_width_is_no_line() -> None:
    assert chart_of(make_run(make_plan())) is None


@pytest.mark.parametrize("gone", ["nn-layernorm", "both"])
def test_where_nothing_can_be_compared_everywhere_there_is_no_chart(gone: str) -> None:
    lost = ("eager-rmsnorm", "nn-rmsnorm") if gone == "both" else (gone,)

    assert chart_of(make_run(PLAN, {**TIMES, **dict.fromkeys(lost, Status.FAILED)})) is None


def test_a_chart_says_which_of_its_results_are_flagged_and_not_which_of_others() -> None:
    run = make_run(PLAN, lambda cell: {**TIMES, "eager-rmsnorm": Status.FAILED} if cell.width > 64 else TIMES)
    shown, other = (
        chart_of(flagged(run, Flag.THROTTLED, lambda case, name=name: case.implementation == name))  # type: ignore[misc]
        for name in ("nn-rmsnorm", "eager-rmsnorm")
    )

    assert shown is not None
    assert other is not None
    assert (shown.but, other.but) == ("throttled", "")


def over(baseline: str) -> Chart | None:
    """A chart of speedups over a baseline of that name."""
    plan = make_plan(widths=(64, 128), implementations=("copy", baseline, "nn-rmsnorm"), baseline=baseline)
    return chart_of(make_run(plan, {"copy": 1e-6, baseline: 4e-6, "nn-rmsnorm": 2e-6}))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"`%{}<>;#&\\\n-'), min_size=1)


@given(TEXTS.filter(lambda text: bool(text.strip())))
def test_whatever_the_baseline_is_called_its_name_ends_no_string_no_line_and_no_fence(name: str) -> None:
    chart = over(f"{name}-layernorm")

    assert chart is not None
    lines = chart.source.splitlines()
    assert len(lines) == 7
    assert re.fullmatch(r'    title "[^"`%<>;#&\\]*"', lines[2])


def test_a_title_without_end_is_cut() -> None:
    chart = over(f"{'x' * 5000}-layernorm")

    assert chart is not None
    assert max(map(len, chart.source.splitlines())) < 300
    assert '…"' in chart.source
