"""Who gets into a step cell, and what is recorded of who does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from normbench import compilation
from normbench.device import Device
from normbench.failures import Failure
from normbench.implementations import Implementation, Setting, by_name
from normbench.records import DType, Flag, Status, StepCell, StepResult
from normbench.steps import entering
from normbench.steps.entering import Entered, Entry
from normbench.steps.variants import Batch
from normbench.torch_state import TorchState
from tests.cheats import CHEATS, SETTINGS
from tests.fakes import FakeDevice
from tests.helpers import COMPILED_EAGERLY, CPU, EPS
from tests.models import make_shape, make_step_cell
from tests.mutants import MUTANTS

DEVICE: Device = FakeDevice()


def entry_of(cell: StepCell | None = None) -> Entry:
    cell = cell or make_step_cell()
    return Entry(cell=cell, batch=Batch.draw(cell, 0, CPU), eps=EPS, seed=0, device=DEVICE)


def entered(implementation: Implementation, cell: StepCell | None = None) -> Entered:
    found = entry_of(cell).enter(implementation)
    assert isinstance(found, Entered), found
    return found


def refusal(implementation: Implementation, cell: StepCell | None = None) -> StepResult:
    """Its record, which has no time."""
    found = entry_of(cell).enter(implementation)
    assert isinstance(found, StepResult)
    assert found.times == {}
    assert found.implementation == implementation.name
    assert found.parameters == make_shape().parameters(implementation.op)
    assert found.norm_parameters == make_shape().norm_parameters(implementation.op)
    return found


def mutant(name: str) -> Implementation:
    return next(one.implementation for one in MUTANTS if one.implementation.name == name)


@pytest.mark.parametrize("name", ["eager-layernorm", "eager-rmsnorm", "nn-layernorm"])
def test_who_is_right_gets_in_and_brings_its_error(name: str) -> None:
    found = entered(by_name(name))

    assert found.implementation is by_name(name)
    assert found.variant.name == name
    assert 0 < found.max_rel_error < 1e-5
    assert (found.compile_s, found.flags) == (None, ())


def test_what_is_odd_about_it_is_told() -> None:
    cell = make_step_cell(shape=make_shape(context=128), dtype=DType.BF16)

    assert Flag.COARSE_SUMS in entered(by_name("nn-layernorm"), cell).flags
    assert Flag.COARSE_SUMS not in entered(by_name("eager-layernorm"), cell).flags
    odd = replace(by_name("eager-rmsnorm"), observe=lambda _setting, _device: (Flag.COMPOSITE,))
    assert entered(odd).flags == (Flag.COMPOSITE,)


def test_what_torch_runs_in_an_eager_model_is_not_said_of_a_compiled_one() -> None:
    flags = (Flag.COMPOSITE, Flag.VENDORED_QUACK)
    odd = replace(by_name("eager-rmsnorm"), observe=lambda _setting, _device: flags)

    assert entered(odd, make_step_cell()).flags == flags
    assert entered(odd, make_step_cell(compiled=True)).flags == ()


def test_where_it_is_not_supported_nothing_is_built() -> None:
    def build(_setting: Setting) -> Any:
        raise AssertionError("it was built")

    result = refusal(replace(by_name("nn-rmsnorm"), build=build, unsupported=lambda *_: "needs another machine"))

    assert (result.status, result.reason) == (Status.UNSUPPORTED, "needs another machine")


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, GeneratorExit])
def test_a_build_that_raises_is_its_result(error: type[BaseException]) -> None:
    def build(_setting: Setting) -> Any:
        raise error("no such kernel")

    result = refusal(replace(by_name("nn-rmsnorm"), build=build))

    assert (result.status, result.reason) == (Status.FAILED, f"{error.__name__}: no such kernel")


def test_an_interrupt_is_no_result() -> None:
    def build(_setting: Setting) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        entry_of().enter(replace(by_name("nn-rmsnorm"), build=build))


def test_want_of_memory_is_told_apart() -> None:
    def build(_setting: Setting) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    assert refusal(replace(by_name("nn-rmsnorm"), build=build)).status is Status.OUT_OF_MEMORY


def test_a_wrong_norm_has_no_time_and_says_where_it_is_wrong() -> None:
    result = refusal(mutant("unbiased-rmsnorm"))

    assert result.status is Status.INCORRECT
    assert (result.reason or "").startswith("norm 1 of 5: y")


def test_a_norm_that_raises_in_the_model_has_failed() -> None:
    result = refusal(mutant("raises-rmsnorm"))

    assert (result.status, result.reason) == (Status.FAILED, "RuntimeError: not today")


CHANGING = [cheat for cheat in CHEATS if cheat.reason.startswith(SETTINGS) and not cheat.late]


@pytest.mark.parametrize("cheat", CHANGING, ids=lambda cheat: cheat.name)
def test_who_changes_torch_s_settings_is_out_and_they_are_put_back(cheat: Any) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    before = TorchState.now()
    try:
        result = refusal(cheat.implementation)
        assert before.restore() is None
    finally:
        torch.set_num_threads(threads)

    if result.status is not Status.FAILED:  # who can't even go on with them has failed
        assert result.status is Status.INCORRECT
        assert cheat.reason in (result.reason or "")
    else:
        assert "meta" in (result.reason or "")


def test_all_start_from_the_same_weights() -> None:
    one, other = (entered(by_name(name)).variant.model for name in ("eager-layernorm", "eager-rmsnorm"))

    assert torch.equal(one.tokens.weight, other.tokens.weight)
    assert torch.equal(one.blocks[1].mlp_out.weight, other.blocks[1].mlp_out.weight)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What concerns compiling, in its order; nothing is compiled but traced."""
    seen: list[str] = []

    @contextmanager
    def empty_cache() -> Iterator[None]:
        seen.append("empty")
        yield
        seen.append("full")

    monkeypatch.setattr(compilation, "warm_up", lambda _device: seen.append("warm"))
    monkeypatch.setattr(compilation, "empty_cache", empty_cache)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    torch._dynamo.reset()
    ticks = iter([10.0, 13.5])
    monkeypatch.setattr(entering.time, "perf_counter", lambda: next(ticks))
    return seen


def test_a_compiled_norm_s_first_step_is_timed_with_empty_caches_after_the_compiler_is_warm(log: list[str]) -> None:
    found = entered(COMPILED_EAGERLY[1])

    assert found.compile_s == 3.5
    assert log == ["warm", "empty", "full"]


def test_a_compiled_model_s_first_step_is_timed_too_whatever_the_norm(log: list[str]) -> None:
    found = entered(by_name("eager-rmsnorm"), make_step_cell(compiled=True))

    assert found.compile_s == 3.5
    assert log == ["warm", "empty", "full"]


def test_where_nothing_compiles_there_is_no_compile_time_and_no_cache_is_touched(log: list[str]) -> None:
    assert entered(by_name("eager-rmsnorm")).compile_s is None
    assert log == []


@pytest.mark.usefixtures("log")
def test_a_norm_that_is_wrong_only_when_the_model_is_compiled_has_no_time_there() -> None:
    right = by_name("eager-rmsnorm")

    def build(setting: Setting) -> Any:
        bind = right.build(setting)

        def doubled(gain: Any, bias: Any) -> Any:
            forward = bind(gain, bias)
            return lambda x: 2 * forward(x) if torch.compiler.is_compiling() else forward(x)

        return doubled

    result = refusal(replace(right, build=build), make_step_cell(compiled=True))

    assert result.status is Status.INCORRECT
    assert (result.reason or "").startswith("the compiled model's gradient of ")
    assert isinstance(entry_of().enter(replace(right, build=build)), Entered)


def test_what_is_refused_elsewhere_is_recorded_alike() -> None:
    result = entry_of().refused(by_name("nn-layernorm"), Failure(status=Status.NOT_RUN, reason="interrupted"))

    assert (result.status, result.reason, result.times) == (Status.NOT_RUN, "interrupted", {})
