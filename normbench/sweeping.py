"""A plan in, records out, one cell at a time. Never prints."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from normbench import traffic
from normbench.ahead import Ahead
from normbench.bench import Bench
from normbench.cells import Attempt, Cells
from normbench.conclusion import without_times
from normbench.device import Device
from normbench.errors import NormbenchError
from normbench.failures import describe
from normbench.implementations import Implementation
from normbench.interruption import Interruption, Never
from normbench.limits import Limits, beyond_memory, usable
from normbench.observer import Observer
from normbench.other_load import OtherLoad
from normbench.records import Cell, CellRecords, Plan, Precision, Spent, Status


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

    def _free_bytes(self) -> int:
        try:
            return usable(self.device.free_bytes())
        except RuntimeError as error:
            raise NormbenchError(
                f"the device does not answer any more: {describe(error)}",
                hint="what was measured is kept: go on with --resume when it does",
            ) from error

    def _run_cell(self, cell: Cell, precision: Precision) -> CellRecords:
        count, free = len(self.implementations), self._free_bytes()
        need, least = traffic.cell_bytes(cell, count), traffic.cell_bytes(cell, count, shared=True)
        if why := beyond_memory(least, free):
            return without_times(cell, self.plan, why.status, why.reason, self._cells.infos)
        self._compile([cell])
        skipped = self._limits.beyond(cell, self.plan.implementations)
        attempt = Attempt(
            cell=cell,
            precision=precision,
            benches=self.benches if len(self.benches) * need <= free else self.benches[:1],
            shared=need > free and not any(i.mutates for i in self.implementations),
            out={**skipped, **(self.ahead.lost(cell) if self.ahead else {})},
        )
        records = self._cells.run(attempt)
        self._limits.learn(result for result in records.results if result.case.implementation not in skipped)
        return records

    @cached_property
    def _cells(self) -> Cells:
        return Cells(
            plan=self.plan,
            implementations=self.implementations,
            device=self.device,
            observer=self.observer,
            beside=self.beside,
            ahead=self.ahead,
            load=self.load,
            interruption=self.interruption,
            now=self.now,
        )
