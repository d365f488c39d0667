from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from normbench.entrants import Entrant, admit
from normbench.failures import describe
from normbench.implementations import ALL, Bind, Forward, Implementation, Setting, by_name, eager, naive
from normbench.implementations.base import binding
from normbench.inputs import draw
from normbench.records import CaseResult, Cell, DType, Flag, Mode, Op, Status
from tests import faults
from tests.fakes import FakeDevice, anywhere, turing
from tests.helpers import COMPILED_EAGERLY, CPU, EPS, aten_calls, make_cell, own, place

RMS = eager.rmsnorm


def enter(implementation: Implementation, cell: Cell, device: FakeDevice | None = None) -> Entrant | CaseResult:
    setting = Setting(cell=cell, eps=EPS)
    return admit(implementation, setting, draw(cell, 0, CPU), device or FakeDevice())


def admitted(implementation: Implementation, cell: Cell, device: FakeDevice | None = None) -> Entrant:
    found = enter(implementation, cell, device)
    assert isinstance(found, Entrant), found
    return found


def refused(implementation: Implementation, cell: Cell, device: FakeDevice | None = None) -> CaseResult:
    found = enter(implementation, cell, device)
    assert isinstance(found, CaseResult), found
    assert found.case.cell == cell
    assert found.case.implementation == implementation.name
    return found


def raising(error: BaseException) -> Implementation:
    def build(_setting: Setting) -> Bind:
        raise error

    return replace(own(Op.RMSNORM, RMS), build=build)


def double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * 2


class AddsIntoDy(torch.autograd.Function):
    """The floor's values, with the gradient written into dy itself."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> torch.Tensor:
        return dy.add_(ctx.saved_tensors[0])


class SpoilsDy(torch.autograd.Function):
    """Passes y on, and hands its own dy back only to overwrite it."""

    @staticmethod
    def forward(_ctx: Any, y: torch.Tensor) -> torch.Tensor:
        return y.clone()

    @staticmethod
    def backward(_ctx: Any, dy: torch.Tensor) -> torch.Tensor:
        right = dy.clone()
        dy.zero_()
        return right


def rms_into_x(x: torch.Tensor, gain: torch.Tensor | None, _bias: torch.Tensor | None, eps: float) -> torch.Tensor:
    assert gain is not None
    return x.mul_((x.square().mean(-1, keepdim=True) + eps).rsqrt()).mul_(gain)


@pytest.mark.parametrize("mode", Mode)
def test_a_right_implementation_enters_with_its_accuracy_and_no_compile_time(mode: Mode) -> None:
    entrant = admitted(own(Op.RMSNORM, RMS), make_cell(mode=mode))
    assert 0 < entrant.admission.accuracy.max_abs_error < 1e-4
    assert entrant.admission.accuracy.out_dtype is DType.FP32
    assert (entrant.admission.compile_s, entrant.admission.flags) == (None, ())


def test_what_cannot_run_here_says_why_and_is_never_built() -> None:
    built: list[Setting] = []

    def build(setting: Setting) -> Bind:
        built.append(setting)
        return binding(RMS, setting.eps)

    liger = own(Op.RMSNORM, RMS, unsupported=lambda *_: "liger-kernel is not installed")
    record = refused(replace(liger, build=build), make_cell())
    assert (record.status, record.reason) == (Status.UNSUPPORTED, "liger-kernel is not installed")
    assert built == []


def test_on_a_gpu_that_emulates_bf16_the_compiled_chain_does_not_run_and_the_others_are_flagged() -> None:
    """N19: Turing, capability 7.5."""
    cell = make_cell(dtype=DType.BF16)
    record = refused(by_name("compile-layernorm"), cell, turing())
    assert record.status is Status.UNSUPPORTED
    assert record.reason is not None
    assert record.reason.startswith("Tesla T4 emulates bfloat16")
    assert Flag.EMULATED_DTYPE in admitted(by_name("nn-layernorm"), cell, turing()).admission.flags
    assert Flag.EMULATED_DTYPE not in admitted(by_name("nn-layernorm"), make_cell(), turing()).admission.flags
    assert Flag.EMULATED_DTYPE not in admitted(by_name("nn-layernorm"), cell).admission.flags


def test_a_build_that_raises_has_failed_with_its_message_and_of_a_path_only_the_last_part() -> None:
    record = refused(raising(ImportError("no kernel in /home/somebody/kernels\nsecond line")), make_cell())
    assert (record.status, record.reason) == (Status.FAILED, "ImportError: no kernel in ~/kernels")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("'/tmp/torchinductor_me/x.cpp' failed", "'…/x.cpp' failed"),
        ("3.2 GB/s of 4 GB/s", "3.2 GB/s of 4 GB/s"),
        ("a/b and /x", "a/b and /x"),
        ("see https://example.org/a/b", "see https://…"),
    ],
)
def test_only_the_folders_of_absolute_paths_are_left_out(said: str, shown: str) -> None:
    assert describe(ValueError(said)) == f"ValueError: {shown}"


@pytest.mark.parametrize(("mode", "name"), [(Mode.INFERENCE, "x"), (Mode.BACKWARD, "dy")])
def test_what_writes_into_its_inputs_without_saying_so_is_incorrect(mode: Mode, name: str) -> None:
    function = rms_into_x if name == "x" else lambda x, gain, bias, eps: SpoilsDy.apply(RMS(x, gain, bias, eps))
    record = refused(own(Op.RMSNORM, function), make_cell(mode=mode))
    assert record.status is Status.INCORRECT
    assert record.reason == f"wrote into {name} without declaring it"


def test_an_error_is_described_in_one_line_of_bounded_length() -> None:
    assert describe(ValueError()) == "ValueError"
    assert describe(ValueError("\n\n  first  \nsecond")) == "ValueError: first"
    assert len(describe(ValueError("x" * 5000))) == 300


def test_an_error_that_torch_wraps_is_described_by_its_cause() -> None:
    def backend(_graph: object, _inputs: object) -> Any:
        raise KeyError("no such tile")

    with pytest.raises(Exception, match="raised") as raised:
        torch.compile(double, backend=backend)(torch.ones(3))
    torch._dynamo.reset()
    assert describe(raised.value) == "BackendCompilerFailed: backend='backend' raised: KeyError: 'no such tile'"


def test_a_build_that_runs_out_of_memory_says_so() -> None:
    record = refused(raising(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 8 GiB")), make_cell())
    assert record.status is Status.OUT_OF_MEMORY
    assert record.reason == "OutOfMemoryError: CUDA out of memory. Tried to allocate 8 GiB"


def test_a_forward_that_runs_out_of_memory_on_a_cpu_says_so() -> None:
    greedy = own(Op.RMSNORM, lambda *_: torch.empty(2**50, dtype=torch.uint8))
    record = refused(greedy, make_cell())
    assert record.status is Status.OUT_OF_MEMORY
    assert "can't allocate memory" in (record.reason or "")


def test_an_interrupt_is_not_an_implementations_failure() -> None:
    with pytest.raises(KeyboardInterrupt):
        enter(raising(KeyboardInterrupt()), make_cell())


@pytest.mark.parametrize("mode", Mode)
def test_a_wrong_result_is_incorrect_with_its_accuracy_and_no_time(mode: Mode) -> None:
    record = refused(own(Op.RMSNORM, lambda *args: RMS(*args) * 1.01), make_cell(mode=mode))
    assert record.status is Status.INCORRECT
    assert record.accuracy is not None
    assert record.accuracy.max_rel_error > 0.005
    assert record.timing is None


def test_a_half_precision_chain_without_a_float32_statistic_is_incorrect_on_hard_rows() -> None:
    """N04: 300 squared is no number in float16, although it goes well with values around 1."""
    record = refused(naive.RMSNORM, make_cell(dtype=DType.FP16))
    assert record.status is Status.INCORRECT
    assert (record.reason or "").startswith("on hard rows, y[0, 0] is 0, not ")
    assert isinstance(enter(own(Op.RMSNORM, RMS), make_cell(dtype=DType.FP16)), Entrant)


@pytest.mark.parametrize("mode", [Mode.FORWARD, Mode.BACKWARD])
def test_a_variance_in_one_pass_is_incorrect_on_hard_rows_of_float32(mode: Mode) -> None:
    """E[x²] - E[x]² goes well with values around 1, and loses all of it where the mean is large."""
    one_pass = own(Op.LAYERNORM, faults.in_one_pass(Op.LAYERNORM))
    record = refused(one_pass, make_cell(width=256, mode=mode))

    assert record.status is Status.INCORRECT
    assert (record.reason or "").startswith("on hard rows, ")
    assert isinstance(enter(one_pass, make_cell(width=256, mode=mode, dtype=DType.BF16)), Entrant)
    for width in (1, 2, 3, 64, 1000, 16384):
        cell = make_cell(width=width, mode=mode)
        for implementation in ALL:
            assert implementation.compiled or isinstance(enter(implementation, cell), Entrant), (implementation, cell)


def test_what_calls_itself_compiled_and_built_no_graph_has_failed() -> None:
    record = refused(own(Op.RMSNORM, RMS, compiled=True), make_cell())
    assert (record.status, record.compile_s) == (Status.FAILED, None)
    assert record.reason == "no graph was compiled: torch.compile fell back to eager"


@pytest.mark.parametrize("implementation", [anywhere(i) for i in COMPILED_EAGERLY], ids=lambda i: i.name)
def test_what_is_compiled_has_a_compile_time(implementation: Implementation) -> None:
    torch._dynamo.reset()
    entrant = admitted(implementation, make_cell())
    assert entrant.admission.compile_s is not None
    assert entrant.admission.compile_s > 0


@pytest.mark.parametrize("implementation", [i for i in ALL if not i.compiled], ids=lambda i: i.name)
def test_only_nn_rmsnorm_is_flagged_as_composite_on_a_cpu(implementation: Implementation) -> None:
    flags = admitted(implementation, make_cell()).admission.flags
    assert flags == ((Flag.COMPOSITE,) if implementation.name == "nn-rmsnorm" else ())


def test_an_implementation_that_writes_into_x_by_design_gets_a_fresh_copy_for_each_call() -> None:
    cell = make_cell(mode=Mode.INFERENCE)
    mutating = own(Op.RMSNORM, rms_into_x, mutates=True)
    entrant = admitted(mutating, cell)
    assert entrant.admission.flags == (Flag.IN_PLACE,)
    operands = place(mutating, cell, draw(cell, 0, CPU))
    before = operands.x.clone()
    task = entrant.task(cell, operands)
    first, second = task.run(), task.run()
    assert isinstance(first, torch.Tensor)
    assert isinstance(second, torch.Tensor)
    assert first.equal(second)
    assert operands.x.equal(before)
    assert not task.repeatable


@pytest.mark.parametrize("mode", [Mode.BACKWARD, Mode.FORWARD_BACKWARD])
def test_an_implementation_that_writes_into_dy_by_design_leaves_dy_intact(mode: Mode) -> None:
    def build(_setting: Setting) -> Bind:
        def bind(_gain: torch.Tensor | None, _bias: torch.Tensor | None) -> Forward:
            return lambda x: AddsIntoDy.apply(x)  # type: ignore[no-untyped-call]

        return bind

    cell = make_cell(mode=mode)
    mutating = replace(own(Op.COPY, RMS, mutates=True), build=build)
    operands = place(mutating, cell, draw(cell, 0, CPU))
    assert operands.dy is not None
    before = operands.dy.clone()
    task = admitted(mutating, cell).task(cell, operands)
    gradients = [task.run()[-1] for _ in range(2)]  # type: ignore[index]
    assert gradients[0].equal(operands.x + before)
    assert gradients[1].equal(gradients[0])
    assert operands.dy.equal(before)


@pytest.mark.parametrize("name", ["nn-layernorm", "copy"])
def test_a_backward_sample_runs_one_op_and_accumulates_nothing(name: str) -> None:
    """N16: a second backward through one graph would add three more ops and double the gradients."""
    cell = make_cell(mode=Mode.BACKWARD)
    operands = place(by_name(name), cell, draw(cell, 0, CPU))
    task = admitted(by_name(name), cell).task(cell, operands)
    one_op = {"nn-layernorm": ["native_layer_norm_backward"], "copy": ["add"]}[name]
    for _ in range(2):
        assert [op for op in aten_calls(task.prepare()) if op != "detach"] == one_op
    assert all(tensor.grad is None for tensor in operands.differentiable)


def test_a_forward_whose_output_no_gradient_can_flow_back_from_is_incorrect() -> None:
    detached = own(Op.RMSNORM, lambda x, gain, bias, eps: RMS(x, gain, bias, eps).detach())
    record = refused(detached, make_cell(mode=Mode.FORWARD))
    assert (record.status, record.reason) == (
        Status.INCORRECT,
        "y does not require grad: no gradient could flow back, as it must in training",
    )
    assert admitted(detached, make_cell(mode=Mode.INFERENCE)).admission.accuracy.out_dtype is DType.FP32


def test_a_complex_output_is_incorrect() -> None:
    record = refused(own(Op.RMSNORM, lambda *a: RMS(*a).to(torch.complex64)), make_cell(mode=Mode.INFERENCE))
    assert (record.status, record.reason) == (Status.INCORRECT, "y is torch.complex64, not real floating point")


def test_a_backward_has_the_dtype_of_the_y_it_starts_from() -> None:
    cell = make_cell(mode=Mode.BACKWARD, dtype=DType.BF16, parameter_dtype=DType.FP32)
    assert admitted(by_name("eager-rmsnorm"), cell).admission.accuracy.out_dtype is DType.FP32
    assert admitted(by_name("nn-rmsnorm"), cell).admission.accuracy.out_dtype is DType.BF16


@pytest.mark.parametrize(
    "said",
    [
        "file:///home/alice/secret/x.so",
        "-I/home/alice/.venv/include -L/home/alice",
        "no such file: /home/alice",
        "/tmp/torchinductor_alice/ab/c.so",
        "C:\\Users\\alice\\x.dll",
        "a\x1b[31mb",
    ],
)
def test_no_user_and_no_control_character_is_left_in_a_reason(said: str) -> None:
    described = describe(ValueError(said))
    assert "alice" not in described
    assert "\x1b" not in described
