from __future__ import annotations

from typing import Any

import pytest
import torch

from normbench.device import torch_dtype
from normbench.properties import values
from normbench.properties.values import Draw, operands, rows_of, with_layout
from normbench.records import DType, Op
from tests.helpers import EPS
from tests.properties.asking import spot, subject
from tests.right_norms import exact, implementation

NORM = implementation(Op.LAYERNORM, "exact", exact(Op.LAYERNORM))
WIDTHS = [1, 2, 3, 64, 1000]
FORMATS = [(dtype, width) for dtype in DType for width in WIDTHS]
KINDS = [
    *(values.normal, values.large, values.tiny, values.outlier, values.offset, values.zeros, values.constants),
    *(values.subnormals, values.beyond_fp16, values.beyond_fp32, values.balanced, values.dyadic, values.below_eps),
    *(values.far_below_eps, values.thousandths),
]


def drawn(kind: Any, dtype: DType = DType.FP32, width: int = 64, rows: int = 33, seed: int = 0) -> torch.Tensor:
    """X as it reaches an implementation."""
    one = subject(NORM, spot(width, dtype, rows=rows), seed=seed)
    return operands(one, kind.__name__, kind).x


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "width"), FORMATS)
def test_every_kind_has_the_spot_s_shape_and_format_and_is_finite_but_what_does_not_fit(
    kind: Any, dtype: DType, width: int
) -> None:
    x = drawn(kind, dtype, width)

    assert (x.shape, x.dtype) == ((33, width), torch_dtype(dtype))
    assert bool(x.isfinite().all()) is not (kind is values.beyond_fp32 and dtype is DType.FP16)


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_and_one_row_can_be_drawn(kind: Any) -> None:
    assert [drawn(kind, rows=rows).shape for rows in (0, 1)] == [(0, 64), (1, 64)]


def test_the_same_seed_and_purpose_give_the_same_values_and_others_others() -> None:
    one, other = (subject(NORM, seed=seed) for seed in (0, 1))

    assert torch.equal(operands(one, "a", values.normal).x, operands(one, "a", values.normal).x)
    assert not torch.equal(operands(one, "a", values.normal).x, operands(one, "b", values.normal).x)
    assert not torch.equal(operands(one, "a", values.normal).x, operands(other, "a", values.normal).x)
    wider = subject(NORM, spot(dtype=DType.BF16))
    assert not torch.equal(operands(one, "a", values.normal).dy, operands(wider, "a", values.normal).dy)  # type: ignore[arg-type]


def test_gain_lies_around_1_bias_around_0_and_dy_around_1_each_in_its_format() -> None:
    at = spot(1000, DType.FP16, rows=33, parameter_dtype=DType.FP32)
    given = operands(subject(NORM, at), "any", values.normal)

    assert given.gain is not None
    assert given.bias is not None
    assert given.dy is not None
    assert [t.dtype for t in (given.x, given.dy, given.gain, given.bias)] == [torch.float16] * 2 + [torch.float32] * 2
    assert [round(float(t.mean()), 1) for t in (given.gain, given.bias, given.dy)] == [1.0, 0.0, 1.0]
    assert all(float(t.std()) > 0.2 for t in (given.gain, given.bias, given.dy))


@pytest.mark.parametrize("kind", [values.normal, values.large, values.beyond_fp16, values.beyond_fp32, values.dyadic])
@pytest.mark.parametrize("width", [2, 3, 5])
def test_narrow_rows_of_kinds_that_have_no_common_offset_have_none_by_chance(kind: Any, width: int) -> None:
    for seed in range(40):
        x = drawn(kind, width=width, seed=seed).double()
        assert bool((x.std(-1, correction=0) >= 0.2 * x.mean(-1).abs()).all())


@pytest.mark.parametrize("width", [1, 2, 3])
def test_no_normal_row_is_near_0_by_chance(width: int) -> None:
    for seed in range(40):
        assert float(drawn(values.normal, width=width, seed=seed).square().mean(-1).sqrt().min()) > 0.24


def test_normal_values_have_a_mean() -> None:
    assert float(drawn(values.normal, width=1000).mean()) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("dtype", list(DType))
def test_squares_of_large_values_fit_and_are_as_large_as_that(dtype: DType) -> None:
    x = drawn(values.large, dtype)

    assert bool(x.square().isfinite().all())
    assert float(x.abs().max()) > 200


def test_the_mean_square_of_tiny_values_is_about_eps_and_of_those_far_below_a_thousandth() -> None:
    assert float(drawn(values.tiny, width=1000).double().square().mean()) == pytest.approx(EPS, rel=0.1)
    assert float(drawn(values.far_below_eps, width=1000).double().square().mean()) == pytest.approx(
        EPS / 1024, rel=0.1
    )


@pytest.mark.parametrize("dtype", list(DType))
def test_one_value_of_each_row_is_a_hundred_times_the_others_and_its_square_fits(dtype: DType) -> None:
    x = drawn(values.outlier, dtype).double().abs()

    assert bool(((x > 100).sum(-1) == 1).all())
    assert bool(x.to(torch_dtype(dtype)).square().isfinite().all())


@pytest.mark.parametrize(("dtype", "width"), [(dtype, width) for dtype, width in FORMATS if width > 1])
def test_an_offset_is_hundreds_of_times_the_spread_and_no_row_is_constant(dtype: DType, width: int) -> None:
    x = drawn(values.offset, dtype, width).double()

    assert float(x.std(-1, correction=0).min()) > 0
    assert float((x.mean(-1) / x.std(-1, correction=0)).min()) > 200


@pytest.mark.parametrize("dtype", [DType.BF16, DType.FP16])
def test_half_precision_s_offset_has_two_neighbouring_values_and_few_of_the_larger(dtype: DType) -> None:
    x = drawn(values.offset, dtype)
    smaller, larger = x.unique().tolist()

    assert larger == float(torch.nextafter(torch.tensor(smaller, dtype=x.dtype), torch.tensor(1e4, dtype=x.dtype)))
    assert bool(((x == larger).sum(-1) == 4).all())


def test_constant_rows_are_constant_of_both_signs_and_several_sizes() -> None:
    x = drawn(values.constants)

    assert bool((x == x[:, :1]).all())
    assert len(x[:, 0].unique()) == 7
    assert bool((x[:, 0] < 0).any())


@pytest.mark.parametrize("dtype", list(DType))
def test_subnormals_are_below_the_smallest_normal_number_and_not_0(dtype: DType) -> None:
    x = drawn(values.subnormals, dtype).double().abs()

    assert float(x.max()) < torch.finfo(torch_dtype(dtype)).smallest_normal
    assert float(x.min()) > 0


def test_values_beyond_fp16_are_held_by_it_and_none_of_their_squares_is() -> None:
    x = drawn(values.beyond_fp16, DType.FP16)

    assert bool(x.square().isinf().all())


@pytest.mark.parametrize("dtype", [DType.FP32, DType.BF16])
def test_values_beyond_fp32_are_held_by_it_and_none_of_their_squares_is(dtype: DType) -> None:
    assert bool(drawn(values.beyond_fp32, dtype).float().square().isinf().all())


@pytest.mark.parametrize(("dtype", "width"), FORMATS)
def test_balanced_rows_have_a_mean_of_exactly_0(dtype: DType, width: int) -> None:
    assert not bool(drawn(values.balanced, dtype, width).double().sum(-1).any())


@pytest.mark.parametrize("dtype", list(DType))
def test_sums_of_eighths_and_whole_numbers_are_exact_in_every_format(dtype: DType) -> None:
    x = drawn(values.dyadic, dtype)

    assert torch.equal((x + 4).double(), x.double() + 4)
    assert bool((x != 0).all())
    assert float(x.abs().max()) <= 2


@pytest.mark.parametrize("width", [2, 3, 64])
def test_alternating_rows_have_one_size_and_a_mean_of_0(width: int) -> None:
    x = drawn(values.below_eps, width=width).double()

    assert not bool(x.sum(-1).any())
    assert sorted({round(float(v) / EPS**0.5, 6) for v in x.abs().unique()} - {0.0}) == [0.1]


def test_a_single_column_has_that_size_too() -> None:
    assert drawn(values.thousandths, width=1).unique().tolist() == [pytest.approx(1e-3)]


def test_a_layout_and_a_choice_of_rows_change_no_value() -> None:
    given = operands(subject(NORM), "any", values.normal)
    turned = with_layout(given, lambda t: t.t().contiguous().t())
    chosen = rows_of(given, torch.tensor([3, 1]))

    assert torch.equal(turned.x, given.x)
    assert turned.x.stride() == (1, 5)
    assert torch.equal(chosen.x, given.x[[3, 1]])
    assert torch.equal(chosen.dy, given.dy[[3, 1]])  # type: ignore[arg-type,index]
    assert chosen.gain is given.gain


def test_an_order_is_a_permutation() -> None:
    assert sorted(Draw(subject(NORM), "order").order(33).tolist()) == list(range(33))
