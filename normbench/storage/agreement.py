"""What the rows of a run must agree in: with run.json, and with each other. Each reads one file's rows in turn."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Set
from typing import TypeVar

from normbench import verdict
from normbench.records import Case, CaseProfile, CaseResult, Cell, Comparison, RunHeader, StepComparison
from normbench.storage import cell_columns, columns, profile_columns
from normbench.storage.cell_columns import CellFindings
from normbench.storage.limits import LEAST_S, MOST_S
from normbench.storage.table import FieldError

K = TypeVar("K")


class Members:
    """The cells and names of a run: what stands in a row and is none of them is of another run.

    Args:
        header: The run's.
    """

    def __init__(self, header: RunHeader) -> None:
        self._cells = {cell: cell.key for cell in header.plan.cells()}
        self._names = {info.name for info in header.implementations}

    def check(self, row: Mapping[str, str], cell: Cell, **names: str) -> None:
        """A FieldError where the cell or one of ``names``, by their columns, is not of the run."""
        for column, name in names.items():
            if name not in self._names:
                raise FieldError(column, f"{name[:40]!a} is not in run.json: the two are of different runs")
        key = self._cells.get(cell)
        if key is None:
            raise FieldError("row", f"the cell {cell} is not in the plan of run.json: the two are of different runs")
        refuse_other_writing(row, columns.CELL, key)


class Results:
    """The rows of ``results.csv``: each case of the plan once.

    Args:
        header: The run's.
        members: Its cells and names.
    """

    def __init__(self, header: RunHeader, members: Members) -> None:
        self._header = header
        self._members = members
        self.by_case: dict[Case, CaseResult] = {}

    def __call__(self, row: Mapping[str, str]) -> CaseResult:
        """The result in a row."""
        found = columns.result(row)
        self._members.check(row, found.case.cell, implementation=found.case.implementation)
        _check_seconds(found)
        refuse_second(found.case, self.by_case, f"{found.case.implementation} {found.case.cell}")
        self.by_case[found.case] = found
        return found


class Cells:
    """The rows of ``cells.csv``: each cell once.

    Args:
        members: The run's cells and names.
        known: The cells that are there as a whole; a row of another only has to be a row of the run.
    """

    def __init__(self, members: Members, known: Set[Cell]) -> None:
        self.known = known
        self._members = members
        self._seen: set[Cell] = set()

    def __call__(self, row: Mapping[str, str]) -> CellFindings:
        """What a row says."""
        found = cell_columns.findings(row)
        names = {} if found.noise is None else {"noise_implementation": found.noise.implementation}
        self._members.check(row, found.cell, **names)
        if found.cell in self.known:
            refuse_second(found.cell, self._seen, str(found.cell))
            self._seen.add(found.cell)
        return found


class Comparisons:
    """The rows of ``comparisons.csv`` or ``swaps.csv``: each pair once, with the outcome that its interval allows.

    Rows of cells without results are no part of the run yet: they only have to be rows of it.

    Args:
        header: The run's.
        members: Its cells and names.
        results: What ``results.csv`` holds.
    """

    def __init__(self, header: RunHeader, members: Members, results: Mapping[Case, CaseResult]) -> None:
        self._margin = header.plan.precision.margin
        self._members = members
        self._results = results
        self._committed = {case.cell for case in results}
        self._seen: set[tuple[Cell, str, str]] = set()

    def __call__(self, row: Mapping[str, str]) -> Comparison:
        """The comparison in a row."""
        found = columns.comparison(row)
        self._members.check(row, found.cell, baseline=found.baseline, candidate=found.candidate)
        if found.cell in self._committed:
            self._check(found)
        return found

    def _check(self, found: Comparison) -> None:
        pair = (found.cell, found.baseline, found.candidate)
        refuse_second(pair, self._seen, f"{found.candidate} against {found.baseline} {found.cell}")
        self._seen.add(pair)
        refuse_other_outcome(found, self._margin)
        for column, name in (("baseline", found.baseline), ("candidate", found.candidate)):
            result = self._results.get(Case(cell=found.cell, implementation=name))
            if found.speedup is not None and result is not None and result.timing is None:
                raise no_time(column, name)


class Profiles:
    """The rows of ``traffic.csv``: each case once, with its kernels.

    Args:
        members: The run's cells and names.
        results: What ``results.csv`` holds.
        kernels: The rows of ``kernels.csv``, by case.
    """

    def __init__(
        self,
        members: Members,
        results: Mapping[Case, CaseResult],
        kernels: Mapping[Case, profile_columns.Kernels],
    ) -> None:
        self._members = members
        self._committed = {case.cell for case in results}
        self._kernels = kernels
        self._seen: set[Case] = set()

    def __call__(self, row: Mapping[str, str]) -> CaseProfile:
        """The profile in a row."""
        found = profile_columns.profile(row, self._kernels)
        self._members.check(row, found.case.cell, implementation=found.case.implementation)
        if found.case.cell in self._committed:
            refuse_second(found.case, self._seen, f"{found.case.implementation} {found.case.cell}")
            self._seen.add(found.case)
        return found


def _check_seconds(found: CaseResult) -> None:
    timing = found.timing
    if timing is None:
        return
    for column, seconds in (("time_s", timing.time_s.value), ("wall_s", timing.wall_s), ("graph_s", timing.graph_s)):
        if seconds is not None:
            refuse_no_time(column, seconds, "call")


def refuse_second(key: K, seen: Container[K], what: str) -> None:
    """A FieldError where what has to stand once was seen before."""
    if key in seen:
        raise FieldError("row", f"{what} stands twice in this file")


def refuse_other_writing(row: Mapping[str, str], columns: Iterable[str], texts: Iterable[str]) -> None:
    """A FieldError where one of the columns holds another text than a value is written as."""
    for column, text in zip(columns, texts, strict=True):
        if row[column] != text:
            raise FieldError(column, f"{row[column][:40]!a} is written as {text!r}")


def refuse_other_outcome(found: Comparison | StepComparison, margin: float) -> None:
    """A FieldError where a comparison has another outcome than its interval allows."""
    if found.speedup is None:
        return
    outcome, reason = verdict.judge(found.speedup, margin)
    if (found.outcome, found.reason) != (outcome, reason):
        said = f"{found.outcome} ({found.reason}) is not what the interval says: {outcome} ({reason})"
        raise FieldError("outcome", said)


def refuse_no_time(column: str, seconds: float, what: str) -> None:
    """A FieldError where so many seconds are no time of a call, or of whatever ``what`` is."""
    if not LEAST_S <= seconds <= MOST_S:
        raise FieldError(column, f"{seconds} is no time of a {what}, in seconds")


def no_time(column: str, name: str) -> FieldError:
    """What is said of a speedup where one of the two has no time."""
    return FieldError(column, f"{name} has no time here, so it has no speedup either")
