"""How much of a time difference the traffic explains: the ratio of times against that of bytes, or of launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log

from normbench.records import Case, CaseProfile, Comparison, Estimate, Flag, Run
from normbench.traffic import floor_bytes

_ENOUGH, _TOO_MUCH = 0.8, 1.25


class Cause(StrEnum):
    """What a difference of two times is set against."""

    TRAFFIC = "traffic"
    LAUNCHES = "launches"


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """A candidate's time against the baseline's, and what goes with it.

    Args:
        case: The candidate's.
        baseline: The baseline's name.
        time_ratio: Candidate's time ÷ baseline's, with its interval.
        byte_ratio: Candidate's op bytes ÷ baseline's.
        launch_ratio: The same of kernels or ops run; None where one of the two has no profile.
        cause: Which ratio the time is set against: launches where both are launch-bound.
        share: The logarithm of that ratio ÷ the logarithm of the time ratio: 1 where it explains all of the
            difference, less where something else slows it down, more where caches absorb bytes. None where the
            times do not differ by more than the margin.
    """

    case: Case
    baseline: str
    time_ratio: Estimate
    byte_ratio: float
    launch_ratio: float | None
    cause: Cause
    share: float | None

    @property
    def is_explained(self) -> bool:
        """Whether the ratio and the time ratio tell the same."""
        return self.share is not None and _ENOUGH <= self.share <= _TOO_MUCH


def amplification(run: Run, profile: CaseProfile) -> float | None:
    """Op bytes ÷ floor bytes; None where the ops were not counted."""
    if profile.op_bytes is None:
        return None
    op = run.header.info(profile.case.implementation).op
    return profile.op_bytes / floor_bytes(op, profile.case.cell)


def explain(run: Run, flags: Mapping[Case, Sequence[Flag]]) -> list[Explanation]:
    """Every comparison of which both sides were profiled.

    Args:
        run: The run.
        flags: Of each case, those included that only the whole run can tell.
    """
    profiles = {profile.case: profile for profile in run.profiles}
    found = (_explain(comparison, profiles, flags, run) for comparison in run.comparisons)
    return [one for one in found if one is not None]


def _explain(
    comparison: Comparison, profiles: Mapping[Case, CaseProfile], flags: Mapping[Case, Sequence[Flag]], run: Run
) -> Explanation | None:
    mine = profiles.get(Case(cell=comparison.cell, implementation=comparison.candidate))
    base = profiles.get(Case(cell=comparison.cell, implementation=comparison.baseline))
    if mine is None or base is None or not mine.op_bytes or not base.op_bytes or comparison.speedup is None:
        return None
    byte_ratio = mine.op_bytes / base.op_bytes
    launch_ratio = mine.launches / base.launches if mine.launches and base.launches else None
    bound = all(Flag.LAUNCH_BOUND in flags.get(profile.case, ()) for profile in (mine, base))
    cause = Cause.LAUNCHES if bound and launch_ratio else Cause.TRAFFIC
    time_ratio = _inverse(comparison.speedup)
    ratio = launch_ratio if cause is Cause.LAUNCHES and launch_ratio else byte_ratio
    return Explanation(
        case=mine.case,
        baseline=comparison.baseline,
        time_ratio=time_ratio,
        byte_ratio=byte_ratio,
        launch_ratio=launch_ratio,
        cause=cause,
        share=_share(ratio, time_ratio.value, run.header.plan.precision.margin),
    )


def _share(ratio: float, time_ratio: float, margin: float) -> float | None:
    if abs(log(time_ratio)) <= log(1 + margin):
        return None
    return log(ratio) / log(time_ratio)


def _inverse(estimate: Estimate) -> Estimate:
    if estimate.low is None or estimate.high is None:
        return Estimate(value=1 / estimate.value)
    return Estimate(value=1 / estimate.value, low=1 / estimate.high, high=1 / estimate.low)
