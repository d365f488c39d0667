"""A case's profile: every count in its own field, and what fails costs no other."""

from __future__ import annotations

import gzip
import json

import pytest
import torch

from normbench.bench import Job
from normbench.instruments import Instruments
from normbench.local_bench import LocalBench
from normbench.profiling import case as case_module
from normbench.profiling.case import Profiled, slug
from normbench.profiling.kernels import ProfileError
from normbench.records import Cache, DType, Mode, Op
from normbench.rounds import Batching
from tests.fakes import THREE, FakeClock, FakeDevice, plan_of
from tests.helpers import make_cell, own

M, N = 2048, 256


def profiled(mode: Mode = Mode.FORWARD, implementations=THREE) -> dict[str, Profiled]:  # type: ignore[no-untyped-def]
    plan = plan_of(implementations, rows=(M,), widths=(N,), modes=(mode,))
    tools = Instruments(clock=FakeClock(lambda _: 1e-3), batching=Batching())
    bench = LocalBench(plan=plan, implementations=implementations, device=FakeDevice(), tools=tools)
    (cell,) = plan.cells()
    bench.prepare(Job(cell=cell))()
    return {p.profile.case.implementation: p for p in bench.profile([i.name for i in implementations])}


def test_a_profile_holds_op_bytes_kernels_memory_and_a_trace() -> None:
    found = profiled()["eager-rmsnorm"]
    profile = found.profile
    assert profile.op_bytes == 14_730_240
    assert profile.launches == 6
    assert {kernel.name for kernel in profile.kernels} == {"pow", "mean", "add", "rsqrt", "mul"}
    assert profile.kernel_seconds is not None
    assert profile.memory.saved_bytes == 4 * (M * N + M), "the normalised rows, and a number of each"
    assert profile.memory.peak_bytes is not None
    assert profile.findings == ()
    assert profile.counted is None
    assert profile.counted_reason
    assert found.trace is not None
    assert json.loads(gzip.decompress(found.trace))["traceEvents"]


def test_a_backwards_profile_is_of_the_backward_alone() -> None:
    found = profiled(Mode.BACKWARD)
    assert found["eager-rmsnorm"].profile.op_bytes == 48_318_464
    assert found["nn-layernorm"].profile.op_bytes == 6_311_936
    assert [kernel.name for kernel in found["nn-layernorm"].profile.kernels] == ["native_layer_norm_backward"]
    assert found["copy"].profile.op_bytes == 3 * M * N * 4


def test_a_profile_that_fails_has_its_reason_and_the_count_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_named: object) -> None:
        raise ProfileError("no GPU events: CUPTI could not be used")

    monkeypatch.setattr(case_module.kernels, "profile_task", fail)
    profile = profiled()["nn-layernorm"].profile
    assert profile.op_bytes == 4_212_736
    assert (profile.kernels, profile.launches, profile.kernel_seconds) == ((), None, None)
    assert profile.kernels_reason == "no GPU events: CUPTI could not be used"


def test_a_count_that_fails_has_its_reason_and_is_absent_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_module.op_bytes, "count", lambda _call: ())
    profile = profiled()["nn-layernorm"].profile
    assert profile.op_bytes is None
    assert profile.ops_reason == "no op was dispatched"
    assert profile.kernels


def test_a_stray_cast_is_found() -> None:
    def casting(x: torch.Tensor, gain: torch.Tensor | None, _bias: torch.Tensor | None, eps: float) -> torch.Tensor:
        assert gain is not None
        wide = x.double()
        return (wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt()).to(x.dtype) * gain

    found = profiled(implementations=(*THREE, own(Op.RMSNORM, casting, name="casting")))
    assert found["casting"].profile.findings == ("a tensor was cast, although everything has one dtype",)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "12x64-fp32-forward-warm"),
        ({"cache": Cache.COLD, "mode": Mode.BACKWARD}, "12x64-fp32-backward-cold"),
        (
            {"dtype": DType.BF16, "parameter_dtype": DType.FP32, "autocast": DType.FP16},
            "12x64-bf16-forward-warm-parameters-fp32-autocast-fp16",
        ),
    ],
)
def test_a_cells_slug_tells_it_from_every_other(changes: dict[str, object], text: str) -> None:
    assert slug(make_cell(**changes)) == text
