"""A plan in, records out, one cell at a time. Never prints."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from normbench import compilation, stats, traffic, units, verdict
from normbench.clock import Clock, CudaEventClock, Task, WallClock
from normbench.device import CudaDevice, Device, make_flush
from normbench.entrants import Entrant, admit, failure
from normbench.implementations import Implementation, Setting
from normbench.inputs import Placement, Placer, cell_seed, draw
from normbench.load import OtherLoad
from normbench.measure import Batching, Measurement, Measurer, Progress
from normbench.records import (
    Cache,
    Case,
    CaseResult,
    Cell,
    CellRecords,
    Flag,
    Mode,
    Plan,
    Precision,
    Sample,
    Status,
    Timing,
)

_MEMORY_SHARE = 0.9
_LAUNCH_BOUND = 1.5
_BUSY_SHARE = 0.1
_NEAR_CACHE = (0.25, 2.0)
_BELOW_FLOOR = 0.95


class Observer(Protocol):
    """Is told how a sweep gets on."""

    def cell_started(self, cell: Cell, index: int, count: int) -> None:
        """The ``index``-th of ``count`` cells begins."""

    def preparing(self, name: str) -> None:
        """An implementation is being built, compiled and checked."""

    def measured(self, progress: Progress) -> None:
        """A placement of the current cell is done."""


@dataclass(frozen=True, kw_only=True)
class Instruments:
    """What times on a device.

    ``wall`` is a second clock where the first one is not wall time.
    """

    clock: Clock
    wall: Clock | None
    batching: Batching


def instruments(device: Device) -> Instruments:
    """CUDA events and wall time on a GPU, wall time on a CPU."""
    flush = make_flush(device)
    wall = WallClock(flush=flush, synchronize=device.synchronize)
    if isinstance(device, CudaDevice):
        clock = CudaEventClock(device.cuda, flush=flush)
        return Instruments(clock=clock, wall=wall, batching=Batching(least_s=100e-6, most_calls=10))
    return Instruments(clock=wall, wall=None, batching=Batching())


@dataclass(frozen=True, kw_only=True)
class _Context:
    """What all results of a cell have in common."""

    cell: Cell
    precision: Precision
    primary: Sequence[Sample]
    shared: bool
    recompiled: bool
    other_cores: float | None


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Runs a plan on a device.

    Args:
        plan: What to measure.
        implementations: In the order of the records; baseline and floor among them.
        device: Where.
        instruments: What times.
        observer: Is told how it gets on.
        now: A monotonic clock, for the time budgets.
    """

    plan: Plan
    implementations: tuple[Implementation, ...]
    device: Device
    instruments: Instruments
    observer: Observer
    now: Callable[[], float] = time.monotonic

    def run(self, done: Collection[Cell] = ()) -> Iterator[CellRecords]:
        """Measure every cell of the plan that is not in ``done``, yielding each one's records when it is over.

        A time budget for the whole is shared out among the cells that are left; a cell that it leaves no
        time for is recorded as not run.
        """
        cells = [cell for cell in self.plan.cells() if cell not in done]
        total = self.plan.precision.total_seconds
        deadline = None if total is None else self.now() + total
        for index, cell in enumerate(cells):
            self.observer.cell_started(cell, index, len(cells))
            precision = self._precision(deadline, len(cells) - index)
            if precision is None:
                yield self.not_run(cell, "the sweep's time budget was spent before it")
            else:
                yield self._run_cell(cell, precision)

    def not_run(self, cell: Cell, reason: str) -> CellRecords:
        """The records of a cell that was not begun or not finished."""
        return self._without_times(cell, Status.NOT_RUN, reason)

    def _precision(self, deadline: float | None, cells_left: int) -> Precision | None:
        precision = self.plan.precision
        if deadline is None:
            return precision
        share = (deadline - self.now()) / cells_left
        return replace(precision, max_seconds=min(precision.max_seconds, share)) if share > 0 else None

    def _run_cell(self, cell: Cell, precision: Precision) -> CellRecords:
        need = traffic.cell_bytes(cell, len(self.implementations))
        least = traffic.cell_bytes(cell, len(self.implementations), shared=True)
        free = int(_MEMORY_SHARE * self.device.free_bytes())
        if least > free:
            reason = f"estimated {units.size(least)}, available {units.size(free)}: not attempted"
            return self._without_times(cell, Status.OUT_OF_MEMORY, reason)
        shared = need > free and not any(i.mutates for i in self.implementations)
        try:
            return self._measure_cell(cell, precision, shared=shared)
        except Exception as error:  # allocating the values themselves failed: the cell's, not one case's
            return self._records(cell, [failure(self._case(cell, i.name), error) for i in self.implementations], ())
        finally:
            gc.collect()
            self.device.release()

    def _measure_cell(self, cell: Cell, precision: Precision, *, shared: bool) -> CellRecords:
        compilation.reset()
        values = draw(cell, self.plan.seed, self.device.torch_device)
        setting = Setting(
            cell=cell,
            eps=self.plan.eps,
            compile_mode=self.plan.compile_mode,
            device=str(self.device.torch_device),
        )
        admitted: dict[str, Entrant | CaseResult] = {}
        for implementation in self.implementations:
            self.observer.preparing(implementation.name)
            admitted[implementation.name] = admit(implementation, setting, values, self.device)
        entrants = [entrant for entrant in admitted.values() if isinstance(entrant, Entrant)]
        placer = Placer(
            values,
            tuple(entrant.implementation.op for entrant in entrants),
            gradients=cell.mode is not Mode.INFERENCE,
            shared=shared,
            seed=cell_seed(self.plan.seed, cell, "padding"),
        )
        graphs = compilation.graph_count()
        load = OtherLoad()
        measurement = self._measurer(cell, precision).measure(_placing(placer, entrants, cell))
        recompiled = compilation.graph_count() != graphs
        context = _Context(
            cell=cell,
            precision=precision,
            primary=self._primary(measurement.samples),
            shared=shared,
            recompiled=recompiled,
            other_cores=load.cores() if self.device.info.threads else None,
        )
        results = [
            self._result(self._case(cell, name), entrant, measurement, context)
            if isinstance(entrant, Entrant)
            else entrant
            for name, entrant in admitted.items()
        ]
        return self._records(cell, results, measurement.samples)

    def _measurer(self, cell: Cell, precision: Precision) -> Measurer:
        one_call = Batching(most_calls=1)  # after the first call of a batch, nothing is cold any more
        is_cold_batch = cell.cache is Cache.COLD and self.instruments.wall is None
        return Measurer(
            clock=self.instruments.clock,
            wall=self.instruments.wall,
            precision=precision,
            cache=cell.cache,
            batching=one_call if is_cold_batch else self.instruments.batching,
            seed=cell_seed(self.plan.seed, cell, "order"),
            baseline=self.plan.baseline,
            floor=self.plan.floor,
            reading=self.device.reading,
            now=self.now,
            on_progress=self.observer.measured,
        )

    def _result(self, case: Case, entrant: Entrant, measurement: Measurement, context: _Context) -> CaseResult:
        error = measurement.failures.get(case.implementation)
        if error is not None:
            return failure(case, error, compile_s=entrant.compile_s)
        if context.recompiled and entrant.implementation.compiled:
            reason = "torch.compile built another graph inside the timed region"
            return CaseResult(case=case, status=Status.FAILED, reason=reason, compile_s=entrant.compile_s)
        own = stats.of_implementation(context.primary, case.implementation)
        timing = self._timing(case.implementation, own, measurement.samples, context)
        return CaseResult(
            case=case,
            status=Status.OK,
            timing=timing,
            accuracy=entrant.accuracy,
            compile_s=entrant.compile_s,
            flags=(*entrant.flags, *self._flags(timing, own, context)),
        )

    def _timing(self, name: str, own: Sequence[Sample], samples: Sequence[Sample], context: _Context) -> Timing:
        time_s = stats.time_estimate(own)
        assert time_s is not None, "an implementation that did not fail was timed at least once"
        wall = self.instruments.wall
        wall_s = stats.time_estimate(stats.of_implementation(samples, name, wall.name) if wall else own)
        return Timing(
            time_s=time_s,
            wall_s=None if wall_s is None else wall_s.value,
            floor_ratio=stats.ratio_estimate(own, stats.of_implementation(context.primary, self.plan.floor)),
            samples=len(own),
            placements=len(stats.placement_logs(own)),
            other_cores=context.other_cores,
        )

    def _flags(self, timing: Timing, own: Sequence[Sample], context: _Context) -> tuple[Flag, ...]:
        threads, other = self.device.info.threads, timing.other_cores
        found = {
            Flag.SHARED_INPUTS: context.shared,
            Flag.QUEUE_NOT_HELD: any(s.clock == CudaEventClock.unheld_name for s in own),
            Flag.LAUNCH_BOUND: timing.wall_s is not None and timing.wall_s > _LAUNCH_BOUND * timing.time_s.value,
            Flag.NEAR_CACHE_SIZE: self._is_near_cache_size(context.cell),
            Flag.BELOW_FLOOR: timing.floor_ratio is not None and timing.floor_ratio.value < _BELOW_FLOOR,
            Flag.BUSY_MACHINE: threads is not None and other is not None and other > _BUSY_SHARE * threads,
        }
        odd = tuple(flag for flag, there in found.items() if there)
        return (*odd, *stats.sample_flags(own, context.precision.placements))

    def _is_near_cache_size(self, cell: Cell) -> bool:
        """Whether how much of the inputs stays in a CPU's cache is decided by chance and by who shares it."""
        cache = self.device.info.cache_bytes
        if self.device.info.kind != "cpu" or cache is None or cell.cache is Cache.COLD:
            return False
        return _NEAR_CACHE[0] <= traffic.touched_bytes(cell) / cache <= _NEAR_CACHE[1]

    def _primary(self, samples: Sequence[Sample]) -> list[Sample]:
        wall = self.instruments.wall
        return stats.without_clock(samples, wall.name if wall else None)

    def _records(self, cell: Cell, results: Sequence[CaseResult], samples: Sequence[Sample]) -> CellRecords:
        by_name = {result.case.implementation: result for result in results}
        apart = (self.plan.baseline, self.plan.floor)
        primary = self._primary(samples)
        comparisons = tuple(
            verdict.compare(
                by_name.get(self.plan.baseline),
                result,
                primary,
                self.plan.precision.margin,
                self.plan.baseline,
            )
            for name, result in by_name.items()
            if name not in apart and result.status is not Status.NOT_RUN
        )
        return CellRecords(cell=cell, results=tuple(results), comparisons=comparisons, samples=tuple(samples))

    def _without_times(self, cell: Cell, status: Status, reason: str) -> CellRecords:
        results = [
            CaseResult(case=self._case(cell, implementation.name), status=status, reason=reason)
            for implementation in self.implementations
        ]
        return self._records(cell, results, ())

    @staticmethod
    def _case(cell: Cell, name: str) -> Case:
        return Case(cell=cell, implementation=name)


def _placing(placer: Placer, entrants: Sequence[Entrant], cell: Cell) -> Callable[[], Sequence[Task]]:
    """Makes a placement's tasks; the placement's padding lives as long as the next one is not there."""
    current: list[Placement] = []

    def place() -> Sequence[Task]:
        placement = placer.place()
        current[:] = [placement]
        return [e.task(cell, o) for e, o in zip(entrants, placement.operands, strict=True)]

    return place
