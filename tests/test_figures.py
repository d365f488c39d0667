"""The figures of the tests of a GPU are told before they are held to their limit, and are none in a rehearsal."""

from __future__ import annotations

import pytest

from tests.gpu.figures import Figures


def test_a_figure_within_its_limit_is_told_with_what_it_is_of() -> None:
    told: list[tuple[str, object]] = []
    figures = Figures(lambda name, value: told.append((name, value)))
    figures.near(1.25, 1.0, 0.25, "here")
    figures.say("3 ns", "a step")
    assert told == [("where", "here"), ("off_by", 0.25), ("figure", "a step: 3 ns")]


@pytest.mark.parametrize("measured", [0.5, 1.5])
def test_one_beyond_it_is_told_too_and_fails(measured: float) -> None:
    told: dict[str, object] = {}
    with pytest.raises(AssertionError, match=r"here: .* is 50.00% off 1, allowed 25.00%"):
        Figures(told.__setitem__).near(measured, 1.0, 0.25, "here")
    assert told["off_by"] == 0.5


def test_in_a_rehearsal_no_time_is_too_far_off_but_it_must_be_a_number() -> None:
    figures = Figures(None)
    figures.near(2.0, 1.0, 0.25, "here")
    figures.hold(False, "never said")
    with pytest.raises(AssertionError):
        figures.near(float("nan"), 1.0, 0.25, "here")
