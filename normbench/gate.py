"""Whether a change of code passes: regressions that are decided for all cases together, and cases that broke."""

from __future__ import annotations

from collections.abc import Sequence
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
    told = told_apart(
        [_interval(change.speedup) for change in judged],
        [_interval(changes.ratio(base, head, change.case, confidence(len(judged)))) for change in judged],
        threshold,
    )
    return Gate(
        threshold=threshold,
        judged=len(judged),
        slower=tuple(Finding(change=judged[index], speedup=wide) for index, wide in told.slower),
        chance=tuple(judged[index] for index in told.chance),
        blind=tuple(judged[index] for index in told.blind),
        broken=found.broken,
    )


@dataclass(frozen=True, kw_only=True)
class Told:
    """Which of several comparisons are regressions, by their index.

    Args:
        slower: Those that are, the worst first, each with the interval that it is judged by.
        chance: Those that only their own interval calls so.
        blind: Those whose interval is too wide to tell.
    """

    slower: tuple[tuple[int, Estimate], ...]
    chance: tuple[int, ...]
    blind: tuple[int, ...]


def told_apart(own: Sequence[Estimate], wide: Sequence[Estimate], threshold: float) -> Told:
    """Which speedups are below 1 by more than a threshold.

    Args:
        own: The speedups, each with its own interval.
        wide: The same with intervals that hold together.
        threshold: Slower by more than this fraction is a regression.
    """
    slower = [index for index, speedup in enumerate(wide) if _is_slower(speedup, threshold)]
    others = [index for index in range(len(wide)) if index not in slower]
    return Told(
        slower=tuple((index, wide[index]) for index in sorted(slower, key=lambda index: wide[index].value)),
        chance=tuple(index for index in others if _is_slower(own[index], threshold)),
        blind=tuple(index for index in others if _may_hide(wide[index], threshold)),
    )


def _interval(speedup: Estimate | None) -> Estimate:
    assert speedup is not None, "it had an interval"
    return speedup


def _is_slower(speedup: Estimate, threshold: float) -> bool:
    return verdict.judge(speedup, threshold)[0] is Outcome.SLOWER


def _may_hide(speedup: Estimate, threshold: float) -> bool:
    """Whether a regression beyond the threshold lies in the interval, which may be wider than a float can say."""
    return speedup.low is None or speedup.low < 1 / (1 + threshold)
