"""Samples to estimates and flags: logarithms, medians over rounds, Student's t over placements.

The unit of replication is the placement. Where buffers and objects lie in memory biases every round of a
placement alike, so an interval over rounds would be far too narrow; rounds only make a placement's
median sharper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import exp, log

import numpy as np
from scipy.special import stdtrit

from normbench.records import LEAST_PLACEMENTS, Estimate, Flag, Sample

CONFIDENCE = 0.97
"""Quantile used for a nominal 95 % interval: looking up to three times costs coverage, this pays it back."""

_DRIFT = 0.1
_BIMODAL_SPREAD = 0.05
_BIMODAL_SHARE = 0.15
_BIMODAL_EXPLAINED = 0.85

PlacementKey = tuple[int, int]
"""Process and placement: what a placement is identified by."""


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float | None]:
    """Mean and half-width of Student's t interval; no half-width (None) for fewer than two values."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None
    quantile = float(stdtrit(len(values) - 1, 0.5 + confidence / 2))
    return mean, quantile * float(np.std(values, ddof=1)) / len(values) ** 0.5


def geometric_estimate(logarithms: Sequence[float]) -> Estimate | None:
    """The estimate whose logarithm is the mean of ``logarithms``, one a placement; None without any.

    There is no interval below ``LEAST_PLACEMENTS``.
    """
    if not logarithms:
        return None
    mean, half = mean_interval(logarithms)
    if half is None or len(logarithms) < LEAST_PLACEMENTS:
        return Estimate(value=exp(mean))
    return Estimate(value=exp(mean), low=exp(mean - half), high=exp(mean + half))


def of_implementation(samples: Iterable[Sample], name: str, clock: str | None = None) -> list[Sample]:
    """The samples of one implementation, by one clock if one is named."""
    return [s for s in samples if s.implementation == name and clock in (None, s.clock)]


def without_clock(samples: Iterable[Sample], clock: str | None) -> list[Sample]:
    """The samples that another clock than ``clock`` took: all of them where it is None."""
    return [s for s in samples if clock is None or s.clock != clock]


def placement_logs(samples: Iterable[Sample]) -> dict[PlacementKey, float]:
    """Per placement the median over rounds of log(seconds per call), of one implementation's samples."""
    by_placement: dict[PlacementKey, list[float]] = defaultdict(list)
    for sample in samples:
        by_placement[sample.process, sample.placement].append(log(sample.seconds_per_call))
    return {key: float(np.median(logs)) for key, logs in by_placement.items()}


def placement_log_ratios(numerator: Iterable[Sample], denominator: Iterable[Sample]) -> dict[PlacementKey, float]:
    """Per placement the median over rounds of log(numerator ÷ denominator), each pair from one round.

    Pairing within a round is what defeats drift: both were timed within moments of each other.
    """
    below = {(s.process, s.placement, s.round): s.seconds_per_call for s in denominator}
    by_placement: dict[PlacementKey, list[float]] = defaultdict(list)
    for sample in numerator:
        other = below.get((sample.process, sample.placement, sample.round))
        if other is not None:
            by_placement[sample.process, sample.placement].append(log(sample.seconds_per_call / other))
    return {key: float(np.median(logs)) for key, logs in by_placement.items()}


def time_estimate(samples: Iterable[Sample]) -> Estimate | None:
    """Seconds of one call: the geometric mean over placements of the median over rounds."""
    return geometric_estimate(list(placement_logs(samples).values()))


def ratio_estimate(numerator: Iterable[Sample], denominator: Iterable[Sample]) -> Estimate | None:
    """Numerator's time ÷ denominator's time, paired by round; None where they share no round."""
    return geometric_estimate(list(placement_log_ratios(numerator, denominator).values()))


def relative_half_width(estimate: Estimate | None) -> float:
    """Half the interval's width as a fraction of the value (in logarithms); infinite without an interval."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return float("inf")
    return log(estimate.high / estimate.low) / 2


def is_drifted(logs: Mapping[PlacementKey, float]) -> bool:
    """Whether the last third of the placements differs from the first third by more than 10 %."""
    ordered = [logs[key] for key in sorted(logs)]
    third = len(ordered) // 3
    if third == 0:
        return False
    return abs(float(np.median(ordered[-third:])) - float(np.median(ordered[:third]))) > _DRIFT


def is_bimodal(samples: Iterable[Sample]) -> bool:
    """Whether the samples fall into two clusters.

    The best split in two (Otsu 1979: the one with the largest variance between the parts) explains 64 %
    of a normal and 75 % of a uniform distribution's variance. Two modes are said from 85 % on, where the
    smaller part holds at least 15 % of the samples and the parts lie more than 5 % apart.
    """
    values = np.sort(np.array([log(s.seconds_per_call) for s in samples]))
    count = len(values)
    if count < 20 or np.ptp(values) < _BIMODAL_SPREAD:
        return False
    sizes = np.arange(1, count)
    sums = np.cumsum(values)
    gaps = (sums[-1] - sums[:-1]) / (count - sizes) - sums[:-1] / sizes
    explained = sizes * (count - sizes) * gaps**2 / count**2 / np.var(values)
    best = int(np.argmax(explained))
    share = min(sizes[best], count - sizes[best]) / count
    return bool(explained[best] > _BIMODAL_EXPLAINED and share >= _BIMODAL_SHARE and gaps[best] > _BIMODAL_SPREAD)


def sample_flags(samples: Sequence[Sample], least_placements: int) -> tuple[Flag, ...]:
    """What is odd about one implementation's samples."""
    logs = placement_logs(samples)
    throttled = any(s.reading is not None and s.reading.throttle_reasons for s in samples)
    found = {
        Flag.FEW_SAMPLES: len(logs) < least_placements,
        Flag.DRIFTED: is_drifted(logs),
        Flag.BIMODAL: is_bimodal(samples),
        Flag.THROTTLED: throttled,
    }
    return tuple(flag for flag, present in found.items() if present)
