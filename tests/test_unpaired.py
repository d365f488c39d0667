"""Two runs that share no rounds: the interval of their ratio, against scipy and by simulation."""

from __future__ import annotations

from math import exp, inf, isfinite, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from benchmarks.unpaired import DISTURBED, SETTINGS, Setting, false_failures, study
from normbench import stats
from tests.helpers import make_samples

A_US = (100, 101, 99, 100, 160)
B_US = (105, 104, 106, 105, 104)
"""Medians 100 and 105; the middle of the pairs' ratios, and their geometric mean, say something else."""

VALUES = st.lists(st.floats(min_value=-50, max_value=50), min_size=5, max_size=12)


def one_a_placement(logarithms: list[float]) -> dict[tuple[int, int], float]:
    return {(0, placement): value for placement, value in enumerate(logarithms)}


def logs_of(seconds_us: tuple[int, ...], placements: int) -> dict[tuple[int, int], float]:
    """The same five rounds in every placement."""
    return stats.placement_logs(make_samples([[us * 1e-6 for us in seconds_us]] * placements))


@pytest.mark.parametrize("counts", [(3, 4), (5, 5), (5, 9), (10, 10), (5, 20), (40, 12)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.97])
def test_the_interval_is_the_one_scipy_gives_for_welch_below_ten_and_yuen_above(
    counts: tuple[int, int], confidence: float
) -> None:
    random = np.random.default_rng(sum(counts))
    one, other = random.normal(3.0, 0.5, counts[0]), random.normal(2.5, 2.0, counts[1])
    difference, half = stats.difference_interval(list(one), list(other), confidence)

    if max(counts) < 10 or min(counts) >= 10:  # scipy trims both or none
        trim = 0.25 if min(counts) >= 10 else 0.0
        low, high = ttest_ind(one, other, equal_var=False, trim=trim).confidence_interval(confidence)
        assert half is not None
        assert (difference - half, difference + half) == pytest.approx((low, high))


def test_of_a_trimmed_and_a_plain_sample_both_variances_count_by_their_own_degrees_of_freedom() -> None:
    few, many = [0.0, 1.0, 2.0, 3.0, 4.0], [float(n) for n in range(12)]
    difference, half = stats.difference_interval(few, many)
    _, of_few = stats.mean_interval(few)
    _, of_many = stats.mean_interval(many)

    assert half is not None
    assert of_few is not None
    assert of_many is not None
    assert difference == 2.0 - 5.5
    assert max(of_few, of_many) < half < of_few + of_many


def test_a_ratio_is_of_the_medians_however_far_one_round_was_off() -> None:
    """A takes 100 and B 105: the means, 111.8 and 104.8, would say the opposite."""
    ratio = stats.unpaired_ratio(logs_of(B_US, 5), logs_of(A_US, 5))

    assert ratio is not None
    assert ratio.value == pytest.approx(1.05)
    assert (ratio.low, ratio.high) == (ratio.value, ratio.value), "every placement agrees"


def test_one_placement_gives_the_ratio_of_the_medians_and_no_interval() -> None:
    ratio = stats.unpaired_ratio(logs_of(A_US, 1), logs_of(B_US, 1))

    assert ratio is not None
    assert ratio.value == pytest.approx(100 / 105)
    assert ratio.low is None


def test_ratios_of_a_half_and_of_2_have_a_geometric_mean_of_1() -> None:
    ratio = stats.unpaired_ratio(one_a_placement([log(0.5), log(2.0)]), one_a_placement([0.0, 0.0]))

    assert ratio is not None
    assert ratio.value == pytest.approx(1.0)


@pytest.mark.parametrize(("base", "head"), [(4, 5), (5, 4), (4, 40)])
def test_there_is_no_interval_where_either_run_has_fewer_than_five_placements(base: int, head: int) -> None:
    ratio = stats.unpaired_ratio(one_a_placement([0.1, 0.2] * (base // 2)), one_a_placement([0.1] * head))

    assert ratio is not None
    assert ratio.low is None


def test_of_several_processes_the_unit_is_the_process() -> None:
    """Eight placements of each of four processes are four values, of five processes five."""
    four = {(process, placement): 0.1 * process for process in range(4) for placement in range(8)}
    five = {(process, placement): 0.1 * process for process in range(5) for placement in range(8)}
    other = one_a_placement([0.0, 0.1, 0.2, 0.3, 0.4])
    without, with_ = stats.unpaired_ratio(four, other), stats.unpaired_ratio(five, other)

    assert without is not None
    assert without.low is None
    assert with_ == stats.unpaired_ratio(other, other)


def test_nothing_to_divide_by_gives_no_ratio() -> None:
    assert stats.unpaired_ratio({}, one_a_placement([0.0])) is None
    assert stats.unpaired_ratio(one_a_placement([0.0]), {}) is None


def test_variances_too_small_for_their_squares_give_an_interval_all_the_same() -> None:
    tiny = [0.0, 1e-100, 2e-100, 3e-100, 4e-100]
    _, half = stats.difference_interval(tiny, tiny)

    assert half is not None
    assert 0 < half < inf


def test_an_interval_that_no_float_could_hold_is_none() -> None:
    absurd = one_a_placement([-600.0, 600.0, -600.0, 600.0, 0.0])
    ratio = stats.unpaired_ratio(absurd, absurd)

    assert ratio is not None
    assert (ratio.value, ratio.low) == (1.0, None)


@given(VALUES, VALUES)
def test_the_interval_holds_the_ratio_and_is_turned_round_with_the_runs(one: list[float], other: list[float]) -> None:
    ratio = stats.unpaired_ratio(one_a_placement(one), one_a_placement(other))
    turned = stats.unpaired_ratio(one_a_placement(other), one_a_placement(one))

    assert ratio is not None
    assert turned is not None
    if ratio.high is not None and turned.low is not None:
        assert turned.value == pytest.approx(1 / ratio.value)
        assert log(turned.low) == pytest.approx(-log(ratio.high), abs=1e-9)
        assert all(isfinite(x) for x in (ratio.value, ratio.high))


def test_a_wider_confidence_gives_a_wider_interval_of_the_same_value() -> None:
    base, head = one_a_placement([0.0, 0.1, 0.2, 0.3, 0.4]), one_a_placement([0.1, 0.1, 0.1, 0.2, 0.1])
    narrow, wide = stats.unpaired_ratio(base, head), stats.unpaired_ratio(base, head, 0.9996)

    assert narrow is not None
    assert wide is not None
    assert narrow.value == wide.value == pytest.approx(exp(0.2 - 0.12))
    assert wide.low is not None
    assert narrow.low is not None
    assert wide.low < narrow.low


@pytest.mark.parametrize("setting", [SETTINGS[1], SETTINGS[5], SETTINGS[11], DISTURBED[1]], ids=str)
def test_unlike_spreads_and_numbers_of_placements_are_covered(setting: Setting) -> None:
    assert study(setting, 1500).coverage >= 0.94


@pytest.mark.slow
@pytest.mark.parametrize("setting", [*SETTINGS, *DISTURBED], ids=str)
@pytest.mark.parametrize("confidence", [0.95, stats.CONFIDENCE])
def test_twenty_thousand_pairs_of_runs_are_covered_as_often_as_they_say(setting: Setting, confidence: float) -> None:
    assert study(setting, 20_000, confidence=confidence).coverage >= 0.93


@pytest.mark.slow
def test_a_gate_of_84_unchanged_cases_fails_by_chance_alone_no_more_often_than_one_case_would() -> None:
    own, widened = false_failures(Setting(counts=(5, 5), sigmas=(0.03, 0.03)), 1000, cases=84, threshold=0.05)

    assert own > 0.1, "what widening is for"
    assert widened <= 0.03
