from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from normbench.correctness import coarsest_of
from normbench.device import torch_dtype
from normbench.expected import Expected
from normbench.properties.judging import (
    agreement,
    compared,
    held,
    not_applicable,
    overflowed,
    same,
    spacings,
    truth,
    within,
)
from normbench.properties.values import normal, offset, operands
from normbench.records import DType, Mark, Op, Output, Property
from tests.properties.asking import spot, subject
from tests.right_norms import exact, implementation

INF, NAN = math.inf, math.nan
HALVES = [DType.BF16, DType.FP16]
NUMPY = {torch.float64: np.float64, torch.float32: np.float32, torch.float16: np.float16}


def row(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def expected(value: torch.Tensor, tolerance: float = 0.0, scale: float | None = None) -> Expected:
    size = value.abs() if scale is None else torch.full_like(value, scale)
    return Expected(value=value, tolerance=torch.full_like(value, tolerance), scale=size)


def found(actual: torch.Tensor, value: torch.Tensor, fine: float, coarse: float, **changes: Any) -> Any:
    parts = [expected(value, tolerance, 1.0) for tolerance in (fine, coarse)]
    return compared(Output.Y, actual, *parts, changes.get("stored_in", torch.float32))


@given(st.floats(min_value=5e-324, max_value=1e308))
def test_the_spacing_of_float64_is_that_of_the_standard_library(size: float) -> None:
    assume(size >= torch.finfo(torch.float64).smallest_normal)

    assert float(spacings(row(size), torch.float64)) == math.ulp(size)


@given(st.floats(min_value=0, max_value=6e4))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_spacing_of_a_format_is_that_of_numpy_subnormals_and_0_included(dtype: torch.dtype, size: float) -> None:
    stored = float(NUMPY[dtype](size))
    assume(math.isfinite(stored))

    assert float(spacings(row(stored), dtype)) == float(np.spacing(NUMPY[dtype](stored)))


@pytest.mark.parametrize(
    ("size", "spacing"), [(1.0, 2**-7), (1.99, 2**-7), (2.0, 2**-6), (0.99, 2**-8), (256.0, 2.0), (0.0, 2**-133)]
)
def test_the_spacing_of_bf16_has_seven_bits_after_the_first(size: float, spacing: float) -> None:
    assert float(spacings(row(size), torch.bfloat16)) == spacing


@pytest.mark.parametrize("dtype", list(DType))
def test_the_spacing_at_0_is_the_smallest_number_and_at_1_twice_the_roundoff(dtype: DType) -> None:
    assert [float(spacings(row(size), torch_dtype(dtype))) for size in (0.0, 1.0)] == [
        dtype.smallest,
        2 * dtype.roundoff,
    ]


def test_what_is_within_the_fine_tolerance_passes_with_its_distance_in_last_places() -> None:
    one = found(row(1.0, 1 + 2**-22), row(1.0, 1.0), 2**-20, 2**-10)

    assert (one.mark, one.coarse, one.reason) == (Mark.PASS, False, None)
    assert (one.gap.ulp, one.gap.relative, one.gap.of_allowed) == (2.0, 2**-22, 0.25)


def test_what_is_beyond_it_and_within_the_coarse_one_passes_and_is_marked() -> None:
    one = found(row(1.0, 1.01), row(1.0, 1.0), 2**-20, 0.1)

    assert (one.mark, one.coarse) == (Mark.PASS, True)
    assert one.gap.of_allowed == pytest.approx(0.01 * 2**20, rel=1e-6)


def test_what_is_beyond_both_fails_with_the_worst_element_and_how_many_there_are() -> None:
    one = found(row(1.0, 3.0, 4.0, 1.0), row(1.0, 1.0, 1.0, 1.0), 0.1, 0.5)

    assert (one.mark, one.coarse) == (Mark.FAIL, False)
    assert one.reason == "y[2] is 4, not 1 (50% of the elements are wrong)"
    assert one.gap.relative == 3.0


@pytest.mark.parametrize("odd", [NAN, INF, -INF])
def test_what_is_no_finite_number_is_wrong_whatever_is_allowed_and_infinitely_far_off(odd: float) -> None:
    one = found(row(1.0, odd), row(1.0, 1.0), 1e30, INF)

    assert one.mark is Mark.FAIL
    assert (one.gap.ulp, one.gap.relative) == (INF, INF)


def test_nothing_to_compare_passes_without_a_distance() -> None:
    one = found(row(), row(), 0.0, 0.0)

    assert (one.mark, one.gap) == (Mark.PASS, None)


def test_each_distance_is_the_largest_by_its_own_measure() -> None:
    value = row(1.0, 1.0)
    part = Expected(value=value, tolerance=row(0.5, 0.01), scale=row(1.0, 1.0))
    one = compared(Output.Y, row(1.25, 1.0078125), part, part, torch.bfloat16)

    assert (one.gap.ulp, one.gap.of_allowed) == (32.0, 0.78125)


def test_no_error_where_none_is_allowed_is_no_distance() -> None:
    one = found(row(0.0, 2.0), row(0.0, 2.0), 0.0, 0.0)

    assert (one.mark, one.gap.ulp) == (Mark.PASS, 0.0)


def test_an_error_of_terms_that_are_0_is_told_in_units_of_what_is_allowed() -> None:
    part = Expected(value=row(0.0), tolerance=row(0.5), scale=row(0.0))

    assert compared(Output.DX, row(0.25), part, part, torch.float32).gap.relative == 0.5  # type: ignore[union-attr]


FP16_MOST = 65504.0


@pytest.mark.parametrize(
    ("actual", "right", "passes"),
    [
        (INF, 1e6, True),
        (-INF, -1e6, True),
        (FP16_MOST, 1e6, True),
        (INF, 65500.0, True),  # within what is allowed it may round to infinity
        (-INF, 1e6, False),
        (INF, 1e4, False),
        (NAN, 1e6, False),
        (6e4, 1e6, False),
    ],
)
def test_an_overflow_is_right_where_what_is_right_does_not_fit_into_the_format(
    actual: float, right: float, passes: bool
) -> None:
    one = found(row(actual), row(right), 100.0, 100.0, stored_in=torch.float16)

    assert (one.mark is Mark.PASS) is passes
    assert found(row(actual), row(right), 100.0, 100.0, stored_in=torch.float32).mark is Mark.FAIL


def test_only_a_right_overflow_becomes_the_largest_number() -> None:
    right = expected(row(1e6, -1e6, 1e6, 1.0, 1.0), 1.0)
    results = overflowed(row(INF, -INF, -INF, INF, 7.0), right, torch.float16)

    assert results.tolist() == [FP16_MOST, -FP16_MOST, -INF, INF, 7.0]
    assert within(right, torch.float16).value.tolist() == [FP16_MOST, -FP16_MOST, FP16_MOST, 1.0, 1.0]


def test_the_same_numbers_are_the_same_nans_and_infinities_too() -> None:
    one = same(Output.Y, row(1.0, NAN, INF), row(1.0, NAN, INF), "changed")

    assert (one.mark, one.reason) == (Mark.PASS, None)
    assert one.gap is not None
    assert one.gap.ulp == 0.0


def test_a_difference_from_0_is_infinitely_large_beside_it() -> None:
    one = same(Output.DX, torch.tensor([0.0]), torch.tensor([1.0]), "changed")

    assert one.gap is not None
    assert (one.gap.ulp, one.gap.relative) == (2.0**149, INF)


@pytest.mark.parametrize(
    ("one", "other", "ulp"), [(1.0, 1 + 2**-23, 1.0), (NAN, 1.0, INF), (1.0, NAN, INF), (INF, 1.0, INF)]
)
def test_one_differing_bit_is_a_difference_and_how_large_it_is_is_told(one: float, other: float, ulp: float) -> None:
    found = same(Output.DX, torch.tensor([3.0, one]), torch.tensor([3.0, other]), "another row changed it")

    assert found.mark is Mark.FAIL
    assert found.reason == "another row changed it: 1 of 2 elements differ"
    assert found.gap is not None
    assert found.gap.ulp == ulp


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("op", [Op.LAYERNORM, Op.RMSNORM])
@pytest.mark.parametrize("kind", [normal, offset])
def test_the_coarse_tolerance_is_never_below_the_fine_one_and_ends_at_half_of_the_terms(
    op: Op, dtype: DType, kind: Any
) -> None:
    one = subject(implementation(op, "exact", exact(op)), spot(dtype=dtype))
    right = truth(one, operands(one, "any", kind).of(op))
    for output, fine in right.fine.items():
        coarse = right.coarse[output]
        assert bool((coarse.tolerance >= fine.tolerance).all())
        assert bool((coarse.tolerance <= fine.tolerance + 0.5 * fine.scale).all())
        assert torch.equal(coarse.value, fine.value)
        if dtype is DType.FP32:
            assert torch.equal(coarse.tolerance, fine.tolerance)
        else:
            assert bool((coarse.tolerance > fine.tolerance).any())


def test_the_cap_is_reached_where_half_precision_loses_everything() -> None:
    one = subject(implementation(Op.LAYERNORM, "exact", exact(Op.LAYERNORM)), spot(dtype=DType.FP16))
    right = truth(one, operands(one, "any", offset))
    fine, coarse = right.fine[Output.Y], right.coarse[Output.Y]

    torch.testing.assert_close(coarse.tolerance, fine.tolerance + 0.5 * fine.scale)


@pytest.mark.parametrize("output", [Output.Y, Output.DX])
def test_a_statistic_of_a_float32_x_is_not_coarse_for_its_parameters_being_so(output: Output) -> None:
    at = spot(parameter_dtype=DType.BF16)
    one = subject(implementation(Op.RMSNORM, "exact", exact(Op.RMSNORM)), at)
    right = truth(one, operands(one, "any", normal).of(Op.RMSNORM))

    assert torch.equal(right.coarse[output].tolerance, right.fine[output].tolerance)
    assert not torch.equal(right.coarse[Output.DGAIN].tolerance, right.fine[Output.DGAIN].tolerance)


def test_the_coarsest_format_is_of_all_in_play() -> None:
    mixed = coarsest_of(spot(dtype=DType.FP16, parameter_dtype=DType.FP32, autocast=DType.BF16))

    assert (mixed.roundoff, mixed.smallest) == (DType.BF16.roundoff, DType.FP16.smallest)


def test_another_eps_or_formula_is_another_truth() -> None:
    one = subject(implementation(Op.RMSNORM, "exact", exact(Op.RMSNORM)))
    values = operands(one, "any", normal).of(Op.RMSNORM)
    usual = truth(one, values).fine[Output.Y].value

    assert not torch.equal(usual, truth(one, values, eps=0.1).fine[Output.Y].value)
    assert not torch.equal(usual, truth(one, values, op=Op.LAYERNORM).fine[Output.Y].value)


def test_an_eps_of_0_is_an_eps() -> None:
    one = subject(implementation(Op.RMSNORM, "exact", exact(Op.RMSNORM)))
    ones = replace(operands(one, "any", torch.full((5, 64), 1e-3)), bias=None, gain=torch.ones(64))

    torch.testing.assert_close(truth(one, ones, eps=0.0).fine[Output.Y].value, torch.ones(5, 64).double())


def test_a_result_in_another_format_than_x_is_said() -> None:
    one = subject(implementation(Op.RMSNORM, "exact", exact(Op.RMSNORM)), spot(dtype=DType.BF16))
    values = operands(one, "any", normal).of(Op.RMSNORM)
    results = one.call(values)
    results[Output.Y] = results[Output.Y].float()
    out = {f.output: f.out_dtype for f in agreement(results, truth(one, values), one.spot)}

    assert out == {Output.Y: DType.FP32, Output.DX: None, Output.DGAIN: None}


def test_a_finding_becomes_the_check_of_who_what_and_where() -> None:
    check = held(Output.DX).of("mine", Property.ZEROS, spot())

    assert (check.implementation, check.property, check.spot, check.output) == (
        "mine",
        Property.ZEROS,
        spot(),
        Output.DX,
    )
    assert not_applicable("no").of("mine", Property.ZEROS, spot()).mark is Mark.NOT_APPLICABLE
