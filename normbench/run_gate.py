"""Whether what a run measured passes against its own baseline: both were timed in the same rounds, in pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from normbench import gate, stats
from normbench.changes import BROKEN
from normbench.records import Case, CaseResult, Cell, Estimate, Plan, Reason, Run, Status

Ratios = Mapping[Case, Mapping[stats.PlacementKey, float]]
"""By case: for each placement the logarithm of its time ÷ the baseline's, as the run's samples give it."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A case with its speedup over the baseline: of a regression with the interval that it is judged by."""

    case: Case
    speedup: Estimate


@dataclass(frozen=True, kw_only=True)
class Unjudged:
    """A case that could not be judged: it was not measured, or there is nothing to judge it by.

    ``reason`` says why the two were not compared; None where the run has not got that far.
    """

    case: Case
    reason: Reason | None


@dataclass(frozen=True, kw_only=True)
class RunGate:
    """What a gate found in a run.

    Args:
        threshold: Slower than the baseline by more than this fraction is a regression.
        baseline: What the others are judged against.
        names: Who is judged.
        judged: Cases with an interval: so many comparisons are made at once.
        slower: The regressions, the worst first.
        chance: Slower by more than the threshold by their own interval, which in so many comparisons may be chance.
        blind: Cases whose interval is too wide to tell whether they are slower by more than the threshold.
        broken: Those that ended with a fault in a cell in which the baseline has a time.
        unjudged: Cases of which nothing can be said.
        unsupported: Cases that can't be run here, which nobody holds against them.
        has_samples: Whether the samples were there, without which nothing can be judged.
    """

    threshold: float
    baseline: str
    names: tuple[str, ...]
    judged: int
    slower: tuple[Finding, ...] = ()
    chance: tuple[Case, ...] = ()
    blind: tuple[Case, ...] = ()
    broken: tuple[CaseResult, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    unsupported: tuple[Case, ...] = ()
    has_samples: bool = True

    @property
    def fails(self) -> bool:
        """Whether anything is slower or broken."""
        return bool(self.slower or self.broken)

    @property
    def passes(self) -> bool:
        """Whether everything was judged, and nothing fails."""
        return bool(self.judged) and not (self.fails or self.unjudged)


def gated(plan: Plan) -> tuple[str, ...]:
    """Who is judged: what the user brings, the baseline apart; where that is nothing, every candidate of the run."""
    candidates = [name for name in plan.implementations if name not in (plan.baseline, plan.floor)]
    brought = {one.name for one in plan.brought}
    return tuple(name for name in candidates if name in brought) or tuple(candidates)


def examine(run: Run, threshold: float, ratios: Ratios | None) -> RunGate:
    """Judge every case of those who are gated.

    Args:
        run: The run.
        threshold: Slower by more than this fraction is a regression.
        ratios: What its samples say; None where they are not there.
    """
    names = gated(run.header.plan)
    cases = [_case(cell, name) for cell in run.header.plan.cells() for name in names]
    judged = [each for each in _compared(run, cases) if each.case in (ratios or {})]
    every = gate.confidence(len(judged))
    wide = [_speedup((ratios or {})[each.case], every) for each in judged]
    told = gate.told_apart([each.speedup for each in judged], wide, threshold)
    broken = tuple(_broken(run, cases))
    unsupported = tuple(case for case in cases if _status(run, case) is Status.UNSUPPORTED)
    settled = {*(each.case for each in judged), *(result.case for result in broken), *unsupported}
    return RunGate(
        threshold=threshold,
        baseline=run.header.plan.baseline,
        names=names,
        judged=len(judged),
        slower=tuple(Finding(case=judged[index].case, speedup=speedup) for index, speedup in told.slower),
        chance=tuple(judged[index].case for index in told.chance),
        blind=tuple(judged[index].case for index in told.blind),
        broken=broken,
        unjudged=tuple(_unjudged(run, case) for case in cases if case not in settled),
        unsupported=unsupported,
        has_samples=ratios is not None,
    )


def _compared(run: Run, cases: Iterable[Case]) -> Iterator[Finding]:
    """The cases whose comparison has an interval."""
    for case in cases:
        comparison = run.comparison(case.cell, case.implementation)
        if comparison and comparison.speedup and comparison.speedup.low is not None:
            yield Finding(case=case, speedup=comparison.speedup)


def _speedup(logs: Mapping[stats.PlacementKey, float], confidence: float) -> Estimate:
    """Baseline ÷ candidate, by logarithms of candidate ÷ baseline."""
    found = stats.geometric_estimate({key: -value for key, value in logs.items()}, confidence)
    assert found is not None
    return found


def _broken(run: Run, cases: Iterable[Case]) -> Iterator[CaseResult]:
    for case in cases:
        result, base = _result(run, case), _result(run, _case(case.cell, run.header.plan.baseline))
        if result and result.status in BROKEN and base and base.timing is not None:
            yield result


def _unjudged(run: Run, case: Case) -> Unjudged:
    comparison = run.comparison(case.cell, case.implementation)
    return Unjudged(case=case, reason=comparison.reason if comparison else None)


def _status(run: Run, case: Case) -> Status | None:
    result = _result(run, case)
    return result.status if result else None


def _result(run: Run, case: Case) -> CaseResult | None:
    return next((each for each in run.results_by_cell.get(case.cell, ()) if each.case == case), None)


def _case(cell: Cell, name: str) -> Case:
    return Case(cell=cell, implementation=name)
