"""What is said of an example: every step under its name, nothing where a norm has no such step."""

from __future__ import annotations

import pytest

from normbench.reporters import walkthrough
from normbench.reporters.walkthrough import Explained, explained
from normbench.walkthrough import StepName, Walkthrough
from tests.reporters.examples import PLAIN, ROUND, UNDEFINED, walked


def lines(found: Explained) -> dict[str, tuple[tuple[str, ...] | None, ...]]:
    return {line.title: tuple(figures.texts for figures in line.norms) for line in found.steps}


def test_the_known_values_can_be_read_as_such() -> None:
    found = lines(explained(PLAIN))

    assert found["divided by the root"][1] == ("0.462910", "0.925820", "1.388730")
    assert found["+ bias"][0] == ("-1.224744", "0.000000", "1.224744")


def test_there_are_ten_steps_in_their_order() -> None:
    found = explained(ROUND)

    assert [line.number for line in found.steps] == list(range(1, 11))
    assert [line.title for line in found.steps] == [
        *("values", "mean", "centred", "squares", "mean of squares"),
        *("+ eps", "root", "divided by the root", "× gain", "+ bias"),
    ]


def test_a_step_that_a_norm_does_not_have_is_no_number() -> None:
    absent = {title for title, (_, rmsnorm) in lines(explained(PLAIN)).items() if rmsnorm is None}

    assert absent == {"mean", "centred", "+ bias"}
    assert all(layernorm for layernorm, _ in lines(explained(PLAIN)).values())
    assert {f.line for line in explained(PLAIN).steps for f in line.norms if f.texts is None} == {"not computed"}


def test_a_formula_stands_where_there_is_a_step_and_nowhere_else() -> None:
    assert set(walkthrough.FORMULAS) == set(walkthrough.TITLES) == set(StepName)
    for line in explained(PLAIN).steps:
        assert [bool(figures.formula) for figures in line.norms] == [f.texts is not None for f in line.norms]


def test_effects_come_in_the_order_before_shifted_scaled_for_each_norm() -> None:
    found = explained(walked(1.0, 2.0, 3.0, shift=-4.0, scale=-0.5)).effects

    assert [(line.norm, line.input) for line in found] == [
        *(("LayerNorm", "x"), ("LayerNorm", "x - 4"), ("LayerNorm", "x × -0.5")),
        *(("RMSNorm", "x"), ("RMSNorm", "x - 4"), ("RMSNorm", "x × -0.5")),
    ]
    assert found[1].output.texts == ("-1.224744", "0.000000", "1.224744")
    assert found[4].change is not None
    assert found[4].change.texts == ("1.851640",)  # from 0.462910 to -1.388730


def test_a_scale_says_what_eps_breaks_and_a_shift_does_not() -> None:
    found = explained(PLAIN).effects

    assert [(line.change is None, line.broken is None) for line in found] == [
        (True, True),
        (False, True),
        (False, False),
    ] * 2
    assert found[2].broken is not None
    assert found[2].broken.texts == ("6.889180e-07",)


def test_what_eps_breaks_is_absent_for_a_scale_of_zero() -> None:
    broken = [line.broken.texts for line in explained(UNDEFINED).effects if line.broken]

    assert broken == [(), ()]


@pytest.mark.parametrize(
    ("walk", "said"), [(UNDEFINED, True), (walked(1.0, 2.0, eps=0.0), False), (walked(2.0, 2.0, scale=0.0), False)]
)
def test_what_no_number_means_is_said_where_there_is_one(walk: Walkthrough, said: bool) -> None:
    assert (walkthrough.NO_NUMBER in explained(walk).notes) == said


def test_a_parameter_that_is_everybodys_is_said_once_and_values_each() -> None:
    found = explained(walked(2.0, 2.0, gain=(3.0, 4.0), bias=(0.5,)))

    assert found.title == "LayerNorm and RMSNorm of 2, 2"
    assert found.given == "eps 1e-06, gain 3, 4, bias 0.5"


def test_what_each_needs_is_said_with_the_number_and_the_rule() -> None:
    assert [(need.what, need.layernorm, need.rmsnorm) for need in explained(PLAIN).needs] == [
        ("parameters", "2N = 6: gain and bias", "N = 3: gain"),
        ("reductions over the row", "2: mean and variance", "1: mean of squares"),
    ]
