"""What one norm alone says of a whole step, by numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from normbench import prediction
from normbench.prediction import Difference, Gap, Prediction
from normbench.records import Cache, DType, Estimate, Mode, Part, Run, Status, StepRun
from tests.runs import around, make_run
from tests.runs import make_plan as make_alone_plan
from tests.step_runs import make_cell, make_step_plan, make_step_result, make_step_run

NAMES = ("nn-layernorm", "eager-rmsnorm")
THIRD = "nn-rmsnorm"
ALL = ("copy", *NAMES, THIRD)
CELL = make_cell()  # the tiny model: nine norms over 2048 × 256
PLAN = make_step_plan(implementations=NAMES)


def alone_of(times: dict[str, Any], **changes: Any) -> Run:
    """The norms by themselves, forward and backward, in the tiny model's shape."""
    fields: dict[str, Any] = {
        "widths": (256,),
        "rows": (2048,),
        "modes": (Mode.FORWARD_BACKWARD,),
        "implementations": ("copy", *NAMES),
        **changes,
    }
    return make_run(make_alone_plan(**fields), {"copy": 1e-4, **times})


def step_of(alone: Run | None, ratio: float | Status = 1.1, **changes: Any) -> StepRun:
    """The baseline's step takes 0.1 s, the candidate's so many times that."""
    return make_step_run(PLAN, {NAMES[0]: 1.0, NAMES[1]: ratio}, alone=alone, spread=0.01, **changes)


ALONE = alone_of({NAMES[0]: 1e-3, NAMES[1]: 2e-3})


def test_a_speedup_of_a_time_is_so_many_seconds_and_its_interval_s_ends_change_places() -> None:
    found = prediction.difference(Estimate(value=2.0), Estimate(value=0.8, low=0.5, high=1.25))

    assert found is not None
    assert found.value_s == pytest.approx(0.5)  # 2/0.8 - 2
    assert found.low_s == pytest.approx(-0.4)  # 2/1.25 - 2
    assert found.high_s == pytest.approx(2.0)  # 2/0.5 - 2
    assert found.low_s < found.value_s < found.high_s


@pytest.mark.parametrize(
    ("baseline", "speedup"),
    [
        (None, around(1.1)),
        (around(1.0), None),
        (around(1.0), Estimate(value=1.1)),
    ],
)
def test_without_a_time_or_an_interval_there_is_no_difference(
    baseline: Estimate | None, speedup: Estimate | None
) -> None:
    assert prediction.difference(baseline, speedup) is None


def test_a_model_s_norms_take_as_many_times_as_long() -> None:
    assert Difference(value_s=2.0, low_s=-1.0, high_s=3.0) * 9 == Difference(value_s=18.0, low_s=-9.0, high_s=27.0)


@pytest.mark.parametrize(
    ("measured", "gap"),
    [
        ((2.0, 1.5, 2.5), Gap.AGREES),
        ((4.0, 3.0, 5.0), Gap.AGREES),  # an end in common
        ((0.0, -1.0, 1.0), Gap.AGREES),
        ((1.0, -4.0, 6.0), Gap.OPEN),
        ((1.0, 0.001, 6.0), Gap.AGREES),  # wide, but no longer nothing
        ((4.0, 3.001, 5.0), Gap.MORE),
        ((0.0, -1.0, 0.999), Gap.LESS),
        ((-5.0, -6.0, -4.0), Gap.LESS),
    ],
)
def test_a_gap_is_one_only_where_the_intervals_are_apart(measured: tuple[float, ...], gap: Gap) -> None:
    value, low, high = measured
    found = Prediction(
        cell=CELL,
        candidate="c",
        norms=9,
        predicted=Difference(value_s=2.0, low_s=1.0, high_s=3.0),
        measured=Difference(value_s=value, low_s=low, high_s=high),
    )

    assert found.gap is gap
    assert found.gap_s == value - 2.0


def test_nine_times_the_difference_of_one_norm_is_held_against_the_step_s() -> None:
    (found,) = prediction.of_run(step_of(ALONE))

    assert (found.candidate, found.norms, found.cell) == (NAMES[1], 9, CELL)
    assert found.predicted.value_s == pytest.approx(9 * 1e-3)
    assert found.predicted.low_s == pytest.approx(9e-3 * (2 / 1.01 - 1))
    assert found.predicted.high_s == pytest.approx(9e-3 * (2 * 1.01 - 1))
    assert found.measured.value_s == pytest.approx(0.1 * 0.1)
    assert found.measured.low_s == pytest.approx(0.1 * (1.1 / 1.01 - 1))
    assert found.gap_s == pytest.approx(1e-3)
    assert found.gap is Gap.AGREES


def test_a_step_that_loses_more_than_its_norms_do_says_so_and_one_that_loses_less() -> None:
    more, less = (next(iter(prediction.of_run(step_of(ALONE, ratio)))) for ratio in (1.3, 1.0))

    assert (more.gap, less.gap) == (Gap.MORE, Gap.LESS)


@pytest.mark.parametrize(
    "run",
    [
        step_of(None),
        step_of(ALONE, Status.INCORRECT),
        step_of(alone_of({NAMES[0]: 1e-3, NAMES[1]: Status.FAILED})),
        step_of(alone_of({NAMES[0]: Status.FAILED, NAMES[1]: 1e-3})),
        step_of(alone_of({NAMES[0]: 1e-3, NAMES[1]: 2e-3}, widths=(128,))),
        step_of(alone_of({NAMES[0]: 1e-3, NAMES[1]: 2e-3}, rows=(1024,))),
        step_of(alone_of({NAMES[0]: 1e-3, NAMES[1]: 2e-3}, dtypes=(DType.BF16,))),
        step_of(alone_of({NAMES[0]: 1e-3, NAMES[1]: 2e-3}, modes=(Mode.FORWARD,))),
        step_of(alone_of({NAMES[0]: 1e-3, NAMES[1]: 2e-3, THIRD: 3e-3}, implementations=ALL, baseline=THIRD)),
        step_of(ALONE, cells=()),
    ],
    ids=[
        "nothing alone",
        "step wrong",
        "failed",
        "no baseline",
        "width",
        "rows",
        "dtype",
        "mode",
        "other",
        "no cell",
    ],
)
def test_where_either_is_missing_or_is_another_question_nothing_is_predicted(run: StepRun) -> None:
    assert list(prediction.of_run(run)) == []


@pytest.mark.parametrize("cache", list(Cache))
def test_the_norms_alone_may_have_been_measured_in_either_cache_state(cache: Cache) -> None:
    run = step_of(alone_of({NAMES[0]: 1e-3, NAMES[1]: 2e-3}, caches=(cache,)))

    assert len(list(prediction.of_run(run))) == 1


def test_the_share_is_nine_times_one_norm_over_the_step() -> None:
    run = step_of(ALONE)

    assert prediction.share(run, CELL, NAMES[0]) == pytest.approx(9e-3 / 0.1)
    assert prediction.share(run, CELL, NAMES[1]) == pytest.approx(18e-3 / 0.11)
    assert prediction.alone_time(run, CELL, NAMES[1]) == around(2e-3)


@pytest.mark.parametrize(
    "run",
    [
        step_of(None),
        step_of(ALONE, Status.INCORRECT),
        step_of(alone_of({NAMES[0]: 1e-3, NAMES[1]: Status.FAILED})),
        step_of(alone_of({NAMES[0]: 1e-3, NAMES[1]: 2e-3}, widths=(64,))),
    ],
)
def test_without_either_time_there_is_no_share(run: StepRun) -> None:
    assert prediction.share(run, CELL, NAMES[1]) is None


def test_a_step_that_has_parts_but_no_whole_is_no_baseline() -> None:
    failed = make_step_result(CELL, NAMES[0], Status.FAILED)
    run = step_of(ALONE)
    run = replace(run, results=(failed, *(r for r in run.results if r.implementation != NAMES[0])))

    assert Part.STEP not in failed.times
    assert list(prediction.of_run(run)) == []
