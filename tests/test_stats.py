from __future__ import annotations

import random
from collections.abc import Iterable
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student
from scipy.stats.mstats import trimmed_mean_ci

from normbench import stats
from normbench.records import Estimate, Flag, Reading, Sample
from tests.helpers import make_sample, make_samples

SECONDS = st.floats(min_value=1e-8, max_value=1e-2)
PLACEMENTS = st.integers(2, 6).flatmap(
    lambda rounds: st.lists(
        st.lists(st.tuples(SECONDS, SECONDS), min_size=rounds, max_size=rounds), min_size=1, max_size=6
    )
)


def estimate_of(estimate: Estimate | None) -> Estimate:
    assert estimate is not None
    return estimate


def rounds_of_one_placement(seconds: Iterable[float]) -> list[Sample]:
    return make_samples([list(seconds)])


def split_pairs(pairs: list[list[tuple[float, float]]]) -> tuple[list[Sample], list[Sample]]:
    one = make_samples([[first for first, _ in placement] for placement in pairs], "one")
    return one, make_samples([[second for _, second in placement] for placement in pairs], "two")


def test_the_interval_of_three_values_is_what_student_s_t_gives_by_hand() -> None:
    # With two degrees of freedom the quantile has a closed form: c·sqrt(2 ÷ (1 - c²)) at confidence c.
    mean, half = stats.mean_interval([1.0, 2.0, 3.0], confidence=0.97)

    assert mean == 2.0
    assert half == pytest.approx(0.97 * sqrt(2 / (1 - 0.97**2)) * 1.0 / sqrt(3))


@pytest.mark.parametrize("count", [2, 3, 5, 9])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.97])
def test_below_ten_values_the_interval_is_the_one_scipy_gives(count: int, confidence: float) -> None:
    values = np.random.default_rng(count).normal(3.0, 0.5, count)
    low, high = student.interval(confidence, count - 1, values.mean(), values.std(ddof=1) / sqrt(count))
    mean, half = stats.mean_interval(list(values), confidence)

    assert half is not None
    assert (mean - half, mean + half) == pytest.approx((low, high))


@pytest.mark.parametrize("count", [10, 20, 40])
def test_from_ten_values_on_the_interval_is_yuens_of_a_trimmed_mean(count: int) -> None:
    values = np.random.default_rng(count).normal(3.0, 0.5, count)
    cut = count // 4
    low, high = trimmed_mean_ci(values, limits=(cut / count, cut / count), alpha=0.03)
    mean, half = stats.mean_interval(list(values), 0.97)

    assert half is not None
    # Tukey and McLaughlin's, which scipy has, divides by n where Yuen's divides by n - 1, and h by h - 1.
    kept = count - 2 * cut
    wider = sqrt((count - 1) * kept / (count * (kept - 1)))
    assert (mean, half) == pytest.approx(((low + high) / 2, (high - low) / 2 * wider))


def test_two_placements_of_ten_that_something_disturbed_neither_move_the_mean_nor_widen_the_interval() -> None:
    quiet = [-0.004, -0.003, -0.002, -0.001, 0.0, 0.001, 0.002, 0.003]
    mean, half = stats.mean_interval([*quiet, 1.5, -0.9])

    assert mean == pytest.approx(-0.0005)
    assert half is not None
    assert half < 0.006


@pytest.mark.parametrize(
    ("values", "mean"),
    [([1.0], 1.0), ([1.0, 2.0], 1.5), ([1.0, 2.0, 30.0], 11.0), ([9.0, 1.0, 2.0, 3.0], 2.5), ([1, 2, 3, 4, 99], 3.0)],
)
def test_the_interquartile_mean_leaves_out_a_whole_quarter_at_each_end(values: list[float], mean: float) -> None:
    assert stats.interquartile_mean(values) == mean


def test_of_several_processes_the_interval_is_over_processes() -> None:
    """However many placements each has: what a process has in common is in all of them."""
    shifts = [0.0, 0.01, 0.02, 0.03, 0.04]
    few = {(process, 0): shift for process, shift in enumerate(shifts)}
    many = {(process, placement): shift for process, shift in enumerate(shifts) for placement in range(8)}
    estimate = estimate_of(stats.geometric_estimate(many))

    assert estimate == estimate_of(stats.geometric_estimate(few))
    assert estimate.value == pytest.approx(exp(0.02))
    assert estimate.low is not None


def test_fewer_than_five_processes_have_no_interval_however_many_placements_they_have() -> None:
    logarithms = {(process, placement): 0.1 for process in range(4) for placement in range(10)}

    assert estimate_of(stats.geometric_estimate(logarithms)).low is None


def test_one_value_has_no_interval() -> None:
    assert stats.mean_interval([2.5]) == (2.5, None)


def test_values_that_agree_have_an_interval_of_no_width() -> None:
    assert stats.mean_interval([2.5, 2.5, 2.5]) == (2.5, 0.0)


def test_no_placement_gives_no_estimate() -> None:
    assert stats.time_estimate([]) is None
    assert stats.geometric_estimate({}) is None


def test_one_placement_gives_a_value_without_an_interval() -> None:
    estimate = estimate_of(stats.time_estimate(make_samples([[3e-6, 1e-6, 2e-6]])))

    assert estimate.value == pytest.approx(2e-6)
    assert (estimate.low, estimate.high) == (None, None)


def test_ratios_of_a_half_and_of_two_average_to_one() -> None:
    one = make_samples([[1.0], [4.0]], "one")
    two = make_samples([[2.0], [2.0]], "two")

    assert estimate_of(stats.ratio_estimate(one, two)).value == pytest.approx(1.0, abs=1e-15)


def test_an_outlier_moves_neither_the_medians_nor_the_ratio() -> None:
    a = rounds_of_one_placement(s * 1e-6 for s in [100, 101, 99, 100, 160])
    b = rounds_of_one_placement(s * 1e-6 for s in [105, 104, 106, 105, 104])

    assert estimate_of(stats.time_estimate(a)).value == pytest.approx(100e-6)
    assert estimate_of(stats.time_estimate(b)).value == pytest.approx(105e-6)
    # Paired by round the ratios are 1.05, 104/101, 106/99, 1.05 and 0.65: the median is 1.05.
    assert estimate_of(stats.ratio_estimate(b, a)).value == pytest.approx(1.05)


def test_a_clock_that_slows_down_halfway_leaves_the_ratio_of_paired_rounds_at_one() -> None:
    seconds = [[10e-6] * 4] * 3 + [[10e-6] * 2 + [10e-6 / 0.85] * 2] + [[10e-6 / 0.85] * 4] * 3
    ratio = estimate_of(stats.ratio_estimate(make_samples(seconds, "one"), make_samples(seconds, "two")))

    assert (ratio.low, ratio.value, ratio.high) == (1.0, 1.0, 1.0)


def test_the_unit_of_replication_is_the_placement_and_not_the_round() -> None:
    few = [[1.0] * 3, [1.1] * 3]
    many = [[1.0] * 300, [1.1] * 300]

    assert stats.time_estimate(make_samples(few)) == stats.time_estimate(make_samples(many))


def test_rounds_that_the_other_lacks_are_left_out_of_the_ratio() -> None:
    one = make_samples([[1.0, 8.0], [1.0, 8.0]], "one")
    two = [sample for sample in make_samples([[1.0, 1.0], [1.0, 1.0]], "two") if sample.round == 0]

    assert estimate_of(stats.ratio_estimate(one, two)).value == 1.0


def test_without_a_round_in_common_there_is_no_ratio() -> None:
    assert stats.ratio_estimate([make_sample(1.0, round=0)], [make_sample(1.0, round=1)]) is None


def test_placements_of_two_processes_are_two_placements() -> None:
    samples = [make_sample(1.0, process=process) for process in (0, 1)]

    assert set(stats.placement_logs(samples)) == {(0, 0), (1, 0)}


def test_a_batch_counts_by_its_time_for_one_call() -> None:
    assert estimate_of(stats.time_estimate([make_sample(64e-6, calls=64)])).value == pytest.approx(1e-6)


def test_samples_are_chosen_by_implementation_and_by_clock() -> None:
    samples = [make_sample(1.0, "one"), make_sample(2.0, "one", clock="cuda-event"), make_sample(3.0, "two")]

    assert [s.seconds for s in stats.of_implementation(samples, "one")] == [1.0, 2.0]
    assert [s.seconds for s in stats.of_implementation(samples, "one", "wall")] == [1.0]


@given(PLACEMENTS)
def test_the_ratio_the_other_way_round_is_the_reciprocal(pairs: list[list[tuple[float, float]]]) -> None:
    one, two = split_pairs(pairs)
    there, back = estimate_of(stats.ratio_estimate(one, two)), estimate_of(stats.ratio_estimate(two, one))

    assert there.value * back.value == pytest.approx(1.0)
    if there.low is not None and back.high is not None:
        assert there.low * back.high == pytest.approx(1.0)


@given(PLACEMENTS, st.floats(0.01, 100))
def test_a_device_that_is_so_much_slower_has_times_that_are_so_much_longer_and_the_same_ratios(
    pairs: list[list[tuple[float, float]]], factor: float
) -> None:
    one, two = split_pairs(pairs)
    slow_one, slow_two = split_pairs([[(a * factor, b * factor) for a, b in placement] for placement in pairs])

    time, slow_time = estimate_of(stats.time_estimate(one)), estimate_of(stats.time_estimate(slow_one))
    assert slow_time.value == pytest.approx(time.value * factor)
    ratio, slow_ratio = stats.ratio_estimate(one, two), stats.ratio_estimate(slow_one, slow_two)
    assert estimate_of(slow_ratio).value == pytest.approx(estimate_of(ratio).value)


@given(PLACEMENTS, st.integers(0, 99))
def test_the_order_of_the_samples_is_of_no_account(pairs: list[list[tuple[float, float]]], seed: int) -> None:
    one, _ = split_pairs(pairs)
    shuffled = random.Random(seed).sample(one, len(one))
    time = estimate_of(stats.time_estimate(one))

    assert estimate_of(stats.time_estimate(shuffled)).value == pytest.approx(time.value)


def test_the_half_width_is_relative_to_the_value_and_infinite_without_an_interval() -> None:
    assert stats.relative_half_width(Estimate(value=5.0, low=5.0 * exp(-0.1), high=5.0 * exp(0.1))) == pytest.approx(
        0.1
    )
    assert stats.relative_half_width(Estimate(value=5.0)) == inf
    assert stats.relative_half_width(None) == inf


def test_looking_three_times_still_covers_the_truth_in_95_trials_of_a_hundred() -> None:
    draws = np.random.default_rng(7)
    covered = 0
    for _ in range(1000):
        logs = draws.normal(0.0, 0.02, 40)  # where buffers lie biases a placement by 2 %
        for look in (10, 20, 40):
            mean, half = stats.mean_interval(list(logs[:look]))
            if half is not None and half < 0.01:
                break
        covered += half is not None and abs(mean) <= half

    assert covered >= 945


@pytest.mark.parametrize(("factor", "drifted"), [(1.0, False), (1.09, False), (1.12, True), (0.88, True)])
def test_a_drift_is_flagged_above_ten_per_cent_in_either_direction(factor: float, drifted: bool) -> None:
    logs = {(0, placement): log(factor) if placement >= 5 else 0.0 for placement in range(10)}

    assert stats.is_drifted(logs) is drifted


def test_processes_take_turns_so_a_process_that_is_slower_throughout_is_no_drift() -> None:
    logs = {(process, placement): 0.2 * process for process in range(5) for placement in range(8)}

    assert not stats.is_drifted(logs)
    assert not stats.is_drifted({key: log for key, log in logs.items() if key[1] < 2}), "thirds of unlike processes"
    assert stats.is_drifted({key: 0.1 * key[1] for key in logs})


def test_two_placements_are_too_few_to_call_it_a_drift() -> None:
    assert not stats.is_drifted({(0, 0): 0.0, (0, 1): 1.0})
    assert stats.is_drifted({(0, 0): 0.0, (0, 1): 0.5, (0, 2): 1.0})


@pytest.mark.parametrize(("apart", "share"), [(1.2, 0.5), (2.0, 0.2), (1.1, 0.7)])
def test_two_clusters_are_bimodal(apart: float, share: float) -> None:
    noise = np.random.default_rng(1).normal(1.0, 0.005, 200)
    centres = np.where(np.arange(200) < 200 * share, apart, 1.0)

    assert stats.is_bimodal(rounds_of_one_placement(centres * noise))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [0.01, 0.1, 0.3])
def test_noise_around_one_value_is_not_bimodal(spread: float, seed: int) -> None:
    draws = np.random.default_rng(seed)
    normal, uniform = draws.normal(0.0, spread, 300), draws.uniform(-spread, spread, 300)

    assert not stats.is_bimodal(rounds_of_one_placement(np.exp(normal)))
    assert not stats.is_bimodal(rounds_of_one_placement(np.exp(uniform)))


@pytest.mark.parametrize(
    "seconds",
    [[1.0] * 9 + [2.0] * 10, [1.0] * 98 + [2.0] * 2, [1.0] * 50 + [1.04] * 49 + [1.06], [1.0] * 50],
    ids=["few samples", "two outliers", "clusters within 5 %", "no spread"],
)
def test_what_might_look_like_two_clusters_and_is_too_little_is_not_bimodal(seconds: list[float]) -> None:
    assert not stats.is_bimodal(rounds_of_one_placement(seconds))


def test_fewer_placements_than_asked_for_are_flagged() -> None:
    samples = make_samples([[1.0], [1.0]])

    assert stats.sample_flags(samples, 3) == (Flag.FEW_SAMPLES,)
    assert stats.sample_flags(samples, 2) == ()


@pytest.mark.parametrize(
    ("reading", "flags"),
    [(None, ()), (Reading(sm_clock_hz=1e9), ()), (Reading(throttle_reasons=("sw_power_cap",)), (Flag.THROTTLED,))],
)
def test_one_round_on_a_throttled_device_flags_the_result(reading: Reading | None, flags: tuple[Flag, ...]) -> None:
    samples = [*make_samples([[1.0], [1.0]]), make_sample(1.0, placement=1, round=1, reading=reading)]

    assert stats.sample_flags(samples, 2) == flags


def test_everything_odd_is_said_at_once() -> None:
    samples = make_samples([[1.0] * 10, [1.0] * 10, [2.0] * 10])

    assert stats.sample_flags(samples, 10) == (Flag.FEW_SAMPLES, Flag.DRIFTED, Flag.BIMODAL)


def test_an_estimate_of_fewer_than_five_placements_has_no_interval() -> None:
    """Two that agree by chance would look certain."""
    five = {(0, placement): 0.0 for placement in range(5)}
    assert estimate_of(stats.geometric_estimate(five)) == Estimate(value=1.0, low=1.0, high=1.0)
    del five[0, 4]
    assert estimate_of(stats.geometric_estimate(five)) == Estimate(value=1.0)


@pytest.mark.parametrize(
    ("cores", "threads", "busy"),
    [(0.2, 2, False), (0.21, 2, True), (0.21, 4, False), (None, 2, False), (9.0, None, False)],
)
def test_over_a_tenth_of_the_threads_disturbs(cores: float | None, threads: int | None, busy: bool) -> None:
    assert stats.is_busy(cores, threads) is busy


def test_an_interval_that_no_float_can_hold_is_none() -> None:
    logs = {(0, placement): (-1) ** placement * 300.0 for placement in range(6)}

    estimate = stats.geometric_estimate(logs, 0.9999)

    assert estimate is not None
    assert estimate.low is None
    assert stats.geometric_estimate({key: value / 1000 for key, value in logs.items()}, 0.9999).low  # type: ignore[union-attr]
