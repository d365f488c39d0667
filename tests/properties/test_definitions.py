from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from normbench.implementations import Unset, eager, nn
from normbench.implementations.base import binding
from normbench.properties import values
from normbench.properties.definitions import _share
from normbench.properties.values import operands
from normbench.records import DType, Mark, Op, Output, Property
from tests.faults import in_its_own_format, other_default_eps, over_one_less, with_root
from tests.properties.asking import asked, spot, subject
from tests.right_norms import LN, RMS, exact, implementation

P = Property
OPS = [LN, RMS]
HALVES = [DType.BF16, DType.FP16]


def found(one: Property, op: Op, make: object = exact, **at: object) -> dict[Output | None, object]:
    return dict(asked(one, subject(implementation(op, "one", make(op)), spot(**at))))  # type: ignore[operator,arg-type]


def mark(one: Property, op: Op, make: object = exact, **at: object) -> Mark:
    (only,) = found(one, op, make, **at).values()
    return only.mark  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("width", [1, 2, 5, 64])
@pytest.mark.parametrize("dtype", list(DType))
def test_both_norms_are_one_function_of_rows_of_mean_0_without_a_bias(dtype: DType, width: int) -> None:
    for op in OPS:
        assert mark(P.EQUAL_AT_ZERO_MEAN, op, dtype=dtype, width=width) is Mark.PASS
    one, other = (subject(implementation(op, "one", exact(op))) for op in OPS)
    given = replace(operands(one, "any", values.balanced), bias=torch.zeros(64))
    torch.testing.assert_close(one.call(given)[Output.Y], other.call(given)[Output.Y])


def test_another_divisor_makes_them_two() -> None:
    for op in OPS:
        assert mark(P.EQUAL_AT_ZERO_MEAN, op, with_root(over_one_less)) is Mark.FAIL


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("dtype", "width", "told"),
    [
        *((dtype, 1, False) for dtype in DType),
        *((dtype, 3, True) for dtype in DType),
        (DType.FP32, 1000, True),
        (DType.FP16, 64, True),
        (DType.FP16, 4096, False),
        (DType.BF16, 64, False),
    ],
)
def test_n_and_n_less_1_are_told_apart_where_that_is_more_than_rounding(
    op: Op, dtype: DType, width: int, told: bool
) -> None:
    right = mark(P.POPULATION_VARIANCE, op, dtype=dtype, width=width)
    wrong = mark(P.POPULATION_VARIANCE, op, with_root(over_one_less), dtype=dtype, width=width)

    assert (right, wrong) == ((Mark.PASS, Mark.FAIL) if told else (Mark.NOT_APPLICABLE, Mark.NOT_APPLICABLE))


@pytest.mark.parametrize("dtype", HALVES)
def test_a_chain_in_half_precision_divides_by_n_too(dtype: DType) -> None:
    for op in OPS:
        for width in (3, 8, 16):
            one = subject(implementation(op, "one", in_its_own_format(op)), spot(width, dtype))
            assert {f.mark for f in asked(P.POPULATION_VARIANCE, one).values()} <= {Mark.PASS, Mark.NOT_APPLICABLE}


def test_the_share_of_an_error_is_how_much_of_the_other_result_it_is() -> None:
    whole = torch.tensor([1.0, -2.0, 3.0])

    assert [round(_share(factor * whole, whole), 6) for factor in (0.0, 0.25, 1.0)] == [0.0, 0.25, 1.0]
    assert _share(torch.tensor([2.0, 1.0, 0.0]), whole) == 0.0


@pytest.mark.parametrize("implementation", [nn.LAYERNORM, nn.RMSNORM], ids=lambda i: i.name)
@pytest.mark.parametrize("dtype", list(DType))
def test_torch_s_modules_add_their_own_eps_where_they_are_told_none(implementation: object, dtype: DType) -> None:
    one = subject(implementation, spot(dtype=dtype), eps=1e-3)  # type: ignore[arg-type]

    assert {f.mark for f in asked(P.DEFAULT_EPS, one).values()} == {Mark.PASS}


def test_who_is_always_told_its_eps_is_not_asked_for_its_default() -> None:
    (one,) = asked(P.DEFAULT_EPS, subject(eager.RMSNORM)).values()

    assert (one.mark, one.reason) == (Mark.NOT_APPLICABLE, "it is always told its eps")


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("said", [True, False])
def test_who_adds_another_than_it_says_is_found(op: Op, said: bool) -> None:
    honest = Unset(eps=1e-5, build=lambda _setting: binding(exact(op), 1e-5))
    unset = honest if said else other_default_eps(op)
    one = subject(replace(implementation(op, "one", exact(op)), unset=unset))

    assert asked(P.DEFAULT_EPS, one)[Output.Y].mark is (Mark.PASS if said else Mark.FAIL)
