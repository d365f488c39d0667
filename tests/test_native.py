"""N20: which kernel nn.RMSNorm is."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import torch

from normbench import native
from normbench.implementations import Setting, nn
from normbench.records import DType, Flag
from tests.helpers import CPU, EPS, make_cell

RMSNORM = "_fused_rms_norm"


class PythonNative:
    """``torch.backends.python_native`` of a torch that found its copy of quack usable."""

    def __init__(self) -> None:
        self.available_dsls = ["cutedsl", "triton"]
        self.operations = {"cutedsl": [RMSNORM, "_fused_rms_norm_backward"], "triton": ["bmm"]}
        self.disabled: set[str] = set()

    def get_dsl_operations(self, name: str) -> list[str]:
        return self.operations.get(name, [])

    def is_dsl_disabled(self, name: str) -> bool:
        return name in self.disabled

    def is_operation_disabled(self, name: str) -> bool:
        return name in self.disabled


@pytest.fixture
def condition_s() -> ModuleType:
    """Where this torch keeps its condition; older ones replace no kernel and have none."""
    found: ModuleType = pytest.importorskip("torch._native.ops.norm.rmsnorm_impl")
    return found


@pytest.fixture
def torch_s(condition_s: ModuleType, monkeypatch: pytest.MonkeyPatch) -> PythonNative:
    """A torch that has replaced its kernel, on a device that its condition takes for an H100."""
    stand_in = PythonNative()
    monkeypatch.setattr(native, "_python_native", lambda: stand_in)
    monkeypatch.setattr(condition_s, "_is_supported", lambda _input: True)
    return stand_in


def runs_quack(dtype: torch.dtype, parameter_dtype: torch.dtype | None = None, width: int = 256) -> bool:
    return native.runs_quack(CPU, dtype, parameter_dtype or dtype, width)


def test_this_torch_names_its_languages_and_one_without_any_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    its_own: Any = getattr(torch.backends, "python_native", None)  # not every torch has it
    assert native.languages() == (() if its_own is None else tuple(its_own.available_dsls))
    monkeypatch.setattr(native, "_python_native", lambda: None)
    assert native.languages() == ()
    assert runs_quack(torch.bfloat16) is False


@pytest.mark.usefixtures("torch_s")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_where_torch_s_own_condition_holds_its_copy_of_quack_runs(dtype: torch.dtype) -> None:
    assert runs_quack(dtype)
    assert not runs_quack(dtype, torch.float64), "the dtypes differ"
    assert runs_quack(dtype, width=33) is (dtype is torch.float32), "odd widths in half precision"


def test_on_a_device_that_its_condition_does_not_take_it_does_not_run(
    torch_s: PythonNative, condition_s: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(condition_s, "_is_supported", lambda _input: False)

    assert torch_s.get_dsl_operations("cutedsl")
    assert not runs_quack(torch.bfloat16)


@pytest.mark.parametrize("off", ["cutedsl", RMSNORM])
def test_where_it_is_switched_off_torch_runs_its_own(torch_s: PythonNative, off: str) -> None:
    torch_s.disabled.add(off)

    assert not runs_quack(torch.bfloat16)


def test_where_the_versions_are_not_those_that_torch_knows_it_has_replaced_nothing(torch_s: PythonNative) -> None:
    torch_s.operations = {"triton": [RMSNORM]}

    assert native.languages() == ("cutedsl", "triton")
    assert not runs_quack(torch.bfloat16)


@pytest.mark.usefixtures("torch_s")
def test_a_torch_that_keeps_its_condition_elsewhere_is_taken_at_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch._native.ops.norm.rmsnorm_impl", None)

    assert runs_quack(torch.bfloat16)
    assert not runs_quack(torch.bfloat16, torch.float32)


@pytest.mark.usefixtures("torch_s")
def test_rows_of_nn_rmsnorm_say_so_where_it_is_fused_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normbench.device.runs_fused_rmsnorm", lambda _device, dtype, gain: dtype is gain)

    def observed(**cell: DType) -> tuple[Flag, ...]:
        return nn.RMSNORM.observe(Setting(cell=make_cell(width=64, **cell), eps=EPS), CPU)

    assert observed() == (Flag.VENDORED_QUACK,)
    assert observed(dtype=DType.BF16, parameter_dtype=DType.FP32) == (Flag.COMPOSITE,)
    assert nn.LAYERNORM.observe(Setting(cell=make_cell(), eps=EPS), CPU) == ()


def test_under_autocast_it_is_float32_that_torch_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[torch.dtype] = []
    monkeypatch.setattr("normbench.device.runs_fused_rmsnorm", lambda *_: True)
    monkeypatch.setattr(native, "runs_quack", lambda _device, *dtypes: bool(asked.append(dtypes[0])))
    for autocast in (None, DType.BF16):
        nn.RMSNORM.observe(Setting(cell=make_cell(dtype=DType.BF16, autocast=autocast), eps=EPS), CPU)

    assert asked == [torch.bfloat16, torch.float32]
