"""How far to trust a run: the sentences say what the numbers say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normbench import bounds
from normbench.records import Cell, Estimate, Flag, NoiseFloor, Run, Spent
from normbench.reporters import trust
from tests.runs import TIMES, Times, make_cell, make_plan, make_run

WIDTHS = (64, 128, 256)


def growing(cell: Cell) -> Times:
    """Times that grow with the width."""
    return {name: time * cell.width / 64 for name, time in TIMES.items() if isinstance(time, float)}


RUN = make_run(make_plan(widths=WIDTHS), growing)


def with_noise(low: float, value: float, high: float) -> Run:
    ratio = Estimate(value=value, low=low, high=high)
    return replace(RUN, noise=(NoiseFloor(cell=make_cell(), implementation="nn-layernorm", ratio=ratio),))


def test_the_noise_floor_is_the_farther_end_of_the_interval() -> None:
    (note,) = trust.noise_notes(with_noise(0.995, 1.0, 1.004))
    assert note == (
        "Noise floor, fp32 at 32×64 forward: nn-layernorm against itself gives 1.0000 (0.9950 to 1.0040): "
        "differences below 0.5 % cannot be told apart here."
    )


def test_a_noise_floor_above_the_margin_says_so() -> None:
    (note,) = trust.noise_notes(with_noise(0.96, 1.0, 1.03))
    assert note.endswith("That exceeds the margin of 2 %: a quieter machine or more time would help.")


def test_an_interval_that_misses_1_is_said_to_be_disturbed() -> None:
    (note,) = trust.noise_notes(with_noise(1.001, 1.002, 1.003))
    assert "The interval misses 1" in note


def test_without_an_a_a_test_there_is_no_note() -> None:
    assert trust.noise_notes(RUN) == []


def throttled(count: int) -> Run:
    results = [
        replace(r, timing=replace(r.timing, throttled_samples=count if n == 0 else 0)) if r.timing else r
        for n, r in enumerate(RUN.results)
    ]
    return replace(RUN, results=tuple(results))


def test_throttled_rounds_are_counted_against_all_samples() -> None:
    assert trust.throttled_note(RUN) is None
    note = trust.throttled_note(throttled(3))
    assert note is not None
    assert note.startswith(
        f"3 of {4 * len(RUN.results)} samples were taken in rounds in which the GPU ran throttled."
    )


def test_the_share_of_the_floors_bandwidth_is_that_of_the_largest_cell() -> None:
    (reach,) = trust.reaches(RUN, bounds.flags(RUN))
    assert reach.cell.width == 256
    assert reach.floor_bytes_per_s == pytest.approx(2 * 32 * 256 * 4 / 4e-6)
    assert dict(reach.shares)["eager-rmsnorm"] == pytest.approx(1 / 8, rel=0.02)


@pytest.mark.parametrize("flag", [Flag.CACHE_RESIDENT, Flag.LAUNCH_BOUND, Flag.BELOW_FLOOR])
def test_what_is_not_limited_by_bandwidth_is_kept_out_of_its_statements(flag: Flag) -> None:
    flags = {case: (flag,) if case.implementation == "nn-rmsnorm" else own for case, own in bounds.flags(RUN).items()}
    (reach,) = trust.reaches(RUN, flags)
    assert "nn-rmsnorm" not in dict(reach.shares)
    assert "eager-rmsnorm" in dict(reach.shares)


def test_where_the_floor_itself_is_not_limited_by_bandwidth_nothing_is_said_of_it() -> None:
    flags = dict.fromkeys(bounds.flags(RUN), (Flag.CACHE_RESIDENT,))
    assert trust.reaches(RUN, flags) == []
    note = trust.limits_note(RUN, flags)
    assert note == "12 of 12 results are cache-resident (fp32 forward): they say nothing about memory bandwidth."


def test_where_bandwidth_limits_everything_there_is_no_note() -> None:
    assert trust.limits_note(RUN, bounds.flags(RUN)) is None


def test_where_the_time_went_is_said_and_what_of_it_was_measuring() -> None:
    spent = Spent(timed_s=50.0, warming_s=20.0, preparing_s=10.0, checking_s=20.0, compiling_s=25.0, elapsed_s=125.0)
    assert trust.time_note(spent) == (
        "The run took 125 s: 50.0 s in timed calls, 20.0 s warming, 10.0 s in fresh forwards, 20.0 s building and "
        "checking, 25.0 s compiling. Without compiling, 80 % of it went into timed calls and what has to be called "
        "for them."
    )
    assert trust.time_note(Spent()) is None
