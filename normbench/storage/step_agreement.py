"""What the rows of a run of steps must agree in: with step.json, and with each other."""

from __future__ import annotations

from collections.abc import Mapping, Set

from normbench.records import Op, Part, StepCell, StepComparison, StepHeader, StepResult
from normbench.storage import step_columns, training_columns
from normbench.storage.agreement import (
    no_time,
    refuse_no_time,
    refuse_other_outcome,
    refuse_other_writing,
    refuse_second,
)
from normbench.storage.step_columns import STEP_CELL, StepFindings
from normbench.storage.table import FieldError
from normbench.storage.training_columns import TrainingRow


class StepMembers:
    """The cells and names of a run of steps: what stands in a row and is none of them is of another run.

    Args:
        header: The run's.
    """

    def __init__(self, header: StepHeader) -> None:
        self._cells = {cell: cell.key for cell in header.plan.cells}
        self._names = set(header.plan.implementations)
        self.baseline = header.plan.baseline
        self._ops = {info.name: info.op for info in header.implementations}

    def op(self, name: str) -> Op:
        """The formula of an implementation of the run."""
        return self._ops[name]

    def check(self, row: Mapping[str, str], cell: StepCell, **names: str) -> None:
        """A FieldError where the cell or one of ``names``, by their columns, is not of the run."""
        self.check_names(**names)
        key = self._cells.get(cell)
        if key is None:
            raise FieldError("row", f"the cell {cell} is not in the plan of step.json: the two are of different runs")
        refuse_other_writing(row, STEP_CELL, key)

    def check_names(self, **names: str) -> None:
        """A FieldError where one of ``names``, by their columns, is not of the run."""
        for column, name in names.items():
            if name not in self._names:
                raise FieldError(column, f"{name[:40]!a} is not in step.json: the two are of different runs")


class StepResults:
    """The rows of ``step.csv``: each implementation once in each cell.

    Args:
        members: The run's cells and names.
    """

    def __init__(self, members: StepMembers) -> None:
        self._members = members
        self.by_case: dict[tuple[StepCell, str], StepResult] = {}

    def __call__(self, row: Mapping[str, str]) -> StepResult:
        """The result in a row."""
        found = step_columns.result(row)
        self._members.check(row, found.cell, implementation=found.implementation)
        shape, op = found.cell.shape, self._members.op(found.implementation)
        for column, right in (("parameters", shape.parameters(op)), ("norm_parameters", shape.norm_parameters(op))):
            if getattr(found, column) != right:
                raise FieldError(column, f"{row[column][:40]!a} is not {right}, as many as this model has")
        for part, time in found.times.items():
            refuse_no_time(f"{part}_s", time.value, "step")
        key = (found.cell, found.implementation)
        refuse_second(key, self.by_case, f"{found.implementation}, {found.cell}")
        self.by_case[key] = found
        return found


class StepComparisons:
    """The rows of ``step-comparisons.csv``: each pair once, with the outcome that its interval allows.

    Args:
        header: The run's.
        members: Its cells and names.
        results: What ``step.csv`` holds.
    """

    def __init__(
        self, header: StepHeader, members: StepMembers, results: Mapping[tuple[StepCell, str], StepResult]
    ) -> None:
        self._plan = header.plan
        self._members = members
        self._results = results
        self._committed = {cell for cell, _name in results}
        self._seen: set[tuple[StepCell, str]] = set()

    def __call__(self, row: Mapping[str, str]) -> StepComparison:
        """The comparison in a row."""
        found = step_columns.comparison(row)
        self._members.check(row, found.cell, baseline=found.baseline, candidate=found.candidate)
        if found.baseline != self._plan.baseline:
            raise FieldError("baseline", f"the plan's is {self._plan.baseline}")
        if found.cell in self._committed:
            self._check(found)
        return found

    def _check(self, found: StepComparison) -> None:
        refuse_second((found.cell, found.candidate), self._seen, f"{found.candidate}, {found.cell}")
        self._seen.add((found.cell, found.candidate))
        refuse_other_outcome(found, self._plan.precision.margin)
        for column, name in (("baseline", found.baseline), ("candidate", found.candidate)):
            result = self._results.get((found.cell, name))
            if found.speedup is not None and result is not None and Part.STEP not in result.times:
                raise no_time(column, name)


class StepCells:
    """The rows of ``step-cells.csv``: each cell once.

    Args:
        members: The run's cells and names.
        known: The cells that are there as a whole.
    """

    def __init__(self, members: StepMembers, known: Set[StepCell]) -> None:
        self.known = known
        self._members = members
        self._seen: set[StepCell] = set()

    def __call__(self, row: Mapping[str, str]) -> StepFindings:
        """What a row says."""
        found = step_columns.findings(row)
        names = {} if found.noise is None else {"noise_implementation": found.noise.implementation}
        self._members.check(row, found.cell, **names)
        if found.noise is not None and found.noise.implementation != self._members.baseline:
            raise FieldError("noise_implementation", f"the plan's baseline is {self._members.baseline}")
        if found.cell in self.known:
            refuse_second(found.cell, self._seen, str(found.cell))
            self._seen.add(found.cell)
        return found


class TrainingRows:
    """The rows of ``training.csv``: evaluations of the plan, each once, in order, with a figure for each corpus.

    Args:
        header: The run's.
        members: Its names.
    """

    def __init__(self, header: StepHeader, members: StepMembers) -> None:
        training = header.plan.training
        self._members = members
        self._corpora = len(training.corpora) if training else 0
        self._seeds = frozenset(training.seeds) if training else frozenset()
        self._steps = training.evaluations() if training else ()
        self._ended: set[tuple[int, str]] = set()
        self._seen: dict[tuple[int, str], int] = {}

    def __call__(self, row: Mapping[str, str]) -> TrainingRow:
        """What a row says."""
        found = training_columns.row(row)
        self._members.check_names(implementation=found.implementation)
        if found.seed not in self._seeds:
            raise FieldError("seed", f"{found.seed} is not in step.json: the two are of different runs")
        if row["seed"] != str(found.seed):
            raise FieldError("seed", f"{row['seed'][:40]!a} is written as {found.seed}")
        run = (found.seed, found.implementation)
        seen = self._seen.get(run, 0)
        if run in self._ended or seen == len(self._steps):
            raise FieldError("row", f"{found.implementation} from seed {found.seed} goes on after its end")
        if found.point is None:
            self._ended.add(run)
            return found
        if row["step"] != str(self._steps[seen]):
            said = f"{row['step'][:40]!a} is not the next evaluation of the plan, {self._steps[seen]}"
            raise FieldError("step", said)
        if len(found.point.by_corpus) != self._corpora:
            raise FieldError("by_corpus", f"{len(found.point.by_corpus)} figures, and {self._corpora} corpora")
        self._seen[run] = seen + 1
        return found
