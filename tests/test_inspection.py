from __future__ import annotations

import pytest
import torch

from normbench import calls
from normbench.calls import Subject
from normbench.clock import Task
from normbench.device import CudaDevice, hold
from normbench.entrants import Built
from normbench.implementations import Implementation, Setting, eager
from normbench.inputs import draw
from normbench.inspection import Inspection
from normbench.modes import output_of
from normbench.records import Cell, DType, Mode, Op
from tests.cheats import gradients, right, with_gradients
from tests.fake_cuda import FakeCuda
from tests.fakes import FakeDevice
from tests.helpers import BOTH, CPU, EPS, cell_for, make_cell, own, place

MANY = 200
"""More rows than an inspection looks at."""


def subject_of(implementation: Implementation, cell: Cell) -> Subject:
    values, setting = draw(cell, 0, CPU), Setting(cell=cell, eps=EPS)
    operands, bind = place(implementation, cell, values), implementation.build(setting)
    returned = output_of(cell, bind(operands.gain, operands.bias), operands)
    dtypes = tuple(tensor.dtype for tensor in returned)
    built = Built(implementation=implementation, setting=setting, bind=bind, dtypes=dtypes)
    return built.subject(operands, values, FakeDevice())


def looked_at(inspection: Inspection) -> list[int]:
    return inspection._numbers


@pytest.mark.parametrize("implementation", BOTH, ids=lambda i: i.name)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    "dtypes",
    [*((d, d, None) for d in DType), (DType.BF16, DType.FP32, None), (DType.FP32, DType.FP32, DType.BF16)],
)
@pytest.mark.parametrize("rows", [1, 3, MANY])
def test_what_is_right_passes_and_its_inputs_are_put_back_without_a_trace(
    implementation: Implementation, mode: Mode, dtypes: tuple[DType, DType, DType | None], rows: int
) -> None:
    torch._dynamo.reset()
    dtype, parameter_dtype, autocast = dtypes
    formats = {"dtype": dtype, "parameter_dtype": parameter_dtype, "autocast": autocast}
    cell = cell_for(implementation, rows=rows, width=24, mode=mode, **formats)
    subject = subject_of(implementation, cell)
    versions = [tensor._version for tensor in subject.operands.inputs]
    inspection = Inspection(subject, seed=0)
    assert inspection.first(whole=True).problem is None
    assert inspection.first(whole=False).problem is None
    assert inspection.again(few=True, unchanged=True) is None
    assert inspection.close() is None
    assert calls.written_input(subject.operands, subject.exact) is None
    assert [tensor._version for tensor in subject.operands.inputs] == versions


def test_a_gain_gradient_that_counts_a_row_too_little_is_seen_though_some_rows_are_looked_at() -> None:
    def forgetful(x: torch.Tensor, gain: torch.Tensor, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        dx, dgain = gradients(x, gain, dy)
        return dx, dgain - gradients(x[:1], gain, dy[:1])[1] / 2

    norm = with_gradients(right, forgetful)
    subject = subject_of(own(Op.RMSNORM, lambda x, gain, *_: norm(x, gain)), make_cell(rows=MANY, mode=Mode.BACKWARD))
    seed = next(seed for seed in range(99) if 0 in looked_at(Inspection(subject, seed)))
    inspection = Inspection(subject, seed)
    assert len(looked_at(inspection)) < MANY
    assert inspection.first(whole=False).problem is None, "the other rows' gradients are in it"
    assert "dgain[0] is " in (inspection.again(few=False, unchanged=False) or "")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_found_in_rows_that_are_not_looked_at(value: float) -> None:
    cell = make_cell(rows=MANY)
    chosen = looked_at(Inspection(subject_of(own(Op.RMSNORM, eager.rmsnorm), cell), seed=0))
    unseen = next(number for number in range(MANY) if number not in chosen)

    def spoiled(x: torch.Tensor, gain: torch.Tensor, _bias: object, eps: float) -> torch.Tensor:
        y = eager.rmsnorm(x, gain, None, eps)
        y.data[unseen, 3] = value
        return y

    inspection = Inspection(subject_of(own(Op.RMSNORM, spoiled), cell), seed=0)
    assert inspection.first(whole=False).problem is None
    assert inspection.again(few=False, unchanged=False) == "y is not finite everywhere"


def test_a_sum_that_overflows_is_no_infinity() -> None:
    assert calls.all_finite(torch.full((64,), 3e38))
    assert not calls.all_finite(torch.tensor([1.0, float("inf"), float("-inf")]))


def test_nans_are_left_in_free_memory_and_a_gpu_waits_before_inputs_are_written_and_the_call_is_queued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Right values of earlier calls may lie in free memory; another stream's work reads what was there before."""
    log: list[str] = []
    subject = subject_of(own(Op.RMSNORM, eager.rmsnorm), make_cell())
    spoil, run = calls._spoil_free_memory, subject.task.run
    monkeypatch.setattr(calls, "_spoil_free_memory", lambda operands: (log.append("spoil"), spoil(operands)))
    monkeypatch.setattr(calls, "hold", lambda _device: log.append("hold"))
    monkeypatch.setattr(Task, "run", lambda _task: (log.append("call"), run())[1])
    caller = calls.Caller(subject, torch.tensor([0]))
    for _ in range(2):
        caller.overlap(caller.call(lambda: log.append("write")))
    assert log == ["spoil", "hold", "write", "call", "hold", "write", "call"]


def test_a_gpu_is_held_by_a_spin_kernel_and_a_cpu_is_not() -> None:
    cuda = FakeCuda()
    device = CudaDevice.__new__(CudaDevice)
    device.cuda = cuda
    hold(FakeDevice())
    assert cuda.log == []
    hold(device)
    assert len(cuda.sleeps) == 1
