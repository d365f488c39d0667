from __future__ import annotations

import pytest
import torch

from normbench.implementations import Implementation, eager
from normbench.inputs import Operands, draw
from normbench.records import DType, Mode
from tests.helpers import CPU, aten_calls, make_cell, make_task, place, results_of


@pytest.mark.parametrize(
    ("implementation", "dtype", "count"),
    [
        (eager.RMSNORM, DType.FP32, 6),
        (eager.RMSNORM, DType.BF16, 8),
        (eager.RMSNORM, DType.FP16, 8),
        (eager.LAYERNORM, DType.FP32, 9),
        (eager.LAYERNORM, DType.BF16, 11),
        (eager.LAYERNORM, DType.FP16, 11),
    ],
)
def test_a_chain_is_as_many_ops_as_it_says(implementation: Implementation, dtype: DType, count: int) -> None:
    cell = make_cell(dtype=dtype)
    task = make_task(implementation, cell, place(implementation, cell, draw(cell, 0, CPU)))

    assert len(aten_calls(task.prepare())) == count


def test_the_rmsnorm_chain_is_the_textbook_s() -> None:
    cell = make_cell()
    task = make_task(eager.RMSNORM, cell, place(eager.RMSNORM, cell, draw(cell, 0, CPU)))

    assert aten_calls(task.prepare()) == ["pow", "mean", "add", "rsqrt", "mul", "mul"]


def test_a_gain_in_float32_widens_the_output_of_the_chain() -> None:
    cell = make_cell(dtype=DType.BF16, parameter_dtype=DType.FP32, mode=Mode.FORWARD_BACKWARD)
    results = results_of(eager.RMSNORM, cell)

    dtypes = {name: tensor.dtype for name, tensor in results.items()}
    assert dtypes == {"y": torch.float32, "dx": torch.bfloat16, "dgain": torch.float32}


def test_values_whose_square_overflows_float16_are_normalised_all_the_same() -> None:
    cell = make_cell(rows=2, width=256, dtype=DType.FP16)
    values = Operands(x=torch.full((2, 256), 300.0).half(), dy=None, gain=torch.ones(256).half(), bias=None)

    assert torch.equal(results_of(eager.RMSNORM, cell, values)["y"], torch.ones(2, 256).half())
    x = values.x
    assert not bool((x * (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()).any())  # what the cast is there for


def test_eps_stands_inside_the_root() -> None:
    cell = make_cell(rows=2, width=256)
    values = Operands(x=torch.full((2, 256), 1e-4), dy=None, gain=torch.ones(256), bias=None)
    y = results_of(eager.RMSNORM, cell, values, eps=1e-6)["y"]

    torch.testing.assert_close(y.detach(), torch.full((2, 256), 0.0995037), rtol=0, atol=1e-7)


def test_the_variance_is_the_biased_one() -> None:
    cell = make_cell(rows=1, width=4)
    values = Operands(x=torch.tensor([[0.0, 0.0, 0.0, 4.0]]), dy=None, gain=torch.ones(4), bias=torch.zeros(4))
    y = results_of(eager.LAYERNORM, cell, values, eps=1e-12)["y"]

    # The mean is 1 and the mean of squares around it (1 + 1 + 1 + 9) ÷ 4 = 3.
    torch.testing.assert_close(y.detach(), torch.tensor([[-1.0, -1.0, -1.0, 3.0]]) / 3**0.5)
