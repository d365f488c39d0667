"""Does a model learn as well with another norm? Differences at the end of training, against the seeds' own noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from statistics import mean, stdev

from scipy.special import stdtrit

from normbench.records import StepRun

_CONFIDENCE = 0.95


class Learned(StrEnum):
    """How well a model has learnt beside one with the baseline's norms."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Held-out bits per byte of a candidate less the baseline's, after the last step.

    Args:
        candidate: Whose norms.
        baseline: Whose norms it is compared with.
        seeds: How many runs of each ended, from the same seed: same other weights, same batches.
        difference: Mean over these seeds; above 0 the candidate has learnt less. None without such a seed.
        half_width: Of its 95 % interval, Student's t over the differences of pairs; None with fewer than two.
        noise: The sample standard deviation of the baseline's own runs; None with fewer than two.
    """

    candidate: str
    baseline: str
    seeds: int
    difference: float | None
    half_width: float | None
    noise: float | None

    @property
    def is_systematic(self) -> bool:
        """Whether the interval excludes 0: the difference is no chance, however small."""
        return self.difference is not None and self.half_width is not None and abs(self.difference) > self.half_width

    @property
    def outcome(self) -> Learned:
        """``same``: the whole interval lies within the noise of the baseline's seeds.

        ``better`` and ``worse``: the interval excludes 0, and the difference exceeds that noise.
        """
        if self.difference is None or self.half_width is None or self.noise is None:
            return Learned.UNDECIDED
        size = abs(self.difference)
        if size + self.half_width <= self.noise:
            return Learned.SAME
        if size > self.half_width and size > self.noise:
            return Learned.WORSE if self.difference > 0 else Learned.BETTER
        return Learned.UNDECIDED


def of_run(run: StepRun) -> Iterator[Quality]:
    """Every candidate's, in the plan's order."""
    plan = run.header.plan
    finals = {name: finals_by_seed(run, name) for name in plan.implementations}
    own = list(finals[plan.baseline].values())
    for name in plan.implementations:
        if name != plan.baseline:
            base = finals[plan.baseline]
            pairs = [final - base[seed] for seed, final in finals[name].items() if seed in base]
            yield Quality(
                candidate=name,
                baseline=plan.baseline,
                seeds=len(pairs),
                difference=mean(pairs) if pairs else None,
                half_width=_half_width(pairs),
                noise=stdev(own) if len(own) > 1 else None,
            )


def finals_by_seed(run: StepRun, implementation: str) -> dict[int, float]:
    """Held-out bits per byte after the last step, of the runs that got there, by seed."""
    training = run.header.plan.training
    if training is None:
        return {}
    ends = {curve.seed: curve.final(training) for curve in run.curves if curve.implementation == implementation}
    return {seed: end for seed, end in ends.items() if end is not None}


def _half_width(values: list[float]) -> float | None:
    """Of Student's t interval of the mean."""
    count = len(values)
    if count < 2:
        return None
    return float(stdtrit(count - 1, 0.5 + _CONFIDENCE / 2)) * stdev(values) / math.sqrt(count)
