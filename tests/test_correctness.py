from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pytest
import torch

from normbench import correctness
from normbench.device import torch_dtype
from normbench.expected import Expected
from normbench.implementations import eager, naive, nn
from normbench.inputs import Operands, draw, draw_probes
from normbench.records import DType, Mode, Op
from tests.helpers import CPU, check, make_cell, own
from tests.wrong_norms import eps_outside, unbiased_layernorm, without_bias, without_gain, without_mean

Results: TypeAlias = dict[str, torch.Tensor]

BOTH = Mode.FORWARD_BACKWARD


def replaced(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Results], Results]:
    return lambda results: {**results, name: change(results[name])}


def with_one(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def spoil(tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.clone()
        tensor[-1].fill_(value) if tensor.ndim == 1 else tensor[-1, -1].fill_(value)
        return tensor

    return spoil


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.BACKWARD])
@pytest.mark.parametrize("width", [4, 7, 8, 32, 256])
def test_an_unbiased_variance_is_wrong_at_every_width_and_in_every_dtype(
    dtype: DType, mode: Mode, width: int
) -> None:
    finding = check(own(Op.LAYERNORM, unbiased_layernorm), make_cell(rows=2048, width=width, dtype=dtype, mode=mode))

    assert finding.problem is not None
    assert finding.problem.startswith("y" if mode is Mode.FORWARD else "dx")


def test_where_no_single_element_gives_the_wrong_divisor_away_the_factor_is_named() -> None:
    cell = make_cell(rows=2048, width=256, dtype=DType.BF16, mode=Mode.BACKWARD)
    problem = check(own(Op.LAYERNORM, unbiased_layernorm), cell).problem

    assert problem is not None
    assert problem.endswith(" times the right values throughout")
    assert float(problem.split()[2]) == pytest.approx((255 / 256) ** 0.5, abs=1e-4)


@pytest.mark.parametrize("dtype", list(DType))
def test_eps_outside_the_root_is_seen_on_the_hard_rows_only(dtype: DType) -> None:
    cell = make_cell(width=256, dtype=dtype)
    values = draw(cell, 0, CPU)
    outside = own(Op.RMSNORM, eps_outside)

    assert check(outside, cell, values).problem is None
    assert check(outside, cell, next(draw_probes(values)), probe=True).problem is not None


def test_a_statistic_in_float16_is_seen_on_the_hard_rows_only() -> None:
    cell = make_cell(width=256, dtype=DType.FP16)
    values = draw(cell, 0, CPU)
    in_its_own_dtype = own(Op.RMSNORM, naive.rmsnorm)

    assert check(in_its_own_dtype, cell, values).problem is None
    problem = check(in_its_own_dtype, cell, next(draw_probes(values)), probe=True).problem
    assert problem is not None
    assert problem.startswith("y[0, 0] is ")


@pytest.mark.parametrize("function", [without_mean, without_gain, without_bias])
@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.BACKWARD])
def test_a_layernorm_that_leaves_something_out_is_wrong(
    function: Callable[..., torch.Tensor], dtype: DType, mode: Mode
) -> None:
    cell = make_cell(rows=64, width=256, dtype=dtype, mode=mode)

    assert check(own(Op.LAYERNORM, function), cell).problem is not None


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("name", ["y", "dx", "dgain", "dbias"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 6e4])
def test_one_bad_element_is_named(name: str, dtype: DType, value: float) -> None:
    cell = make_cell(rows=64, width=256, dtype=dtype, mode=BOTH)
    finding = check(nn.LAYERNORM, cell, spoil=replaced(name, with_one(value)))

    assert finding.problem is not None
    assert finding.problem.startswith(f"{name}[63, 255] is" if name in ("y", "dx") else f"{name}[255] is")
    assert not finding.accuracy.max_abs_error < 1e4


@pytest.mark.parametrize(
    ("name", "shape"), [("y", (64, 255)), ("y", (64, 256, 1)), ("dx", (256, 64)), ("dgain", (1, 256)), ("dbias", ())]
)
def test_a_wrong_shape_is_named_and_its_errors_are_infinite(name: str, shape: tuple[int, ...]) -> None:
    cell = make_cell(rows=64, width=256, mode=BOTH)
    finding = check(nn.LAYERNORM, cell, spoil=replaced(name, lambda _: torch.zeros(shape)))

    assert finding.problem is not None
    assert finding.problem.startswith(f"{name} has shape {shape}, not (")
    assert finding.accuracy.max_abs_error == finding.accuracy.max_rel_error == float("inf")


@pytest.mark.parametrize(
    "spoiled",
    [
        torch.zeros_like,
        lambda right: torch.full_like(right, float("nan")),
        lambda right: torch.full_like(right, 6e4),
        lambda right: torch.full_like(right, 1e-7),
        lambda right: right.flip(0),
        lambda right: -right,
    ],
    ids=["zeros", "nan", "huge", "tiny", "of another column", "of the other sign"],
)
@pytest.mark.parametrize(
    ("rows", "dtype"), [*((rows, dtype) for rows in (64, 4096) for dtype in DType), (32768, DType.BF16)]
)
def test_a_gain_gradient_that_was_never_written_or_is_stale_is_wrong(
    spoiled: Callable[[torch.Tensor], torch.Tensor], rows: int, dtype: DType
) -> None:
    cell = make_cell(rows=rows, width=64, dtype=dtype, mode=Mode.BACKWARD)
    problem = check(nn.RMSNORM, cell, spoil=replaced("dgain", spoiled)).problem

    assert problem is not None
    assert problem.startswith("dgain")


@pytest.mark.parametrize("dtype", [DType.FP32, DType.BF16])
def test_a_gradient_that_is_one_per_cent_too_large_is_wrong(dtype: DType) -> None:
    cell = make_cell(rows=2048, width=256, dtype=dtype, mode=Mode.BACKWARD)
    problem = check(nn.RMSNORM, cell, spoil=replaced("dx", lambda right: right * 1.01)).problem

    assert problem is not None
    assert problem.startswith("dx")


def test_a_result_that_is_nothing_but_nan_where_the_truth_is_nan_is_not_passed() -> None:
    cell = make_cell(rows=3, width=8)
    zeros = Operands(x=torch.zeros(3, 8), dy=None, gain=torch.ones(8), bias=torch.zeros(8))
    finding = check(own(Op.RMSNORM, eager.rmsnorm), cell, zeros, eps=0.0)

    assert finding.problem is not None
    assert finding.problem.startswith("y[0, 0] is nan")
    assert finding.accuracy.max_abs_error != finding.accuracy.max_abs_error


def test_the_errors_are_those_of_the_worst_element() -> None:
    cell = make_cell(rows=2, width=4)
    values = Operands(x=torch.eye(4)[:2], dy=None, gain=torch.ones(4), bias=None)
    finding = check(nn.RMSNORM, cell, values, spoil=replaced("y", lambda y: y + torch.eye(4)[1:3] / 2))

    # A row with a single 1 among four has the mean square 1/4: y is 2 there and 0 elsewhere.
    assert finding.accuracy.max_abs_error == pytest.approx(0.5, rel=1e-5)
    # The error is relative to what was summed up to the element, here |y| and the gain's 1.
    assert finding.accuracy.max_rel_error == pytest.approx(0.5, rel=1e-5)
    assert finding.accuracy.out_dtype is DType.FP32


def test_a_backward_has_no_out_dtype() -> None:
    assert check(nn.LAYERNORM, make_cell(mode=Mode.BACKWARD)).accuracy.out_dtype is None


def test_the_rows_are_named_right_and_the_errors_are_the_same_when_they_come_in_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = make_cell(rows=64, width=16, mode=BOTH)
    whole, spoilt = check(nn.LAYERNORM, cell), replaced("dx", with_one(9.0))
    monkeypatch.setattr(correctness, "_CHUNK_ELEMENTS", 5 * 16)
    in_chunks = check(nn.LAYERNORM, cell)
    problem = check(nn.LAYERNORM, cell, spoil=spoilt).problem

    assert in_chunks.problem is None
    assert in_chunks.accuracy.max_abs_error == pytest.approx(whole.accuracy.max_abs_error, rel=1e-9)
    assert problem is not None
    assert problem.startswith("dx[63, 15] is 9, not ")


@pytest.mark.parametrize(
    ("changes", "roundoff", "smallest"),
    [
        ({}, DType.FP32, DType.FP32),
        ({"dtype": DType.FP16}, DType.FP16, DType.FP16),
        ({"parameter_dtype": DType.BF16}, DType.BF16, DType.BF16),
        ({"autocast": DType.BF16}, DType.BF16, DType.BF16),
        ({"dtype": DType.FP16, "autocast": DType.BF16}, DType.BF16, DType.FP16),
    ],
)
def test_the_tolerance_goes_by_the_coarsest_rounding_and_the_coarsest_underflow_of_the_cell(
    changes: dict[str, DType], roundoff: DType, smallest: DType
) -> None:
    coarsest = correctness.coarsest_of(make_cell(**changes))

    assert coarsest.roundoff == roundoff.roundoff
    assert coarsest.smallest == max(smallest.smallest, DType.FP32.smallest)


def test_no_truth_and_no_tolerance_lets_a_result_pass_that_is_no_number_or_should_be_none() -> None:
    tally = correctness._Tally()
    infinity, one = torch.full((1, 1), float("inf"), dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    numbers = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "1": 1.0}
    for said, actual in numbers.items():
        for value in (infinity, -infinity, infinity * float("nan"), one):
            if said == "1" and value is one:
                continue
            for tolerance in (infinity, infinity * float("nan"), one):
                before = len(tally.problems)
                expected = Expected(value=value, tolerance=tolerance, scale=one)
                tally.add("y", torch.full((1, 1), actual), expected, [0])
                assert len(tally.problems) == before + 1, (said, value, tolerance)


def test_a_nan_once_seen_stays_the_worst_error() -> None:
    tally = correctness._Tally()
    one = torch.ones(1, 1, dtype=torch.float64)
    for actual in (1.0, float("nan"), 1.0):
        tally.add("y", torch.full((1, 1), actual), Expected(value=one, tolerance=one, scale=one), [0])
    assert tally.max_abs != tally.max_abs
    assert tally.max_rel != tally.max_rel


def test_a_subclass_of_a_tensor_is_not_compared_since_it_may_put_its_work_off() -> None:
    spoil = replaced("y", lambda y: torch.nn.Parameter(y))
    finding = check(nn.RMSNORM, make_cell(), spoil=spoil)

    assert finding.problem == "y is a Parameter, not a plain tensor"


def cancelling(rows: int = 512, width: int = 32, dtype: DType = DType.FP32) -> Operands:
    """A gradient whose rows grow all the way and cancel in the second half, but for a little: no random walk."""
    generator = torch.Generator().manual_seed(0)
    x = torch.ones(rows, width) + 0.01 * torch.randn(rows, width, generator=generator)
    sign = torch.ones(rows, 1)
    sign[rows // 2 :] = -1
    dy = sign * 100 * (1 + 0.01 * torch.rand(rows, width, generator=generator)) + 0.01
    return Operands(x=x.to(torch_dtype(dtype)), dy=dy.to(torch_dtype(dtype)), gain=torch.ones(width), bias=None)


def dgain_of(values: Operands, factor: float = 1.0, *, kept_in: torch.dtype = torch.float32) -> torch.Tensor:
    """Row after row, as kernels sum up."""
    assert values.dy is not None
    x, dy = values.x.float(), values.dy.float()
    terms = dy * x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    total = torch.zeros_like(terms[0], dtype=kept_in)
    for term in terms:
        total = total + term.to(kept_in)
    return total * factor


def gain_problem(values: Operands, dgain: torch.Tensor, dtype: DType = DType.FP32) -> correctness.Finding:
    rows, width = values.x.shape
    cell = make_cell(rows=rows, width=width, dtype=dtype, parameter_dtype=dtype, mode=Mode.BACKWARD)
    return correctness.check({"dgain": dgain}, Op.RMSNORM, cell, values, 1e-6, independent=False)


def test_a_float32_sum_of_rows_that_cancel_is_right_where_rows_depend_on_each_other_and_a_wrong_one_is_not() -> None:
    values = cancelling()
    right, size = dgain_of(values), 100 * 512

    assert float(right.abs().max()) < size / 100
    assert gain_problem(values, right) == replace(gain_problem(values, right), problem=None, coarse_sums=False)
    assert gain_problem(values, right + 2e-5 * size).problem is not None
    assert gain_problem(values, right * 0).problem is not None
    assert gain_problem(values, right * torch.nan).problem is not None


def test_a_sum_in_half_precision_that_gets_stuck_is_coarse_and_one_that_was_never_written_is_wrong() -> None:
    generator = torch.Generator().manual_seed(0)
    dy = (1 + 0.1 * torch.randn(1024, 32, generator=generator)).bfloat16()
    x = torch.randn(1024, 32, generator=generator).abs().bfloat16()
    values = Operands(x=x, dy=dy, gain=torch.ones(32, dtype=torch.bfloat16), bias=None)
    stuck, right = (dgain_of(values, kept_in=dtype) for dtype in (torch.bfloat16, torch.float32))
    of_it = float((stuck.float() / right).mean())

    assert 0.1 < of_it < 0.7
    finding = gain_problem(values, stuck, DType.BF16)
    assert (finding.problem, finding.coarse_sums) == (None, True)
    finding = gain_problem(values, right.bfloat16(), DType.BF16)
    assert (finding.problem, finding.coarse_sums) == (None, False)
    for factor in (0.0, 0.05, 1.6, 2.0, -1.0):
        problem = gain_problem(values, (right * factor).bfloat16(), DType.BF16).problem
        assert problem is not None, factor
