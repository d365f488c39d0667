"""Builders of a small synthetic run, none of which needs torch: header, records of a cell, whole runs, folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from normbench import swaps, verdict
from normbench.cli.plan import command
from normbench.records import (
    Accuracy,
    Cache,
    Case,
    CaseProfile,
    CaseResult,
    Cell,
    CellRecords,
    Comparison,
    DeviceInfo,
    DType,
    Environment,
    Estimate,
    Flag,
    ImplementationInfo,
    KernelTime,
    Memory,
    Mode,
    Op,
    Operation,
    OpTraffic,
    Outcome,
    Plan,
    Reason,
    Run,
    RunHeader,
    Sample,
    Status,
    Timing,
)
from normbench.storage import RunFolder

NAMES = ("copy", "eager-rmsnorm", "nn-layernorm", "nn-rmsnorm")
"""The implementations of a run, unless told: the floor, two candidates, the baseline between them."""

Times = Mapping[str, float | Status]
"""Per implementation its seconds, or the status it ended with; who is not named was not run."""

TIMES: Times = {"copy": 1e-6, "eager-rmsnorm": 8e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": 2e-6}
"""nn-rmsnorm is twice as fast as the baseline, eager-rmsnorm half as fast."""


def make_cell(**changes: Any) -> Cell:
    """A small float32 forward; the parameters have x's dtype unless told."""
    fields: dict[str, Any] = {"mode": Mode.FORWARD, "rows": 32, "width": 64, "dtype": DType.FP32, "cache": Cache.WARM}
    fields.update(changes)
    fields.setdefault("parameter_dtype", fields["dtype"])
    return Cell(**fields)


def make_plan(**changes: Any) -> Plan:
    """One float32 forward at one width."""
    fields: dict[str, Any] = {
        "widths": (64,),
        "rows": (32,),
        "dtypes": (DType.FP32,),
        "modes": (Mode.FORWARD,),
        "caches": (Cache.WARM,),
        "implementations": NAMES,
    }
    return Plan(**{**fields, **changes})


def make_adding_plan(**changes: Any) -> Plan:
    """The same of residual adds and norms: its floor, its baseline, and a candidate that does both in one."""
    names = ("add-copy", "eager-add-rmsnorm", "nn-add-layernorm", "compile-add-rmsnorm")
    own = {"operation": Operation.ADD_NORM, "implementations": names, "floor": names[0], "baseline": names[2]}
    return make_plan(**{**own, **changes})


ADDING_TIMES: Times = {
    "add-copy": 1e-6,
    "eager-add-rmsnorm": 8e-6,
    "nn-add-layernorm": 4e-6,
    "compile-add-rmsnorm": 2e-6,
}


def make_device(**changes: Any) -> DeviceInfo:
    """A CPU with a fused RMSNorm, about which there is nothing to note but that it is a CPU."""
    fields: dict[str, Any] = {"kind": "cpu", "name": "Some CPU", "slug": "some-cpu", "memory_bytes": 2**33}
    return DeviceInfo(**{**fields, **changes})


def make_environment(**changes: Any) -> Environment:
    """Some software."""
    fields: dict[str, Any] = {"normbench": "0", "python": "3.11.0", "torch": "2.13.0", "platform": "Linux x86_64"}
    return Environment(**{**fields, **changes})


def make_info(name: str) -> ImplementationInfo:
    """What is said of an implementation, guessed from its name."""
    norm = "copy" if name.endswith("copy") else "layernorm" if name.endswith("layernorm") else "rmsnorm"
    op = Op(f"add-{norm}" if "add-" in name else norm)
    compiled = name.startswith("compile")
    return ImplementationInfo(
        name=name, op=op, provider=name.partition("-")[0], summary="a test's", compiled=compiled
    )


def make_header(plan: Plan | None = None, **changes: Any) -> RunHeader:
    """The header of a run of ``plan`` on some CPU."""
    plan = plan or make_plan()
    fields: dict[str, Any] = {
        "created_utc": "2026-01-02T03:04:05Z",
        "command": command(plan, "cpu"),
        "plan": plan,
        "device": make_device(),
        "environment": make_environment(),
        "implementations": tuple(make_info(name) for name in plan.implementations),
    }
    return RunHeader(**{**fields, **changes})


def around(value: float, spread: float = 0.01) -> Estimate:
    """An estimate whose interval reaches a factor ``1 + spread`` to both sides."""
    return Estimate(value=value, low=value / (1 + spread), high=value * (1 + spread))


def make_result(
    name: str, cell: Cell, time: float | Status, reason: str = "because", spread: float = 0.01, **changes: Any
) -> CaseResult:
    """A case that took ``time`` seconds a call, or that ended with that status."""
    fields: dict[str, Any] = {"case": Case(cell=cell, implementation=name)}
    if isinstance(time, Status):
        fields |= {"status": time, "reason": reason}
    else:
        estimate = around(time, spread)
        timing = Timing(time_s=estimate, wall_s=time, floor_ratio=around(time / 1e-6), samples=4, placements=2)
        accuracy = Accuracy(max_abs_error=1e-7, max_rel_error=2e-8, out_dtype=cell.dtype)
        fields |= {"status": Status.OK, "timing": timing, "accuracy": accuracy}
    return CaseResult(**{**fields, **changes})


def make_comparison(
    cell: Cell, candidate: str, times: Times, plan: Plan, spread: float = 0.01, baseline: str | None = None
) -> Comparison:
    """A candidate against the plan's baseline, or another, with the outcome that its interval allows."""
    baseline = baseline or plan.baseline
    mine, base = times.get(candidate, Status.NOT_RUN), times.get(baseline, Status.NOT_RUN)
    speedup, outcome, reason = None, Outcome.UNDECIDED, Reason.NO_CANDIDATE
    if isinstance(base, Status):
        reason = Reason.NO_BASELINE
    elif not isinstance(mine, Status):
        speedup = around(base / mine, spread)
        outcome, reason = verdict.judge(speedup, plan.precision.margin)
    return Comparison(
        cell=cell, baseline=baseline, candidate=candidate, speedup=speedup, outcome=outcome, reason=reason
    )


def make_swaps(
    cell: Cell, results: Sequence[CaseResult], times: Times, plan: Plan, spread: float = 0.01
) -> tuple[Comparison, ...]:
    """Each provider's RMSNorm against its LayerNorm, and the fastest against the fastest, by their times."""
    infos = [make_info(name) for name in plan.implementations]
    best = swaps.best_pair(results, infos)
    asked = dict.fromkeys([*swaps.pairs(infos).values(), *([best] if best else [])])
    tried = {result.case.implementation for result in results if result.status is not Status.NOT_RUN}
    return tuple(
        make_comparison(cell, rmsnorm, times, plan, spread, layernorm)
        for layernorm, rmsnorm in asked
        if rmsnorm in tried
    )


def make_samples(times: Times) -> tuple[Sample, ...]:
    """Two placements of two rounds each for everyone who has a time."""
    timed = [(name, time) for name, time in times.items() if not isinstance(time, Status)]
    return tuple(
        Sample(
            implementation=name,
            process=0,
            placement=placement,
            round=round_,
            position=position,
            calls=1,
            seconds=time,
            clock="wall",
        )
        for placement in range(2)
        for round_ in range(2)
        for position, (name, time) in enumerate(timed)
    )


def make_records(
    cell: Cell, times: Times = TIMES, plan: Plan | None = None, reason: str = "because", spread: float = 0.01
) -> CellRecords:
    """Everything one cell leaves when its implementations take ``times``."""
    plan = plan or make_plan()
    names = plan.implementations
    compared = [n for n in names if n not in (plan.floor, plan.baseline) and times.get(n) is not Status.NOT_RUN]
    results = tuple(make_result(n, cell, times.get(n, Status.NOT_RUN), reason, spread) for n in names)
    return CellRecords(
        cell=cell,
        results=results,
        comparisons=tuple(make_comparison(cell, n, times, plan, spread) for n in compared),
        samples=make_samples(times),
        swaps=make_swaps(cell, results, times, plan, spread),
    )


def make_run(
    plan: Plan | None = None,
    times: Times | Callable[[Cell], Times] = TIMES,
    cells: Iterable[Cell] | None = None,
    reason: str = "because",
    spread: float = 0.01,
    **changes: Any,
) -> Run:
    """A run of ``plan`` in which the implementations of a cell took ``times``; ``cells`` are those it got to."""
    plan = plan or make_plan()
    done = plan.cells() if cells is None else cells
    records = [make_records(c, times(c) if callable(times) else times, plan, reason, spread) for c in done]
    return Run(
        header=make_header(plan, **changes),
        results=tuple(result for cell in records for result in cell.results),
        comparisons=tuple(comparison for cell in records for comparison in cell.comparisons),
        swaps=tuple(swap for cell in records for swap in cell.swaps),
    )


def profiled_run() -> Run:
    """A run in which three were profiled, one without kernels."""
    cell = next(make_plan().cells())

    def profile(name: str, size: int, **changes: Any) -> CaseProfile:
        fields: dict[str, Any] = {
            "case": Case(cell=cell, implementation=name),
            "ops": (OpTraffic(name="pow", calls=1, bytes=size // 2), OpTraffic(name="mul", calls=2, bytes=size // 2)),
            "kernels": (
                KernelTime(name="mul|x", calls=2, seconds=3e-6),
                KernelTime(name="pow", calls=1, seconds=1e-6),
            ),
            "memory": Memory(saved_bytes=0, alive_bytes=64, peak_bytes=2**20, net_bytes=64),
        }
        return CaseProfile(**{**fields, **changes})

    profiles = (
        profile("nn-layernorm", 2**15),
        profile("eager-rmsnorm", 2**16, findings=("a gradient was accumulated",)),
        profile("nn-rmsnorm", 0, ops=(), ops_reason="why not", kernels=(), kernels_reason="no GPU events"),
    )
    return replace(make_run(make_plan(profile=True), TIMES), profiles=profiles)


def flagged(run: Run, flag: Flag, where: Callable[[Case], bool] = lambda _case: True) -> Run:
    """The run, of which some results have one more flag."""
    results = (replace(r, flags=(*r.flags, flag)) if where(r.case) else r for r in run.results)
    return replace(run, results=tuple(results))


def write_run(path: Path, plan: Plan | None = None, times: Times = TIMES, reason: str = "because") -> RunFolder:
    """A run folder in which every cell of ``plan`` took ``times``."""
    plan = plan or make_plan()
    folder = RunFolder.create(path, make_header(plan))
    for cell in plan.cells():
        folder.write(make_records(cell, times, plan, reason))
    return folder
