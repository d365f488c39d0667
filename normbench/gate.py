"""Whether a change of code passes: regressions that are decided for all cases together, and cases that broke."""

from __future__ import annotations

from dataclasses import dataclass

from normbench import changes, stats, verdict
from normbench.changes import Change, Changes, Lopsided, Side
from normbench.records import Estimate, Outcome


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A case with the interval that the gate judges it by, wider than the one it is shown with."""

    change: Change
    speedup: Estimate


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What a gate found.

    Args:
        threshold: Slower by more than this fraction is a regression.
        judged: Cases with an interval: so many comparisons are made at once.
        slower: The regressions, the worst first.
        chance: Slower by more than the threshold by their own interval, which in so many comparisons may be chance.
        blind: Cases whose interval is too wide to tell whether they are slower by more than the threshold.
        broken: Cases that had a time in BASE and ended with a fault in HEAD.
    """

    threshold: float
    judged: int
    slower: tuple[Finding, ...]
    chance: tuple[Change, ...]
    blind: tuple[Change, ...]
    broken: tuple[Lopsided, ...]

    @property
    def fails(self) -> bool:
        """Whether anything got worse."""
        return bool(self.slower or self.broken)


def confidence(comparisons: int) -> float:
    """The quantile of each interval that makes all of them hold together as often as a single one should.

    Bonferroni's bound: the chance that any of N intervals misses is N times that of one at most, however they
    depend on each other.
    """
    return 1 - (1 - stats.CONFIDENCE) / max(comparisons, 1)


def examine(found: Changes, base: Side, head: Side, threshold: float) -> Gate:
    """Judge every case that has an interval; the floor is none of them, since its code is in neither run."""
    judged = [change for change in found.changes if change.has_interval]
    wide = [Finding(change=change, speedup=_widened(base, head, change, len(judged))) for change in judged]
    slower = [each for each in wide if verdict.judge(each.speedup, threshold)[0] is Outcome.SLOWER]
    regressed = {each.change.case for each in slower}
    return Gate(
        threshold=threshold,
        judged=len(judged),
        slower=tuple(sorted(slower, key=lambda each: each.speedup.value)),
        chance=tuple(change for change in judged if change.case not in regressed and _is_slower(change, threshold)),
        blind=tuple(each.change for each in wide if each.change.case not in regressed and _may_hide(each, threshold)),
        broken=found.broken,
    )


def _widened(base: Side, head: Side, change: Change, comparisons: int) -> Estimate:
    speedup = changes.ratio(base, head, change.case, confidence(comparisons))
    assert speedup is not None, "it had an interval"
    return speedup


def _is_slower(change: Change, threshold: float) -> bool:
    assert change.speedup is not None
    return verdict.judge(change.speedup, threshold)[0] is Outcome.SLOWER


def _may_hide(finding: Finding, threshold: float) -> bool:
    """Whether a regression beyond the threshold lies in the interval."""
    assert finding.speedup.low is not None
    return finding.speedup.low < 1 / (1 + threshold)
