"""Two runs to what changed between them: a ratio for each case that both timed, and what has a time in one alone.

The runs share no rounds, so whatever the machine did in one of them alone is in the ratios of times. Relative
ratios are of each time ÷ its own run's baseline, paired by round within each run: what befell a whole run is not in
them, what befell its baseline is in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log

from normbench import bounds, stats, verdict
from normbench.records import Case, CaseResult, Estimate, Flag, Outcome, Reason, Run, Status

BROKEN = frozenset({Status.INCORRECT, Status.FAILED, Status.TIMED_OUT, Status.OUT_OF_MEMORY})
"""What a case that had a time must not end with later: a fault, not a missing ability or an interruption."""

Flags = Mapping[Case, Sequence[Flag]]

DOUBTFUL = (Flag.BUSY_MACHINE, Flag.THROTTLED, Flag.DRIFTED, Flag.LAUNCH_BOUND, Flag.NEAR_CACHE_SIZE)
"""Flags that make a ratio between separate runs doubtful, or one of launching and not of the kernel."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of two runs.

    Args:
        run: The run.
        logs: By case with a time, a logarithm for each placement: of the seconds of one call, or of them ÷ the
            baseline's.
    """

    run: Run
    logs: Mapping[Case, Mapping[stats.PlacementKey, float]]

    def of(self, case: Case) -> Mapping[stats.PlacementKey, float]:
        """The logarithms of a case; none for one without a time."""
        return self.logs.get(case, {})


@dataclass(frozen=True, kw_only=True)
class Change:
    """A case that both runs timed.

    Args:
        case: Which.
        before: BASE's seconds of one call, or these ÷ its baseline's; None where it shares no round with that.
        after: HEAD's.
        speedup: ``before`` ÷ ``after``: above 1 HEAD is faster.
        outcome: What that allows to say of HEAD.
        reason: Why.
        base_flags: What makes BASE's time doubtful.
        head_flags: What makes HEAD's time doubtful.
    """

    case: Case
    before: Estimate | None
    after: Estimate | None
    speedup: Estimate | None
    outcome: Outcome
    reason: Reason
    base_flags: tuple[Flag, ...] = ()
    head_flags: tuple[Flag, ...] = ()

    def __post_init__(self) -> None:
        decided = self.outcome is not Outcome.UNDECIDED
        if decided and (self.speedup is None or self.speedup.low is None):
            raise ValueError("nothing is decided without an interval")

    @property
    def has_interval(self) -> bool:
        """Whether it can be judged at all."""
        return self.speedup is not None and self.speedup.low is not None


@dataclass(frozen=True, kw_only=True)
class Lopsided:
    """A case that is in both runs and has a time in one of them alone."""

    base: CaseResult
    head: CaseResult

    @property
    def case(self) -> Case:
        """Which."""
        return self.base.case

    @property
    def is_broken(self) -> bool:
        """Whether it had a time and then ended with a fault."""
        return self.base.status is Status.OK and self.head.status in BROKEN


@dataclass(frozen=True, kw_only=True)
class Mean:
    """The geometric mean of an implementation's speedups over the cells that both runs timed; None: of all."""

    implementation: str | None
    speedup: float
    cases: int


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Everything that two runs say of each other.

    Args:
        base: The run that is compared with.
        head: The run that is compared.
        relative: Whether ratios are of times ÷ each run's own baseline.
        changes: The cases that both timed, the yardsticks apart.
        floor: Those of the floor, whose code is the same in both: what it gained or lost, the machine did.
        lopsided: Cases of both with a time in one.
        untimed: Cases of both without a time in either.
        only_base: Cases that HEAD lacks.
        only_head: Cases that BASE lacks.
        means: Of each implementation, then of all where there are several.
    """

    base: Run
    head: Run
    relative: bool
    changes: tuple[Change, ...]
    floor: tuple[Change, ...]
    lopsided: tuple[Lopsided, ...]
    untimed: tuple[Case, ...]
    only_base: tuple[Case, ...]
    only_head: tuple[Case, ...]
    means: tuple[Mean, ...]

    @property
    def margin(self) -> float:
        """Differences up to this fraction count as none: BASE's."""
        return self.base.header.plan.precision.margin

    @property
    def broken(self) -> tuple[Lopsided, ...]:
        """The cases that had a time and then ended with a fault."""
        return tuple(pair for pair in self.lopsided if pair.is_broken)

    @property
    def floor_speedup(self) -> float | None:
        """The geometric mean of the floor's speedups; None where it has none."""
        return _geometric_mean(self.floor)


def between(base: Side, head: Side, *, relative: bool = False) -> Changes:
    """Compare two runs, case by case.

    Where ``relative``, both have the same baseline, which has no ratio of its own then.
    """
    of_base, of_head = _by_case(base.run), _by_case(head.run)
    both = [case for case in of_base if case in of_head]
    compared = [
        _change(base, head, of_base[case], of_head[case])
        for case in both
        if _is_timed(of_base[case]) and _is_timed(of_head[case])
    ]
    apart = _yardsticks(base.run, head.run, relative=relative)
    rest = tuple(change for change in compared if change.case.implementation not in apart)
    floor = base.run.header.plan.floor
    return Changes(
        base=base.run,
        head=head.run,
        relative=relative,
        changes=tuple(_flagged(rest, bounds.flags(base.run), bounds.flags(head.run))),
        floor=tuple(change for change in compared if change.case.implementation == floor and floor in apart),
        lopsided=tuple(
            Lopsided(base=of_base[case], head=of_head[case])
            for case in both
            if _is_timed(of_base[case]) != _is_timed(of_head[case])
        ),
        untimed=tuple(case for case in both if not (_is_timed(of_base[case]) or _is_timed(of_head[case]))),
        only_base=tuple(case for case in of_base if case not in of_head),
        only_head=tuple(case for case in of_head if case not in of_base),
        means=_means(rest),
    )


def _by_case(run: Run) -> dict[Case, CaseResult]:
    return {result.case: result for result in run.results}


def _yardsticks(base: Run, head: Run, *, relative: bool) -> set[str]:
    """Who is no candidate: the floor where it is the same in both, and what relative times are relative to."""
    floor, baseline = base.header.plan.floor, base.header.plan.baseline
    found = {floor} if floor == head.header.plan.floor else set()
    return found | ({baseline} if relative else set())


def ratio(base: Side, head: Side, case: Case, confidence: float = stats.CONFIDENCE) -> Estimate | None:
    """BASE's time ÷ HEAD's of one case, from placements that share nothing."""
    return stats.unpaired_ratio(base.of(case), head.of(case), confidence)


def _change(base: Side, head: Side, before: CaseResult, after: CaseResult) -> Change:
    case = before.case
    margin = base.run.header.plan.precision.margin
    speedup, outcome, reason = _judged(before, after, ratio(base, head, case), margin)
    return Change(
        case=case,
        before=stats.geometric_estimate(base.of(case)),
        after=stats.geometric_estimate(head.of(case)),
        speedup=speedup,
        outcome=outcome,
        reason=reason,
    )


def _flagged(changes: Iterable[Change], base: Flags, head: Flags) -> Iterator[Change]:
    """Each change with what makes it doubtful in either run."""
    for change in changes:
        yield replace(
            change,
            base_flags=tuple(flag for flag in DOUBTFUL if flag in base[change.case]),
            head_flags=tuple(flag for flag in DOUBTFUL if flag in head[change.case]),
        )


def _judged(
    base: CaseResult, head: CaseResult, speedup: Estimate | None, margin: float
) -> tuple[Estimate | None, Outcome, Reason]:
    """The ratio with what it allows to say; none where the two do not compute the same."""
    if not verdict.same_out_dtype(base, head):
        return None, Outcome.UNDECIDED, Reason.OUT_DTYPE_DIFFERS
    if speedup is None:  # only relative: a time without a baseline's in the same rounds
        return None, Outcome.UNDECIDED, Reason.NO_BASELINE
    return speedup, *verdict.judge(speedup, margin)


def _is_timed(result: CaseResult) -> bool:
    return result.timing is not None


def _means(changes: Sequence[Change]) -> tuple[Mean, ...]:
    by_name: dict[str, list[Change]] = {}
    for change in changes:
        if change.speedup is not None:
            by_name.setdefault(change.case.implementation, []).append(change)
    found = [_mean(name, own) for name, own in by_name.items()]
    if len(found) > 1:
        found.append(_mean(None, [change for own in by_name.values() for change in own]))
    return tuple(found)


def _mean(name: str | None, changes: Sequence[Change]) -> Mean:
    speedup = _geometric_mean(changes)
    assert speedup is not None
    return Mean(implementation=name, speedup=speedup, cases=len(changes))


def _geometric_mean(changes: Iterable[Change]) -> float | None:
    logarithms = [log(change.speedup.value) for change in changes if change.speedup is not None]
    return exp(sum(logarithms) / len(logarithms)) if logarithms else None
