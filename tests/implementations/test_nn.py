from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from normbench.device import torch_dtype
from normbench.implementations import Implementation, Setting, nn
from normbench.inputs import Operands, draw
from normbench.records import DType, Flag, Mode
from tests.helpers import CPU, EPS, aten_calls, check, make_cell, make_task, place, results_of

HALVES = [DType.BF16, DType.FP16]


@pytest.mark.parametrize(
    ("implementation", "dtype", "count"),
    [
        (nn.RMSNORM, DType.FP32, 6),
        (nn.RMSNORM, DType.BF16, 8),
        (nn.RMSNORM, DType.FP16, 8),
        (nn.LAYERNORM, DType.FP32, 1),
        (nn.LAYERNORM, DType.BF16, 1),
        (nn.LAYERNORM, DType.FP16, 1),
    ],
)
def test_on_a_cpu_layernorm_is_one_op_and_rmsnorm_a_chain(
    implementation: Implementation, dtype: DType, count: int
) -> None:
    cell = make_cell(dtype=dtype)
    task = make_task(implementation, cell, place(implementation, cell, draw(cell, 0, CPU)))

    assert len(aten_calls(task.prepare())) == count


@pytest.mark.parametrize("dtype", list(DType))
def test_an_rmsnorm_that_is_a_chain_here_is_observed_to_be_composite(dtype: DType) -> None:
    setting = Setting(cell=make_cell(dtype=dtype), eps=EPS)

    assert nn.RMSNORM.observe(setting, CPU) == (Flag.COMPOSITE,)
    assert nn.LAYERNORM.observe(setting, CPU) == ()


def test_a_gain_in_float32_leaves_the_output_of_rmsnorm_in_x_s_dtype() -> None:
    cell = make_cell(rows=64, width=256, dtype=DType.BF16, parameter_dtype=DType.FP32, mode=Mode.FORWARD_BACKWARD)
    dtypes = {name: tensor.dtype for name, tensor in results_of(nn.RMSNORM, cell).items()}

    assert dtypes == {"y": torch.bfloat16, "dx": torch.bfloat16, "dgain": torch.float32}


def test_parameters_of_another_dtype_are_said_by_the_flag_and_not_by_a_warning() -> None:
    cell = make_cell(dtype=DType.BF16, parameter_dtype=DType.FP32)
    torch.set_warn_always(True)  # else torch says it once a process, for whichever cell came first
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            results_of(nn.RMSNORM, cell)
    finally:
        torch.set_warn_always(False)

    assert nn.RMSNORM.observe(Setting(cell=cell, eps=EPS), CPU) == (Flag.COMPOSITE,)


def test_layernorm_refuses_parameters_in_half_precision_beside_an_x_in_float32() -> None:
    cell = make_cell(dtype=DType.FP32, parameter_dtype=DType.BF16)

    with pytest.raises(RuntimeError, match="mixed dtype"):
        results_of(nn.LAYERNORM, cell)
    assert results_of(nn.RMSNORM, cell)["y"].dtype is torch.float32


@pytest.mark.parametrize(
    ("dtype", "right"),
    [
        (torch.bfloat16, 0.9453125),
        (torch.float16, 0.9453125),
        (torch.float32, 0.945245),
        (torch.float64, 0.99999999989),
    ],
)
def test_torch_s_own_default_eps_is_that_of_float32_and_no_good_for_comparing(
    dtype: torch.dtype, right: float
) -> None:
    y = F.rms_norm(torch.full((1, 64), 1e-3, dtype=dtype), (64,))

    assert float(y[0, 0]) == pytest.approx(right, rel=1e-6 if dtype is not torch.float64 else 1e-11)


@pytest.mark.parametrize("implementation", [nn.LAYERNORM, nn.RMSNORM], ids=lambda i: i.name)
@pytest.mark.parametrize("eps", [1e-8, 1e-6, 1e-2])
def test_the_module_takes_the_eps_it_is_given(implementation: Implementation, eps: float) -> None:
    signs = torch.tensor([1.0, -1.0]).repeat(32).expand(2, 64)
    values = Operands(x=signs * 1e-3, dy=None, gain=torch.ones(64), bias=torch.zeros(64))
    y = results_of(implementation, make_cell(rows=2), values, eps)["y"]

    torch.testing.assert_close(y.detach(), signs * 1e-3 / (1e-6 + eps) ** 0.5)


@pytest.mark.parametrize("implementation", [nn.LAYERNORM, nn.RMSNORM], ids=lambda i: i.name)
def test_the_module_s_parameters_are_the_placement_s_own_buffers(implementation: Implementation) -> None:
    cell = make_cell(mode=Mode.BACKWARD)
    operands = place(implementation, cell, draw(cell, 0, CPU))
    module = implementation.build(Setting(cell=cell, eps=EPS))(operands.gain, operands.bias)

    assert isinstance(module, torch.nn.Module)
    parameters = dict(module.named_parameters())
    assert parameters["weight"] is operands.gain
    assert parameters.get("bias") is operands.bias


@pytest.mark.parametrize("value", [300.0, 255.0, 65504.0])
def test_rmsnorm_takes_its_statistic_in_float32(value: float) -> None:
    cell = make_cell(rows=2, width=256, dtype=DType.FP16)
    values = Operands(x=torch.full((2, 256), value).half(), dy=None, gain=torch.ones(256).half(), bias=None)

    assert torch.equal(results_of(nn.RMSNORM, cell, values)["y"], torch.ones(2, 256).half())


def test_rmsnorm_overflows_where_the_square_overflows_float32() -> None:
    values = Operands(x=torch.full((2, 256), 1e25), dy=None, gain=torch.ones(256), bias=None)
    cell = make_cell(rows=2, width=256)

    assert not bool(results_of(nn.RMSNORM, cell, values)["y"].any())
    problem = check(nn.RMSNORM, cell, values).problem
    assert problem is not None
    assert problem.startswith("y[0, 0] is 0, not 1 (100.0%")


@pytest.mark.parametrize("dtype", HALVES)
def test_layernorm_on_a_cpu_sums_its_gain_gradient_in_half_precision_and_that_is_flagged(dtype: DType) -> None:
    cell = make_cell(rows=4096, width=256, dtype=dtype, mode=Mode.BACKWARD)
    finding = check(nn.LAYERNORM, cell)

    assert finding.problem is None
    assert finding.coarse_sums


@pytest.mark.parametrize(
    ("implementation", "dtype"),
    [(nn.LAYERNORM, DType.FP32), (nn.RMSNORM, DType.FP32), *((nn.RMSNORM, dtype) for dtype in HALVES)],
)
def test_sums_in_float32_are_not_flagged(implementation: Implementation, dtype: DType) -> None:
    cell = make_cell(rows=4096, width=256, dtype=dtype, mode=Mode.BACKWARD)
    finding = check(implementation, cell)

    assert finding.problem is None
    assert not finding.coarse_sums


@pytest.mark.parametrize("dtype", list(DType))
def test_a_row_of_zeros_gives_zeros_even_where_eps_is_too_small_for_the_dtype(dtype: DType) -> None:
    cell = make_cell(rows=2, width=8, dtype=dtype)
    format_ = torch_dtype(dtype)
    values = Operands(x=torch.zeros(2, 8, dtype=format_), dy=None, gain=torch.ones(8, dtype=format_), bias=None)

    assert not bool(results_of(nn.RMSNORM, cell, values, eps=1e-8)["y"].any())
    assert bool(results_of(nn.RMSNORM, cell, values, eps=0.0)["y"].isnan().all())
