"""How the samples of a case spread around their median: counts in fixed bins, for pictures of distributions."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

REACH = 0.5
"""The bins reach from a third below the median to a half above it (in logarithms alike); the ends hold the rest."""

BINS = 41
"""Bins between the ends: odd, so that the median lies in the middle of one."""

_EDGES = np.linspace(-log(1 + REACH), log(1 + REACH), BINS + 1)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The distribution of one case's samples.

    Args:
        counts: Samples below the reach, in each bin, and above the reach: ``BINS + 2`` numbers.
        low_s: The 5th percentile, in seconds of one call.
        median_s: The median.
        high_s: The 95th percentile.
    """

    counts: tuple[int, ...]
    low_s: float
    median_s: float
    high_s: float

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return sum(self.counts)


def of_seconds(seconds: NDArray[np.float64]) -> Spread:
    """The spread of at least one positive number of seconds."""
    low, median, high = np.quantile(seconds, (0.05, 0.5, 0.95))
    places = np.searchsorted(_EDGES, np.log(seconds / median), side="right")
    counts = np.bincount(places, minlength=BINS + 2)
    return Spread(counts=tuple(counts.tolist()), low_s=float(low), median_s=float(median), high_s=float(high))
