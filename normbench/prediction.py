"""Predicted against measured: what a norm alone says a step should gain, and what the step did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from normbench.records import Cell, Estimate, Part, StepCell, StepRun


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Seconds by which a candidate takes longer than the baseline; below 0 it is faster. With its interval."""

    value_s: float
    low_s: float
    high_s: float

    def __mul__(self, times: int) -> Difference:
        return Difference(value_s=times * self.value_s, low_s=times * self.low_s, high_s=times * self.high_s)

    def holds(self, seconds: float) -> bool:
        """Whether the interval holds a value."""
        return self.low_s <= seconds <= self.high_s

    def overlaps(self, other: Difference) -> bool:
        """Whether one value could be both."""
        return self.low_s <= other.high_s and other.low_s <= self.high_s


class Gap(StrEnum):
    """How the measured difference of a step lies to the predicted one."""

    AGREES = "agrees"
    MORE = "more"
    LESS = "less"
    OPEN = "open"


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What one norm alone says of the whole step, and what was measured.

    Args:
        cell: Where.
        candidate: Whose norms.
        norms: In the model.
        predicted: The difference of one norm alone, forward and backward, times ``norms``.
        measured: The difference of the whole step.
    """

    cell: StepCell
    candidate: str
    norms: int
    predicted: Difference
    measured: Difference

    @property
    def gap_s(self) -> float:
        """Measured less predicted: what the step costs beyond what the norms alone do."""
        return self.measured.value_s - self.predicted.value_s

    @property
    def is_wide(self) -> bool:
        """Whether the measured interval's half-width is larger than the predicted difference."""
        return self.measured.high_s - self.measured.low_s > 2 * abs(self.predicted.value_s)

    @property
    def gap(self) -> Gap:
        """Whether the intervals allow that both are the same, or the step's candidate takes longer or less long.

        It is open where the measured one is so wide that it holds no difference at all as well as the predicted one.
        """
        if self.predicted.overlaps(self.measured):
            return Gap.OPEN if self.measured.holds(0.0) and self.is_wide else Gap.AGREES
        return Gap.MORE if self.gap_s > 0 else Gap.LESS


def of_run(run: StepRun) -> Iterator[Prediction]:
    """A prediction for each candidate of each cell that was measured both alone and in the step."""
    for comparison in run.comparisons:
        results = run.results_by_cell[comparison.cell]
        baseline = results[comparison.baseline].times.get(Part.STEP)
        measured = difference(baseline, comparison.speedup)
        predicted = _alone(run, comparison.cell, comparison.baseline, comparison.candidate)
        if measured is not None and predicted is not None:
            norms = comparison.cell.shape.norms
            yield Prediction(
                cell=comparison.cell,
                candidate=comparison.candidate,
                norms=norms,
                predicted=predicted * norms,
                measured=measured,
            )


def share(run: StepRun, cell: StepCell, implementation: str) -> float | None:
    """The time of all norms by themselves ÷ the time of the step: None where one of them was not measured.

    It is no part of the step in the strict sense: in the step a norm may find its input in another cache, or be
    fused with its neighbours.
    """
    alone = alone_time(run, cell, implementation)
    step = run.results_by_cell[cell][implementation].times.get(Part.STEP)
    return None if alone is None or step is None else cell.shape.norms * alone.value / step.value


def alone_time(run: StepRun, cell: StepCell, implementation: str) -> Estimate | None:
    """Seconds of one norm by itself, forward and backward, in the shape it has in the model."""
    where = _norm_cell(run, cell)
    if run.alone is None or where is None:
        return None
    for result in run.alone.results_by_cell[where]:
        if result.case.implementation == implementation and result.timing is not None:
            return result.timing.time_s
    return None


def difference(baseline: Estimate | None, speedup: Estimate | None) -> Difference | None:
    """A time and a speedup as seconds: t·(1/s - 1), its interval from the ends of the speedup's.

    The ratio is what is known well, by pairs within a round; that t is not known better than to some per cent
    changes the difference by as many per cent of itself. None where there is no interval.
    """
    if baseline is None or speedup is None or speedup.low is None or speedup.high is None:
        return None
    value, low, high = (baseline.value * (1 / ratio - 1) for ratio in (speedup.value, speedup.high, speedup.low))
    return Difference(value_s=value, low_s=low, high_s=high)


def _alone(run: StepRun, cell: StepCell, baseline: str, candidate: str) -> Difference | None:
    where = _norm_cell(run, cell)
    if run.alone is None or where is None or run.alone.header.plan.baseline != baseline:
        return None
    comparison = run.alone.comparison(where, candidate)
    return difference(alone_time(run, cell, baseline), comparison.speedup if comparison else None)


def _norm_cell(run: StepRun, cell: StepCell) -> Cell | None:
    """The cell of the run of norms alone that is one norm of this model, in whichever cache state it was measured."""
    measured = run.alone.results_by_cell if run.alone else ()
    wanted = cell.norm_cell
    return next((where for where in measured if replace(where, cache=wanted.cache) == wanted), None)
