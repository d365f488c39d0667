from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by
from hypothesis import given
from hypothesis import strategies as st

from normbench import reference
from normbench.device import torch_dtype
from normbench.expected import Coarsest, Sums
from normbench.inputs import Operands, draw, draw_probes
from normbench.records import DType, Mode, Op
from tests.faults import in_its_own_format
from tests.helpers import CPU, EPS, make_cell

SHAPES = [(1, 1), (1, 7), (5, 3), (33, 64), (4, 1000), (300, 2)]
NORMS = [Op.LAYERNORM, Op.RMSNORM]


def values_of(rows: int, width: int, op: Op, *, probe: bool = False, dtype: DType = DType.FP32) -> Operands:
    values = draw(make_cell(mode=Mode.BACKWARD, rows=rows, width=width, dtype=dtype), 0, CPU)
    return (next(draw_probes(values)) if probe else values).of(op)


def autograd(operands: Operands) -> dict[str, torch.Tensor]:
    """Y and all gradients by torch's own float64 kernels and derivatives."""
    x, gain, *bias = inputs = [t.double().requires_grad_() for t in operands.differentiable]
    shape = list(x.shape[1:])
    y = F.layer_norm(x, shape, gain, bias[0], EPS) if bias else F.rms_norm(x, shape, gain, eps=EPS)
    assert operands.dy is not None
    gradients = torch.autograd.grad(y, inputs, operands.dy.double())
    return dict(zip(("y", "dx", "dgain", "dbias"), (y.detach(), *gradients), strict=False))


def expected(op: Op, operands: Operands, coarsest: DType = DType.FP32) -> dict[str, torch.Tensor]:
    rows = reference.rows(op, operands, EPS, coarsest)
    assert rows.dx is not None
    found = {"y": rows.y.value, "dx": rows.dx.value}
    sums = {"dgain": rows.gain_sums, "dbias": rows.bias_sums}
    return found | {name: of.total for name, of in sums.items() if of is not None}


@pytest.mark.parametrize("probe", [False, True], ids=["usual rows", "hard rows"])
@pytest.mark.parametrize(("rows", "width"), SHAPES)
@pytest.mark.parametrize("op", NORMS)
def test_the_truth_is_what_torch_s_float64_autograd_gives(op: Op, rows: int, width: int, probe: bool) -> None:
    operands = values_of(rows, width, op, probe=probe)
    independent, found = autograd(operands), expected(op, operands)

    assert set(found) == set(independent)
    for name, right in independent.items():
        size = max(1.0, float(right.abs().max()))
        assert float((found[name] - right).abs().max()) < 1e-10 * size, name


def test_the_truth_does_not_overflow_where_float32_does() -> None:
    x = torch.full((2, 256), 1e25)
    operands = Operands(x=x, dy=None, gain=torch.ones(256), bias=None)

    assert not bool(F.rms_norm(x, (256,), torch.ones(256), EPS).any())
    assert float((reference.rows(Op.RMSNORM, operands, EPS, DType.FP32).y.value - 1).abs().max()) < 1e-12


def test_eps_is_added_inside_the_root() -> None:
    operands = Operands(x=torch.full((1, 256), 1e-4), dy=None, gain=torch.ones(256), bias=None)
    y = reference.rows(Op.RMSNORM, operands, 1e-6, DType.FP32).y.value

    assert float(y[0, 0]) == pytest.approx(0.0995037, abs=1e-7)


def test_a_parameter_that_is_not_there_changes_nothing() -> None:
    operands = values_of(3, 8, Op.LAYERNORM)
    bare = reference.rows(Op.LAYERNORM, Operands(x=operands.x, dy=None, gain=None, bias=None), EPS, DType.FP32)
    plain = Operands(x=operands.x, dy=None, gain=torch.ones(8), bias=torch.zeros(8))

    assert torch.equal(bare.y.value, reference.rows(Op.LAYERNORM, plain, EPS, DType.FP32).y.value)


def test_without_dy_there_are_no_gradients() -> None:
    operands = Operands(x=torch.ones(2, 4), dy=None, gain=torch.ones(4), bias=torch.zeros(4))
    rows = reference.rows(Op.LAYERNORM, operands, EPS, DType.FP32)

    assert (rows.dx, rows.gain_sums, rows.bias_sums) == (None, None, None)


def test_the_copy_gives_x_exactly_and_the_sum_of_x_and_dy_as_its_gradient() -> None:
    operands = values_of(3, 8, Op.COPY)
    rows = reference.rows(Op.COPY, operands, EPS, DType.FP32)

    assert rows.dx is not None
    assert operands.dy is not None
    assert torch.equal(rows.y.value, operands.x.double())
    assert not bool(rows.y.tolerance.any())
    assert torch.equal(rows.dx.value, operands.x.double() + operands.dy.double())


@pytest.mark.parametrize("op", NORMS)
def test_sums_of_parts_are_the_sums_of_the_whole(op: Op) -> None:
    whole = values_of(10, 16, op)
    assert whole.dy is not None
    parts = [
        Operands(x=whole.x[s], dy=whole.dy[s], gain=whole.gain, bias=whole.bias) for s in (slice(4), slice(4, 10))
    ]
    first, second = (reference.rows(op, part, EPS, DType.FP32).gain_sums for part in parts)
    total = reference.rows(op, whole, EPS, DType.FP32).gain_sums

    assert first is not None
    assert second is not None
    assert total is not None
    for name in ("total", "squares", "uncentred", "errors", "sizes"):
        torch.testing.assert_close(getattr(first + second, name), getattr(total, name), rtol=1e-12, atol=0)


@pytest.mark.parametrize(("dtype", "bound"), [(DType.FP32, 1e-5), (DType.FP16, 4e-3), (DType.BF16, 3e-2)])
@pytest.mark.parametrize("op", NORMS)
def test_a_tolerance_is_a_few_roundoffs_of_the_format_and_no_more(op: Op, dtype: DType, bound: float) -> None:
    rows = reference.rows(op, values_of(33, 256, op), EPS, dtype)

    assert rows.dx is not None
    for of in (rows.y, rows.dx):
        relative = of.tolerance / of.scale
        assert float(relative.max()) < bound
        assert float(relative.median()) > dtype.roundoff


def sums_of_one_column() -> Sums:
    parts = {"total": 2.0, "squares": 16.0, "uncentred": 25.0, "errors": 0.01, "sizes": 12.0}
    return Sums(**{name: torch.tensor([value], dtype=torch.float64) for name, value in parts.items()})


@pytest.mark.parametrize("accumulator", [DType.BF16, DType.FP32])
def test_a_parameter_s_gradient_may_be_off_by_its_rounding_and_by_a_walk_of_partial_sums(accumulator: DType) -> None:
    found = reference.parameter_gradient(sums_of_one_column(), 9, DType.BF16, accumulator)

    # 8 roundoffs of the root 4 of the squares and 4 of the total 2; over 9 rows a walk of 1.5·(1 + 3) roundoffs
    # of the total and of the root 5 of the uncentred squares; and the root 0.1 of what the rows bring along.
    right = (8 * 4 + 4 * 2) * 2**-8 + 6 * (5 + 2) * accumulator.roundoff + 0.1
    assert float(found.tolerance) == pytest.approx(right, rel=1e-12)
    assert (float(found.value), float(found.scale)) == (2.0, 6.0)


@pytest.mark.parametrize(
    ("rows", "accumulator", "share"),
    [
        (9, DType.FP32, 6 * 2**-24),  # a walk of 1.5·(1 + 3) roundoffs
        (10**6, DType.FP32, 1.5 * 1001 * 2**-24),
        (9, DType.BF16, 9 * 2**-8),  # a roundoff at each row, which is more
        (1, DType.BF16, 3 * 2**-8),  # a walk again, which is more here
        (256, DType.BF16, 1.0),
        (10**6, DType.BF16, 1.0),  # everything is lost at worst
    ],
)
def test_where_rows_depend_on_each_other_partial_sums_are_as_large_as_all_terms_and_may_get_stuck(
    rows: int, accumulator: DType, share: float
) -> None:
    found = reference.parameter_gradient(sums_of_one_column(), rows, DType.BF16, accumulator, independent=False)
    right = (8 * 4 + 4 * 2) * 2**-8 + share * 12 + 0.1

    assert float(found.tolerance) == pytest.approx(right, rel=1e-12)


def test_a_longer_sum_may_be_further_off_and_a_common_factor_is_seen_better_with_more_rows() -> None:
    assert reference.accumulation(64) < reference.accumulation(4096) < reference.accumulation(65536)
    few, many = (reference.systematic_tolerance(rows, 256, DType.BF16) for rows in (16, 2048))
    assert many < few


@pytest.mark.parametrize("dtype", list(DType))
def test_the_wrong_divisor_of_a_variance_is_far_above_what_a_common_factor_may_be(dtype: DType) -> None:
    factor = (256 / 255) ** 0.5 - 1

    assert reference.systematic_tolerance(2048, 256, dtype) < factor / 2


@pytest.mark.parametrize(("width", "asked"), [(1, False), (7, False), (8, True)])
def test_a_common_factor_is_not_asked_for_where_errors_of_few_columns_do_not_cancel(width: int, asked: bool) -> None:
    for tolerance in (reference.systematic_tolerance, reference.gradient_factor_tolerance):
        assert math.isfinite(tolerance(2048, width, DType.BF16)) is asked


def test_a_gradient_of_nothing_is_never_within_what_a_common_factor_may_be() -> None:
    assert reference.gradient_factor_tolerance(10**6, 256, DType.BF16) == 0.5


HALVES = [DType.BF16, DType.FP16]
CHAINS = given(
    seed=st.integers(0, 2**31),
    exponent=st.floats(-6, 2),
    shift=st.floats(-3, 3),
    width=st.sampled_from([1, 2, 3, 8, 64, 300]),
    eps=st.sampled_from([1e-3, 1e-5, 1e-6]),
)
"""Values from a millionth to a hundred, shifted by up to thrice their spread; fp16 holds each square."""


def in_half(op: Op, dtype: DType, seed: int, exponent: float, shift: float, width: int) -> Operands:
    generator = torch.Generator().manual_seed(seed)
    x, dy, gain, bias = (
        torch.randn(shape, generator=generator, dtype=torch.float64)
        for shape in ((4, width), (4, width), (width,), (width,))
    )
    x = ((x + shift) * 10**exponent).clamp(-100, 100)
    x, dy, gain, bias = (t.to(torch_dtype(dtype)) for t in (x, dy, gain, bias))
    return Operands(x=x, dy=dy, gain=gain, bias=bias).of(op)


@CHAINS
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("op", NORMS)
def test_a_chain_that_rounds_to_half_precision_at_each_step_is_within_what_its_statistic_allows(
    op: Op, dtype: DType, seed: int, exponent: float, shift: float, width: int, eps: float
) -> None:
    operands = in_half(op, dtype, seed, exponent, shift, width)
    y = in_its_own_format(op)(operands.x, operands.gain, operands.bias, eps)
    allowed = reference.rows(op, operands, eps, dtype, dtype).y

    assert y.dtype is torch_dtype(dtype)
    assert bool(((y.double() - allowed.value).abs() <= allowed.tolerance).all())


@CHAINS
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("op", NORMS)
def test_its_gain_s_gradient_is_so_too(
    op: Op, dtype: DType, seed: int, exponent: float, shift: float, width: int, eps: float
) -> None:
    operands = in_half(op, dtype, seed, exponent, shift, width)
    assert operands.dy is not None
    h = in_its_own_format(op)(operands.x, torch.ones_like(operands.x[0]), None, eps)
    dgain = torch.zeros_like(h[0])
    for row in operands.dy * h:
        dgain = dgain + row  # one row after the other, rounded each time
    sums = reference.rows(op, operands, eps, dtype, dtype).gain_sums
    assert sums is not None
    allowed = reference.parameter_gradient(sums, 4, dtype, dtype)

    assert bool(((dgain.double() - allowed.value).abs() <= allowed.tolerance).all())


@CHAINS
@pytest.mark.parametrize("op", NORMS)
def test_a_coarser_statistic_is_never_allowed_less(
    op: Op, seed: int, exponent: float, shift: float, width: int, eps: float
) -> None:
    operands = in_half(op, DType.FP16, seed, exponent, shift, width)
    formats = (DType.FP32, DType.FP16, Coarsest.of([DType.FP16, DType.BF16]))
    found = [reference.rows(op, operands, eps, DType.FP16, kept) for kept in formats]
    for finer, coarser in itertools.pairwise(found):
        assert finer.dx is not None
        assert coarser.dx is not None
        assert bool((finer.y.tolerance <= coarser.y.tolerance).all())
        assert bool((finer.dx.tolerance <= coarser.dx.tolerance).all())
        assert bool((finer.gain_sums.errors <= coarser.gain_sums.errors).all())  # type: ignore[union-attr]
        assert torch.equal(finer.y.value, coarser.y.value)


def test_a_statistic_kept_in_half_precision_may_be_off_by_four_roundoffs_and_by_what_underflows() -> None:
    x = torch.full((1, 64), 1e-3, dtype=torch.float64)
    operands = Operands(x=x, dy=None, gain=torch.ones(64), bias=None)
    fine, coarse = (
        reference.rows(Op.RMSNORM, operands, EPS, DType.FP16, kept).y.tolerance for kept in (DType.FP32, DType.FP16)
    )
    square, h = 1e-6 + EPS, (1e-6 / (1e-6 + EPS)) ** 0.5

    assert float((coarse - fine)[0, 0]) == pytest.approx((4 * 2**-11 + 2**-24 / square) * h, rel=1e-9)


@pytest.mark.parametrize("op", NORMS)
def test_what_is_allowed_shrinks_with_h_but_for_the_mean_s_own_error(op: Op) -> None:
    """Subnormals are numbers: who takes them for 0 is off by more than rounding."""
    x = torch.arange(1, 65, dtype=torch.float64).unsqueeze(0) * 2.0**-149
    operands = Operands(x=x.float(), dy=torch.ones(1, 64), gain=torch.ones(64), bias=torch.zeros(64)).of(op)
    rows = reference.rows(op, operands, EPS, DType.FP32)
    assert rows.gain_sums is not None
    dgain = reference.parameter_gradient(rows.gain_sums, 1, DType.FP32, DType.FP32)

    assert bool((rows.y.value.abs().max() > 2 * rows.y.tolerance).all())
    assert bool((dgain.value.abs().max() > 2 * dgain.tolerance).all())


def test_the_mean_s_error_is_as_much_of_the_spread_as_the_mean_is_of_it() -> None:
    """In float32: 16 roundoffs of a mean of 1024, over a spread of 1, are a thousandth in every h, h = 0 too."""
    x = torch.tensor([[1023.0, 1024.0, 1024.0, 1025.0]])
    operands = Operands(x=x, dy=None, gain=torch.ones(4), bias=torch.zeros(4))
    rows = reference.rows(Op.LAYERNORM, operands, 0.0, DType.FP32)
    conditioning = 1024 / 0.5**0.5

    assert float(rows.y.tolerance[0, 1]) == pytest.approx(reference.accumulation(4) * 2**-24 * conditioning, rel=1e-6)


def test_the_reciprocal_root_is_of_each_row_and_of_what_is_normalised() -> None:
    x = torch.tensor([[1.0, 3.0], [2.0, 2.0]], dtype=torch.float64)

    assert reference.reciprocal_root(Op.LAYERNORM, x, 3.0).flatten().tolist() == pytest.approx([0.5, 3**-0.5])
    assert reference.reciprocal_root(Op.RMSNORM, x, 4.0).flatten().tolist() == pytest.approx([1 / 3, 8**-0.5])
