"""From measurements to statements: comparisons with their outcome and reason, and what to use where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from normbench import stats
from normbench.records import (
    CaseResult,
    Cell,
    Comparison,
    Estimate,
    Outcome,
    Plan,
    Precision,
    Reason,
    Run,
    Sample,
    Status,
)


def judge(speedup: Estimate, margin: float) -> tuple[Outcome, Reason]:
    """The outcome that an interval allows.

    ``faster``/``slower``: the interval excludes 1 and the effect exceeds the margin; ``same``: the whole
    interval lies inside the margin; anything else is undecided.
    """
    if speedup.low is None or speedup.high is None:
        return Outcome.UNDECIDED, Reason.TOO_FEW_PLACEMENTS
    least, most = 1 / (1 + margin), 1 + margin
    if least <= speedup.low and speedup.high <= most:
        return Outcome.SAME, Reason.INTERVAL_INSIDE_MARGIN
    if speedup.low > 1 and speedup.value > most:
        return Outcome.FASTER, Reason.INTERVAL_EXCLUDES_1
    if speedup.high < 1 and speedup.value < least:
        return Outcome.SLOWER, Reason.INTERVAL_EXCLUDES_1
    excludes = speedup.low > 1 or speedup.high < 1
    return Outcome.UNDECIDED, Reason.EFFECT_BELOW_MARGIN if excludes else Reason.INTERVAL_TOO_WIDE


def weigh(
    samples: Sequence[Sample], baseline: str, candidate: str, margin: float
) -> tuple[Estimate | None, Outcome, Reason]:
    """The speedup of a candidate over the baseline that was timed with it, and the outcome that it allows."""
    speedup = stats.ratio_between(samples, baseline, candidate)
    return (speedup, *(judge(speedup, margin) if speedup else (Outcome.UNDECIDED, Reason.TOO_FEW_PLACEMENTS)))


def is_settled(baseline: Sequence[Sample], candidates: Iterable[Sequence[Sample]], precision: Precision) -> bool:
    """Whether every pair's half-width is below the target, so that measuring may stop."""
    ratios = (stats.ratio_estimate(baseline, samples) for samples in candidates)
    return all(stats.relative_half_width(ratio) < precision.target for ratio in ratios)


def compare(
    baseline: CaseResult | None,
    candidate: CaseResult,
    samples: Sequence[Sample],
    margin: float,
    baseline_name: str,
) -> Comparison:
    """One candidate against the baseline of its cell, from the samples of both.

    Without a measured baseline or candidate, or where their outputs have unlike dtypes, the outcome is
    undecided, with that as its reason.
    """
    name = candidate.case.implementation
    speedup = None
    outcome = Outcome.UNDECIDED
    if baseline is None or baseline.timing is None:
        reason = Reason.NO_BASELINE
    elif candidate.timing is None:
        reason = Reason.NO_CANDIDATE
    elif not same_out_dtype(baseline, candidate):
        reason = Reason.OUT_DTYPE_DIFFERS
    else:
        speedup, outcome, reason = weigh(samples, baseline_name, name, margin)
    return Comparison(
        cell=candidate.case.cell,
        baseline=baseline_name,
        candidate=name,
        speedup=speedup,
        outcome=outcome,
        reason=reason,
    )


def compare_all(results: Iterable[CaseResult], samples: Sequence[Sample], plan: Plan) -> tuple[Comparison, ...]:
    """Every candidate of a cell against its baseline."""
    by_name = {result.case.implementation: result for result in results}
    return tuple(
        compare(by_name.get(plan.baseline), result, samples, plan.precision.margin, plan.baseline)
        for name, result in by_name.items()
        if name not in (plan.baseline, plan.floor) and result.status is not Status.NOT_RUN
    )


def same_out_dtype(one: CaseResult, other: CaseResult) -> bool:
    """Whether two results were checked and have outputs of the same dtype."""
    return (
        one.accuracy is not None and other.accuracy is not None and one.accuracy.out_dtype == other.accuracy.out_dtype
    )


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What to use in one cell.

    Args:
        cell: The cell.
        best: The implementation to use, None where the verdict abstains.
        speedup: Its speedup over the baseline, None where it is the baseline.
        rivals: Others that can't be told apart from the best by these intervals, best first.
        undecided: Candidates whose comparison with the baseline is open.
        is_open: Whether one of these may be faster than the best by more than the margin: the verdict abstains.
    """

    cell: Cell
    best: str | None
    speedup: Estimate | None = None
    rivals: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    is_open: bool = False

    @property
    def equals(self) -> tuple[str, ...]:
        """Rivals of which it was decided how they compare with the baseline: any of them will do as well."""
        return tuple(name for name in self.rivals if name not in self.undecided)


def choose(cell: Cell, comparisons: Iterable[Comparison], baseline: str, margin: float = Precision.margin) -> Choice:
    """The fastest implementation that the comparisons of one cell support.

    A candidate is preferred to the baseline only where it was found faster. Rivals are those whose interval
    reaches into the best one's; comparing two intervals is cautious: it rather calls two the same.
    """
    measured = {c.candidate: c for c in comparisons if c.cell == cell}
    if all(c.reason is Reason.NO_BASELINE for c in measured.values()):
        return Choice(cell=cell, best=None)
    undecided = tuple(n for n, c in measured.items() if c.outcome is Outcome.UNDECIDED and c.speedup is not None)
    faster = [c for c in measured.values() if c.outcome is Outcome.FASTER]
    if not faster:
        same = tuple(name for name, c in measured.items() if c.outcome is Outcome.SAME)
        is_open = any(_may_exceed(measured[name], 1 + margin) for name in undecided)
        return Choice(cell=cell, best=baseline, rivals=same, undecided=undecided, is_open=is_open)
    best = max(faster, key=lambda c: _value(c.speedup))
    return Choice(
        cell=cell,
        best=best.candidate,
        speedup=best.speedup,
        rivals=_overlapping(best, measured),
        undecided=undecided,
    )


def _may_exceed(comparison: Comparison, ratio: float) -> bool:
    speedup = comparison.speedup
    return speedup is not None and (speedup.high is None or speedup.high > ratio)


def _value(speedup: Estimate | None) -> float:
    return 0.0 if speedup is None else speedup.value


def _overlapping(best: Comparison, measured: Mapping[str, Comparison]) -> tuple[str, ...]:
    least = best.speedup.low if best.speedup else None
    reach = [
        c
        for c in measured.values()
        if c is not best
        and least is not None
        and c.speedup
        and c.speedup.high is not None
        and c.speedup.high >= least
    ]
    return tuple(c.candidate for c in sorted(reach, key=lambda c: -_value(c.speedup)))


@dataclass(frozen=True, kw_only=True)
class Group:
    """The cells that differ in their width alone, widths ascending, and what to use in each."""

    cells: tuple[Cell, ...]
    choices: tuple[Choice, ...]

    @property
    def first(self) -> Cell:
        """A cell that stands for what all of them share."""
        return self.cells[0]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a run says: per group what to use, and how many comparisons were settled."""

    groups: tuple[Group, ...]
    decided: int
    undecided: int
    not_measured: tuple[CaseResult, ...]


def group_cells(cells: Iterable[Cell]) -> tuple[tuple[Cell, ...], ...]:
    """Cells which share everything but the width, in order of first appearance, widths ascending."""
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        shared = (
            cell.operation,
            cell.mode,
            cell.rows,
            cell.dtype,
            cell.parameter_dtype,
            cell.autocast,
            cell.cache,
        )
        groups.setdefault(shared, []).append(cell)
    return tuple(tuple(sorted(group, key=lambda cell: cell.width)) for group in groups.values())


def of_run(run: Run) -> Verdict:
    """Everything the run's comparisons say."""
    baseline, margin = run.header.plan.baseline, run.header.plan.precision.margin
    by_cell = run.comparisons_by_cell
    groups = tuple(
        Group(
            cells=cells,
            choices=tuple(choose(cell, by_cell.get(cell, {}).values(), baseline, margin) for cell in cells),
        )
        for cells in group_cells(run.results_by_cell)
    )
    compared = [c for c in run.comparisons if c.speedup is not None]
    open_ones = sum(c.outcome is Outcome.UNDECIDED for c in compared)
    return Verdict(
        groups=groups,
        decided=len(compared) - open_ones,
        undecided=open_ones,
        not_measured=tuple(r for r in run.results if r.status is not Status.OK),
    )
