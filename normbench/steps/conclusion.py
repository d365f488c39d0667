"""From the samples of a step cell to its records: results, comparisons with the baseline, the A/A test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from normbench import stats, verdict
from normbench.failures import Failure
from normbench.implementations import Implementation
from normbench.measure import Measurement
from normbench.records import (
    Estimate,
    Flag,
    Outcome,
    Part,
    Reason,
    Sample,
    Spent,
    Status,
    StepCell,
    StepComparison,
    StepNoise,
    StepPlan,
    StepRecords,
    StepResult,
)
from normbench.steps.entering import Entered, refused


@dataclass(frozen=True, kw_only=True)
class Aftermath:
    """What is found of a variant's steps after they were timed.

    Args:
        peak_bytes: The most allocated at once, beyond the model and the optimizer's state.
        saved_bytes: Kept by the forward for the backward.
        diverged: Whether the loss is no finite number after two steps from the initial weights.
    """

    peak_bytes: int
    saved_bytes: int
    diverged: bool


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What measuring a cell gave.

    Args:
        plan: What was asked for.
        cell: Where.
        measurements: Of the whole step and of its parts.
        failures: Who has no time, and why.
        aftermath: By implementation, of those of whom it is known.
        twin: The name under which the baseline competed once more; None where it did not.
        other_cores: That other programs kept busy meanwhile; None where not measured.
        threads: That torch used on a CPU; None on a GPU.
    """

    plan: StepPlan
    cell: StepCell
    measurements: Mapping[Part, Measurement]
    failures: Mapping[str, Failure]
    aftermath: Mapping[str, Aftermath]
    twin: str | None
    other_cores: float | None
    threads: int | None

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Those of the whole step."""
        return self.measurements[Part.STEP].samples


def without_times(cell: StepCell, implementations: Sequence[Implementation], why: Failure) -> StepRecords:
    """The records of a cell that was not measured."""
    results = tuple(refused(cell, implementation, why) for implementation in implementations)
    return StepRecords(cell=cell, results=results, comparisons=(), samples={})


def conclude(
    measured: Measured, implementations: Sequence[Implementation], found: Mapping[str, Entered | StepResult]
) -> StepRecords:
    """The records of a cell.

    Args:
        measured: What measuring it gave.
        implementations: In the order of the records.
        found: What is known of each, or its final record.
    """
    results = tuple(_result(measured, each, found[each.name]) for each in implementations)
    return StepRecords(
        cell=measured.cell,
        results=results,
        comparisons=_comparisons(measured, results),
        samples={part: measurement.samples for part, measurement in measured.measurements.items()},
        noise=_noise(measured),
        spent=sum((measurement.spent for measurement in measured.measurements.values()), Spent()),
    )


def _result(measured: Measured, implementation: Implementation, found: Entered | StepResult) -> StepResult:
    if isinstance(found, StepResult):
        return found
    name, cell = implementation.name, measured.cell
    if (why := measured.failures.get(name)) is not None:
        return refused(cell, implementation, why)
    step = measured.measurements[Part.STEP]
    own = stats.of_implementation(step.samples, name)
    if step.is_cut or not own:
        why = Failure(status=Status.NOT_RUN, reason="interrupted while it was measured")
        return refused(cell, implementation, why)
    after = measured.aftermath.get(name)
    return StepResult(
        cell=cell,
        implementation=name,
        status=Status.OK,
        times=_times(measured, name),
        samples=len(own),
        placements=len(stats.placement_logs(own)),
        parameters=cell.shape.parameters(implementation.op),
        norm_parameters=cell.shape.norm_parameters(implementation.op),
        compile_s=found.compile_s,
        peak_memory_bytes=after.peak_bytes if after else None,
        saved_bytes=after.saved_bytes if after else None,
        max_rel_error=found.max_rel_error,
        flags=(*found.flags, *_flags(measured, own, after)),
    )


def _times(measured: Measured, name: str) -> Mapping[Part, Estimate]:
    found = {
        part: stats.time_estimate(stats.of_implementation(measurement.samples, name))
        for part, measurement in measured.measurements.items()
        if name not in measurement.failures
    }
    return {part: time for part, time in found.items() if time is not None}


def _flags(measured: Measured, own: Sequence[Sample], after: Aftermath | None) -> tuple[Flag, ...]:
    found = {
        Flag.BUSY_MACHINE: stats.is_busy(measured.other_cores, measured.threads),
        Flag.DIVERGED: after is not None and after.diverged,
    }
    of_samples = stats.sample_flags(own, measured.plan.precision.placements)
    return (*of_samples, *(flag for flag, there in found.items() if there))


def _noise(measured: Measured) -> StepNoise | None:
    baseline = measured.plan.baseline
    if measured.twin is None or measured.measurements[Part.STEP].is_cut:
        return None
    ratio = stats.ratio_between(measured.samples, baseline, measured.twin)
    return StepNoise(cell=measured.cell, implementation=baseline, ratio=ratio) if ratio else None


def _comparisons(measured: Measured, results: Sequence[StepResult]) -> tuple[StepComparison, ...]:
    baseline = measured.plan.baseline
    (base,) = (result for result in results if result.implementation == baseline)
    return tuple(
        _comparison(measured, base, result)
        for result in results
        if result is not base and result.status is not Status.NOT_RUN
    )


def _comparison(measured: Measured, base: StepResult, result: StepResult) -> StepComparison:
    name, speedup = result.implementation, None
    outcome, reason = Outcome.UNDECIDED, Reason.NO_CANDIDATE
    if base.status is not Status.OK:
        reason = Reason.NO_BASELINE
    elif result.status is Status.OK:
        margin = measured.plan.precision.margin
        speedup, outcome, reason = verdict.weigh(measured.samples, base.implementation, name, margin)
    return StepComparison(
        cell=measured.cell,
        baseline=base.implementation,
        candidate=name,
        speedup=speedup,
        outcome=outcome,
        reason=reason,
    )
