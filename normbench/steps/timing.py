"""A plan of steps to records, cell by cell: every variant's steps in rounds of the sweep's engine. Never prints."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from normbench import compilation, traffic
from normbench.clock import WallClock
from normbench.device import Device
from normbench.failures import Failure, failure
from normbench.implementations import Implementation
from normbench.interruption import Interruption, Never
from normbench.limits import beyond_memory, usable
from normbench.measure import Measurement, Measurer
from normbench.observer import StepObserver
from normbench.other_load import OtherLoad
from normbench.profiling import memory
from normbench.records import (
    LEAST_PLACEMENTS,
    Cache,
    Part,
    Precision,
    Spent,
    Status,
    StepCell,
    StepPlan,
    StepRecords,
    StepResult,
)
from normbench.rounds import Batching, Rounds, Sampling
from normbench.steps.checks import still_right
from normbench.steps.conclusion import Aftermath, Measured, conclude, without_times
from normbench.steps.entering import Entered, Entry
from normbench.steps.variants import Batch, StepPlaces, Variant
from normbench.watch import Watch

PARTS = (Part.FORWARD, Part.BACKWARD, Part.OPTIMIZER)
OF_A_PART = 1 / 6
"""Of the whole step's time budget, for each part by itself."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Runs a plan of steps on a device, in this process.

    One process, unlike for norms alone: what it biases is a small part of a step, and could not be told from what
    differs between placements (``docs/step.md`` has the figures).

    Args:
        plan: What to measure.
        implementations: In the order of the records; the baseline among them.
        device: Where.
        observer: Is told how it gets on.
        load: Watches what other programs do.
        interruption: Asked after each placement and each cell whether to stop.
        deadline: When, by ``now``, all has to be over; None for no limit.
        now: A monotonic clock, in seconds.
        timer: What times a call, in seconds.
    """

    plan: StepPlan
    implementations: Sequence[Implementation]
    device: Device
    observer: StepObserver
    load: Callable[[], OtherLoad] = OtherLoad
    interruption: Interruption = field(default_factory=Never)
    deadline: float | None = None
    now: Callable[[], float] = time.monotonic
    timer: Callable[[], float] = time.perf_counter

    def run(self, done: Collection[StepCell] = ()) -> Iterator[StepRecords]:
        """Measure every cell that is not in ``done``, yielding each one's records when it is over."""
        cells = [cell for cell in self.plan.cells if cell not in done]
        for index, cell in enumerate(cells):
            began = self.now()
            self.observer.step_cell_started(cell, index, len(cells))
            precision = self._precision(cell, len(cells) - index)
            if precision is None:
                why = Failure(status=Status.NOT_RUN, reason="the time budget was spent before it")
                records = without_times(cell, self.implementations, why)
            else:
                records = self._run_cell(cell, precision)
            yield replace(records, spent=records.spent + Spent(elapsed_s=self.now() - began))
            if self.interruption.is_asked_for:
                return

    def _precision(self, cell: StepCell, cells_left: int) -> Precision | None:
        precision = self.plan.budget(cell)
        if self.deadline is None:
            return precision
        share = (self.deadline - self.now()) / cells_left / (1 + OF_A_PART * len(PARTS))
        return replace(precision, max_seconds=min(precision.max_seconds, share)) if share > 0 else None

    def _run_cell(self, cell: StepCell, precision: Precision) -> StepRecords:
        """The records of one cell; what goes wrong in it and is no single variant's fault is everybody's."""
        need = traffic.step_bytes(cell, len(self.implementations) + 1)
        if why := beyond_memory(need, usable(self.device.free_bytes())):
            return without_times(cell, self.implementations, why)
        compilation.reset()
        try:
            return self._cell(cell, precision)
        except Exception as error:  # a model that does not fit into memory, above all
            return without_times(cell, self.implementations, failure(error))
        finally:
            compilation.reset()
            self.device.release()

    def _cell(self, cell: StepCell, precision: Precision) -> StepRecords:
        batch = Batch.draw(cell, self.plan.seed, self.device.torch_device)
        entry = Entry(cell=cell, batch=batch, eps=self.plan.eps, seed=self.plan.seed, device=self.device)
        began = self.now()
        found = {each.name: self._enter(each, entry) for each in self.implementations}
        entered = {name: one for name, one in found.items() if isinstance(one, Entered)}
        twin = self._twin(entry, entered)
        compiling = sum(one.compile_s or 0.0 for one in entered.values())
        preparing = Spent(checking_s=max(0.0, self.now() - began - compiling), compiling_s=compiling)
        with self.interruption.may_wait():  # to its end: what was timed is not lost to what is asked of it then
            measured = self._timed(entry, entered, twin, precision)
        records = conclude(measured, self.implementations, found)
        return replace(records, spent=records.spent + preparing)

    def _timed(
        self, entry: Entry, entered: Mapping[str, Entered], twin: Variant | None, precision: Precision
    ) -> Measured:
        """The times of those who may have one, whether they are still right after it, and their memory."""
        load = self.load()
        measurements = self._measured([one.variant for one in entered.values()], twin, precision)
        cores = load.cores() if self.device.info.threads else None
        failures = dict(measurements[Part.STEP].failures)
        failures |= self._audit(entry, {name: one for name, one in entered.items() if name not in failures})
        alive = [one.variant for name, one in entered.items() if name not in failures]
        return Measured(
            plan=self.plan,
            cell=entry.cell,
            measurements=measurements,
            failures=failures,
            aftermath=self._aftermath(alive),
            twin=twin.name if twin else None,
            other_cores=cores,
            threads=self.device.info.threads,
        )

    def _enter(self, implementation: Implementation, entry: Entry) -> Entered | StepResult:
        self.observer.preparing(implementation.name)
        return entry.enter(implementation)

    def _twin(self, entry: Entry, entered: Mapping[str, Entered]) -> Variant | None:
        """The baseline once more, in a model of its own: what differs between the two is noise."""
        baseline = entered.get(self.plan.baseline)
        if baseline is None:
            return None
        name = f"{self.plan.baseline} again"
        self.observer.preparing(name)
        try:
            twin = Variant(name, entry.cell, entry.model(baseline.implementation), entry.batch)
            twin.step()  # it compiles now, not in the timed region
        except Exception:  # there was room for all of them, and not for one more
            return None
        return twin

    def _measured(
        self, variants: Sequence[Variant], twin: Variant | None, precision: Precision
    ) -> Mapping[Part, Measurement]:
        """The whole step of all of them and the twin, then each part of those that came through."""
        step = self._measure(Part.STEP, [*variants, *([twin] if twin else [])], precision)
        alive = [variant for variant in variants if variant.name not in step.failures]
        seconds = precision.max_seconds * OF_A_PART
        apart = replace(precision, placements=LEAST_PLACEMENTS, max_seconds=seconds)
        found = {Part.STEP: step}
        for part in () if self.interruption.is_asked_for else PARTS:
            found[part] = self._measure(part, alive, apart)
        return found

    def _measure(self, part: Part, variants: Sequence[Variant], precision: Precision) -> Measurement:
        """A part of the steps of some variants, by the clock that a training loop goes by."""
        self.observer.timing(part)
        sampling = Sampling(
            clock=WallClock(flush=lambda: None, synchronize=self.device.synchronize, now=self.timer),
            cache=Cache.COLD,  # nothing is flushed and nothing warmed: a step finds what the step before has left
            batching=Batching(most_calls=1),
            reading=self.device.reading,
            watch=Watch(),
            now=self.now,
        )
        places = StepPlaces(variants, part, self.plan.seed)
        rounds = Rounds(sampling, places, baseline=self.plan.baseline, seed=self.plan.seed)
        measurer = Measurer(
            precision=precision,
            baseline=self.plan.baseline,
            floor="",  # there is none: a step computes more than it moves
            interruption=self.interruption,
            now=self.now,
            on_progress=self.observer.measured,
        )
        return measurer.measure([rounds], [variant.name for variant in variants])

    def _audit(self, entry: Entry, entered: Mapping[str, Entered]) -> Mapping[str, Failure]:
        """Whoever's norms are no longer right after its steps were timed, and why."""
        found: dict[str, Failure] = {}
        for name, one in entered.items():
            self.observer.preparing(f"{name} once more")
            why = still_right(one.variant, one.implementation, entry.cell, entry.eps)
            if why is not None:
                found[name] = why
        return found

    def _aftermath(self, variants: Sequence[Variant]) -> Mapping[str, Aftermath]:
        """What steps need beside what stays, and whether they still compute numbers after some."""
        found: dict[str, Aftermath] = {}
        for variant in variants:
            try:
                variant.place()
                variant.step()  # so that the optimizer's state is there already
                peak, _net = memory.peak_and_net(variant.task(Part.STEP), self.device)
                saved, _alive = memory.saved(variant.loss, variant.model.parameters())
                diverged = not variant.is_finite()
            except Exception:
                continue
            found[variant.name] = Aftermath(peak_bytes=peak, saved_bytes=saved, diverged=diverged)
        return found
