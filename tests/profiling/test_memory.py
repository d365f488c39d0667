"""What is saved for the backward, and the peak: N10's net allocation is neither."""

from __future__ import annotations

import pytest
import torch

from normbench import modes
from normbench.device import CpuDevice
from normbench.implementations import Setting, by_name
from normbench.profiling.memory import peak_and_net, saved
from normbench.records import DType, Mode
from tests.helpers import CPU, draw, make_cell, make_task, place

M, N = 2048, 256
MN = M * N


def saved_by(name: str, dtype: DType) -> tuple[int, int]:
    cell = make_cell(rows=M, width=N, dtype=dtype, parameter_dtype=dtype)
    implementation = by_name(name)
    operands = place(implementation, cell, draw(cell, 0, CPU))
    forward = implementation.build(Setting(cell=cell, eps=1e-6))(operands.gain, operands.bias)
    return saved(lambda: modes.output_of(cell, forward, operands), operands.differentiable)


def test_layer_norm_keeps_its_statistics_alone_beside_what_is_alive_anyway() -> None:
    own, alive = saved_by("nn-layernorm", DType.FP32)
    assert own == 2 * M * 4
    assert alive == MN * 4 + 2 * N * 4


def test_the_bf16_chain_keeps_a_float32_x_and_the_normalised_rows() -> None:
    own, alive = saved_by("eager-rmsnorm", DType.BF16)
    assert own == 4 * MN + 2 * MN + 4 * M
    assert alive == 2 * N


def test_the_floor_keeps_nothing_of_its_own() -> None:
    own, _alive = saved_by("copy", DType.FP32)
    assert own == 0


@pytest.mark.parametrize(("name", "tensors"), [("nn-layernorm", 1), ("eager-rmsnorm", 2)])
def test_the_peak_is_the_most_at_once_and_the_net_what_stays(name: str, tensors: int) -> None:
    cell = make_cell(rows=M, width=N, mode=Mode.INFERENCE)
    implementation = by_name(name)
    task = make_task(implementation, cell, place(implementation, cell, draw(cell, 0, CPU)))
    peak, net = peak_and_net(task, CpuDevice())
    assert peak >= tensors * MN * 4
    assert peak < (tensors + 1) * MN * 4
    assert net == MN * 4, "the result, and nothing else: no difference, whatever was read and written"


def test_memory_that_is_saved_twice_counts_once() -> None:
    x = torch.ones(1024, requires_grad=True)
    own, alive = saved(lambda: (x.exp() * x.exp()).sum(), [x])
    assert own == 2 * 4096
    assert alive == 0
