"""The floor of a residual add and norm, and the implementations that do the two apart."""

from __future__ import annotations

import pytest
import torch

from normbench import correctness, traffic
from normbench.implementations import Implementation, Setting, copy, eager, nn
from normbench.inputs import Operands, draw
from normbench.profiling import memory, op_bytes
from normbench.records import Cell, DType, Mode, Operation
from tests.helpers import CPU, EPS, EVERY_ADDER, aten_calls, check, make_cell, make_task, place, results_of


def cell_of(mode: Mode = Mode.FORWARD, **changes: object) -> Cell:
    return make_cell(operation=Operation.ADD_NORM, mode=mode, **changes)


def placed(implementation: Implementation = copy.ADD_COPY, mode: Mode = Mode.FORWARD) -> Operands:
    cell = cell_of(mode)
    return place(implementation, cell, draw(cell, 0, CPU))


@pytest.fixture(params=["a loop for each", "one kernel"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way in which the floor copies: a CPU's, and a GPU's where x and residual lie side by side."""
    if request.param == "one kernel":

        def of_pair(x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            pair = copy.side_by_side(x, residual)
            assert pair is not None
            return copy.copies_of_pair(pair)

        monkeypatch.setattr(copy, "both", of_pair)
    return str(request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("mode", Mode)
def test_the_floor_is_right_and_its_ops_move_exactly_the_bytes_of_the_formula(mode: Mode, dtype: DType) -> None:
    cell = cell_of(mode, dtype=dtype)
    assert check(copy.ADD_COPY, cell).problem is None
    task = make_task(copy.ADD_COPY, cell, place(copy.ADD_COPY, cell, draw(cell, 0, CPU)))
    with task.context():
        moved = op_bytes.count(task.prepare())
    assert sum(op.bytes for op in moved) == traffic.floor_bytes(copy.ADD_COPY.op, cell)
    assert (
        sum(op.written_bytes or 0 for op in moved)
        == cell.elements
        * dtype.itemsize
        * {
            Mode.FORWARD: 2,
            Mode.INFERENCE: 2,
            Mode.BACKWARD: 1,
            Mode.FORWARD_BACKWARD: 3,
        }[mode]
    )


def test_each_pass_of_the_floor_is_one_op(way: str) -> None:
    forward = "add" if way == "one kernel" else "_foreach_add"
    for mode, op in ((Mode.FORWARD, forward), (Mode.INFERENCE, forward), (Mode.BACKWARD, "addcmul")):
        task = make_task(copy.ADD_COPY, cell_of(mode), placed(mode=mode))
        with task.context():
            assert [name for name in aten_calls(task.prepare()) if name != "detach"] == [op]


@pytest.mark.usefixtures("way")
def test_the_floors_results_are_copies_bit_by_bit_in_memory_of_their_own_in_each_call() -> None:
    operands = placed()
    task = make_task(copy.ADD_COPY, cell_of(), operands)
    results = [task.run() for _ in range(3)]
    pointers = set()
    for y, h in results:  # type: ignore[misc, attr-defined]
        assert torch.equal(y, operands.x)
        assert torch.equal(h, operands.residual)
        pointers |= {y.data_ptr(), h.data_ptr()}
    assert len(pointers | {tensor.data_ptr() for tensor in operands.inputs}) == 8


@pytest.mark.usefixtures("way")
def test_the_floor_goes_through_autograd_and_saves_nothing_but_h_which_is_alive_anyway() -> None:
    operands = placed()
    forward = copy.ADD_COPY.build(Setting(cell=cell_of(), eps=EPS))(None, None)
    y, h = forward(*operands.inputs)
    assert y.grad_fn is h.grad_fn is not None
    saved, alive = memory.saved(lambda: forward(*operands.inputs), operands.inputs)
    assert (saved, alive > 0) == (0, True)


@pytest.mark.parametrize("implementation", [i for i in EVERY_ADDER if not i.compiled], ids=lambda i: i.name)
def test_the_gradients_of_x_and_of_the_residual_are_one_tensor_of_which_nobody_makes_a_second(
    implementation: Implementation,
) -> None:
    results = results_of(implementation, cell_of(Mode.BACKWARD))
    assert results["dx"].data_ptr() == results["dresidual"].data_ptr()


def test_only_the_floor_finds_x_and_residual_side_by_side() -> None:
    x, residual = placed().inputs
    pair = copy.side_by_side(x, residual)
    assert pair is not None
    assert torch.equal(pair, torch.stack((x, residual)))
    for operands in (placed(nn.ADD_LAYERNORM), placed(eager.ADD_RMSNORM)):
        assert copy.side_by_side(*operands.inputs) is None


def test_what_does_not_lie_side_by_side_is_never_taken_for_a_pair() -> None:
    block = torch.randn(3, 4, 8)
    assert copy.side_by_side(block[0], block[1]) is not None
    for one, other in ((0, 2), (1, 0), (1, 1)):
        assert copy.side_by_side(block[one], block[other]) is None
    assert copy.side_by_side(block[0].t(), block[1].t()) is None
    assert copy.side_by_side(block[0], block[1].clone()) is None


def test_where_inputs_are_shared_the_floor_copies_them_one_after_the_other() -> None:
    x, residual = torch.randn(2, 8), torch.randn(2, 8)
    y, h = copy.both(x, residual)
    assert torch.equal(y, x)
    assert torch.equal(h, residual)


def test_torch_s_modules_add_in_an_op_of_its_own_and_return_the_very_sum_that_they_norm() -> None:
    cell = cell_of(Mode.INFERENCE)
    task = make_task(nn.ADD_LAYERNORM, cell, placed(nn.ADD_LAYERNORM, Mode.INFERENCE))
    with task.context():
        assert aten_calls(task.prepare()) == ["add", "native_layer_norm"]


@pytest.mark.parametrize(
    ("adder", "alone"), [(eager.ADD_LAYERNORM, eager.LAYERNORM), (eager.ADD_RMSNORM, eager.RMSNORM)]
)
def test_an_eager_chain_with_a_residual_is_the_chain_and_one_op_before(
    adder: Implementation, alone: Implementation
) -> None:
    def ops(implementation: Implementation) -> list[str]:
        cell = make_cell(operation=implementation.op.operation, mode=Mode.INFERENCE, dtype=DType.BF16)
        task = make_task(implementation, cell, place(implementation, cell, draw(cell, 0, CPU)))
        with task.context():
            return aten_calls(task.prepare())

    assert ops(adder) == ["add", *ops(alone)]


@pytest.mark.parametrize("implementation", EVERY_ADDER, ids=lambda i: i.name)
@pytest.mark.parametrize("dtype", list(DType))
def test_the_new_residual_is_the_sum_rounded_once_to_the_format_of_x(
    implementation: Implementation, dtype: DType
) -> None:
    torch._dynamo.reset()
    cell = cell_of(dtype=dtype)
    values = draw(cell, 0, CPU)
    assert values.residual is not None
    h = results_of(implementation, cell, values)["h"].detach()
    assert torch.equal(h, values.residual if implementation.op.is_floor else values.x + values.residual)
    assert correctness.dtype_of(h) is dtype
