"""The folder of a run of steps: there before anything is measured, written a cell or an evaluation at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter

from normbench.errors import StorageError
from normbench.records import (
    Run,
    Spent,
    StepCell,
    StepComparison,
    StepHeader,
    StepRecords,
    StepResult,
    StepRun,
    TrainingCurve,
)
from normbench.storage import leftovers, packing, step_columns, training_columns
from normbench.storage.files import new_folder
from normbench.storage.folder import load
from normbench.storage.json_object import read_object, refuse_names, validated, write_object
from normbench.storage.ledger import Ledger
from normbench.storage.step_agreement import StepCells, StepComparisons, StepMembers, StepResults, TrainingRows
from normbench.storage.table import Table

SCHEMA_VERSION = 1
"""Of ``step.json`` and the tables beside it."""

ALONE = "norm"
"""The folder in it that holds the run of the norms alone."""

CHECKPOINT = "training.pt"
"""The file in it that a run of training goes on from; gone once that has ended."""

_HEADER = TypeAdapter(StepHeader)


class StepFolder:
    """The folder of one run of steps, open for writing.

    A cell is the unit of commitment of steps, an evaluation that of training.

    Args:
        path: The folder, which exists.
        header: What ``step.json`` holds.
    """

    def __init__(self, path: Path, header: StepHeader) -> None:
        self.path = path
        self.header = header
        self._results = Table(path / "step.csv", step_columns.STEPS)
        self._cells = Table(path / "step-cells.csv", step_columns.STEP_CELLS)
        self._comparisons = Table(path / "step-comparisons.csv", step_columns.STEP_COMPARISONS)
        self._samples = Table(path / "step-samples.csv", step_columns.STEP_SAMPLES)
        self._packed = path / "step-samples.csv.gz"
        self._training = Table(path / "training.csv", training_columns.TRAINING)
        self._ledger = Ledger(f"normbench step --resume {path}")
        self._written: dict[tuple[int, str], int] = {}
        """Points of each training run that are on the disk."""

    @classmethod
    def create(cls, path: Path, header: StepHeader) -> StepFolder:
        """A new folder with empty tables, which is there as a whole or not at all.

        Raises:
            UsageError: It exists, since nothing is ever overwritten, or it can't be written.
        """
        with new_folder(path, hint="name a new folder, or --resume it") as temporary:
            file = temporary / "step.json"
            refuse_names(file, header.implementations)
            write_object(file, {"schema": SCHEMA_VERSION, **_HEADER.dump_python(header, mode="json")})
            for table in cls(temporary, header)._tables:
                table.create()
        return cls(path, header)

    @classmethod
    def reopen(cls, path: Path) -> StepFolder:
        """An existing folder, to go on with; what was not committed is removed first."""
        leftovers.remove_below(path)
        folder = cls(path, read_step_header(path))
        folder._drop_uncommitted()
        return folder

    @property
    def _tables(self) -> list[Table]:
        if self.header.plan.training is not None:
            return [self._training]
        return [self._results, self._comparisons, self._cells, self._samples]

    @property
    def alone(self) -> Path:
        """Where the run of the norms alone is."""
        return self.path / ALONE

    @property
    def checkpoint(self) -> Path:
        """What a run of training goes on from."""
        return self.path / CHECKPOINT

    def write(self, records: StepRecords) -> None:
        """Commit one cell: everything is on the disk when this returns, and nothing of it where it fails.

        Raises:
            StorageError: Names the file.
        """
        with self._ledger.adding(self._tables):
            self._samples.append(step_columns.sample_rows(records))
            self._cells.append([step_columns.findings_row(records)])
            self._comparisons.append(map(step_columns.comparison_row, records.comparisons))
            self._results.append(map(step_columns.result_row, records.results))

    def write_curve(self, curve: TrainingCurve) -> None:
        """Add what is new of a curve: points, and how it ended where that was early.

        Raises:
            StorageError: Names the file.
        """
        key = (curve.seed, curve.implementation)
        new = curve.points[self._written.get(key, 0) :]
        ended = [training_columns.end_row(curve)] if curve.reason is not None else []
        with self._ledger.adding(self._tables):
            self._training.append([*(training_columns.point_row(curve, point) for point in new), *ended])
        self._written[key] = len(curve.points)

    def compress_samples(self) -> None:
        """Gzip the samples, once nothing will be added any more; they may be packed already."""
        if self._samples.path.exists():
            packing.pack(self._samples.path, self._packed)

    def load(self) -> StepRun:
        """The run as it stands: its whole cells, its curves, and the norms alone."""
        members = StepMembers(self.header)
        if self.header.plan.training is not None:
            rows = (row for _, row in self._training.read(TrainingRows(self.header, members)))
            return StepRun(header=self.header, curves=tuple(training_columns.curves(rows)))
        of_results = StepResults(members)
        results = self._of_whole_cells([result for _, result in self._results.read(of_results)])
        known = {result.cell for result in results}
        of_comparisons = StepComparisons(self.header, members, of_results.by_case)
        comparisons: list[StepComparison] = [found for _, found in self._comparisons.read(of_comparisons)]
        found = [one for _, one in self._cells.read(StepCells(members, known)) if one.cell in known]
        return StepRun(
            header=self.header,
            results=tuple(results),
            comparisons=tuple(comparison for comparison in comparisons if comparison.cell in known),
            noise=tuple(one.noise for one in found if one.noise is not None),
            alone=self._alone(),
            spent=sum((one.spent for one in found), Spent()),
        )

    def _alone(self) -> Run | None:
        """The run of the norms alone; None where it is not there.

        Raises:
            StorageError: It is another's: of another device, software, baseline or eps.
        """
        if not os.path.lexists(self.alone / "run.json"):
            return None
        run, plan = load(self.alone), self.header.plan
        own = (self.header.device, self.header.environment, plan.baseline, plan.eps)
        header = run.header
        if (header.device, header.environment, header.plan.baseline, header.plan.eps) != own:
            said = "is of another run: its device, software, baseline or eps is not that of step.json"
            raise StorageError(f"{self.alone / 'run.json'}: {said}")
        return run

    def _of_whole_cells(self, results: Iterable[StepResult]) -> list[StepResult]:
        """The results of cells in which nobody's is absent: of others the last ones were not yet on the disk."""
        results = list(results)
        found: dict[StepCell, set[str]] = {}
        for result in results:
            found.setdefault(result.cell, set()).add(result.implementation)
        wanted = set(self.header.plan.implementations)
        return [result for result in results if found[result.cell] >= wanted]

    def _drop_uncommitted(self) -> None:
        """Remove what is of no cell that is done, and of no training run that has ended."""
        run = self.load()
        if run.is_complete:
            return
        training = self.header.plan.training
        if training is not None:
            ended = {(str(c.seed), c.implementation) for c in run.curves if c.is_final(training)}
            rows = (row for _, row in self._training.rows() if (row["seed"], row["implementation"]) in ended)
            self._training.replace(rows)
            return
        missing = set(run.missing)
        done = {cell.key for cell in self.header.plan.cells if cell not in missing}
        if not self._samples.path.exists() and self._packed.exists():
            packing.unpack(self._packed, self._samples.path)
        for table in self._tables:
            table.replace(row for _, row in table.rows() if step_columns.key(row) in done)


def holds_steps(path: Path) -> bool:
    """Whether a folder is one of steps, and none of a sweep or a check."""
    others = ("run.json", "check.json")
    return os.path.lexists(path / "step.json") and not any(os.path.lexists(path / name) for name in others)


def read_step_header(path: Path) -> StepHeader:
    """What ``step.json`` holds.

    Raises:
        StorageError: Names the file, and the line or the field that can't be read.
    """
    file = path / "step.json"
    data = read_object(file, (SCHEMA_VERSION,), "name a folder that normbench step has written")
    header = validated(_HEADER, data, file)
    refuse_names(file, header.implementations)
    return header


def load_steps(path: Path) -> StepRun:
    """The run of steps in a folder, without torch.

    Raises:
        StorageError: Names the file, the line and the field that can't be read.
    """
    return StepFolder(path, read_step_header(path)).load()
