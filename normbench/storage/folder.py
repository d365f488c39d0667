"""A run folder: created before anything is measured, written a cell at a time, loaded again."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from normbench.records import CaseProfile, Cell, CellRecords, Run, RunHeader
from normbench.storage import columns, profile_columns
from normbench.storage.agreement import Comparisons, Members, Profiles, Results
from normbench.storage.files import make_folder, write_bytes
from normbench.storage.header import Findings, read_findings, read_header, write_header
from normbench.storage.packing import pack, unpack
from normbench.storage.table import Table


class RunFolder:
    """The folder of one run, open for writing.

    A cell is the unit of commitment: its samples and comparisons are written first, its results last, so
    that results without samples never exist; samples without results are ignored.

    Args:
        path: The folder, which exists.
        header: What ``run.json`` holds.
    """

    def __init__(self, path: Path, header: RunHeader) -> None:
        self.path = path
        self.header = header
        self._results = Table(path / "results.csv", columns.RESULTS)
        self._comparisons = Table(path / "comparisons.csv", columns.COMPARISONS)
        self._swaps = Table(path / "swaps.csv", columns.COMPARISONS)
        self._samples = Table(path / "samples.csv", columns.SAMPLES)
        self._traffic = Table(path / "traffic.csv", profile_columns.TRAFFIC)
        self._kernels = Table(path / "kernels.csv", profile_columns.KERNELS)

    @classmethod
    def create(cls, path: Path, header: RunHeader) -> RunFolder:
        """A new folder with empty tables.

        Raises:
            UsageError: It exists, since no run is ever overwritten, or it can't be written.
        """
        make_folder(path, hint="name a new folder, or --resume it")
        folder = cls(path, header)
        write_header(path, header, Findings())
        for table in folder._tables:
            table.create()
        return folder

    @classmethod
    def reopen(cls, path: Path) -> RunFolder:
        """An existing folder, to go on with; what was not committed as a whole cell is removed first."""
        header = read_header(path)
        folder = cls(path, header)
        if (path / "samples.csv.gz").exists() and not folder._samples.path.exists():
            folder._unpack_samples()
        done = {cell.key for cell in folder.done()}
        for table in folder._tables:
            table.replace(row for _, row in table.rows() if columns.key(row) in done)
        return folder

    @property
    def _tables(self) -> list[Table]:
        profiles = [self._traffic, self._kernels] if self.header.plan.profile else []
        return [self._results, self._comparisons, self._swaps, self._samples, *profiles]

    def done(self) -> Collection[Cell]:
        """The cells in which every case has a final status."""
        run = self.load()
        missing = set(run.missing)
        return [cell for cell in self.header.plan.cells() if cell not in missing]

    def write(self, records: CellRecords) -> None:
        """Commit one cell: everything is on the disk when this returns."""
        self._samples.append(columns.sample_rows(records))
        found = read_findings(self.path)
        noise = (records.noise,) if records.noise else ()
        write_header(
            self.path, self.header, Findings(noise=(*found.noise, *noise), spent=found.spent + records.spent)
        )
        self._comparisons.append(columns.comparison_rows(records.comparisons))
        self._swaps.append(columns.comparison_rows(records.swaps))
        for name, data in records.traces.items():
            write_bytes(self.path / "traces" / name, data)
        if self.header.plan.profile:
            self._kernels.append(profile_columns.kernel_rows(records.profiles, self.header))
            self._traffic.append(profile_columns.traffic_rows(records.profiles, self.header))
        self._results.append(columns.result_rows(records, self.header))

    def compress_samples(self) -> None:
        """Gzip the samples, once nothing will be added any more."""
        pack(self._samples.path, self.path / "samples.csv.gz")
        self._samples.path.unlink()

    def load(self) -> Run:
        """The run as it stands."""
        members = Members(self.header)
        of_results = Results(self.header, members)
        results = [result for _, result in self._results.read(of_results)]
        comparisons, swaps = (
            [found for _, found in table.read(Comparisons(self.header, members, of_results.by_case))]
            for table in (self._comparisons, self._swaps)
        )
        known = {result.case.cell for result in results}
        found = read_findings(self.path)
        return Run(
            header=self.header,
            results=tuple(results),
            comparisons=tuple(c for c in comparisons if c.cell in known),
            swaps=tuple(swap for swap in swaps if swap.cell in known),
            profiles=tuple(p for p in self._profiles(members, of_results) if p.case.cell in known),
            noise=tuple({noise.cell: noise for noise in found.noise if noise.cell in known}.values()),
            spent=found.spent,
        )

    def _profiles(self, members: Members, results: Results) -> list[CaseProfile]:
        if not self.header.plan.profile:
            return []
        kernels = profile_columns.by_case(found for _, found in self._kernels.read(profile_columns.kernel))
        return [profile for _row, profile in self._traffic.read(Profiles(members, results.by_case, kernels))]

    def _unpack_samples(self) -> None:
        packed = self.path / "samples.csv.gz"
        unpack(packed, self._samples.path)
        packed.unlink()


def load(path: Path) -> Run:
    """The run in a folder, without torch.

    Raises:
        StorageError: Names the file, the line and the field that can't be read.
    """
    return RunFolder(path, read_header(path)).load()
