"""From admissions and samples to a cell's records: times, flags, comparisons, the noise floor."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from normbench import stats, swaps, traffic, verdict
from normbench.clock import CudaEventClock, CudaGraphClock, WallClock
from normbench.entrants import Admission, failed
from normbench.failures import Failure
from normbench.measure import Measurement
from normbench.records import (
    Cache,
    Case,
    CaseResult,
    Cell,
    CellRecords,
    DeviceInfo,
    Flag,
    ImplementationInfo,
    NoiseFloor,
    Plan,
    Sample,
    Spent,
    Status,
    Timing,
)

_LAUNCH_BOUND = 1.5
_NEAR_CACHE = (0.25, 2.0)
_BELOW_FLOOR = 0.95


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What all results of a cell have in common.

    Args:
        plan: What was asked for.
        device: Where.
        cell: The cell.
        beside: The names of the clocks besides the one that ratios are taken by.
        shared: Whether inputs were shared for want of memory.
        other_cores: Cores that other programs kept busy meanwhile.
        implementations: What is said of those that compete.
        twin: The name under which the baseline competed with itself, if it did.
    """

    plan: Plan
    device: DeviceInfo
    cell: Cell
    implementations: Sequence[ImplementationInfo] = ()
    beside: Collection[str] = ()
    shared: bool = False
    other_cores: float | None = None
    twin: str | None = None


def without_times(
    cell: Cell, plan: Plan, status: Status, reason: str, implementations: Sequence[ImplementationInfo] = ()
) -> CellRecords:
    """The records of a cell that was not measured: every implementation has this status and this reason."""
    cases = [Case(cell=cell, implementation=name) for name in plan.implementations]
    results = tuple(CaseResult(case=case, status=status, reason=reason) for case in cases)
    return CellRecords(
        cell=cell,
        results=results,
        comparisons=verdict.compare_all(results, (), plan),
        samples=(),
        swaps=swaps.compare_swaps(results, (), implementations, plan.precision.margin),
    )


def cut(cell: Cell, plan: Plan, measurement: Measurement) -> CellRecords:
    """The records of a cell that was interrupted before it had enough placements: no times, but samples."""
    count = len({(sample.process, sample.placement) for sample in measurement.samples})
    reason = f"interrupted after {count} of at least {plan.precision.placements} placements"
    records = without_times(cell, plan, Status.NOT_RUN, reason)
    return replace(records, samples=measurement.samples, spent=measurement.spent)


def conclude(
    around: Circumstances,
    admissions: Mapping[str, Admission | CaseResult],
    measurement: Measurement,
) -> CellRecords:
    """The records of a cell.

    Args:
        around: What its results have in common.
        admissions: Who was measured, and the final records of those who were not.
        measurement: What measuring gave.
    """
    primary = stats.without_clocks(measurement.samples, around.beside)
    results = [
        _result(around, name, admission, primary, measurement) if isinstance(admission, Admission) else admission
        for name, admission in admissions.items()
        if name != around.twin
    ]
    return CellRecords(
        cell=around.cell,
        results=tuple(results),
        comparisons=verdict.compare_all(results, primary, around.plan),
        samples=measurement.samples,
        swaps=swaps.compare_swaps(results, primary, around.implementations, around.plan.precision.margin),
        noise=_noise(around, primary, measurement.failures),
        spent=measurement.spent,
    )


def _result(
    around: Circumstances,
    name: str,
    admission: Admission,
    primary: Sequence[Sample],
    measurement: Measurement,
) -> CaseResult:
    case, why = Case(cell=around.cell, implementation=name), measurement.failures.get(name)
    if why is not None:
        return failed(case, why, compile_s=admission.compile_s)
    own = stats.of_implementation(primary, name)
    timing = _timing(around, name, own, primary, measurement.samples)
    return CaseResult(
        case=case,
        status=Status.OK,
        timing=timing,
        accuracy=admission.accuracy,
        compile_s=admission.compile_s,
        flags=(*admission.flags, *_flags(around, timing, own)),
    )


def _timing(
    around: Circumstances, name: str, own: Sequence[Sample], primary: Sequence[Sample], samples: Sequence[Sample]
) -> Timing:
    time_s = stats.time_estimate(own)
    assert time_s is not None, "an implementation that did not fail was timed at least once"
    beside = {clock: stats.time_estimate(stats.of_implementation(samples, name, clock)) for clock in around.beside}
    wall_s = beside.get(WallClock.name, time_s)
    graph_s = beside.get(CudaGraphClock.name)
    placements = stats.placement_logs(own)
    return Timing(
        time_s=time_s,
        wall_s=None if wall_s is None else wall_s.value,
        graph_s=None if graph_s is None else graph_s.value,
        floor_ratio=stats.ratio_estimate(own, stats.of_implementation(primary, around.plan.floor)),
        samples=len(own),
        placements=len(placements),
        processes=len({process for process, _placement in placements}),
        throttled_samples=stats.throttled(own),
        other_cores=around.other_cores,
    )


def _flags(around: Circumstances, timing: Timing, own: Sequence[Sample]) -> tuple[Flag, ...]:
    share = _cache_share(around)
    found = {
        Flag.SHARED_INPUTS: around.shared,
        Flag.QUEUE_NOT_HELD: any(s.clock == CudaEventClock.unheld_name for s in own),
        Flag.LAUNCH_BOUND: timing.wall_s is not None and timing.wall_s > _LAUNCH_BOUND * timing.time_s.value,
        Flag.CACHE_RESIDENT: share <= 1,
        Flag.NEAR_CACHE_SIZE: around.device.kind == "cpu" and _NEAR_CACHE[0] <= share <= _NEAR_CACHE[1],
        Flag.BELOW_FLOOR: timing.floor_ratio is not None and timing.floor_ratio.value < _BELOW_FLOOR,
        Flag.BUSY_MACHINE: stats.is_busy(timing.other_cores, around.device.threads),
    }
    odd = tuple(flag for flag, there in found.items() if there)
    return (*odd, *stats.sample_flags(own, around.plan.precision.placements))


def _cache_share(around: Circumstances) -> float:
    """The tensors of a call ÷ the last-level cache; infinite where that is emptied before each sample."""
    cache = around.device.cache_bytes
    if cache is None or around.cell.cache is Cache.COLD:
        return float("inf")
    return traffic.touched_bytes(around.cell) / cache


def _noise(around: Circumstances, primary: Sequence[Sample], failures: Mapping[str, Failure]) -> NoiseFloor | None:
    """What the baseline gave against itself; None where it did not compete with itself, or failed."""
    baseline = around.plan.baseline
    if around.twin is None or {baseline, around.twin} & failures.keys():
        return None
    ratio = stats.ratio_between(primary, baseline, around.twin)
    if ratio is None or ratio.low is None:
        return None
    return NoiseFloor(cell=around.cell, implementation=baseline, ratio=ratio)


def spent_on_preparing(seconds: float, compiling_s: float) -> Spent:
    """Where the time of preparing a cell went."""
    compiling = min(seconds, compiling_s)
    return Spent(compiling_s=compiling, checking_s=seconds - compiling)
