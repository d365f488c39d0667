"""Evidence as a GPU gives it on which every line holds, and what changes a part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from normbench import traffic
from normbench.gpu_acceptance.evidence import Evidence
from normbench.gpu_acceptance.packing import Left
from normbench.gpu_acceptance.running import Ending
from normbench.gpu_acceptance.tested import Ended, Test, Tests
from normbench.records import (
    Ability,
    Cache,
    Case,
    CaseProfile,
    Cell,
    Conditions,
    CountedTraffic,
    Diagnosis,
    DType,
    Estimate,
    NoiseFloor,
    Op,
    OpTraffic,
    Plan,
    Run,
    Status,
)
from tests import runs
from tests.step_runs import complete_run

PEAK = 4.8e12
DEVICE = runs.make_device(
    kind="cuda", name="A GPU", slug="a-gpu", cache_bytes=60 * 2**20, capability=(9, 0), peak_bytes_per_s=PEAK
)
LARGE = runs.make_plan(widths=(4096,), rows=(32768,), dtypes=(DType.BF16,), caches=(Cache.COLD,))
"""One cell, far larger than the cache."""
SMALL = replace(LARGE, widths=(256,), rows=(4096,))
(CELL,) = LARGE.cells()

OF_PEAK = 0.85
TIMES_OF_THE_FLOOR = {"copy": 1.0, "nn-layernorm": 1.02, "nn-rmsnorm": 1.01, "eager-rmsnorm": 8.5}

Times = Mapping[str, float | Status]


def times(cell: Cell, of_peak: float = OF_PEAK, **changes: float | Status) -> Times:
    """What everybody takes in a cell where the floor reaches so much of the peak."""
    floor_s = traffic.floor_bytes(Op.COPY, cell) / (of_peak * PEAK)
    found: dict[str, float | Status] = {name: factor * floor_s for name, factor in TIMES_OF_THE_FLOOR.items()}
    return {**found, **{name.replace("_", "-"): value for name, value in changes.items()}}


def sweep(plan: Plan = LARGE, of_peak: float = OF_PEAK, **changes: float | Status) -> Run:
    """A sweep on the GPU."""
    return runs.make_run(plan, lambda cell: times(cell, of_peak, **changes), device=DEVICE)


def profile(*, chain_bytes: float = 36, cell: Cell = CELL, counters: bool = False) -> Run:
    """A profile in which the chain moves so many bytes an element, and the fused kernel the floor's."""
    moved = {"eager-rmsnorm": int(chain_bytes * cell.elements), "nn-rmsnorm": traffic.floor_bytes(Op.RMSNORM, cell)}
    profiles = tuple(
        CaseProfile(
            case=Case(cell=cell, implementation=name),
            ops=(OpTraffic(name="op", calls=1, bytes=size),),
            counted=CountedTraffic(dram_read_bytes=size // 2, dram_written_bytes=size // 4) if counters else None,
            counted_reason=None if counters else "--no-counters",
        )
        for name, size in moved.items()
    )
    plan = replace(LARGE, profile=True, counters=counters)
    return replace(runs.make_run(plan, times(cell), device=DEVICE), profiles=profiles)


def diagnosis(*spreads: float) -> Diagnosis:
    """A diagnosis with an A/A test each, whose interval reaches so far to both sides of 1."""
    noise = [
        NoiseFloor(cell=CELL, implementation="nn-layernorm", ratio=Estimate(value=1.0, low=1 / (1 + s), high=1 + s))
        for s in spreads
    ]
    works = Ability(works=True, detail="")
    return Diagnosis(
        device=DEVICE,
        environment=runs.make_environment(),
        conditions=Conditions(),
        rmsnorm=(),
        compiling=works,
        counters=works,
        timers=(),
        bandwidth=None,
        noise=tuple(noise),
    )


def passed(module: str, name: str = "test_it", **figures: str) -> Test:
    """A test that passed, with its figures."""
    return Test(module=module, name=name, ended=Ended.PASSED, figures=figures)


TESTS: Mapping[str, Test] = {
    test.module: test
    for test in (
        passed("test_device_time", off_by="0.011", where="copy 16384x4096 bf16 forward"),
        passed("test_do_bench", off_by="0.02", where="nn-layernorm 32768x4096 bf16 forward"),
        passed("test_cheats"),
        passed("test_out_of_memory"),
        passed("test_stand_in", figure="1,000,000 cycles: 0.6 ms"),
    )
}


def told(**changes: Test | None) -> Tests:
    """Everything was reached and passed, but for what is told otherwise; None: that test was not reached."""
    every = {**TESTS, **changes}
    collected = Counter(test.module for test in {**changes, **TESTS}.values() if test is not None)
    return Tests(tests=tuple(test for test in every.values() if test is not None), collected=collected)


def changed(test: str, **changes: Any) -> Tests:
    """One of the tests is otherwise."""
    return told(**{test: replace(TESTS[test], **changes)})


def evidence(**changes: Any) -> Evidence:
    """Everything is as it should be, but for what is told otherwise."""
    fields: dict[str, Any] = {
        "on_gpu": True,
        "diagnosis": diagnosis(0.001, 0.004),
        "sweeps": {"sweep-bf16": sweep(SMALL, of_peak=0.2), "sweep-bf16-large": sweep()},
        "profiles": {"profile": profile(), "profile-counted": profile(counters=True)},
        "steps": {"step": complete_run()},
        "tests": told(),
        "endings": (Ending(name="doctor", seconds=20.0, code=0), Ending(name="tests", seconds=90.0, code=0)),
        "left": Left(files=6, bytes=2**22),
    }
    return Evidence(**{**fields, **changes})
