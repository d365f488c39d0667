"""The reference of a residual add and norm: right kernels of either order pass, and wrong ones do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from normbench import correctness, reference
from normbench.correctness import Finding
from normbench.inputs import Operands, draw_probes
from normbench.records import DType, Mode, Op
from tests.adders import ADDERS, RIGHT, WRONG, Kernel, Results, coarser, norm_of, values_of
from tests.helpers import EPS, make_cell

COARSER = {DType.FP32: torch.bfloat16, DType.FP16: torch.bfloat16, DType.BF16: torch.float8_e4m3fn}

of_each_op = pytest.mark.parametrize("op", ADDERS)
in_each_format = pytest.mark.parametrize("dtype", DType)


def found(op: Op, dtype: DType, results: Results, values: Operands, *, probe: bool = False) -> Finding:
    rows, width = values.x.shape
    cell = make_cell(operation=op.operation, mode=Mode.FORWARD_BACKWARD, rows=rows, width=width, dtype=dtype)
    return correctness.check(results, op, cell, values, EPS, probe=probe)


def problem(op: Op, dtype: DType, kernel: Kernel, width: int = 1000, rows: int = 17) -> str | None:
    values = values_of(op, dtype, rows, width)
    return found(op, dtype, kernel.results(op, values), values).problem


@of_each_op
def test_values_and_gradients_are_those_of_float64_autograd(op: Op) -> None:
    values = values_of(op, DType.FP32, rows=5, width=33)
    x, residual, gain, *bias = [t.double().requires_grad_() for t in values.differentiable]
    h = x + residual
    centred = h - h.mean(-1, keepdim=True) if op.centres else h
    y = centred * (centred.square().mean(-1, keepdim=True) + EPS).rsqrt() * gain + (bias[0] if bias else 0)
    assert values.dy is not None
    assert values.dh is not None
    dx, dresidual = torch.autograd.grad((y, h), (x, residual), (values.dy.double(), values.dh.double()))
    outputs = reference.rows(op, values, EPS, DType.FP32).outputs
    assert list(outputs) == ["y", "h", "dx", "dresidual"]
    for name, right in (("y", y), ("h", h), ("dx", dx), ("dresidual", dresidual)):
        assert torch.allclose(outputs[name].value, right.detach(), rtol=1e-12, atol=1e-12), name


@pytest.mark.parametrize("width", [1, 2, 3, 8, 64, 1000, 4096])
@pytest.mark.parametrize("kernel", RIGHT.values(), ids=RIGHT)
@of_each_op
@in_each_format
def test_a_right_kernel_passes_whether_its_norm_reads_the_sum_before_or_after_it_is_rounded(
    op: Op, dtype: DType, kernel: Kernel, width: int
) -> None:
    for seed in range(3):
        values = values_of(op, dtype, 33, width, seed)
        assert found(op, dtype, kernel.results(op, values), values).problem is None
        for probe in draw_probes(values, offset=dtype is DType.FP32):
            assert found(op, dtype, kernel.results(op, probe), probe, probe=True).problem is None


@pytest.mark.parametrize("rows", [1, 2, 4096])
@pytest.mark.parametrize("kernel", RIGHT.values(), ids=RIGHT)
@of_each_op
@in_each_format
def test_a_right_kernel_passes_with_few_rows_and_with_many(op: Op, dtype: DType, kernel: Kernel, rows: int) -> None:
    assert problem(op, dtype, kernel, 64, rows) is None


@pytest.mark.parametrize("kernel", RIGHT.values(), ids=RIGHT)
@of_each_op
@in_each_format
def test_terms_that_nearly_cancel_leave_no_more_than_is_allowed(op: Op, dtype: DType, kernel: Kernel) -> None:
    values = values_of(op, dtype)
    cancelling = replace(values, residual=(-values.x * 1.0078125).to(values.x.dtype))
    assert found(op, dtype, kernel.results(op, cancelling), cancelling, probe=True).problem is None


@pytest.mark.parametrize("kernel", WRONG.values(), ids=WRONG)
@of_each_op
@in_each_format
def test_a_wrong_kernel_is_found_out_in_every_format(op: Op, dtype: DType, kernel: Kernel) -> None:
    assert problem(op, dtype, kernel) is not None


@of_each_op
@in_each_format
def test_a_sum_that_went_through_a_coarser_format_is_wrong_where_it_is_returned(op: Op, dtype: DType) -> None:
    through = Kernel(summed=lambda x, residual: coarser(x + residual, COARSER[dtype]))
    assert (problem(op, dtype, through) or "").startswith("h[")


@of_each_op
@in_each_format
def test_a_sum_that_went_through_a_coarser_format_is_wrong_where_the_norm_reads_it(op: Op, dtype: DType) -> None:
    through = Kernel(read=lambda x, residual, _h: coarser(x + residual, COARSER[dtype]))
    assert (problem(op, dtype, through) or "").startswith(("y[", "y is"))


@in_each_format
def test_a_layernorm_that_forgets_the_mean_of_the_sum_is_wrong(dtype: DType) -> None:
    forgetful = Kernel(norm=lambda _op, h, gain, bias: norm_of(Op.RMSNORM, h, gain, None) + bias)
    assert problem(Op.ADD_LAYERNORM, dtype, forgetful) is not None


@pytest.mark.parametrize("width", [8, 64, 256])
@in_each_format
def test_a_variance_divided_by_one_less_is_wrong(dtype: DType, width: int) -> None:
    def norm(_op: Op, h: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        centred = h - h.mean(-1, keepdim=True)
        assert bias is not None
        return centred * (centred.square().sum(-1, keepdim=True) / (width - 1) + EPS).rsqrt() * gain + bias

    assert problem(Op.ADD_LAYERNORM, dtype, Kernel(norm=norm), width, 512) is not None


@pytest.mark.parametrize(
    ("name", "spoilt"),
    [
        ("dresidual", torch.zeros_like),
        ("dresidual", lambda dx: dx.flip(0)),
        ("dx", torch.zeros_like),
        ("h", lambda h: h * 1.05),
        ("h", torch.zeros_like),
    ],
)
@of_each_op
@in_each_format
def test_each_of_the_two_gradients_and_the_sum_are_held_against_the_truth(
    op: Op, dtype: DType, name: str, spoilt: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    values = values_of(op, dtype)
    results = Kernel().results(op, values)
    assert (found(op, dtype, {**results, name: spoilt(results[name])}, values).problem or "").startswith(f"{name}[")


def test_half_precision_parameters_or_autocast_do_not_let_the_sum_be_rounded_to_half_precision() -> None:
    values = values_of(Op.ADD_RMSNORM, DType.FP32)
    results = Kernel(summed=lambda x, residual: coarser(x + residual, torch.bfloat16)).results(Op.ADD_RMSNORM, values)
    for formats in ({"parameter_dtype": DType.BF16}, {"autocast": DType.BF16}):
        cell = make_cell(operation=Op.ADD_RMSNORM.operation, rows=17, width=1000, dtype=DType.FP32, **formats)
        finding = correctness.check({"h": results["h"]}, Op.ADD_RMSNORM, cell, values, EPS)
        assert (finding.problem or "").startswith("h[")


@in_each_format
def test_the_floors_copies_are_exact_and_its_gradient_is_off_by_two_roundings_at_most(dtype: DType) -> None:
    values = values_of(Op.ADD_COPY, dtype)
    assert values.residual is not None
    assert values.dy is not None
    assert values.dh is not None
    rows = reference.rows(Op.ADD_COPY, values, EPS, dtype)
    assert rows.h is not None
    assert rows.dx is not None
    assert torch.equal(rows.y.value, values.x.double())
    assert torch.equal(rows.h.value, values.residual.double())
    assert not rows.y.tolerance.any()
    assert not rows.h.tolerance.any()
    dx = torch.addcmul(values.residual, values.dy, values.dh)
    assert bool(((dx.double() - rows.dx.value).abs() <= rows.dx.tolerance).all())
    assert bool((rows.dx.tolerance < 3 * dtype.roundoff * rows.dx.scale + 1e-6).all())


def test_a_norm_alone_has_neither_a_sum_nor_a_residuals_gradient() -> None:
    values = replace(values_of(Op.ADD_RMSNORM, DType.FP32), residual=None, dh=None)
    assert list(reference.rows(Op.RMSNORM, values, EPS, DType.FP32).outputs) == ["y", "dx"]


@of_each_op
@in_each_format
def test_a_residual_add_is_allowed_a_few_roundoffs_more_than_the_norm_of_its_sum_alone(op: Op, dtype: DType) -> None:
    values = values_of(op, dtype)
    assert values.residual is not None
    alone = replace(values, x=values.x + values.residual, residual=None, dh=None)
    added, norm = (reference.rows(o, v, EPS, dtype) for o, v in ((op, values), (op.norm, alone)))
    for one, other, most in ((added.y, norm.y, 2.5), (added.dx, norm.dx, 2.5)):
        assert one is not None
        assert other is not None
        assert 1 < float((one.tolerance / other.tolerance).median()) < most
