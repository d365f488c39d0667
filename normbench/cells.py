"""One cell: prepared, measured, audited and judged on its benches, as often as it takes until nobody spoils it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from normbench.ahead import Ahead
from normbench.bench import Bench, BenchError, BenchLost, Job, Prepared
from normbench.conclusion import Circumstances, conclude, cut, spent_on_preparing, without_times
from normbench.device import Device
from normbench.entrants import Admission, failed
from normbench.errors import NormbenchError
from normbench.failures import Failure, failure
from normbench.implementations import Implementation
from normbench.interruption import Interruption, Never
from normbench.measure import Measurement, Measurer
from normbench.observer import Observer
from normbench.other_load import OtherLoad
from normbench.records import Case, CaseResult, Cell, CellRecords, ImplementationInfo, Plan, Precision, Spent, Status


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """To measure a cell on these benches, without those who are out of it."""

    cell: Cell
    precision: Precision
    benches: Sequence[Bench]
    shared: bool
    out: Mapping[str, Failure] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Measures cells, one at a time; see ``Sweep`` for what it is made of."""

    plan: Plan
    implementations: tuple[Implementation, ...]
    device: Device
    observer: Observer
    beside: Collection[str] = ()
    ahead: Ahead | None = None
    load: Callable[[], OtherLoad] = OtherLoad
    interruption: Interruption = field(default_factory=Never)
    now: Callable[[], float] = time.monotonic

    @property
    def infos(self) -> tuple[ImplementationInfo, ...]:
        """What reports say of the implementations."""
        return tuple(implementation.info for implementation in self.implementations)

    def run(self, attempt: Attempt) -> CellRecords:
        """Measure a cell, and again without whoever cost a bench, until nobody does: its records, whatever came."""
        out = attempt.out
        everyone, nobodys = self.plan.implementations, 0
        while True:
            try:
                return self._measure_cell(replace(attempt, out=out))
            except BenchLost as lost:
                if self.interruption.is_asked_for:  # what ends this process may have ended the other one as well
                    return without_times(attempt.cell, self.plan, Status.NOT_RUN, "interrupted while it was measured")
                culprit = self.plan.baseline if lost.culprit == self._twin else lost.culprit
                is_known = culprit in everyone and culprit not in out
                nobodys += not is_known
                guilty = [name for name in everyone if (name == culprit if is_known else nobodys > 1)]
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

    def _measure_cell(self, attempt: Attempt) -> CellRecords:
        cell, benches = attempt.cell, attempt.benches
        twin = self._twin if self._is_first_of_its_dtype(cell) else None
        admissions, spent = self._prepare(attempt, twin)
        names = [name for name, admission in admissions.items() if isinstance(admission, Admission)]
        load = self.load()
        with self.interruption.may_wait():
            measurement = self._measurer(attempt.precision).measure(benches, names)
        measurement = replace(measurement, spent=measurement.spent + spent)
        if measurement.is_cut:
            return cut(cell, self.plan, measurement)
        measurement = self._audited(measurement, names, benches)
        around = Circumstances(
            plan=self.plan,
            device=self.device.info,
            cell=cell,
            implementations=self.infos,
            beside=self.beside,
            shared=attempt.shared,
            other_cores=load.cores() if self.device.info.threads else None,
            twin=twin,
        )
        records = conclude(around, admissions, measurement)
        return self._profiled(records, benches[0]) if self.plan.profile else records

    @property
    def _twin(self) -> str:
        return f"{self.plan.baseline} again"

    def _audited(self, measurement: Measurement, names: Sequence[str], benches: Sequence[Bench]) -> Measurement:
        """The same, without those that were no longer right after they were timed, in whichever process."""
        began, failures = self.now(), dict(measurement.failures)
        for bench in benches if names else ():
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

    def _prepare(self, attempt: Attempt, twin: str | None) -> tuple[Mapping[str, Admission | CaseResult], Spent]:
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
