"""A plan in, records out, one cell at a time. Never prints."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from normbench import traffic, units
from normbench.ahead import Ahead
from normbench.bench import Bench, BenchError, BenchLost, Job, Prepared
from normbench.conclusion import Circumstances, conclude, cut, spent_on_preparing, without_times
from normbench.device import Device
from normbench.entrants import Admission, failed
from normbench.errors import NormbenchError
from normbench.failures import Failure, describe, failure
from normbench.implementations import Implementation
from normbench.interruption import Interruption, Never
from normbench.limits import Limits
from normbench.load import OtherLoad
from normbench.measure import Measurement, Measurer, Progress
from normbench.records import Case, CaseResult, Cell, CellRecords, ImplementationInfo, Plan, Precision, Spent, Status

_MEMORY_SHARE = 0.9


class Observer(Protocol):
    """Is told how a sweep gets on."""

    def starting(self, what: str) -> None:
        """Something is done before the first cell."""

    def cell_started(self, cell: Cell, index: int, count: int) -> None:
        """The ``index``-th of ``count`` cells begins."""

    def preparing(self, name: str) -> None:
        """Something is being built, compiled and checked."""

    def measured(self, progress: Progress) -> None:
        """A placement of the current cell is done."""


@dataclass(frozen=True, kw_only=True)
class _Attempt:
    """To measure a cell on these benches, without those who are out of it."""

    cell: Cell
    precision: Precision
    benches: Sequence[Bench]
    shared: bool
    out: Mapping[str, Failure] = field(default_factory=dict)


@dataclass(kw_only=True)
class Sweep:
    """Runs a plan on a device.

    Args:
        plan: What to measure.
        implementations: In the order of the records; baseline and floor among them.
        device: Where.
        benches: Where cells are prepared and measured; they take turns.
        observer: Is told how it gets on.
        beside: The names of the clocks besides the one that ratios are taken by.
        ahead: Compiles before measuring begins; None to compile cell by cell.
        spent: Where time has gone already.
        load: Watches what other programs do.
        interruption: Asked after each placement and each cell whether to stop.
        now: A monotonic clock, for the time budgets.
    """

    plan: Plan
    implementations: tuple[Implementation, ...]
    device: Device
    benches: Sequence[Bench]
    observer: Observer
    beside: Collection[str] = ()
    ahead: Ahead | None = None
    spent: Spent = field(default_factory=Spent)
    load: Callable[[], OtherLoad] = OtherLoad
    interruption: Interruption = field(default_factory=Never)
    now: Callable[[], float] = time.monotonic
    _limits: Limits = field(default_factory=Limits, init=False)

    def run(self, done: Collection[Cell] = ()) -> Iterator[CellRecords]:
        """Measure every cell of the plan that is not in ``done``, yielding each one's records when it is over.

        A time budget for the whole is shared out among the cells that are left; a cell that it leaves no
        time for is recorded as not run. The cell in which an interruption was asked for is the last one.
        """
        cells = [cell for cell in self.plan.cells() if cell not in done]
        total = self.plan.precision.total_seconds
        deadline = None if total is None else self.now() + total - self.spent.elapsed_s
        if deadline is None:  # a budget is better spent cell by cell
            began = self.now()
            self._compile(cells)
            self.spent += Spent(elapsed_s=self.now() - began)
        for index, cell in enumerate(cells):
            began = self.now()
            self.observer.cell_started(cell, index, len(cells))
            precision = self._precision(deadline, len(cells) - index)
            if precision is None:
                records = self.not_run(cell, "the sweep's time budget was spent before it")
            else:
                records = self._run_cell(cell, precision)
            spent = records.spent + self.spent + Spent(elapsed_s=self.now() - began)
            self.spent = Spent()
            yield replace(records, spent=spent)
            if self.interruption.is_asked_for:
                return

    def not_run(self, cell: Cell, reason: str) -> CellRecords:
        """The records of a cell that was not begun or not finished."""
        return without_times(cell, self.plan, Status.NOT_RUN, reason)

    def _compile(self, cells: Sequence[Cell]) -> None:
        """Compile ahead what fits into memory several times."""
        if self.ahead is None:
            return
        began, free, side_by_side = self.now(), self._free_bytes(), os.cpu_count() or 1
        small = [c for c in cells if side_by_side * traffic.cell_bytes(c, 1) <= free]
        self.ahead.build(small, self._tell_compiled)
        self.spent += Spent(compiling_s=self.now() - began)

    def _tell_compiled(self, done: int, count: int) -> None:
        self.observer.starting(f"compiling ahead: {done} of {count} graphs")

    def _precision(self, deadline: float | None, cells_left: int) -> Precision | None:
        precision = self.plan.precision
        if deadline is None:
            return precision
        share = (deadline - self.now()) / cells_left
        return replace(precision, max_seconds=min(precision.max_seconds, share)) if share > 0 else None

    @property
    def _infos(self) -> tuple[ImplementationInfo, ...]:
        return tuple(implementation.info for implementation in self.implementations)

    def _free_bytes(self) -> int:
        try:
            return int(_MEMORY_SHARE * self.device.free_bytes())
        except RuntimeError as error:
            raise NormbenchError(
                f"the device does not answer any more: {describe(error)}",
                hint="what was measured is kept: go on with --resume when it does",
            ) from error

    def _run_cell(self, cell: Cell, precision: Precision) -> CellRecords:
        count, free = len(self.implementations), self._free_bytes()
        need, least = traffic.cell_bytes(cell, count), traffic.cell_bytes(cell, count, shared=True)
        if least > free:
            reason = f"estimated {units.size(least)}, available {units.size(free)}: not attempted"
            return without_times(cell, self.plan, Status.OUT_OF_MEMORY, reason, self._infos)
        attempt = _Attempt(
            cell=cell,
            precision=precision,
            benches=self.benches if len(self.benches) * need <= free else self.benches[:1],
            shared=need > free and not any(i.mutates for i in self.implementations),
        )
        self._compile([cell])
        skipped = self._limits.beyond(cell, self.plan.implementations)
        records = self._until_nobody_spoils_it(attempt, {**skipped, **(self.ahead.lost(cell) if self.ahead else {})})
        self._limits.learn(result for result in records.results if result.case.implementation not in skipped)
        return records

    def _until_nobody_spoils_it(self, attempt: _Attempt, out: Mapping[str, Failure]) -> CellRecords:
        """Measure a cell, again and again without whoever cost a bench, or whatever else kept all from a time."""
        everyone, nobodys = self.plan.implementations, 0
        while True:
            try:
                return self._measure_cell(replace(attempt, out=out))
            except BenchLost as lost:
                if self.interruption.is_asked_for:  # what ends this process may have ended the other one as well
                    return without_times(attempt.cell, self.plan, Status.NOT_RUN, "interrupted while it was measured")
                culprit = self.plan.baseline if lost.culprit == self._twin else lost.culprit
                nobodys += culprit is None
                guilty = (everyone if nobodys > 1 else ()) if culprit is None else (culprit,)
                out = {**dict.fromkeys(guilty, lost.why), **out}
            except NormbenchError:
                raise
            except Exception as error:  # allocating the values themselves failed: the cell's, not one case's
                if len(out) == len(everyone):
                    raise
                why = error.why if isinstance(error, BenchError) else failure(error)
                out = {**dict.fromkeys(everyone, why), **out}
            finally:
                for bench in attempt.benches:
                    bench.finish()

    def _measure_cell(self, attempt: _Attempt) -> CellRecords:
        cell, benches = attempt.cell, attempt.benches
        twin = self._twin if self._is_first_of_its_dtype(cell) else None
        admissions, spent = self._prepare(attempt, twin)
        names = [name for name, admission in admissions.items() if isinstance(admission, Admission)]
        load = self.load()
        with self.interruption.may_wait():
            measurement = self._measurer(attempt.precision).measure(benches, names)
        if measurement.is_cut:
            return cut(cell, self.plan, measurement)
        measurement = self._audited(measurement, names, benches)
        around = Circumstances(
            plan=self.plan,
            device=self.device.info,
            cell=cell,
            implementations=self._infos,
            beside=self.beside,
            shared=attempt.shared,
            other_cores=load.cores() if self.device.info.threads else None,
            twin=twin,
        )
        records = conclude(around, admissions, measurement)
        records = replace(records, spent=records.spent + spent)
        return self._profiled(records, benches[0]) if self.plan.profile else records

    @property
    def _twin(self) -> str:
        return f"{self.plan.baseline} again"

    def _audited(self, measurement: Measurement, names: Sequence[str], benches: Sequence[Bench]) -> Measurement:
        """The same, without those that were no longer right after they were timed, in whichever process."""
        began, failures = self.now(), dict(measurement.failures)
        for bench in benches:
            failures |= bench.audit([name for name in names if name not in failures])
        spent = measurement.spent + Spent(checking_s=self.now() - began)
        return replace(measurement, failures=failures, spent=spent)

    def _profiled(self, records: CellRecords, bench: Bench) -> CellRecords:
        """The same with a profile of every case that has a time."""
        began = self.now()
        timed = [result.case.implementation for result in records.results if result.timing is not None]
        found = {p.profile.case: p for p in bench.profile(timed)}
        results = tuple(
            replace(r, peak_memory_bytes=memory.peak_bytes, saved_bytes=memory.saved_bytes)
            if r.case in found and (memory := found[r.case].profile.memory)
            else r
            for r in records.results
        )
        return replace(
            records,
            results=results,
            profiles=tuple(profiled.profile for profiled in found.values()),
            traces={p.profile.trace: p.trace for p in found.values() if p.profile.trace and p.trace},
            spent=records.spent + Spent(profiling_s=self.now() - began),
        )

    def _prepare(self, attempt: _Attempt, twin: str | None) -> tuple[Mapping[str, Admission | CaseResult], Spent]:
        """Prepare on all benches, as many at a time as there are cores for. Whom one refuses, all do without."""
        cell, out = attempt.cell, attempt.out
        refused = {n: failed(Case(cell=cell, implementation=n), why) for n, why in out.items()}
        if len(refused) == len(self.plan.implementations):
            return refused, Spent()
        graphs = self.ahead.of(cell) if self.ahead else {}
        job = Job(cell=cell, shared=attempt.shared, twin=twin, graphs=graphs, without=frozenset(out))
        began = self.now()
        found, compiling_s = self._prepared(job, attempt.benches)
        admissions = {**found[0].admissions, **refused}
        for other in found[1:]:
            admissions |= {n: a for n, a in other.admissions.items() if isinstance(a, CaseResult)}
        in_order = [n for n in (*self.plan.implementations, twin) if n in admissions]
        return {n: admissions[n] for n in in_order if n}, spent_on_preparing(self.now() - began, compiling_s)

    def _prepared(self, job: Job, benches: Sequence[Bench]) -> tuple[list[Prepared], float]:
        """What each bench says, and the seconds that compiling took."""
        if len(benches) > 1:
            self.observer.preparing(f"everything, in {len(benches)} processes")
        found, compiling_s = list[Prepared](), 0.0
        jobs = [job, *[replace(job, thorough=False)] * (len(benches) - 1)]
        at_once = max(1, (os.cpu_count() or 1) // (self.device.info.threads or 1))
        for first in range(0, len(benches), at_once):
            some = slice(first, first + at_once)
            pending = [bench.prepare(one) for bench, one in zip(benches[some], jobs[some], strict=True)]
            answers = [answer() for answer in pending]
            compiling_s += max(one.compiling_s for one in answers)
            found += answers
        return found, compiling_s

    def _measurer(self, precision: Precision) -> Measurer:
        return Measurer(
            precision=precision,
            baseline=self.plan.baseline,
            floor=self.plan.floor,
            beside=self.beside,
            interruption=self.interruption,
            now=self.now,
            on_progress=self.observer.measured,
        )

    def _is_first_of_its_dtype(self, cell: Cell) -> bool:
        return next(c for c in self.plan.cells() if c.dtype is cell.dtype) == cell
