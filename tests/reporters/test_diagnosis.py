"""A diagnosis on the terminal: everything that was found, nothing that was not, the advice last."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

from normbench.records import (
    Ability,
    Advice,
    Conditions,
    CopyBandwidth,
    Diagnosis,
    KernelChoice,
    NoiseFloor,
    TimerCheck,
)
from normbench.reporters.console import console
from normbench.reporters.diagnosis import show
from tests.runs import around, make_cell, make_device, make_environment

CHAIN = KernelChoice(
    dtype="bf16", parameter_dtype="fp32", fused=False, ops=("pow", "mean"), kernels=(), why="unlike dtypes"
)
FUSED = KernelChoice(
    dtype="fp32", parameter_dtype="fp32", fused=True, ops=("_fused_rms_norm",), kernels=("rms_kernel",), why="torch's"
)
DIAGNOSIS = Diagnosis(
    device=make_device(kind="cuda", name="Some [GPU]", cache_bytes=50 * 2**20, capability=(9, 0)),
    environment=make_environment(cuda="13.0", native_dsls=("cutedsl",)),
    conditions=Conditions(
        cores=16,
        sm_clock_hz=1.2e9,
        max_sm_clock_hz=1.98e9,
        temperature_c=41,
        power_w=120.4,
        power_limit_w=700,
        default_power_limit_w=700,
        throttle_reasons=("sw_power_cap",),
        persistence=True,
        ecc=True,
        mig=False,
        other_processes=0,
        other_runs=2,
    ),
    rmsnorm=(FUSED, CHAIN),
    compiling=Ability(works=True, detail="it takes 9 s"),
    counters=Ability(works=False, detail="Nsight Compute is not on the PATH"),
    timers=(TimerCheck(clock="cuda-event", resolution_s=32e-9, overhead_s=2e-6),),
    bandwidth=CopyBandwidth(bytes_moved=2**29, measured_bytes_per_s=4e12, computed_bytes_per_s=4.8e12),
    noise=(NoiseFloor(cell=make_cell(), implementation="nn-layernorm", ratio=around(1.0, 0.004), fresh=False),),
)


def shown(diagnosis: Diagnosis = DIAGNOSIS, advice: Sequence[Advice] = ()) -> list[str]:
    out = io.StringIO()
    show(diagnosis, advice, console(out))
    return [line.strip() for line in out.getvalue().splitlines() if line.strip()]


def value(lines: list[str], name: str) -> str:
    """What stands beside a name."""
    return next(line.removeprefix(name).strip() for line in lines if line.startswith(name + " "))


def test_what_was_found_stands_beside_its_name() -> None:
    lines = shown()
    assert value(lines, "name") == "Some [GPU]"
    assert value(lines, "other runs of normbench") == "2"
    assert value(lines, "clock") == "1200 MHz of 1980 MHz"
    assert value(lines, "power") == "120 W now, cap 700 W, came with 700 W"
    assert value(lines, "throttled") == "sw_power_cap"
    assert value(lines, "MIG") == "no"
    assert value(lines, "ECC") == "yes"
    assert value(lines, "other processes on it") == "0"
    assert value(lines, "fp32") == "one fused kernel (rms_kernel): torch's"
    assert value(lines, "bf16, gain fp32") == "a chain of 2 ops (pow, mean): unlike dtypes"
    assert value(lines, "torch.compile") == "yes: it takes 9 s"
    assert value(lines, "hardware counters") == "no: Nsight Compute is not on the PATH"
    assert value(lines, "clock cuda-event") == "resolution 32.0 ns, overhead 2.00 µs"
    assert value(lines, "kernel languages of torch") == "cutedsl"
    assert value(lines, "copying").endswith("83 % of the 4800 GB/s computed from its properties")


def test_the_noise_floor_is_said_from_the_farther_end_of_the_interval() -> None:
    (line,) = (line for line in shown() if line.startswith("32×64"))
    assert "itself" in line
    assert "1.0000 [0.9960, 1.0040]" in line
    assert line.endswith("differences below 0.4 %")


def test_what_was_not_found_is_not_shown() -> None:
    bare = replace(DIAGNOSIS, conditions=Conditions(), bandwidth=None, noise=())
    lines = shown(bare)
    assert not any(line.startswith(("governor", "power", "temperature", "MIG", "throttled")) for line in lines)
    assert "No noise floor: too little memory for any of its cells." in lines
    assert value(lines, "copying") == "not measured: too little memory"


def test_each_problem_comes_with_its_remedy_and_last() -> None:
    lines = shown(advice=[Advice(problem="it is [hot]", remedy="open a window")])
    assert lines[-3:] == ["1 thing to know", "! it is [hot]", "open a window"]


def test_a_good_place_is_called_one() -> None:
    assert shown()[-1] == "Nothing to mend: this is a good place to measure."
