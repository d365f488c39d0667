"""A run folder: created before anything is measured, written a cell at a time, loaded again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from normbench.records import CaseProfile, CaseResult, Cell, CellRecords, NoiseFloor, Run, RunHeader, Spent
from normbench.storage import cell_columns, columns, leftovers, packing, profile_columns
from normbench.storage.agreement import Cells, Comparisons, Members, Profiles, Results
from normbench.storage.cell_columns import CellFindings
from normbench.storage.files import new_folder, remove, write_bytes
from normbench.storage.header import Findings, read_findings, read_header, write_header
from normbench.storage.ledger import Ledger
from normbench.storage.table import Table

_TRACES = "**/*.trace.json.gz"


class RunFolder:
    """The folder of one run, open for writing.

    A cell is the unit of commitment: whatever else it left is written first, its results last, so that results
    without samples never exist. A cell of which not every result is there is none, and what else there is of it
    is ignored.

    Args:
        path: The folder, which exists.
        header: What ``run.json`` holds.
    """

    def __init__(self, path: Path, header: RunHeader) -> None:
        self.path = path
        self.header = header
        self._results = Table(path / "results.csv", columns.RESULTS)
        self._cells = Table(path / "cells.csv", cell_columns.CELLS)
        self._comparisons = Table(path / "comparisons.csv", columns.COMPARISONS)
        self._swaps = Table(path / "swaps.csv", columns.COMPARISONS)
        self._samples = Table(path / "samples.csv", columns.SAMPLES)
        self._packed = path / "samples.csv.gz"
        self._traffic = Table(path / "traffic.csv", profile_columns.TRAFFIC)
        self._kernels = Table(path / "kernels.csv", profile_columns.KERNELS)
        self._ledger = Ledger(f"normbench sweep --resume {path}")

    @classmethod
    def create(cls, path: Path, header: RunHeader) -> RunFolder:
        """A new folder with empty tables, which is there as a whole or not at all.

        Raises:
            UsageError: It exists, since no run is ever overwritten, or it can't be written.
        """
        with new_folder(path, hint="name a new folder, or --resume it") as temporary:
            write_header(temporary, header)
            for table in cls(temporary, header)._tables:
                table.create()
        return cls(path, header)

    @classmethod
    def reopen(cls, path: Path, header: RunHeader | None = None) -> RunFolder:
        """An existing folder, to go on with; what was not committed as a whole cell is removed first.

        Args:
            path: The folder.
            header: What the run is from now on, where that has changed: it is on the disk before anything else.
        """
        leftovers.remove_below(path)
        folder = cls(path, header or read_header(path))
        if header is not None:
            write_header(path, header, read_findings(path))
        if read_findings(path) is not None and not folder._cells.path.exists():
            folder._cells.create()
        folder._drop_uncommitted()
        return folder

    @property
    def _tables(self) -> list[Table]:
        """Those whose rows say what a cell is come first: without them nothing else of it counts."""
        profiles = [self._traffic, self._kernels] if self.header.plan.profile else []
        return [self._results, self._comparisons, self._swaps, self._cells, self._samples, *profiles]

    def done(self) -> Collection[Cell]:
        """The cells in which every case has a final status."""
        return self.load().done

    def write(self, records: CellRecords) -> None:
        """Commit one cell: everything is on the disk when this returns, and nothing of it where it fails.

        Raises:
            StorageError: Names the file, and how to go on.
        """
        self._unpack_samples()
        with self._ledger.adding(self._tables):
            self._write(records)

    def _write(self, records: CellRecords) -> None:
        self._samples.append(columns.sample_rows(records))
        self._cells.append([cell_columns.row(records)])
        self._comparisons.append(columns.comparison_rows(records.comparisons))
        self._swaps.append(columns.comparison_rows(records.swaps))
        for name, data in records.traces.items():
            write_bytes(self.path / "traces" / name, data)
        if self.header.plan.profile:
            self._kernels.append(profile_columns.kernel_rows(records.profiles, self.header))
            self._traffic.append(profile_columns.traffic_rows(records.profiles, self.header))
        self._results.append(columns.result_rows(records, self.header))

    def compress_samples(self) -> None:
        """Gzip the samples, once nothing will be added any more; they may be packed already."""
        if self._samples.path.exists():
            packing.pack(self._samples.path, self._packed)

    def _unpack_samples(self) -> None:
        if not self._samples.path.exists() and self._packed.exists():
            packing.unpack(self._packed, self._samples.path)

    def load(self) -> Run:
        """The run as it stands: its whole cells."""
        members = Members(self.header)
        of_results = Results(self.header, members)
        results = self._whole([result for _, result in self._results.read(of_results)])
        comparisons, swaps = (
            [found for _, found in table.read(Comparisons(self.header, members, of_results.by_case))]
            for table in (self._comparisons, self._swaps)
        )
        known = {result.case.cell for result in results}
        noise, spent = self._findings(Cells(members, known))
        return Run(
            header=self.header,
            results=tuple(results),
            comparisons=tuple(c for c in comparisons if c.cell in known),
            swaps=tuple(swap for swap in swaps if swap.cell in known),
            profiles=tuple(p for p in self._profiles(members, of_results) if p.case.cell in known),
            noise=noise,
            spent=spent,
        )

    def _whole(self, results: Sequence[CaseResult]) -> list[CaseResult]:
        """The results of cells in which nobody's is absent: of others the last ones were not yet on the disk."""
        found: dict[Cell, set[str]] = {}
        for result in results:
            found.setdefault(result.case.cell, set()).add(result.case.implementation)
        wanted = set(self.header.plan.implementations)
        return [result for result in results if found[result.case.cell] >= wanted]

    def _findings(self, cells: Cells) -> tuple[tuple[NoiseFloor, ...], Spent]:
        """The A/A tests of the cells that are there, and where their time went."""
        earlier = read_findings(self.path)
        found: list[CellFindings] = []
        if earlier is None or self._cells.path.exists():
            found = [of_cell for _, of_cell in self._cells.read(cells) if of_cell.cell in cells.known]
        earlier = earlier or Findings()
        tests = (*earlier.noise, *(of_cell.noise for of_cell in found if of_cell.noise))
        noise = {test.cell: test for test in tests if test.cell in cells.known}
        return tuple(noise.values()), sum((of_cell.spent for of_cell in found), earlier.spent)

    def _profiles(self, members: Members, results: Results) -> list[CaseProfile]:
        if not self.header.plan.profile:
            return []
        kernels = profile_columns.by_case(found for _, found in self._kernels.read(profile_columns.kernel))
        return [profile for _row, profile in self._traffic.read(Profiles(members, results.by_case, kernels))]

    def _drop_uncommitted(self) -> None:
        """Remove what is of no cell that is done. In a complete run there is nothing of the kind."""
        run = self.load()
        if run.is_complete:
            return
        done = {cell.key for cell in run.done}
        self._unpack_samples()
        for table in self._tables:
            table.replace(row for _, row in table.rows() if columns.key(row) in done)
        if self._packed.exists():  # unpacking, or packing, was ended between the two files: the plain one is whole
            remove(self._packed)
        kept = {profile.trace for profile in run.profiles if profile.case.cell.key in done}
        for path in (self.path / "traces").glob(_TRACES):
            if path.relative_to(self.path / "traces").as_posix() not in kept:
                remove(path)


def load(path: Path) -> Run:
    """The run in a folder, without torch.

    Raises:
        StorageError: Names the file, the line and the field that can't be read.
    """
    return RunFolder(path, read_header(path)).load()
