"""Samples to estimates and flags: logarithms, medians over rounds, Student's t over placements or processes.

The unit of replication is the placement, and the process where there are several. Where buffers and objects
lie in memory biases every round of a placement alike, and what a process has in common (code layout, hash
seed, physical memory) all of its placements, so an interval over rounds would be far too narrow; rounds only
make a placement's median sharper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
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

_BUSY_SHARE = 0.1
"""Other programs that keep more than this share of the threads busy disturb."""

_LEAST_TO_TRIM = 10

_MOST_LOG = 700.0
"""Beyond this an interval's ends are no floats: it says nothing."""

PlacementKey = tuple[int, int]
"""Process and placement: what a placement is identified by."""


def interquartile_mean(values: Sequence[float]) -> float:
    """Mean of the values without the lowest and the highest quarter of them (whole values)."""
    cut = len(values) // 4
    return float(np.mean(sorted(values)[cut : len(values) - cut]))


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float | None]:
    """Mean and half-width of Student's t interval; no half-width (None) for fewer than two values.

    From ten values on both are of the middle half: the interquartile mean, and the interval of a trimmed mean
    by Yuen (1974, "The two-sample trimmed t for unequal population variances"): the variance with the values left
    out moved to the nearest one kept, as many degrees of freedom as values kept, less one. A few placements that
    something else disturbed all through would make the plain interval useless; where nothing is disturbed the
    plain one is a seventh narrower.
    """
    if len(values) < 2:
        return float(np.mean(values)), None
    middle = _middle(values)
    quantile = float(stdtrit(middle.freedom, 0.5 + confidence / 2))
    return middle.mean, quantile * middle.variance**0.5


def difference_interval(
    one: Sequence[float], other: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float | None]:
    """Mean of ``one`` less that of ``other``, which share nothing, and the half-width of its interval.

    Welch's t (1947, "The generalization of 'Student's' problem when several different population variances are
    involved") of two samples of less than ten values, Yuen's (1974, as in ``mean_interval``) from ten on; each sample
    is trimmed or not by its own count. Both have Welch's and Satterthwaite's degrees of freedom. No half-width
    (None) where either has fewer than two values; one of 0 where all values of each are alike.
    """
    if min(len(one), len(other)) < 2:
        return float(_middle(one).mean - _middle(other).mean), None
    first, second = _middle(one), _middle(other)
    variance = first.variance + second.variance
    difference = first.mean - second.mean
    if variance == 0:
        return difference, 0.0
    share = first.variance / variance  # of shares and not of squared variances, which may be too small for a float
    freedom = 1 / (share**2 / first.freedom + (1 - share) ** 2 / second.freedom)
    return difference, float(stdtrit(freedom, 0.5 + confidence / 2)) * variance**0.5


@dataclass(frozen=True, kw_only=True)
class _Middle:
    """A mean, trimmed from ten values on, with the variance of that mean and its degrees of freedom."""

    mean: float
    variance: float
    freedom: int


def _middle(values: Sequence[float]) -> _Middle:
    count = len(values)
    cut = count // 4 if count >= _LEAST_TO_TRIM else 0
    kept = count - 2 * cut
    ordered = np.sort(values)
    mean = float(ordered[cut : count - cut].mean())
    if count < 2:
        return _Middle(mean=mean, variance=0.0, freedom=0)
    variance = float(np.clip(ordered, ordered[cut], ordered[count - cut - 1]).var(ddof=1))
    return _Middle(mean=mean, variance=(count - 1) * variance / (kept * (kept - 1)), freedom=kept - 1)


def geometric_estimate(logarithms: Mapping[PlacementKey, float], confidence: float = CONFIDENCE) -> Estimate | None:
    """The estimate whose logarithm is the mean of ``logarithms``, one a placement; None without any.

    The interval is over placements, or over processes where there are several. There is none below
    ``LEAST_PLACEMENTS`` of them, or where no float could hold it.
    """
    if not logarithms:
        return None
    units = _units(logarithms)
    mean, half = mean_interval(units, confidence)
    if half is None or len(units) < LEAST_PLACEMENTS or abs(mean) + half > _MOST_LOG:
        return Estimate(value=exp(mean))
    return Estimate(value=exp(mean), low=exp(mean - half), high=exp(mean + half))


def _units(logarithms: Mapping[PlacementKey, float]) -> list[float]:
    """What an interval is taken over: placements of one process, or each of several processes."""
    by_process: dict[int, list[float]] = defaultdict(list)
    for (process, _placement), value in logarithms.items():
        by_process[process].append(value)
    if len(by_process) == 1:
        return list(logarithms.values())
    return [interquartile_mean(values) for values in by_process.values()]


def unpaired_ratio(
    numerator: Mapping[PlacementKey, float], denominator: Mapping[PlacementKey, float], confidence: float = CONFIDENCE
) -> Estimate | None:
    """The ratio whose logarithm is the difference of the means of two runs' logarithms, one a placement.

    The runs share no rounds, so nothing is paired: what the machine did in one and not in the other stays in the
    ratio. None where either has no placement; no interval where either has fewer than ``LEAST_PLACEMENTS``
    placements, or processes where it has several, or where no float could hold it.
    """
    if not numerator or not denominator:
        return None
    above, below = _units(numerator), _units(denominator)
    difference, half = difference_interval(above, below, confidence)
    if half is None or min(len(above), len(below)) < LEAST_PLACEMENTS or abs(difference) + half > _MOST_LOG:
        return Estimate(value=exp(difference))
    return Estimate(value=exp(difference), low=exp(difference - half), high=exp(difference + half))


def of_implementation(samples: Iterable[Sample], name: str, clock: str | None = None) -> list[Sample]:
    """The samples of one implementation, by one clock if one is named."""
    return [s for s in samples if s.implementation == name and clock in (None, s.clock)]


def without_clocks(samples: Iterable[Sample], clocks: Collection[str]) -> list[Sample]:
    """The samples that other clocks than these took."""
    return [s for s in samples if s.clock not in clocks]


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
    return geometric_estimate(placement_logs(samples))


def ratio_estimate(numerator: Iterable[Sample], denominator: Iterable[Sample]) -> Estimate | None:
    """Numerator's time ÷ denominator's time, paired by round; None where they share no round."""
    return geometric_estimate(placement_log_ratios(numerator, denominator))


def ratio_between(samples: Sequence[Sample], numerator: str, denominator: str) -> Estimate | None:
    """The same of two implementations by their names."""
    return ratio_estimate(of_implementation(samples, numerator), of_implementation(samples, denominator))


def relative_half_width(estimate: Estimate | None) -> float:
    """Half the interval's width as a fraction of the value (in logarithms); infinite without an interval."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return float("inf")
    return log(estimate.high / estimate.low) / 2


def is_drifted(logs: Mapping[PlacementKey, float]) -> bool:
    """Whether the last third of the placements differs from the first third by more than 10 %.

    What a process has in common is no drift: each placement counts by its distance from its process's median.
    """
    by_process: dict[int, list[float]] = defaultdict(list)
    for (process, _placement), value in logs.items():
        by_process[process].append(value)
    middle = {process: float(np.median(values)) for process, values in by_process.items()}
    # Processes take turns: the first placement of each comes before anyone's second.
    keys = sorted(logs, key=lambda key: (key[1], key[0]))
    ordered = [logs[key] - middle[key[0]] for key in keys]
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


def throttled(samples: Iterable[Sample]) -> int:
    """How many samples were taken in a round in which the device said that it ran throttled."""
    return sum(s.reading is not None and bool(s.reading.throttle_reasons) for s in samples)


def sample_flags(samples: Sequence[Sample], least_placements: int) -> tuple[Flag, ...]:
    """What is odd about one implementation's samples."""
    logs = placement_logs(samples)
    found = {
        Flag.FEW_SAMPLES: len(logs) < least_placements,
        Flag.DRIFTED: is_drifted(logs),
        Flag.BIMODAL: is_bimodal(samples),
        Flag.THROTTLED: throttled(samples) > 0,
    }
    return tuple(flag for flag, present in found.items() if present)


def is_busy(cores: float | None, threads: int | None) -> bool:
    """Whether other programs that keep so many cores busy disturb what runs on so many threads."""
    return cores is not None and threads is not None and cores > _BUSY_SHARE * threads
