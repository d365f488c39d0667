from __future__ import annotations

import pytest
import torch

from normbench.implementations import copy
from normbench.inputs import draw
from normbench.records import DType, Mode
from tests.helpers import CPU, aten_calls, make_cell, make_task, place, results_of


@pytest.mark.parametrize("dtype", list(DType))
def test_the_floor_s_output_is_x_bit_by_bit_in_storage_of_its_own(dtype: DType) -> None:
    cell = make_cell(dtype=dtype)
    operands = place(copy.COPY, cell, draw(cell, 0, CPU))
    y = make_task(copy.COPY, cell, operands).run()

    assert isinstance(y, torch.Tensor)
    assert torch.equal(y, operands.x)
    assert y.data_ptr() != operands.x.data_ptr()


def test_the_floor_s_backward_reads_x_and_dy_and_writes_dx() -> None:
    cell = make_cell(mode=Mode.BACKWARD)
    values = draw(cell, 0, CPU)

    assert values.dy is not None
    assert torch.equal(results_of(copy.COPY, cell, values)["dx"], values.x + values.dy)


@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.INFERENCE, Mode.BACKWARD])
def test_each_pass_of_the_floor_is_one_op(mode: Mode) -> None:
    cell = make_cell(mode=mode)
    task = make_task(copy.COPY, cell, place(copy.COPY, cell, draw(cell, 0, CPU)))
    with task.context():
        assert aten_calls(task.prepare()) == ["add"]


def test_each_call_of_the_floor_allocates_its_result() -> None:
    cell = make_cell()
    task = make_task(copy.COPY, cell, place(copy.COPY, cell, draw(cell, 0, CPU)))
    results = [task.run() for _ in range(3)]

    assert len({result.data_ptr() for result in results if isinstance(result, torch.Tensor)}) == 3


def test_the_floor_goes_through_autograd_as_everyone_does() -> None:
    assert results_of(copy.COPY, make_cell(mode=Mode.FORWARD))["y"].grad_fn is not None
    assert results_of(copy.COPY, make_cell(mode=Mode.INFERENCE))["y"].grad_fn is None


def test_the_floor_needs_no_parameters() -> None:
    cell = make_cell(mode=Mode.FORWARD_BACKWARD)
    operands = place(copy.COPY, cell, draw(cell, 0, CPU))

    assert (operands.gain, operands.bias) == (None, None)
    assert list(results_of(copy.COPY, cell)) == ["y", "dx"]
