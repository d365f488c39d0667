"""Every state that disturbs measuring is named, with what to do; a good place has nothing to mend."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from normbench.advice import advise
from normbench.records import Ability, Conditions, CopyBandwidth, Diagnosis, KernelChoice, NoiseFloor, TimerCheck
from tests.runs import around, make_cell, make_device, make_environment

FUSED = KernelChoice(dtype="fp32", parameter_dtype="fp32", fused=True, ops=("_fused_rms_norm",), kernels=(), why="x")
QUIET = NoiseFloor(cell=make_cell(), implementation="nn-layernorm", ratio=around(1.0, 0.002))
GOOD = Diagnosis(
    device=make_device(kind="cuda", peak_bytes_per_s=1e12),
    environment=make_environment(),
    conditions=Conditions(
        cores=8, other_cores=0.1, persistence=True, power_limit_w=700, default_power_limit_w=700, other_processes=0
    ),
    rmsnorm=(FUSED,),
    compiling=Ability(works=True, detail="x"),
    counters=Ability(works=False, detail="x"),
    timers=(TimerCheck(clock="wall", resolution_s=4e-8, overhead_s=5e-8),),
    bandwidth=CopyBandwidth(bytes_moved=2**28, measured_bytes_per_s=8e11, computed_bytes_per_s=1e12),
    noise=(QUIET,),
)


def problems(diagnosis: Diagnosis) -> list[str]:
    found = advise(diagnosis)
    assert all(item.remedy for item in found)
    return [item.problem for item in found]


def test_of_a_good_place_there_is_nothing_to_say() -> None:
    assert problems(GOOD) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"other_cores": 3.0}, "other programs keep 3.0 of 8 cores busy"),
        ({"other_processes": 2}, "2 other processes compute on this GPU"),
        ({"other_runs": 1}, "another run of normbench measured on this device meanwhile"),
        ({"other_runs": 2}, "2 other runs of normbench measured on this device meanwhile"),
        ({"throttle_reasons": ("sw_power_cap",)}, "the GPU runs throttled now: sw_power_cap"),
        ({"power_limit_w": 300.0}, "its power cap is 300 W, by default 700 W"),
        ({"mig": True}, "the GPU is cut into instances (MIG)"),
        ({"persistence": False}, "persistence mode is off"),
    ],
)
def test_each_state_of_a_gpu_that_disturbs_is_named(changes: dict[str, Any], said: str) -> None:
    (problem,) = problems(replace(GOOD, conditions=replace(GOOD.conditions, **changes)))
    assert problem.startswith(said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"governor": "powersave"}, "the processor's clock follows the governor powersave"),
        ({"virtual": True}, "this is a virtual machine"),
        ({"cores": 1, "other_cores": 0.0}, "torch uses 2 threads on 1 cores"),
    ],
)
def test_each_state_of_a_processor_that_disturbs_is_named(changes: dict[str, Any], said: str) -> None:
    conditions = Conditions(**{"cores": 8, "other_cores": 0.1, **changes})
    (problem,) = problems(replace(GOOD, device=make_device(threads=2), conditions=conditions))
    assert problem.startswith(said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"compiling": Ability(works=False, detail="install g++")}, "torch.compile does not work: install g++"),
        ({"device": replace(GOOD.device, native_bf16=False)}, "this GPU emulates bfloat16"),
        ({"rmsnorm": (replace(FUSED, fused=False),)}, "nn.RMSNorm is a chain of ops here"),
        ({"timers": (TimerCheck(clock="wall", resolution_s=1e-5, overhead_s=0),)}, "the clock is coarse: 10.0 µs"),
        (
            {"bandwidth": CopyBandwidth(bytes_moved=1, measured_bytes_per_s=3e11, computed_bytes_per_s=1e12)},
            "copying reaches 30 % of the bandwidth",
        ),
        (
            {"noise": (replace(QUIET, ratio=around(1.0, 0.05)),)},
            "at 32×64 fp32 against a fresh copy differences",
        ),
        ({"noise": (replace(QUIET, ratio=around(1.01, 0.002)),)}, "at 32×64 fp32 against a fresh copy the interval"),
    ],
)
def test_each_finding_that_matters_is_named(changes: dict[str, Any], said: str) -> None:
    (problem,) = problems(replace(GOOD, **changes))
    assert problem.startswith(said)


def test_what_the_device_does_not_tell_is_no_reason_for_advice() -> None:
    assert problems(replace(GOOD, conditions=Conditions(), bandwidth=None, noise=(), timers=())) == []
    unknown = CopyBandwidth(bytes_moved=1, measured_bytes_per_s=1.0, computed_bytes_per_s=None)
    assert problems(replace(GOOD, bandwidth=unknown)) == []
