"""Both norms of a few values, step by step, against known values, an independent calculation and their properties."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from normbench.records import Op
from normbench.walkthrough import (
    MOST_NUMBER,
    MOST_VALUES,
    Example,
    NormWalk,
    StepName,
    Walkthrough,
    walk_through,
)

NUMBERS = st.floats(-1e3, 1e3).filter(lambda value: value == 0 or abs(value) > 1e-3)
ROWS = st.lists(NUMBERS, min_size=1, max_size=MOST_VALUES)
EPS = st.sampled_from([1e-12, 1e-6, 1e-2, 3.0])


def example(
    *values: float, gain: float | tuple[float, ...] = 1.0, bias: float | tuple[float, ...] = 0.0, **changes: float
) -> Example:
    def each(given: float | tuple[float, ...]) -> tuple[float, ...]:
        return given if isinstance(given, tuple) else (given,) * len(values)

    return Example(values=values, gain=each(gain), bias=each(bias), **changes)


def walked(*values: float, **changes: object) -> Walkthrough:
    return walk_through(example(*values, **changes))  # type: ignore[arg-type]


def step(norm: NormWalk, name: StepName) -> tuple[float, ...] | None:
    return next(step.figures for step in norm.steps if step.name is name)


def test_one_two_three_gives_the_known_values() -> None:
    walk = walked(1, 2, 3)

    assert [f"{value:.6f}" for value in walk.rmsnorm.output] == ["0.462910", "0.925820", "1.388730"]
    assert [f"{value:.6f}" for value in walk.layernorm.output] == ["-1.224744", "0.000000", "1.224744"]


def test_equal_values_give_layernorm_nothing_and_rmsnorm_one() -> None:
    walk = walked(3, 3)

    assert walk.layernorm.output == (0, 0)
    assert walk.rmsnorm.output == pytest.approx((1, 1), abs=1e-7)
    assert walk.rmsnorm.output[0] < 1


def test_every_step_of_a_row_with_round_numbers() -> None:
    walk = walked(-3, 1, 1, 3, 7, 9, eps=0, gain=2, bias=10)
    expected = {
        StepName.VALUES: ((-3, 1, 1, 3, 7, 9), (-3, 1, 1, 3, 7, 9)),
        StepName.MEAN: ((3,), None),
        StepName.CENTRED: ((-6, -2, -2, 0, 4, 6), None),
        StepName.SQUARES: ((36, 4, 4, 0, 16, 36), (9, 1, 1, 9, 49, 81)),
        StepName.MEAN_OF_SQUARES: ((16,), (25,)),
        StepName.PLUS_EPS: ((16,), (25,)),
        StepName.ROOT: ((4,), (5,)),
        StepName.DIVIDED: ((-1.5, -0.5, -0.5, 0, 1, 1.5), (-0.6, 0.2, 0.2, 0.6, 1.4, 1.8)),
        StepName.TIMES_GAIN: ((-3, -1, -1, 0, 2, 3), (-1.2, 0.4, 0.4, 1.2, 2.8, 3.6)),
        StepName.PLUS_BIAS: ((7, 9, 9, 10, 12, 13), None),
    }

    assert [step.name for step in walk.layernorm.steps] == list(expected) == list(StepName)
    assert {step.name: step.figures for step in walk.layernorm.steps} == {n: f for n, (f, _) in expected.items()}
    assert {step.name: step.figures for step in walk.rmsnorm.steps} == {n: f for n, (_, f) in expected.items()}


@given(ROWS, EPS, st.data())
def test_both_agree_with_an_independent_calculation(row: list[float], eps: float, data: st.DataObject) -> None:
    gain, bias = (tuple(data.draw(st.lists(NUMBERS, min_size=len(row), max_size=len(row)))) for _ in range(2))
    walk = walked(*row, eps=eps, gain=gain, bias=bias)

    x = np.array(row, dtype=np.longdouble)
    layernorm = (x - x.mean()) / np.sqrt(x.var() + np.longdouble(eps)) * gain + bias
    rmsnorm = x / np.sqrt((x**2).mean() + np.longdouble(eps)) * gain
    assert walk.layernorm.output == pytest.approx(layernorm.astype(float), rel=1e-9, abs=1e-6)
    assert walk.rmsnorm.output == pytest.approx(rmsnorm.astype(float), rel=1e-12)


@given(st.floats(-MOST_NUMBER, MOST_NUMBER), st.integers(1, MOST_VALUES))
def test_equal_values_are_their_own_mean_and_layernorm_gives_the_bias_alone(value: float, count: int) -> None:
    walk = walked(*(value,) * count, bias=0.5)

    assert step(walk.layernorm, StepName.MEAN) == (value,)
    assert walk.layernorm.output == (0.5,) * count


@given(ROWS)
def test_the_mean_is_that_of_exact_arithmetic_to_the_rounding(row: list[float]) -> None:
    exact = sum(map(Fraction, row)) / len(row)
    (mean,) = step(walked(*row).layernorm, StepName.MEAN) or ()

    assert abs(Fraction(mean) - exact) <= 2 * math.ulp(max(map(abs, row)))


@given(ROWS, st.floats(-100, 100), EPS)
def test_a_shift_leaves_layernorm_as_it_was(row: list[float], shift: float, eps: float) -> None:
    spread = max(row) - min(row)
    assume(spread == 0 or spread > 0.1)
    walk = walked(*row, shift=shift, eps=max(eps, 1e-6))

    # Rounding of values up to 1100, against a spread of 0.1 or none and a root of at least 0.001.
    assert walk.layernorm.shifted.largest_change < 1e-8
    assert walk.layernorm.shifted.after == pytest.approx(walk.layernorm.output, abs=1e-8)


def test_a_shift_reaches_rmsnorm() -> None:
    walk = walked(1, 2, 3, shift=1, eps=0)
    root = math.sqrt(29 / 3)

    assert walk.rmsnorm.shifted.after == pytest.approx((2 / root, 3 / root, 4 / root))
    assert walk.rmsnorm.shifted.largest_change == pytest.approx(2 / root - 1 / math.sqrt(14 / 3))
    assert walk.rmsnorm.shifted.from_invariance is None


@given(ROWS, st.floats(1e-3, 1e3), st.sampled_from([-1, 1]), EPS)
def test_a_scale_changes_what_eps_lets_it(row: list[float], size: float, sign: int, eps: float) -> None:
    walk = walked(*row, scale=sign * size, eps=eps, gain=3, bias=7)
    for norm, bias in ((walk.layernorm, 7), (walk.rmsnorm, 0)):
        (square,) = step(norm, StepName.MEAN_OF_SQUARES) or ()
        n = np.array(step(norm, StepName.DIVIDED))
        # n = x ÷ √(v + eps) becomes ± s·x ÷ √(s²·v + eps).
        then = sign * n * size * math.sqrt((square + eps) / (size**2 * square + eps))

        assert norm.scaled.after == pytest.approx(3 * then + bias, rel=1e-9, abs=1e-5)
        assert norm.scaled.from_invariance == pytest.approx(3 * max(abs(then - sign * n)), abs=1e-5)
        assert norm.scaled.largest_change == pytest.approx(3 * max(abs(then - n)), abs=1e-5)


@given(ROWS, st.floats(0.1, 100))
def test_without_eps_a_scale_changes_nothing(row: list[float], scale: float) -> None:
    assume(max(row) - min(row) > 0.1)
    walk = walked(*row, scale=scale, eps=0)

    assert all(norm.scaled.largest_change < 1e-9 for norm in walk.norms)


def test_with_tiny_values_eps_rules() -> None:
    walk = walked(1e-4, 2e-4, 3e-4, eps=1e-6, scale=1e3)

    assert max(map(abs, walk.layernorm.output)) < 0.1
    assert walk.layernorm.scaled.from_invariance == pytest.approx(1.2247449 - 0.1 / math.sqrt(1 + 2 / 300), abs=1e-4)


@given(ROWS, EPS)
def test_what_is_left_of_the_mean_square_is_what_eps_leaves(row: list[float], eps: float) -> None:
    for norm in walked(*row, eps=eps).norms:
        (square,) = step(norm, StepName.MEAN_OF_SQUARES) or ()

        assert np.mean(np.square(norm.output)) == pytest.approx(square / (square + eps), rel=1e-12)


@given(ROWS)
def test_the_mean_of_squares_is_the_variance_and_the_squared_mean(row: list[float]) -> None:
    walk = walked(*row)
    (mean,), (variance,), (square,) = (
        step(walk.layernorm, StepName.MEAN) or (),
        step(walk.layernorm, StepName.MEAN_OF_SQUARES) or (),
        step(walk.rmsnorm, StepName.MEAN_OF_SQUARES) or (),
    )

    assert square == pytest.approx(variance + mean**2, rel=1e-12)


@given(ROWS)
def test_where_the_mean_is_zero_both_are_the_same_but_for_the_bias(row: list[float]) -> None:
    walk = walked(*row, *(-value for value in row)) if len(row) <= MOST_VALUES // 2 else walked(0)

    assert walk.layernorm.output == pytest.approx(walk.rmsnorm.output, abs=1e-9)


def test_what_each_needs_follows_from_its_formula() -> None:
    walk = walked(1, 2, 3, 4)

    assert (walk.layernorm.op, walk.rmsnorm.op) == (Op.LAYERNORM, Op.RMSNORM)
    assert (walk.layernorm.parameters, walk.rmsnorm.parameters) == (8, 4)
    assert (walk.layernorm.reductions, walk.rmsnorm.reductions) == (("mean", "variance"), ("mean of squares",))


def test_without_eps_a_root_of_zero_divides_as_ieee_754_says() -> None:
    equal = walked(3, 3, eps=0)

    assert all(map(math.isnan, equal.layernorm.output))
    assert math.isnan(equal.layernorm.shifted.largest_change)
    assert equal.rmsnorm.output == (1, 1)


def test_squares_that_underflow_leave_a_root_of_zero_and_what_is_divided_by_it_is_infinite() -> None:
    scaled = walked(1e-40, -1e-40, 0, eps=0, scale=1e-200).rmsnorm.scaled

    assert scaled.after[:2] == (math.inf, -math.inf)
    assert math.isnan(scaled.after[2])
    assert math.isnan(scaled.largest_change)


def test_a_scale_of_zero_leaves_the_bias_and_nothing_to_be_invariant() -> None:
    walk = walked(1, 2, 3, scale=0, bias=4)

    assert walk.layernorm.scaled.after == (4, 4, 4)
    assert walk.rmsnorm.scaled.after == (0, 0, 0)
    assert [norm.scaled.from_invariance for norm in walk.norms] == [None, None]


@given(
    st.lists(st.floats(-MOST_NUMBER, MOST_NUMBER), min_size=1, max_size=MOST_VALUES),
    *[st.floats(-MOST_NUMBER, MOST_NUMBER)] * 4,
    st.floats(1e-300, MOST_NUMBER),
)
def test_no_number_that_is_allowed_overflows(
    row: list[float], shift: float, scale: float, gain: float, bias: float, eps: float
) -> None:
    for norm in walked(*row, shift=shift, scale=scale, gain=gain, bias=bias, eps=eps).norms:
        every = [figure for step in norm.steps for figure in step.figures or ()]
        assert all(map(math.isfinite, [*every, *norm.shifted.after, *norm.scaled.after]))


@pytest.mark.parametrize(
    "given",
    [
        {"values": ()},
        {"values": (1.0,) * (MOST_VALUES + 1)},
        {"values": (1.0, 2.0), "gain": (1.0,)},
        {"values": (1.0, 2.0), "bias": (1.0,)},
        {"values": (math.nan,)},
        {"values": (math.inf,)},
        {"values": (2 * MOST_NUMBER,)},
        {"values": (1.0,), "eps": -1e-6},
        {"values": (1.0,), "shift": math.nan},
    ],
)
def test_an_example_that_cannot_be_worked_out_is_refused(given: dict[str, object]) -> None:
    values = given["values"]
    assert isinstance(values, tuple)
    with pytest.raises(ValueError, match=r"values, each|all numbers"):
        Example(**{"gain": (1.0,) * len(values), "bias": (0.0,) * len(values), **given})  # type: ignore[arg-type]
