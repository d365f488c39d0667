"""Whether a model learns as well, by numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from normbench import quality
from normbench.quality import Learned, Quality
from normbench.records import Status, StepRun, TrainingCurve
from tests.step_runs import make_curve, make_step_header, make_step_plan, make_step_run, make_training_plan

BASE, OTHER = "nn-layernorm", "nn-rmsnorm"
Ends = Mapping[str, Mapping[int, float]]


def run_of(ends: Ends, *more: TrainingCurve, seeds: tuple[int, ...] = (0, 1, 2)) -> StepRun:
    """Training whose curves ended with these bits per byte, by implementation and seed."""
    training = make_training_plan(seeds=seeds)
    plan = make_step_plan(cells=(), implementations=(BASE, OTHER), training=training)
    curves = [make_curve(name, seed, end, training) for name, of in ends.items() for seed, end in of.items()]
    return StepRun(header=make_step_header(plan), curves=(*curves, *more))


def only(run: StepRun) -> Quality:
    (found,) = quality.of_run(run)
    return found


def test_the_difference_is_the_mean_over_seeds_and_its_interval_student_s() -> None:
    found = only(run_of({BASE: {0: 2.0, 1: 2.1, 2: 2.2}, OTHER: {0: 2.01, 1: 2.12, 2: 2.23}}))

    assert (found.candidate, found.baseline, found.seeds) == (OTHER, BASE, 3)
    assert found.difference == pytest.approx(0.02)
    # differences 0.01, 0.02, 0.03: deviation 0.01; t of two degrees of freedom at 97.5 % is 4.302653
    assert found.half_width == pytest.approx(4.302653 * 0.01 / 3**0.5, rel=1e-6)
    assert found.noise == pytest.approx(0.1)
    assert found.outcome is Learned.SAME


def test_with_two_seeds_the_interval_is_that_of_one_degree_of_freedom() -> None:
    found = only(run_of({BASE: {0: 2.0, 1: 2.2}, OTHER: {0: 2.0, 1: 2.4}}, seeds=(0, 1)))

    assert found.half_width == pytest.approx(12.706205 * 0.2 / 2, rel=1e-6)
    assert found.noise == pytest.approx(0.02**0.5)


def test_with_one_seed_there_is_a_difference_and_nothing_to_judge_it_by() -> None:
    found = only(run_of({BASE: {5: 2.0}, OTHER: {5: 1.5}}, seeds=(5,)))

    assert (found.seeds, found.difference) == (1, -0.5)
    assert (found.half_width, found.noise, found.outcome) == (None, None, Learned.UNDECIDED)


@pytest.mark.parametrize(
    ("ends", "seeds", "difference"),
    [
        ({OTHER: {0: 2.0, 1: 2.1, 2: 2.2}}, 0, None),  # no baseline
        ({BASE: {0: 2.0, 1: 2.1, 2: 2.2}}, 0, None),  # no candidate
        ({}, 0, None),
        ({BASE: {0: 2.0, 1: 2.1}, OTHER: {2: 2.0}}, 0, None),  # no seed in common
        ({BASE: {0: 2.0, 1: 2.1, 2: 2.2}, OTHER: {1: 2.25}}, 1, 0.15),
    ],
)
def test_only_seeds_that_both_ended_with_are_compared(ends: Ends, seeds: int, difference: float | None) -> None:
    found = only(run_of(ends))

    assert found.seeds == seeds
    assert found.difference == (None if difference is None else pytest.approx(difference))
    assert (found.half_width, found.outcome) == (None, Learned.UNDECIDED)


def test_pairs_are_of_one_seed_in_whichever_order_the_curves_come() -> None:
    in_order = {BASE: {0: 2.0, 1: 2.5, 2: 3.0}, OTHER: {0: 2.1, 1: 2.6, 2: 3.1}}
    shuffled = {OTHER: {2: 3.1, 0: 2.1, 1: 2.6}, BASE: {1: 2.5, 2: 3.0, 0: 2.0}}
    one, other = only(run_of(in_order)), only(run_of(shuffled))

    assert one.difference == pytest.approx(0.1)
    assert one.half_width == pytest.approx(0.0, abs=1e-12)
    assert other.difference == pytest.approx(0.1)
    assert other.half_width == pytest.approx(0.0, abs=1e-12)


def test_the_noise_is_the_baseline_s_own_over_all_its_seeds_whatever_the_candidate_did() -> None:
    found = only(run_of({BASE: {0: 2.0, 1: 2.1, 2: 2.2}, OTHER: {0: 5.0}}))

    assert found.noise == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("difference", "half_width", "noise", "outcome"),
    [
        (0.5, 0.25, 0.75, Learned.SAME),  # the interval ends at the noise
        (-0.5, 0.25, 0.75, Learned.SAME),
        (0.5, 0.25, 0.7499, Learned.UNDECIDED),  # and now beyond it
        (0.0, 0.5, 0.5, Learned.SAME),
        (0.0, 0.0, 0.0, Learned.SAME),
        (0.5, 0.25, 0.4999, Learned.WORSE),
        (-0.5, 0.25, 0.4999, Learned.BETTER),
        (0.5, 0.25, 0.5, Learned.UNDECIDED),  # no more than the noise
        (0.5, 0.5, 0.25, Learned.UNDECIDED),  # the interval touches 0
        (0.5, 0.4999, 0.25, Learned.WORSE),
        (0.01, 1.0, 0.5, Learned.UNDECIDED),
        (0.5, 0.0, 0.0, Learned.WORSE),
        (None, None, 0.5, Learned.UNDECIDED),
        (0.5, None, 0.5, Learned.UNDECIDED),
        (0.5, 0.1, None, Learned.UNDECIDED),
    ],
)
def test_an_outcome_is_by_the_interval_and_by_the_noise(
    difference: float | None, half_width: float | None, noise: float | None, outcome: Learned
) -> None:
    found = Quality(
        candidate=OTHER, baseline=BASE, seeds=3, difference=difference, half_width=half_width, noise=noise
    )

    assert found.outcome is outcome


def unfinished(**changes: Any) -> TrainingCurve:
    return make_curve(OTHER, 0, 1.0, make_training_plan(), **changes)


@pytest.mark.parametrize(
    "curve",
    [
        unfinished(until=350),
        unfinished(until=-1),
        unfinished(status=Status.FAILED, reason="it diverged"),
        unfinished(until=50, status=Status.NOT_RUN, reason="interrupted"),
    ],
    ids=["not there yet", "not begun", "failed at the end", "interrupted"],
)
def test_a_run_that_did_not_get_to_its_end_has_no_end(curve: TrainingCurve) -> None:
    run = run_of({BASE: {0: 2.0}}, curve)

    assert quality.finals_by_seed(run, OTHER) == {}
    assert quality.finals_by_seed(run, BASE) == {0: 2.0}
    assert only(run).difference is None


def test_where_nothing_was_trained_there_is_no_end() -> None:
    run = make_step_run(make_step_plan(implementations=(BASE, OTHER)))

    assert quality.finals_by_seed(run, BASE) == {}


def test_every_candidate_is_judged_in_the_plan_s_order() -> None:
    names = ("eager-rmsnorm", BASE, OTHER)
    plan = make_step_plan(cells=(), implementations=names, training=make_training_plan())
    run = replace(run_of({}), header=make_step_header(plan))

    assert [found.candidate for found in quality.of_run(run)] == ["eager-rmsnorm", OTHER]
