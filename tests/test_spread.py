from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench import spread
from normbench.spread import BINS, REACH

times = st.lists(st.floats(min_value=1e-9, max_value=1e3), min_size=1, max_size=60)
MIDDLE = 1 + BINS // 2


def of(*seconds: float) -> spread.Spread:
    return spread.of_seconds(np.array(seconds))


@given(times)
def test_every_sample_is_counted_once(seconds: list[float]) -> None:
    found = of(*seconds)

    assert found.samples == len(seconds)
    assert len(found.counts) == BINS + 2


@given(times)
def test_the_percentiles_are_in_order_and_within_the_samples(seconds: list[float]) -> None:
    found = of(*seconds)
    slack = 1 + 1e-12

    assert min(seconds) <= found.low_s * slack
    assert found.low_s <= found.median_s * slack
    assert found.median_s <= found.high_s * slack
    assert found.high_s <= max(seconds) * slack


@given(st.floats(min_value=1e-9, max_value=1e3), st.integers(1, 9))
def test_equal_samples_are_all_in_the_middle(value: float, count: int) -> None:
    found = of(*[value] * count)

    assert found.counts[MIDDLE] == count
    assert (found.low_s, found.median_s, found.high_s) == pytest.approx((value, value, value))


@given(st.lists(st.floats(min_value=0.01, max_value=2), min_size=1, max_size=20), st.floats(1e-9, 1e3))
def test_a_distribution_that_is_symmetric_in_logarithms_has_symmetric_counts(
    distances: list[float], median: float
) -> None:
    edges = np.arange(1, BINS + 1) * 2 * log(1 + REACH) / BINS - log(1 + REACH)
    clear = [d for d in distances if min(abs(abs(d) - abs(edges))) > 1e-6]  # a sample on an edge is in one bin only
    found = of(median, *(median * np.exp(d) for d in clear), *(median * np.exp(-d) for d in clear))

    assert found.counts == found.counts[::-1]


@given(times, st.floats(min_value=1e-3, max_value=1e3))
def test_the_counts_do_not_depend_on_the_unit(seconds: list[float], factor: float) -> None:
    middle = np.median(seconds)
    edges = np.linspace(-log(1 + REACH), log(1 + REACH), BINS + 1)
    clear = all(min(abs(log(value / middle) - edges)) > 1e-9 for value in seconds)

    assert not clear or of(*seconds).counts == of(*(value * factor for value in seconds)).counts


def test_what_lies_beyond_the_reach_goes_to_the_ends() -> None:
    found = of(1.0, 1.0, 1.0, 0.5, 0.66, 1.51, 9.0, 0.67, 1.49)

    assert (found.counts[0], found.counts[-1]) == (2, 2)
    assert (found.counts[1], found.counts[-2]) == (1, 1)
