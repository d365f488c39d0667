"""Norms inside a model: who is right there passes in every format, and every kind of wrong one is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from normbench import compilation, correctness
from normbench.implementations import ALL, Forward, Implementation, by_name, eager
from normbench.records import DType, Op, Property, Status
from normbench.steps import checks
from normbench.steps.checks import check_compiled, check_norms, still_right
from normbench.steps.variants import Batch
from normbench.torch_state import TorchState
from tests import cheats, faults
from tests.cheats import CHEATS
from tests.helpers import COMPILED_EAGERLY, CPU, EPS, EVERY
from tests.models import bound_by, checked, make_shape, make_step_cell, make_variant, wrapped
from tests.mutants import MUTANTS, Mutant
from tests.right_norms import FINE, LN, RMS, STORING, WIDE, implementation

FORMATS: dict[str, dict[str, DType]] = {
    "fp32": {"dtype": DType.FP32},
    "bf16": {"dtype": DType.BF16},
    "fp16": {"dtype": DType.FP16},
    "autocast bf16": {"dtype": DType.FP32, "autocast": DType.BF16},
}
NORMS = [one for one in EVERY if one.op is not Op.COPY]
SHOWN = {Property.NORMAL_VALUES, Property.TINY_VALUES, Property.INPUTS_INTACT}
WRONG = [mutant for mutant in MUTANTS if mutant.must_fail(SHOWN)]
"""Those whose fault usual values show: what is wrong at infinities or without rows, no model shows."""
HARMLESS = ("cheat-one-buffer", "cheat-three-buffers")
"""A buffer for each x, which is written again in the next step: in a model nobody looks at it any more by then."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny calls on several threads wait for busy cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=FORMATS)
def dtypes(request: pytest.FixtureRequest) -> dict[str, DType]:
    return FORMATS[request.param]


@pytest.mark.parametrize("norm", NORMS, ids=lambda one: one.name)
def test_every_built_in_norm_is_right_inside_a_model_in_every_format(
    norm: Implementation, dtypes: dict[str, DType]
) -> None:
    seeds = range(1) if norm in COMPILED_EAGERLY else range(4)
    findings = [checked(norm, make_step_cell(**dtypes), seed) for seed in seeds]

    assert [finding.problem for finding in findings] == [None] * len(findings)
    assert all(0 < finding.accuracy.max_rel_error < 0.05 for finding in findings)


@pytest.mark.parametrize("op", [LN, RMS])
@pytest.mark.parametrize("name", [*FINE, *WIDE, *STORING])
def test_who_computes_it_in_another_right_way_is_right(name: str, op: Op, dtypes: dict[str, DType]) -> None:
    norm = implementation(op, name, {**FINE, **WIDE, **STORING}[name](op))
    problem = checked(norm, make_step_cell(**dtypes)).problem

    if name == "left-in-float32" and dtypes["dtype"] is not DType.FP32:
        assert problem is not None
        assert "y is torch.float32, not torch." in problem
    else:
        assert problem is None


@pytest.mark.parametrize(
    "sizes", [{"context": 1, "batch": 1}, {"width": 2, "heads": 1}, {"layers": 1, "tied": False}]
)
def test_a_model_of_one_token_or_two_columns_raises_no_false_alarm(
    sizes: dict[str, Any], dtypes: dict[str, DType]
) -> None:
    cell = make_step_cell(shape=make_shape(**sizes), **dtypes)

    assert [checked(by_name(name), cell).problem for name in ("nn-layernorm", "eager-rmsnorm")] == [None, None]


def test_layernorm_of_torch_sums_its_gradients_coarsely_in_half_precision_on_a_cpu_and_is_right_for_all_that() -> (
    None
):
    cell = make_step_cell(shape=make_shape(context=128, batch=4), dtype=DType.BF16)
    torchs, own = (checked(by_name(name), cell) for name in ("nn-layernorm", "eager-layernorm"))

    assert (torchs.problem, torchs.coarse_sums) == (None, True)
    assert (own.problem, own.coarse_sums) == (None, False)


@pytest.mark.parametrize("mutant", WRONG, ids=lambda one: one.implementation.name)
def test_a_wrong_norm_is_wrong_inside_a_model(mutant: Mutant, dtypes: dict[str, DType]) -> None:
    cell = make_step_cell(**dtypes)
    if "raises" in mutant.implementation.name:
        with pytest.raises(RuntimeError, match="not today"):
            checked(mutant.implementation, cell)
    else:
        problem = checked(mutant.implementation, cell).problem
        assert problem is not None
        assert problem.startswith("norm ")


def test_enough_kinds_of_wrong_norms_are_tried() -> None:
    assert len(WRONG) >= 60


@pytest.mark.parametrize("op", [LN, RMS])
def test_who_is_wrong_under_autocast_alone_is_wrong_there_alone(op: Op) -> None:
    norm = implementation(op, "autocast-float8", faults.on_y(faults.only_in_autocast(faults.in_float8))(op))

    assert checked(norm).problem is None
    assert checked(norm, make_step_cell(autocast=DType.BF16)).problem is not None


def test_under_autocast_y_may_have_another_format_than_x_and_without_it_must_not() -> None:
    def make(gain: torch.Tensor, _bias: object, eps: float) -> Forward:
        return lambda x: eager.rmsnorm(x, gain, None, eps).bfloat16()

    norm = bound_by(RMS, make)

    assert checked(norm, make_step_cell(autocast=DType.BF16)).problem is None
    assert "y is torch.bfloat16, not torch.float32" in (checked(norm).problem or "")


@pytest.mark.parametrize("number", [0, 2, 4])
def test_the_one_norm_that_is_wrong_is_named_wherever_it_stands(number: int) -> None:
    def wrap(forward: Forward, at: int) -> Forward:
        return (lambda x: forward(x) * 1.001) if at == number else forward

    problem = checked(wrapped(by_name("nn-rmsnorm"), wrap)).problem

    assert problem is not None
    assert problem.startswith(f"norm {number + 1} of 5: y")


@pytest.mark.parametrize("number", [0, 2, 4])
def test_nan_that_comes_out_of_one_norm_is_that_one_s_fault(number: int) -> None:
    class Nan(torch.autograd.Function):
        @staticmethod
        def forward(_ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(_ctx: Any, dy: torch.Tensor) -> torch.Tensor:
            return dy * torch.nan

    def wrap(forward: Forward, at: int) -> Forward:
        return (lambda x: forward(Nan.apply(x))) if at == number else forward  # type: ignore[no-untyped-call]

    problem = checked(wrapped(by_name("nn-rmsnorm"), wrap)).problem

    assert problem is not None
    assert problem.startswith(f"norm {number + 1} of 5: dx[0, 0] is nan, not ")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda gain, _bias, eps: lambda x: eager.rmsnorm(x, gain.detach(), None, eps), "no dgain comes of it"),
        (lambda gain, _bias, eps: lambda x: eager.rmsnorm(x.detach(), gain, None, eps), "no dx comes of it"),
        (lambda gain, _bias, eps: lambda x: eager.rmsnorm(x, gain, None, eps).detach(), "y does not require grad"),
        (lambda gain, _bias, eps: lambda x: eager.rmsnorm(x, gain, None, eps).double(), "y is torch.float64, not "),
        (lambda gain, _bias, eps: lambda x: eager.rmsnorm(x, gain, None, eps)[..., None], "y has shape (45, 32, 1)"),
        (lambda gain, _bias, eps: lambda x: (eager.rmsnorm(x, gain, None, eps),), "y is a tuple"),
    ],
    ids=["gain detached", "x detached", "y detached", "float64", "shape", "tuple"],
)
def test_a_norm_that_a_model_can_t_be_trained_with_is_named(make: Callable[..., Forward], reason: str) -> None:
    problem = checked(bound_by(RMS, make)).problem

    assert problem is not None
    assert problem.startswith("norm 1 of 5: ")
    assert reason in problem


def one_buffer(*, hidden: bool) -> Implementation:
    """Every norm's y lies in one buffer; ``hidden``: torch does not see that it is written again."""

    def build(_setting: Any) -> Any:
        buffers: dict[str, torch.Tensor] = {}

        def into(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
            y = cheats.right(x, gain)
            buffer = buffers.setdefault("y", torch.empty_like(y))
            (buffer.data if hidden else buffer).copy_(y)
            return buffer.view_as(y)

        norm = cheats.with_gradients(into, cheats.gradients)
        return lambda gain, _bias: lambda x: norm(x, gain)

    return replace(by_name("eager-rmsnorm"), name="one-buffer", build=build)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("declared", [False, True])
def test_one_buffer_for_the_results_of_all_norms_is_wrong_even_where_it_is_declared(
    hidden: bool, declared: bool
) -> None:
    norm = replace(one_buffer(hidden=hidden), reuses_output=lambda _setting: declared)

    assert "y was overwritten after it was returned" in (checked(norm).problem or "")


def test_one_buffer_for_every_dx_is_wrong_unless_it_is_declared() -> None:
    def build(_setting: Any) -> Any:
        buffers: dict[str, torch.Tensor] = {}

        def backward(x: torch.Tensor, gain: torch.Tensor, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            dx, dgain = cheats.gradients(x, gain, dy)
            return buffers.setdefault("dx", torch.empty_like(dx)).copy_(dx).view_as(dx), dgain

        norm = cheats.backward_only(backward)
        return lambda gain, _bias: lambda x: norm(x, gain)

    norm = replace(by_name("eager-rmsnorm"), build=build)

    assert "dx was overwritten after it was returned" in (checked(norm).problem or "")
    assert checked(replace(norm, reuses_output=lambda _setting: True)).problem is None


CAUGHT = [
    cheat
    for cheat in CHEATS
    if not cheat.late
    and not cheat.reason.startswith(cheats.SETTINGS)
    and not cheat.name.startswith(HARMLESS)
    and cheat.implementation.op is not Op.COPY
]


@pytest.mark.parametrize("cheat", CAUGHT, ids=lambda cheat: cheat.name)
def test_a_cheat_is_caught_inside_a_model(cheat: cheats.Cheat) -> None:
    problem = checked(cheat.implementation).problem

    assert problem is not None
    if "without declaring" in cheat.reason:
        assert "wrote into " + cheat.reason.split()[2] in problem


@pytest.mark.parametrize("cheat", [c for c in CHEATS if c.name.startswith(HARMLESS)], ids=lambda cheat: cheat.name)
def test_a_buffer_that_is_only_written_again_in_the_next_step_harms_no_model(cheat: cheats.Cheat) -> None:
    assert checked(cheat.implementation).problem is None


LATE = [
    cheat
    for cheat in CHEATS
    if cheat.late
    and "buffer" not in cheat.name
    and "thread-" not in cheat.name
    and "default-device-y" not in cheat.name
    and "known-by" not in cheat.name
    and not cheat.implementation.compiled
    and "bound" not in cheat.name
]


@pytest.mark.parametrize("cheat", LATE, ids=lambda cheat: cheat.name)
def test_who_becomes_wrong_while_it_is_timed_is_caught_after_it(cheat: cheats.Cheat) -> None:
    cell = make_step_cell()
    variant = make_variant(cheat.implementation, cell)
    state = TorchState.now()
    assert check_norms(variant, cheat.implementation, cell, EPS).problem is None
    for _ in range(cheats.CHECKED_CALLS // 5 - 2):
        variant.step()
    state.restore()
    why = still_right(variant, cheat.implementation, cell, EPS)

    assert why is not None
    assert why.status is Status.INCORRECT
    assert why.reason.startswith(("after it was timed, ", cheats.SETTINGS))
    assert state.restore() is None


def test_who_raises_after_it_was_timed_has_failed() -> None:
    def wrap(_forward: Forward, _at: int) -> Forward:
        def forward(_x: torch.Tensor) -> torch.Tensor:
            raise ValueError("no more")

        return forward

    norm, cell = wrapped(by_name("nn-rmsnorm"), wrap), make_step_cell()
    why = still_right(make_variant(norm, cell), norm, cell, EPS)

    assert why is not None
    assert (why.status, why.reason) == (Status.FAILED, "ValueError: no more")


def test_who_stops_to_let_gradients_through_when_it_is_called_again_is_named() -> None:
    calls = iter(range(10**6))

    def wrap(forward: Forward, _at: int) -> Forward:
        return lambda x: forward(x) if next(calls) < 5 else forward(x).detach()

    problem = checked(wrapped(by_name("nn-rmsnorm"), wrap)).problem

    assert (problem or "").startswith("called again with other values in the same memory, y does not require grad")


@pytest.mark.parametrize("norm", NORMS, ids=lambda one: one.name)
def test_who_was_timed_for_some_steps_is_still_right(norm: Implementation) -> None:
    cell = make_step_cell()
    variant = make_variant(norm, cell)
    for _ in range(3):
        variant.step()

    assert still_right(variant, norm, cell, EPS) is None


WRITERS = {c.name: c.implementation for c in CHEATS if c.name.startswith("cheat-into-") and not c.late}


def test_who_declares_it_may_write_into_dy_and_in_the_backward_into_x_but_into_no_x_that_the_model_goes_on_with() -> (
    None
):
    declared = {name: checked(replace(one, mutates=True)).problem for name, one in WRITERS.items()}

    assert declared["cheat-into-dy-gradients"] is None
    assert declared["cheat-into-x-gradients"] is None
    assert "wrote into x, which the model adds" in (declared["cheat-into-x-y"] or "")
    assert "wrote into gain" in (declared["cheat-into-gain-y"] or "")


def hooks_of(model: nn.Module) -> int:
    return sum(
        len(hooks)
        for module in model.modules()
        for name, hooks in vars(module).items()
        if name.endswith("_hooks") and hooks
    ) + sum(len(p._backward_hooks or ()) for p in model.parameters())


@pytest.mark.parametrize("name", ["eager-layernorm", "one-buffer", "raises"])
def test_a_check_leaves_no_trace_whatever_it_finds(name: str) -> None:
    norm = {
        "eager-layernorm": by_name("eager-layernorm"),
        "one-buffer": one_buffer(hidden=True),
        "raises": next(m.implementation for m in MUTANTS if m.implementation.name == "raises-rmsnorm"),
    }[name]
    cell = make_step_cell()
    variant = make_variant(norm, cell)
    model = variant.model
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    objects, bound = list(model.parameters()), [one.implementation for one in model.norms()]
    try:
        check_norms(variant, norm, cell, EPS)
    except RuntimeError:
        assert name == "raises"

    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters())
    assert all(one is other for one, other in zip(model.parameters(), objects, strict=True))
    assert [one.implementation for one in model.norms()] == bound
    assert all(p.grad is None for p in model.parameters())
    assert hooks_of(model) == 0


def test_two_checks_of_one_variant_say_the_same() -> None:
    norm, cell = by_name("nn-layernorm"), make_step_cell(dtype=DType.BF16)
    variant = make_variant(norm, cell)
    first, second = (check_norms(variant, norm, cell, EPS) for _ in range(2))

    assert first == second


def test_the_error_that_is_told_is_the_largest_of_any_norm_and_coarse_sums_of_one_are_coarse_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[correctness.Finding] = []
    original = correctness.check

    def recorded(*args: Any, **options: Any) -> correctness.Finding:
        finding = replace(original(*args, **options), coarse_sums=len(found) == 3)
        found.append(finding)
        return finding

    monkeypatch.setattr(checks.correctness, "check", recorded)
    finding = checked(by_name("nn-rmsnorm"))

    assert len(found) == 2 * (5 + 1)
    assert finding.accuracy.max_rel_error == max(one.accuracy.max_rel_error for one in found)
    assert finding.coarse_sums


def test_checking_a_compiled_norm_compiles_nothing_again() -> None:
    norm, cell = COMPILED_EAGERLY[1], make_step_cell()
    torch._dynamo.reset()
    variant = make_variant(norm, cell)
    variant.step()
    before = compilation.graph_count()
    finding = check_norms(variant, norm, cell, EPS)

    assert finding.problem is None
    assert compilation.graph_count() == before


@pytest.fixture
def quickly_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are traced by dynamo and run as they are traced: no code is generated."""
    torch._dynamo.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))


def compiled_problem(norm: Implementation, **changes: Any) -> str | None:
    cell = make_step_cell(compiled=True, **{"shape": make_shape(layers=1), **changes})
    variant = make_variant(norm, cell)
    problem = check_compiled(variant, norm.op, Batch.draw(cell, 0, CPU), EPS)
    assert all(p.grad is None for p in variant.model.parameters())
    assert all(torch.equal(p, before) for p, before in zip(variant.model.parameters(), variant._initial, strict=True))
    return problem


@pytest.mark.parametrize("name", ["eager-layernorm", "nn-layernorm", "eager-rmsnorm", "nn-rmsnorm"])
@pytest.mark.usefixtures("quickly_compiled")
def test_a_traced_model_is_as_close_to_float64_as_the_eager_one(name: str, dtypes: dict[str, DType]) -> None:
    assert compiled_problem(by_name(name), **dtypes) is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda _x, y: y * 1.001,
        lambda _x, y: y.detach() + 0 * y,
        lambda x, y: y + (x.detach() - x) * 0.01,
        lambda _x, y: y * torch.nan,
    ],
    ids=["factor", "no gradient", "another dx", "nan"],
)
@pytest.mark.usefixtures("quickly_compiled")
def test_a_norm_that_is_wrong_only_when_it_is_compiled_is_found_in_the_compiled_model(
    wrong: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> None:
    def wrap(forward: Forward, at: int) -> Forward:
        def norm(x: torch.Tensor) -> torch.Tensor:
            y = forward(x)
            return wrong(x, y) if at == 0 and torch.compiler.is_compiling() else y

        return norm

    norm = wrapped(by_name("eager-rmsnorm"), wrap)
    problem = compiled_problem(norm)

    assert checked(norm, make_step_cell(shape=make_shape(layers=1))).problem is None
    assert problem is not None
    assert problem.startswith("the compiled model's gradient of ")


@pytest.mark.parametrize(
    "used",
    [lambda gain: torch.ones_like(gain) + 0 * gain, lambda gain: gain / gain.detach()],
    ids=["no gradient", "as if it were 1"],
)
@pytest.mark.usefixtures("quickly_compiled")
def test_a_gain_that_is_left_out_when_compiling_is_found_in_half_precision_too(
    used: Callable[[torch.Tensor], torch.Tensor], dtypes: dict[str, DType]
) -> None:
    def make(gain: torch.Tensor, _bias: object, eps: float) -> Forward:
        def norm(x: torch.Tensor) -> torch.Tensor:
            return eager.rmsnorm(x, used(gain) if torch.compiler.is_compiling() else gain, None, eps)

        return norm

    assert compiled_problem(bound_by(RMS, make), **dtypes) is not None


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [DType.FP32, DType.BF16])
@pytest.mark.parametrize("norm", [one for one in ALL if one.op is not Op.COPY], ids=lambda one: one.name)
def test_a_compiled_model_is_as_close_to_float64_as_the_eager_one(norm: Implementation, dtype: DType) -> None:
    missing = compilation.missing_compiler("cpu")
    if missing:
        pytest.skip(missing)
    torch._dynamo.reset()
    assert compiled_problem(norm, dtype=dtype, shape=make_shape(layers=2)) is None
