"""The cases of users with their very numbers, and y and gradients against float64."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from normbench.device import torch_dtype
from normbench.implementations import Implementation, Setting, eager, naive, nn
from normbench.inputs import Operands
from normbench.properties import values
from normbench.properties.agreement import Contained, OnValues
from normbench.properties.judging import truth
from normbench.properties.subject import cell_of
from normbench.records import DType, Mark, Mode, Op, Output, Property
from tests.faults import (
    Backward,
    eps_outside,
    on_x,
    on_y,
    over_one_less,
    spreading,
    where_nan,
    with_gradients,
    with_root,
)
from tests.properties.asking import asked, spot, subject
from tests.right_norms import LN, RMS, exact, implementation, left_in_float32

P = Property
INF, NAN = math.inf, math.nan


def constant(value: float, rows: int, width: int, dtype: torch.dtype = torch.float32) -> Operands:
    """An x that is the same everywhere, gain 1, bias 0 and dy 1."""
    x = torch.full((rows, width), value, dtype=dtype)
    gain = torch.ones(width, dtype=dtype)
    return Operands(x=x, dy=torch.ones_like(x), gain=gain, bias=torch.zeros_like(gain))


def mark(one: Property, of: Implementation, output: Output = Output.Y, eps: float = 1e-6, **at: Any) -> Mark:
    return asked(one, subject(of, spot(**at), eps=eps))[output].mark


# N02: parameters of another format than x


def test_gain_in_float32_beside_bf16_leaves_y_and_dx_in_bf16_and_dgain_in_float32() -> None:
    one = subject(nn.RMSNORM, spot(256, DType.BF16, rows=2048, parameter_dtype=DType.FP32))
    results = one.call(values.operands(one, "mixed", values.normal))

    assert {output: tensor.dtype for output, tensor in results.items()} == {
        Output.Y: torch.bfloat16,
        Output.DX: torch.bfloat16,
        Output.DGAIN: torch.float32,
    }
    assert {found.mark for found in asked(P.MIXED_PARAMETERS, one).values()} == {Mark.PASS}


def test_half_precision_gain_beside_float32_gives_float32_by_rmsnorm_and_an_error_by_layernorm() -> None:
    at = spot(256, rows=8, parameter_dtype=DType.BF16)
    one = subject(nn.RMSNORM, at)
    assert one.call(values.operands(one, "mixed", values.normal))[Output.Y].dtype is torch.float32
    assert mark(P.MIXED_PARAMETERS, nn.RMSNORM, width=256, parameter_dtype=DType.BF16) is Mark.PASS

    with pytest.raises(RuntimeError, match="mixed dtype"):
        asked(P.MIXED_PARAMETERS, subject(nn.LAYERNORM, at))


# N03: eps and its place


@pytest.mark.parametrize(
    ("dtype", "right"),
    [(DType.BF16, 0.9453125), (DType.FP16, 0.9453125), (DType.FP32, 0.945245)],
)
def test_torch_s_rmsnorm_adds_float32_s_eps_by_default_in_every_format(dtype: DType, right: float) -> None:
    one = subject(nn.RMSNORM, spot(64, dtype))
    unset = nn.RMSNORM.unset
    assert unset is not None
    bind = unset.build(Setting(cell=cell_of(one.spot, Mode.FORWARD), eps=1e-6))
    y = one.call(constant(1e-3, 5, 64, torch_dtype(dtype)), bind)[Output.Y]

    assert float(y[0, 0]) == pytest.approx(right, rel=1e-6)
    assert {found.mark for found in asked(P.DEFAULT_EPS, one).values()} == {Mark.PASS}


def test_the_finfo_of_half_precision_as_default_eps_would_be_seen() -> None:
    """0.0113 in bf16 and 0.0320 in fp16 in place of 0.945, for 1e-3."""
    for dtype, value in ((torch.bfloat16, 0.0113), (torch.float16, 0.0320)):
        one = subject(eager.RMSNORM)
        right = truth(one, constant(1e-3, 1, 64), eps=torch.finfo(dtype).eps).fine[Output.Y]
        assert float(right.value[0, 0]) == pytest.approx(value, abs=5e-5)


def test_eps_stands_inside_the_root_and_outside_fails() -> None:
    inside, outside = (
        subject(implementation(RMS, "one", make(RMS)), spot(256)) for make in (exact, with_root(eps_outside))
    )
    given = constant(1e-4, 5, 256).of(RMS)

    assert float(inside.call(given)[Output.Y][0, 0]) == pytest.approx(0.0995037, abs=1e-7)
    assert float(outside.call(given)[Output.Y][0, 0]) == pytest.approx(0.9900990, abs=1e-7)
    assert mark(P.EPS_INSIDE_ROOT, inside.implementation, width=256) is Mark.PASS
    assert mark(P.EPS_INSIDE_ROOT, outside.implementation, width=256) is Mark.FAIL


# N04: squares that overflow


def test_300_in_fp16_is_1_by_torch_and_0_with_a_gradient_of_nan_by_a_chain_in_fp16() -> None:
    given = constant(300.0, 2, 256, torch.float16).of(RMS)
    at = spot(256, DType.FP16, rows=2)
    right, wrong = (subject(one, at).call(given) for one in (nn.RMSNORM, naive.RMSNORM))

    assert torch.equal(right[Output.Y], torch.ones(2, 256).half())
    assert float(right[Output.DX].abs().max()) < 1e-5
    assert not bool(wrong[Output.Y].any())
    assert bool(wrong[Output.DX].isnan().all())
    assert mark(P.FP16_SQUARES_OVERFLOW, nn.RMSNORM, width=256, dtype=DType.FP16) is Mark.PASS
    for output in (Output.Y, Output.DX):
        assert mark(P.FP16_SQUARES_OVERFLOW, naive.RMSNORM, output, width=256, dtype=DType.FP16) is Mark.FAIL


def test_255_is_the_last_whole_number_of_which_fp16_holds_the_square() -> None:
    square = torch.tensor([255.0, 256.0]).half().square()

    assert square.tolist() == [65024.0, INF]
    assert float(values._FP16_FROM) == 256.0


def test_1e25_in_float32_is_1_by_float64_and_0_by_torch() -> None:
    given = constant(1e25, 2, 256).of(RMS)
    one = subject(nn.RMSNORM, spot(256, rows=2))

    assert not bool(one.call(given)[Output.Y].any())
    right = truth(one, given).fine[Output.Y].value
    torch.testing.assert_close(right, torch.ones_like(right))
    assert mark(P.FP32_SQUARES_OVERFLOW, nn.RMSNORM, width=256) is Mark.FAIL
    assert mark(P.FP32_SQUARES_OVERFLOW, implementation(RMS, "exact", exact(RMS)), width=256) is Mark.PASS


def test_fp16_is_not_asked_for_what_it_can_not_hold() -> None:
    found = asked(P.FP32_SQUARES_OVERFLOW, subject(eager.RMSNORM, spot(dtype=DType.FP16)))

    assert [(one.mark, one.reason) for one in found.values()] == [
        (Mark.NOT_APPLICABLE, "fp16 can't hold such values")
    ]


# N06: degenerate rows, biased variance


def test_zeros_in_fp16_with_an_eps_that_fp16_does_not_hold_are_0_by_torch_and_nan_by_a_chain() -> None:
    given = constant(0.0, 2, 8, torch.float16).of(RMS)
    right, wrong = (
        subject(one, spot(8, DType.FP16, rows=2), eps=1e-8).call(given)[Output.Y]
        for one in (nn.RMSNORM, naive.RMSNORM)
    )

    assert not bool(right.any())
    assert bool(wrong.isnan().all())
    assert mark(P.ZEROS, nn.RMSNORM, eps=1e-8, dtype=DType.FP16) is Mark.PASS
    assert mark(P.ZEROS, naive.RMSNORM, eps=1e-8, dtype=DType.FP16) is Mark.FAIL


@pytest.mark.parametrize("one", [nn.RMSNORM, eager.RMSNORM], ids=lambda i: i.name)
def test_one_column_is_its_sign_by_rmsnorm(one: Implementation) -> None:
    given = Operands(x=torch.tensor([[2.0], [-3.0]]), dy=torch.ones(2, 1), gain=torch.ones(1), bias=torch.zeros(1))

    torch.testing.assert_close(subject(one, spot(1, rows=2)).call(given)[Output.Y], torch.tensor([[1.0], [-1.0]]))


@pytest.mark.parametrize("one", [nn.LAYERNORM, eager.LAYERNORM], ids=lambda i: i.name)
def test_one_column_is_0_by_layernorm(one: Implementation) -> None:
    given = Operands(x=torch.tensor([[2.0], [-3.0]]), dy=torch.ones(2, 1), gain=torch.ones(1), bias=torch.zeros(1))

    assert not bool(subject(one, spot(1, rows=2)).call(given)[Output.Y].any())


@pytest.mark.parametrize("one", [nn.LAYERNORM, nn.RMSNORM, eager.LAYERNORM, eager.RMSNORM], ids=lambda i: i.name)
def test_no_rows_give_no_rows_and_gradients_of_0(one: Implementation) -> None:
    of = subject(one, spot(8, rows=0))
    results = of.call(values.operands(of, "none", values.normal))

    assert [tuple(results[output].shape) for output in (Output.Y, Output.DX)] == [(0, 8), (0, 8)]
    assert not bool(results[Output.DGAIN].any())
    assert {found.mark for found in asked(P.NO_ROWS, of).values()} == {Mark.PASS}


@pytest.mark.parametrize(("width", "factor"), [(4, 1.1547), (256, 1.00196)])
def test_an_unbiased_variance_is_off_by_the_root_of_n_over_n_less_1_and_found(width: int, factor: float) -> None:
    right, wrong = (
        subject(implementation(LN, "one", make(LN)), spot(width)) for make in (exact, with_root(over_one_less))
    )
    given = values.operands(right, "any", values.normal)
    plain = Operands(x=given.x, dy=given.dy, gain=torch.ones(width), bias=torch.zeros(width))
    ratio = right.call(plain)[Output.Y] / wrong.call(plain)[Output.Y]

    torch.testing.assert_close(ratio, torch.full_like(ratio, factor), rtol=1e-5, atol=0)
    assert mark(P.POPULATION_VARIANCE, right.implementation, width=width) is Mark.PASS
    assert mark(P.POPULATION_VARIANCE, wrong.implementation, width=width) is Mark.FAIL


# N07: autocast


@pytest.mark.parametrize("dtype", [DType.BF16, DType.FP16])
def test_under_autocast_on_a_cpu_torch_s_rmsnorm_stays_in_half_precision(dtype: DType) -> None:
    one = subject(nn.RMSNORM, spot(256, dtype, autocast=dtype))
    found = asked(P.AUTOCAST, one)

    assert {f.mark for f in found.values()} == {Mark.PASS}
    assert found[Output.Y].out_dtype is None


def test_a_y_that_autocast_leaves_in_float32_is_right_and_said() -> None:
    one = subject(implementation(RMS, "wide", left_in_float32(RMS)), spot(dtype=DType.BF16, autocast=DType.BF16))
    found = asked(P.AUTOCAST, one)

    assert {f.mark for f in found.values()} == {Mark.PASS}
    assert found[Output.Y].out_dtype is DType.FP32
    assert found[Output.DX].out_dtype is None


# Layouts and passes


@pytest.mark.parametrize(
    ("one", "strides"), [(P.STRIDED, (128, 1)), (P.TRANSPOSED, (1, 64)), (P.NORMAL_VALUES, (64, 1))]
)
def test_x_and_dy_lie_in_memory_as_the_property_says(one: Property, strides: tuple[int, int]) -> None:
    seen: list[tuple[int, ...]] = []

    def dx(known: Backward) -> torch.Tensor:
        seen.extend(t.stride() for t in known.handed[:2])
        return known.dx

    found = asked(one, subject(implementation(RMS, "looking", with_gradients(dx=dx)(RMS)), spot(rows=64)))

    assert seen == [strides, strides]
    assert {f.mark for f in found.values()} == {Mark.PASS}


@pytest.mark.parametrize(("one", "gradients"), [(P.NO_GRAD, False), (P.NORMAL_VALUES, True)])
def test_gradients_are_not_asked_for_where_the_property_says_so(one: Property, gradients: bool) -> None:
    seen: list[bool] = []

    def looking(y: torch.Tensor) -> torch.Tensor:
        seen.append(torch.is_grad_enabled())
        return y

    found = asked(one, subject(implementation(RMS, "looking", on_y(looking)(RMS))))

    assert seen == [gradients]
    assert list(found) == [Output.Y, *([Output.DX, Output.DGAIN] if gradients else [])]


# What is not finite


@pytest.mark.parametrize("op", [LN, RMS])
@pytest.mark.parametrize(("value", "one"), [(NAN, P.NAN_STAYS), (INF, P.INF_STAYS)])
def test_what_is_not_finite_stays_in_its_row_and_is_seen_there(op: Op, value: float, one: Property) -> None:
    right = subject(implementation(op, "exact", exact(op)))
    found = {f.output: f.mark for f in Contained(value)(right)}

    assert found == {Output.Y: Mark.PASS, Output.DX: Mark.PASS}
    assert {f.mark for f in asked(one, right).values()} == {Mark.PASS}


def test_a_hidden_nan_is_said_to_be_hidden() -> None:
    (found,) = Contained(NAN)(subject(implementation(RMS, "hiding", on_x(where_nan)(RMS))))

    assert (found.output, found.mark) == (Output.Y, Mark.FAIL)
    assert "where x is nan: it is hidden" in str(found.reason)


def test_a_nan_in_other_rows_is_a_wrong_value_there() -> None:
    found = list(Contained(NAN)(subject(implementation(RMS, "spreading", on_x(spreading)(RMS)))))

    assert [(f.output, f.mark) for f in found] == [(Output.Y, Mark.FAIL), (Output.DX, Mark.FAIL)]
    assert "y[0, 0] is nan" in str(found[0].reason)


def test_agreement_is_found_of_y_and_of_each_gradient() -> None:
    for op, outputs in ((LN, list(Output)), (RMS, [Output.Y, Output.DX, Output.DGAIN])):
        found = list(OnValues(values.normal)(subject(implementation(op, "exact", exact(op)))))
        assert [f.output for f in found] == outputs
        assert all(f.gap is not None and f.gap.ulp < 2 for f in found)
