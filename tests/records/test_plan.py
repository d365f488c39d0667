from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from normbench.records import MOST_CASES, Cache, DType, Mode, Plan, Precision
from tests.helpers import make_plan

AXES = ["widths", "rows", "dtypes", "parameter_dtypes", "autocasts", "modes", "caches"]


def test_cells_come_with_widths_innermost_and_each_dtype_complete_before_the_next() -> None:
    plan = make_plan(widths=(256, 64), dtypes=(DType.BF16, DType.FP32), modes=(Mode.FORWARD, Mode.BACKWARD))

    assert [(c.dtype, c.mode, c.width) for c in plan.cells()] == [
        (DType.BF16, Mode.FORWARD, 256),
        (DType.BF16, Mode.FORWARD, 64),
        (DType.BF16, Mode.BACKWARD, 256),
        (DType.BF16, Mode.BACKWARD, 64),
        (DType.FP32, Mode.FORWARD, 256),
        (DType.FP32, Mode.FORWARD, 64),
        (DType.FP32, Mode.BACKWARD, 256),
        (DType.FP32, Mode.BACKWARD, 64),
    ]


def test_there_is_a_cell_for_every_combination_of_the_axes() -> None:
    plan = make_plan(
        widths=(8, 16, 32),
        rows=(1, 2),
        dtypes=(DType.BF16,),
        parameter_dtypes=(None, DType.FP32),
        autocasts=(None, DType.FP16),
        modes=tuple(Mode),
        caches=tuple(Cache),
    )
    cells = list(plan.cells())

    assert len(cells) == len(set(cells)) == 3 * 2 * 1 * 2 * 2 * 4 * 2


def test_parameters_of_no_dtype_have_that_of_x() -> None:
    plan = make_plan(dtypes=(DType.FP32, DType.BF16))

    assert [c.parameter_dtype for c in plan.cells()] == [DType.FP32, DType.BF16]


def test_the_same_as_x_and_that_dtype_by_its_name_are_one_cell() -> None:
    plan = make_plan(dtypes=(DType.FP32, DType.BF16), parameter_dtypes=(None, DType.FP32))

    assert [(c.dtype, c.parameter_dtype) for c in plan.cells()] == [
        (DType.FP32, DType.FP32),
        (DType.BF16, DType.BF16),
        (DType.BF16, DType.FP32),
    ]


@pytest.mark.parametrize("axis", AXES)
def test_an_empty_axis_is_refused_by_its_name(axis: str) -> None:
    with pytest.raises(ValueError, match=f"^{axis} holds"):
        make_plan(**{axis: ()})


@pytest.mark.parametrize("axis", AXES)
def test_a_value_that_stands_twice_on_an_axis_is_refused(axis: str) -> None:
    (value,) = getattr(make_plan(), axis)

    with pytest.raises(ValueError, match=f"^{axis} holds"):
        make_plan(**{axis: (value, value)})


@pytest.mark.parametrize("missing", ["copy", "nn-layernorm"])
def test_a_plan_that_leaves_out_the_baseline_or_the_floor_is_refused(missing: str) -> None:
    names = tuple(name for name in make_plan().implementations if name != missing)

    with pytest.raises(ValueError, match="always measured along"):
        make_plan(implementations=names)


@pytest.mark.parametrize("changes", [{"baseline": "copy"}, {"eps": 0.0}, {"eps": -1e-6}, {"eps": float("nan")}])
def test_the_floor_as_baseline_and_an_eps_of_nothing_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the floor is no baseline, and eps is above 0"):
        make_plan(**changes)


def test_a_plan_made_with_the_defaults_measures_forward_and_backward_against_nn_layernorm() -> None:
    plan = Plan(
        widths=(8,), rows=(8,), dtypes=(DType.FP32,), caches=(Cache.WARM,), implementations=("copy", "nn-layernorm")
    )

    assert plan.modes == (Mode.FORWARD, Mode.BACKWARD)
    assert plan.baseline == "nn-layernorm"


def test_measuring_is_looked_at_after_one_two_and_four_times_the_least_placements() -> None:
    assert Precision().looks == (10, 20, 40)
    assert Precision(placements=3).looks == (3, 6, 12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"placements": 1}, "at least 2"),
        ({"target": 0.0}, "target and margin"),
        ({"target": 1.0}, "target and margin"),
        ({"margin": 0.0}, "target and margin"),
        ({"margin": 1.0}, "target and margin"),
        ({"max_seconds": 0.0}, "max_seconds above 0"),
        ({"max_seconds": float("nan")}, "max_seconds above 0"),
        ({"total_seconds": 0.0}, "total_seconds is above 0"),
        ({"total_seconds": -5.0}, "total_seconds is above 0"),
    ],
)
def test_a_precision_that_nothing_could_reach_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Precision(**changes)


@pytest.mark.parametrize("changes", [{"placements": 2}, {"total_seconds": 0.5}, {"total_seconds": None}])
def test_a_precision_at_its_border_is_accepted(changes: dict[str, Any]) -> None:
    assert Precision(**changes).max_seconds == 10.0


def test_a_plan_has_a_bounded_number_of_cases_which_is_known_without_making_them() -> None:
    widths = tuple(range(1, MOST_CASES // 3 + 1))

    assert make_plan(widths=widths).cases == MOST_CASES // 3 * 3
    with pytest.raises(ValueError, match="cases are more than"):
        make_plan(widths=(*widths, MOST_CASES))
    with pytest.raises(ValueError, match="cases are more than"):
        make_plan(widths=tuple(range(1, 10**5)), rows=tuple(range(1, 10**5)))


@pytest.mark.parametrize("seed", [-(2**63), 2**64 - 1])
def test_a_seed_has_64_bits(seed: int) -> None:
    assert make_plan(seed=seed).seed == seed
    with pytest.raises(ValueError, match="64 bits"):
        make_plan(seed=seed + (1 if seed > 0 else -1))


@pytest.mark.parametrize("value", [inf, nan, 1e10])
def test_no_limit_of_time_is_beyond_all_bounds(value: float) -> None:
    with pytest.raises(ValueError, match="max_seconds"):
        Precision(max_seconds=value)
    with pytest.raises(ValueError, match="total_seconds"):
        Precision(total_seconds=value)
    with pytest.raises(ValueError, match="time limit of a case"):
        make_plan(case_timeout_s=value)
