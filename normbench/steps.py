"""A step plan to records, cell by cell: every variant's steps in rounds of the sweep's engine. Never prints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from normbench import compilation, stats, verdict
from normbench.clock import WallClock
from normbench.device import Device
from normbench.entering import Entered, Entry
from normbench.failures import Failure
from normbench.implementations import Implementation
from normbench.interruption import Interruption, Never
from normbench.measure import Measurement, Measurer, Progress
from normbench.profiling import memory
from normbench.records import (
    LEAST_PLACEMENTS,
    Cache,
    Estimate,
    Outcome,
    Part,
    Precision,
    Reason,
    Sample,
    Status,
    StepCell,
    StepComparison,
    StepNoise,
    StepPlan,
    StepRecords,
    StepResult,
)
from normbench.rounds import Batching, Rounds, Sampling
from normbench.stepping import Batch, StepPlaces, Variant

_OF_A_PART = 1 / 6
_PARTS = (Part.FORWARD, Part.BACKWARD, Part.OPTIMIZER)


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Runs a step plan on a device.

    Args:
        plan: What to measure.
        implementations: In the order of the records; the baseline among them.
        device: Where.
        told: What is being done.
        measured: Told after each placement.
        interruption: Asked after each placement and each cell whether to stop.
        now: A monotonic clock.
    """

    plan: StepPlan
    implementations: Sequence[Implementation]
    device: Device
    told: Callable[[str], None] = lambda _what: None
    measured: Callable[[Progress], None] = lambda _progress: None
    interruption: Interruption = field(default_factory=Never)
    now: Callable[[], float] = time.monotonic

    def run(self) -> Iterator[StepRecords]:
        """Measure every cell, yielding each one's records when it is over."""
        for cell in self.plan.cells:
            yield self.run_cell(cell)
            if self.interruption.is_asked_for:
                return

    def run_cell(self, cell: StepCell) -> StepRecords:
        """The records of one cell."""
        compilation.reset()
        batch = Batch.draw(cell, self.plan.seed, self.device.torch_device)
        entry = Entry(cell=cell, batch=batch, eps=self.plan.eps, seed=self.plan.seed, device=self.device)
        entered: dict[str, Entered] = {}
        refused: dict[str, StepResult] = {}
        for implementation in self.implementations:
            self.told(implementation.name)
            found = entry.enter(implementation)
            if isinstance(found, Entered):
                entered[implementation.name] = found
            else:
                refused[implementation.name] = found
        return self._measured(entry, entered, refused)

    def _measured(self, entry: Entry, entered: Mapping[str, Entered], refused: dict[str, StepResult]) -> StepRecords:
        variants = [one.variant for one in entered.values()]
        twin = self._twin(entry, entered)
        step = self._measure(Part.STEP, [*variants, *twin], self.plan.precision)
        alive = [variant for variant in variants if variant.name not in step.failures]
        apart = replace(
            self.plan.precision,
            placements=LEAST_PLACEMENTS,
            max_seconds=self.plan.precision.max_seconds * _OF_A_PART,
        )
        parts = {part: self._measure(part, alive, apart) for part in _PARTS}
        measurements = {Part.STEP: step, **parts}
        results = {name: self._result(entry, one, measurements) for name, one in entered.items()} | refused
        ordered = tuple(results[implementation.name] for implementation in self.implementations)
        return StepRecords(
            cell=entry.cell,
            results=ordered,
            comparisons=self._comparisons(entry.cell, ordered, step.samples),
            samples={part: measurement.samples for part, measurement in measurements.items()},
            noise=self._noise(entry.cell, step.samples) if twin else None,
            spent=step.spent,
        )

    def _noise(self, cell: StepCell, samples: Sequence[Sample]) -> StepNoise | None:
        ratio = _ratio(samples, self.plan.baseline, self._twin_name)
        return StepNoise(cell=cell, implementation=self.plan.baseline, ratio=ratio) if ratio else None

    @property
    def _twin_name(self) -> str:
        return f"{self.plan.baseline} again"

    def _twin(self, entry: Entry, entered: Mapping[str, Entered]) -> list[Variant]:
        """The baseline once more, in a model of its own: what differs between the two is noise."""
        baseline = entered.get(self.plan.baseline)
        if baseline is None:
            return []
        return [Variant(self._twin_name, entry.cell, entry.model(baseline.implementation), entry.batch)]

    def _measure(self, part: Part, variants: Sequence[Variant], precision: Precision) -> Measurement:
        """A part of the steps of some variants, by the clock that a training loop goes by."""
        self.told(f"timing {part}")
        clock = WallClock(flush=lambda: None, synchronize=self.device.synchronize)
        sampling = Sampling(
            clock=clock,
            cache=Cache.COLD,  # nothing is flushed and nothing warmed: a step finds what the step before has left
            batching=Batching(most_calls=1),
            reading=self.device.reading,
            now=self.now,
        )
        places = StepPlaces(variants, part, self.plan.seed)
        rounds = Rounds(sampling, places, baseline=self.plan.baseline, seed=self.plan.seed)
        measurer = Measurer(
            precision=precision,
            baseline=self.plan.baseline,
            floor=self._twin_name,
            interruption=self.interruption,
            now=self.now,
            on_progress=self.measured,
        )
        with self.interruption.may_wait():
            return measurer.measure([rounds], [variant.name for variant in variants])

    def _result(self, entry: Entry, entered: Entered, measurements: Mapping[Part, Measurement]) -> StepResult:
        name = entered.implementation.name
        why = measurements[Part.STEP].failures.get(name)
        times = {part: _time(measurement.samples, name) for part, measurement in measurements.items()}
        if why is not None:
            return entry.refused(entered.implementation, why)
        own = stats.of_implementation(measurements[Part.STEP].samples, name)
        if times[Part.STEP] is None:
            return entry.refused(
                entered.implementation, Failure(status=Status.NOT_RUN, reason="interrupted before it")
            )
        peak, saved = self._memory(entered.variant)
        return StepResult(
            cell=entry.cell,
            implementation=name,
            status=Status.OK,
            times={part: found for part, found in times.items() if found is not None},
            samples=len(own),
            placements=len({(sample.process, sample.placement) for sample in own}),
            compile_s=entered.compile_s,
            peak_memory_bytes=peak,
            saved_bytes=saved,
            max_rel_error=entered.max_rel_error,
            flags=(*entered.flags, *stats.sample_flags(own, self.plan.precision.placements)),
            parameters=entry.cell.shape.parameters(entered.implementation.op),
            norm_parameters=entry.cell.shape.norm_parameters(entered.implementation.op),
        )

    def _memory(self, variant: Variant) -> tuple[int | None, int | None]:
        """The peak of a step above what stays, and what its forward keeps for the backward."""
        variant.place()
        variant.step()  # so that the optimizer's state is there already
        peak, _net = memory.peak_and_net(variant.task(Part.STEP), self.device)
        saved, _alive = memory.saved(variant.loss, variant.model.parameters())
        return peak, saved

    def _comparisons(
        self, cell: StepCell, results: Sequence[StepResult], samples: Sequence[Sample]
    ) -> tuple[StepComparison, ...]:
        by_name = {result.implementation: result for result in results}
        has_baseline = by_name[self.plan.baseline].status is Status.OK
        return tuple(
            self._comparison(cell, result, samples, has_baseline=has_baseline)
            for result in results
            if result.implementation != self.plan.baseline
        )

    def _comparison(
        self, cell: StepCell, result: StepResult, samples: Sequence[Sample], *, has_baseline: bool
    ) -> StepComparison:
        name, speedup = result.implementation, None
        outcome, reason = Outcome.UNDECIDED, Reason.NO_CANDIDATE if has_baseline else Reason.NO_BASELINE
        if has_baseline and result.status is Status.OK:
            speedup = _ratio(samples, self.plan.baseline, name)
            if speedup is not None:
                outcome, reason = verdict.judge(speedup, self.plan.precision.margin)
        return StepComparison(
            cell=cell, baseline=self.plan.baseline, candidate=name, speedup=speedup, outcome=outcome, reason=reason
        )


def _time(samples: Sequence[Sample], name: str) -> Estimate | None:
    return stats.time_estimate(stats.of_implementation(samples, name))


def _ratio(samples: Sequence[Sample], baseline: str, candidate: str) -> Estimate | None:
    return stats.ratio_estimate(*(stats.of_implementation(samples, name) for name in (baseline, candidate)))
