from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from normbench import compilation, correctness, modes
from normbench.clock import Call
from normbench.implementations import compiled, eager, nn
from normbench.inputs import Operands, draw
from normbench.records import DType, Mode, Op, Operation
from tests.helpers import CPU, EPS, aten_calls, make_cell, make_task, own, place, results_of

GRADIENTS = ["dx", "dgain", "dbias"]


class Recorder:
    """A forward that counts its calls and notes in which state it was called."""

    def __init__(self) -> None:
        self.calls = 0
        self.grad_enabled = self.autocast = False

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.grad_enabled = torch.is_grad_enabled()
        self.autocast = torch.is_autocast_enabled("cpu")
        return x * 2


def operands_for(cell: Any, op: Op = Op.COPY) -> Operands:
    return place(own(op, eager.layernorm), cell, draw(cell, 0, CPU))


def record(mode: Mode, **changes: Any) -> tuple[Recorder, Any]:
    cell = make_cell(mode=mode, **changes)
    forward = Recorder()
    return forward, modes.task("recorder", cell, forward, operands_for(cell))


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        (Mode.FORWARD, ["y"]),
        (Mode.INFERENCE, ["y"]),
        (Mode.BACKWARD, GRADIENTS),
        (Mode.FORWARD_BACKWARD, ["y", *GRADIENTS]),
    ],
)
def test_a_mode_returns_its_tensors_in_order_and_each_is_right(mode: Mode, names: list[str]) -> None:
    cell = make_cell(mode=mode)
    values = draw(cell, 0, CPU)
    results = results_of(nn.LAYERNORM, cell, values)

    assert list(results) == names
    assert correctness.check(results, Op.LAYERNORM, cell, values, EPS).problem is None


@pytest.mark.parametrize(
    ("op", "names"), [(Op.COPY, ("dx",)), (Op.RMSNORM, ("dx", "dgain")), (Op.LAYERNORM, ("dx", "dgain", "dbias"))]
)
def test_gradients_are_named_after_what_the_formula_has(op: Op, names: tuple[str, ...]) -> None:
    cell = make_cell(mode=Mode.BACKWARD)

    assert modes.output_names(Mode.BACKWARD, draw(cell, 0, CPU).of(op)) == names


@pytest.mark.parametrize("mode", list(Mode))
def test_only_inference_runs_without_grad(mode: Mode) -> None:
    forward, task = record(mode)
    with torch.enable_grad():
        task.run()

    assert forward.grad_enabled is (mode is not Mode.INFERENCE)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_call_prepared_once_may_be_repeated_unless_it_uses_up_a_graph(mode: Mode) -> None:
    _, task = record(mode)

    assert task.repeatable is (mode is not Mode.BACKWARD)
    if task.repeatable:
        with task.context():
            call = task.prepare()
            first, second = (modes.outputs(call()) for _ in range(2))
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_a_backward_prepares_a_fresh_forward_each_time_and_the_call_runs_none() -> None:
    forward, task = record(Mode.BACKWARD)
    call = task.prepare()
    assert forward.calls == 1
    call()
    assert forward.calls == 1
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        call()

    task.prepare()()
    assert forward.calls == 2


@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.INFERENCE, Mode.FORWARD_BACKWARD])
def test_where_the_forward_is_timed_preparing_runs_none(mode: Mode) -> None:
    forward, task = record(mode)
    with task.context():
        call = task.prepare()
        assert forward.calls == 0
        call()
    assert forward.calls == 1


@pytest.mark.parametrize("mode", [Mode.BACKWARD, Mode.FORWARD_BACKWARD])
def test_nothing_accumulates_and_dy_stays_as_it_was(mode: Mode) -> None:
    cell = make_cell(mode=mode)
    operands = operands_for(cell, Op.LAYERNORM)
    assert operands.dy is not None
    dy = operands.dy.clone()
    task = make_task(nn.LAYERNORM, cell, operands)
    first, second = (modes.outputs(task.run()) for _ in range(2))

    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert all(tensor.grad is None for tensor in operands.differentiable)
    assert torch.equal(operands.dy, dy)


def test_a_timed_backward_of_layernorm_is_one_op_and_none_that_adds_gradients_up() -> None:
    cell = make_cell(mode=Mode.BACKWARD)
    task = make_task(nn.LAYERNORM, cell, operands_for(cell, Op.LAYERNORM))

    for _ in range(2):
        assert aten_calls(task.prepare()) == ["native_layer_norm_backward"]


@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.BACKWARD, Mode.FORWARD_BACKWARD])
@pytest.mark.parametrize("autocast", [None, DType.BF16])
def test_autocast_is_on_in_the_forward_of_every_mode_that_asks_for_it(mode: Mode, autocast: DType | None) -> None:
    forward, task = record(mode, autocast=autocast)
    task.run()

    assert forward.autocast is (autocast is not None)


@pytest.mark.parametrize("mode", [Mode.BACKWARD, Mode.FORWARD_BACKWARD])
def test_a_backward_runs_outside_autocast(mode: Mode) -> None:
    seen: list[bool] = []

    class Spy(torch.autograd.Function):
        @staticmethod
        def forward(_ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(_ctx: Any, dy: torch.Tensor) -> torch.Tensor:
            seen.append(torch.is_autocast_enabled("cpu"))
            return dy

    cell = make_cell(mode=mode, autocast=DType.BF16)
    modes.task("spy", cell, Spy.apply, operands_for(cell)).run()

    assert seen == [False]


def test_every_call_of_a_batch_casts_the_parameters_anew_as_a_training_step_does() -> None:
    cell = make_cell(autocast=DType.BF16)
    weight = torch.nn.Parameter(torch.ones(64, 2))
    task = modes.task("matmul", cell, lambda x: x @ weight, operands_for(cell))
    with task.context():
        call = task.prepare()
        casts = [aten_calls(call).count("_to_copy") for _ in range(2)]
        (y,) = modes.outputs(call())

    assert casts == [2, 2]
    assert y.dtype is torch.bfloat16


@pytest.mark.parametrize(("dtype", "out"), [(DType.FP32, DType.FP32), (DType.BF16, DType.BF16)])
def test_under_autocast_the_dtype_that_layernorm_returns_is_recorded(dtype: DType, out: DType) -> None:
    cell = make_cell(dtype=dtype, autocast=DType.BF16)
    values = draw(cell, 0, CPU)
    finding = correctness.check(results_of(nn.LAYERNORM, cell, values), Op.LAYERNORM, cell, values, EPS)

    assert finding.problem is None
    assert finding.accuracy.out_dtype is out


@pytest.mark.parametrize("mode", [Mode.BACKWARD, Mode.FORWARD_BACKWARD])
def test_dy_has_the_dtype_of_y_and_is_cast_no_more_than_once(mode: Mode) -> None:
    cell = make_cell(mode=mode, dtype=DType.BF16)
    task = modes.task("widening", cell, lambda x: x.float(), operands_for(cell))
    task.run()

    # What is left are the forward's own cast and, in its backward, that of dx to x's dtype.
    assert aten_calls(lambda: task.prepare()()).count("_to_copy") == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("mode", [Mode.BACKWARD, Mode.FORWARD_BACKWARD])
def test_a_compiled_backward_can_be_timed_again_and_again(backend: str, mode: Mode) -> None:
    compilation.reset()
    cell = make_cell(mode=mode)
    implementation = compiled.implementation(Op.LAYERNORM, eager.layernorm, backend=backend)
    task = make_task(implementation, cell, operands_for(cell, Op.LAYERNORM))
    first, *others = (modes.outputs(task.run()) for _ in range(5))

    assert all(torch.equal(a, b) for other in others for a, b in zip(first, other, strict=True))


def overwriting(x: torch.Tensor) -> torch.Tensor:
    return x.mul_(2)


@pytest.mark.parametrize("fresh_copies", [True, False])
def test_an_implementation_that_writes_into_x_gets_a_fresh_one_each_call_where_asked_for(fresh_copies: bool) -> None:
    cell = make_cell(mode=Mode.INFERENCE)
    operands = operands_for(cell)
    before = operands.x.clone()
    task = modes.task("overwriting", cell, overwriting, operands, fresh_copies=fresh_copies)
    ys = [modes.outputs(task.run())[0].clone() for _ in range(2)]

    assert torch.equal(ys[0], before * 2)
    assert torch.equal(ys[1], before * (2 if fresh_copies else 4))
    assert torch.equal(operands.x, before) is fresh_copies
    assert task.repeatable is not fresh_copies


def test_fresh_copies_include_dy_and_are_made_outside_the_clock() -> None:
    class Overwriting(torch.autograd.Function):
        @staticmethod
        def forward(_ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(_ctx: Any, dy: torch.Tensor) -> torch.Tensor:
            return dy.mul_(3)

    cell = make_cell(mode=Mode.BACKWARD)
    operands = operands_for(cell)
    assert operands.dy is not None
    before = operands.dy.clone()
    task = modes.task("overwriting", cell, Overwriting.apply, operands, fresh_copies=True)
    calls: list[Call] = [task.prepare() for _ in range(2)]

    assert all(torch.equal(modes.outputs(call())[0], before * 3) for call in calls)
    assert torch.equal(operands.dy, before)
    assert aten_calls(task.prepare()) == ["mul_"]


ADDING = make_cell(operation=Operation.ADD_NORM, mode=Mode.FORWARD_BACKWARD)


def adding_operands(cell: Any = ADDING) -> Operands:
    return place(nn.ADD_LAYERNORM, cell, draw(cell, 0, CPU))


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        (Mode.FORWARD, ["y", "h"]),
        (Mode.INFERENCE, ["y", "h"]),
        (Mode.BACKWARD, ["dx", "dresidual", "dgain", "dbias"]),
        (Mode.FORWARD_BACKWARD, ["y", "h", "dx", "dresidual", "dgain", "dbias"]),
    ],
)
def test_with_a_residual_a_mode_returns_the_new_one_and_its_gradient_too(mode: Mode, names: list[str]) -> None:
    cell = replace(ADDING, mode=mode)
    values = draw(cell, 0, CPU)
    results = results_of(nn.ADD_LAYERNORM, cell, values)

    assert list(results) == names
    assert correctness.check(results, Op.ADD_LAYERNORM, cell, values, EPS).problem is None


@pytest.mark.parametrize("mode", [Mode.BACKWARD, Mode.FORWARD_BACKWARD])
@pytest.mark.parametrize("count", [1, 3])
def test_a_forward_that_returns_too_few_or_too_many_is_told_what_belongs_there(count: int, mode: Mode) -> None:
    cell = replace(ADDING, mode=mode)
    task = modes.task("odd", cell, lambda x, residual: (x + residual,) * count, adding_operands(cell))

    with pytest.raises(ValueError, match=f"returned {count} tensors?, not y and h"):
        task.run()


def test_what_arrives_for_y_and_for_h_is_cast_to_the_format_of_each_once_and_not_in_the_call() -> None:
    def widening(x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x * residual).float(), (x + residual).double()

    cell = replace(ADDING, mode=Mode.BACKWARD, dtype=DType.BF16, parameter_dtype=DType.BF16)
    operands = replace(adding_operands(cell), gain=None, bias=None)
    task = modes.task("widening", cell, widening, operands)
    assert [t.dtype for t in modes.outputs(task.run())] == [torch.bfloat16] * 2
    assert "_to_copy" in aten_calls(lambda: modes.task("widening", cell, widening, operands).prepare())
    handed = modes.as_handed(operands, (torch.float32, torch.float64))
    assert handed.dy is not None
    assert handed.dh is not None
    assert (handed.dy.dtype, handed.dh.dtype) == (torch.float32, torch.float64)


def test_fresh_copies_are_of_everything_but_the_parameters() -> None:
    operands = adding_operands()
    own = modes.copied(operands)
    for name in ("x", "residual", "dy", "dh"):
        one, other = getattr(operands, name), getattr(own, name)
        assert torch.equal(one, other)
        assert one.data_ptr() != other.data_ptr()
        assert one.requires_grad is other.requires_grad is (name in ("x", "residual"))
    assert own.x.is_leaf
    assert own.gain is operands.gain
