"""The page of an example as it is written: its sliders reach what they stand for, its charts what they show."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench.reporters import walkthrough_page
from normbench.reporters.walkthrough import SPEED
from normbench.reporters.walkthrough_page import Slider, groups, render, rows
from normbench.walkthrough import MOST_NUMBER, Example, Walkthrough
from tests.reporters.examples import PLAIN, ROUND, UNDEFINED, walked
from tests.reporters.test_walkthrough_table import numbers, shown

ANY = st.floats(-MOST_NUMBER, MOST_NUMBER)


def sliders(example: Example) -> dict[str, Slider]:
    return {slider.path: slider for group in groups(example) for slider in group.sliders}


def of_number(value: float) -> Slider:
    return sliders(walked(value).example)["values.0"]


@pytest.mark.parametrize(
    ("value", "reach", "step"),
    [
        (3, 5, 0.05),
        (-9, 10, 0.1),
        (10, 10, 0.1),
        (10.5, 20, 0.2),
        (3e-4, 5e-4, 5e-6),
        (0, 5, 0.05),
        (1e25, 1e25, 1e23),
    ],
)
def test_a_slider_reaches_a_round_number_to_either_side(value: float, reach: float, step: float) -> None:
    slider = of_number(value)

    assert (slider.low, slider.high, slider.step) == (-reach, reach, step)


@given(ANY, ANY, ANY, ANY, st.floats(0, MOST_NUMBER))
def test_every_slider_reaches_its_number_and_no_number_that_is_refused(
    value: float, shift: float, scale: float, gain: float, eps: float
) -> None:
    found = sliders(walked(value, -value, shift=shift, scale=scale, gain=(gain,), eps=eps).example)

    assert all(slider.low <= slider.position <= slider.high for slider in found.values())
    assert all(slider.high <= MOST_NUMBER for name, slider in found.items() if name != "eps")
    assert all(slider.step > 0 for slider in found.values())


def test_there_is_a_slider_for_each_value_and_one_for_a_parameter_that_is_everybodys() -> None:
    assert list(sliders(ROUND.example)) == [
        *(f"values.{index}" for index in range(6)),
        *("shift", "scale", "eps", "gain", "bias"),
    ]
    assert list(sliders(walked(1.0, 2.0, gain=(3.0, 4.0), bias=(5.0, 5.0)).example))[4:] == [
        *("eps", "gain.0", "gain.1", "bias")
    ]


@pytest.mark.parametrize(
    ("eps", "low", "high", "position"),
    [
        (1e-6, -12, 1, -6),
        (0, -12, 1, -12),
        (1e-12, -13, 1, -12),
        (1e-40, -41, 1, -40),
        (5e-324, -325, 1, math.log10(5e-324)),
        (300, -12, 3, math.log10(300)),
    ],
)
def test_the_slider_of_eps_is_logarithmic_and_its_least_position_is_zero(
    eps: float, low: float, high: float, position: float
) -> None:
    slider = sliders(walked(1.0, eps=eps).example)["eps"]

    assert (slider.low, slider.high) == (low, high)
    assert slider.position == pytest.approx(position)
    assert (slider.position == slider.low) == (eps == 0)


@pytest.mark.parametrize("walk", [PLAIN, ROUND, UNDEFINED, walked(0.0), walked(1e-9, -3e4)])
def test_bars_are_as_high_as_their_numbers_and_both_norms_have_one_reach(walk: Walkthrough) -> None:
    found = {row.kind: row for row in rows(walk)}
    expected = {
        "input": [walk.example.values] * 2,
        "output": [norm.output for norm in walk.norms],
        "shifted": [norm.shifted.after for norm in walk.norms],
        "scaled": [norm.scaled.after for norm in walk.norms],
    }

    assert list(found) == list(expected)
    for kind, values in expected.items():
        for chart, own in zip(found[kind].charts, values, strict=True):
            heights = [bar.height * found[kind].reach for bar in chart.bars]
            assert heights == pytest.approx([0 if math.isnan(value) else value for value in own])
            assert max(abs(bar.height) for bar in chart.bars) <= 1 / 1.1 + 1e-12


def test_behind_a_bar_of_a_changed_input_stands_the_output_of_the_unchanged_one() -> None:
    for row in rows(ROUND)[2:]:
        for chart, norm in zip(row.charts, ROUND.norms, strict=True):
            assert [bar.shadow * row.reach for bar in chart.bars] == pytest.approx(norm.output)


def test_the_band_is_a_norms_root_around_what_it_measures_from() -> None:
    row = rows(ROUND)[0]
    bands = [chart.band for chart in row.charts if chart.band]

    assert [(band.centre * row.reach, band.spread * row.reach) for band in bands] == [
        pytest.approx((3, 4)),
        pytest.approx((0, 5)),
    ]
    assert [(band.centre_text, band.root_text) for band in bands] == [("3", "4"), ("0", "5")]


def test_what_is_infinite_ends_with_the_chart() -> None:
    row = rows(walked(1e-40, -1e-40, eps=0.0, scale=1e-200))[3]

    assert [bar.height for bar in row.charts[1].bars] == [1, -1]
    assert [bar.text for bar in row.charts[1].bars] == ["inf", "-inf"]


@pytest.mark.parametrize("walk", [PLAIN, ROUND, UNDEFINED, walked(*map(float, range(32)))])
def test_without_scripting_every_number_is_there(walk: Walkthrough) -> None:
    page = re.sub(r"<(script|style)\b.*?</\1>", "", render(walk), flags=re.DOTALL)

    assert numbers(re.sub(r"<[^>]*>", " ", page)) == numbers(shown(walk))
    assert page.count("not computed") == 3


def test_the_script_is_given_the_numbers_unrounded() -> None:
    walk = walked(0.1 + 0.2, 1 / 3, eps=1e-6 / 3)
    (data,) = re.findall(r'<script type="application/json" id="given">(.*?)</script>', render(walk))

    assert json.loads(data) == {
        **vars(walk.example),
        **{n: [*getattr(walk.example, n)] for n in ("values", "gain", "bias")},
    }


def test_a_page_names_nothing_outside_itself() -> None:
    page = render(PLAIN)

    assert re.findall(r"(?:https?:)?//[a-z]", re.sub(r"^\s*//.*$", "", page, flags=re.MULTILINE)) == []
    assert re.findall(r'(?:src|href)="([^"]*)"', page) == ["data:,"]
    assert "default-src 'none'" in page


def test_a_command_in_a_sentence_is_set_as_code() -> None:
    assert "<code>normbench sweep</code>" in render(PLAIN)
    assert "`" not in re.sub(r"<script>.*?</script>", "", render(PLAIN), flags=re.DOTALL)
    assert SPEED.partition("`")[0] in render(PLAIN)


def test_the_page_is_made_of_templates_of_its_own() -> None:
    folder = Path(walkthrough_page.__file__).parent / "templates"

    assert (folder / "walkthrough.js").read_text(encoding="utf-8").strip() in render(PLAIN)
    assert (folder / "walkthrough.css").read_text(encoding="utf-8").strip() in render(PLAIN)
    assert "All results" not in render(PLAIN)
