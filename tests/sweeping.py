"""A sweep that measures nothing and needs no torch: made-up records through the real writing, resuming, reporting.

Two of them leave the same files, byte for byte, so that one that was killed and resumed can be held against one that
was not.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from unittest.mock import patch

from normbench.cli.rendering import write_reports
from normbench.records import (
    Case,
    CaseProfile,
    Cell,
    CellRecords,
    KernelTime,
    Mode,
    NoiseFloor,
    OpTraffic,
    Plan,
    Run,
    Spent,
    Status,
)
from normbench.reporters import plots
from normbench.storage import RunFolder, load
from tests.runs import NAMES, TIMES, around, make_header, make_plan, make_records


@dataclass(frozen=True, kw_only=True)
class FakeSweep:
    """A sweep of a plan of its own: a float32 profile at three widths.

    Args:
        modes: Its passes.
    """

    modes: tuple[Mode, ...]

    @cached_property
    def plan(self) -> Plan:
        """What it is asked for."""
        return make_plan(widths=(64, 128, 256), modes=self.modes, profile=True)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """In the order in which they are written."""
        return tuple(self.plan.cells())

    def records_of(self, cell: Cell) -> CellRecords:
        """What a cell leaves: as many kinds of things as there are, each unlike those of other cells."""
        number = self.cells.index(cell)
        times = {name: float(str(time)) * (1 + number / 7) for name, time in TIMES.items()}
        name = f"nn-rmsnorm/{cell.mode}-{cell.width}.1.pt.trace.json.gz"
        profile = CaseProfile(
            case=Case(cell=cell, implementation="nn-rmsnorm"),
            ops=(OpTraffic(name='pow, "with" quotes', calls=1, bytes=2**20),),
            kernels=(KernelTime(name="pow", calls=1, seconds=3e-6),),
            trace=name,
        )
        noise = NoiseFloor(cell=cell, implementation="nn-layernorm", ratio=around(1.001))
        return replace(
            make_records(cell, times, self.plan),
            profiles=(profile,),
            traces={name: bytes(range(256)) * (number + 1)},
            noise=noise if number == 0 else None,
            spent=Spent(timed_s=2.0**-number, elapsed_s=1.0),
        )

    def not_run(self, cell: Cell) -> CellRecords:
        """What an interrupt leaves of a cell that it came before."""
        return make_records(cell, {}, self.plan, "interrupted before it")

    def run(self, path: Path, stop: int | None = None, *, report: bool = True) -> Run:
        """Write what is missing in a run folder, which is made where there is none, and report it.

        Args:
            path: The folder.
            stop: After how many cells an interrupt comes.
            report: Whether the reports are written.
        """
        folder = RunFolder.reopen(path) if path.exists() else RunFolder.create(path, make_header(self.plan))
        done = folder.done()
        for cell in [cell for cell in self.cells if cell not in done][:stop]:
            folder.write(self.records_of(cell))
        if stop is not None:
            self.interrupt(folder)
        run = folder.load()
        if run.is_complete:
            folder.compress_samples()
        if report:
            write_texts(path, run, path)
        return run

    def interrupt(self, folder: RunFolder) -> None:
        """What an interrupt makes of the cells that are missing."""
        for cell in folder.load().missing:
            folder.write(self.not_run(cell))

    def assert_whole_cells(self, path: Path) -> Run:
        """The folder loads, and holds whole cells of this sweep, each once and as it was measured."""
        run = load(path)
        for cell, results in run.results_by_cell.items():
            final = all(result.status.is_final for result in results)
            expected = self.records_of(cell) if final else self.not_run(cell)
            assert results == expected.results
            assert tuple(c for c in run.comparisons if c.cell == cell) == expected.comparisons
            assert tuple(s for s in run.swaps if s.cell == cell) == expected.swaps
            assert tuple(p for p in run.profiles if p.case.cell == cell) == expected.profiles
        done = [cell for cell in self.cells if cell not in run.missing]
        assert done == list(self.cells[: len(done)])
        assert run.spent == sum((self.records_of(cell).spent for cell in done), Spent())
        assert [noise.cell for noise in run.noise] == done[:1]
        return run

    def assert_every_case_once(self, path: Path) -> None:
        """``results.csv`` holds every case of the plan once, and each with a final status."""
        with (path / "results.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [(r["mode"], int(r["width"]), r["implementation"]) for r in rows] == [
            (str(cell.mode), cell.width, name) for cell in self.cells for name in NAMES
        ]
        assert {row["status"] for row in rows} == {str(Status.OK)}


SIX = FakeSweep(modes=(Mode.FORWARD, Mode.BACKWARD))
THREE = FakeSweep(modes=(Mode.FORWARD,))


def write_texts(path: Path, run: Run, target: Path) -> None:
    """The reports of a run without their pictures, which take a second."""
    with patch.object(plots, "draw", lambda _run, _most=None: iter(())):
        write_reports(path, run, target)


def contents(path: Path) -> dict[str, bytes]:
    """Every file in a folder and below it."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
