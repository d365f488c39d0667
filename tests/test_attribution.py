"""How much of a time difference the bytes explain."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest

from normbench.attribution import Cause, amplification, explain
from normbench.records import Case, CaseProfile, Flag, KernelTime, OpTraffic, Run
from tests.runs import make_cell, make_plan, make_run

CELL = next(make_plan().cells())
FLOOR = 2 * 32 * 64 * 4


def profile(name: str, size: int, launches: int = 1) -> CaseProfile:
    kernels = tuple(KernelTime(name=f"k{n}", calls=1, seconds=1e-6) for n in range(launches))
    ops = (OpTraffic(name="op", calls=1, bytes=size),) if size else ()
    return CaseProfile(case=Case(cell=CELL, implementation=name), ops=ops, kernels=kernels)


def run_of(times: tuple[float, float], sizes: tuple[int, int], launches: tuple[int, int] = (1, 1)) -> Run:
    """A run in which the baseline and eager-rmsnorm take and move so much."""
    run = make_run(times={"copy": 1e-6, "nn-layernorm": times[0], "eager-rmsnorm": times[1]})
    profiles = (
        profile("nn-layernorm", sizes[0], launches[0]),
        profile("eager-rmsnorm", sizes[1], launches[1]),
    )
    return replace(run, profiles=profiles)


def only(run: Run, flags: dict[Case, tuple[Flag, ...]] | None = None):  # type: ignore[no-untyped-def]
    (found,) = explain(run, flags or {})
    return found


def test_nine_times_the_bytes_and_nearly_eight_times_the_time_are_explained_by_traffic() -> None:
    found = only(run_of((1e-6, 7.8e-6), (100, 900)))
    assert (found.byte_ratio, found.cause) == (9.0, Cause.TRAFFIC)
    assert found.time_ratio.value == pytest.approx(7.8)
    assert found.share == pytest.approx(log(9) / log(7.8))
    assert found.is_explained


@pytest.mark.parametrize(
    ("times", "sizes", "share"),
    [((1.0, 4.0), (100, 200), 0.5), ((1.0, 4.0), (100, 100), 0.0), ((1.0, 2.0), (200, 100), -1.0)],
)
def test_less_than_all_is_a_share_of_the_logarithms(
    times: tuple[float, float], sizes: tuple[int, int], share: float
) -> None:
    found = only(run_of(times, sizes))
    assert found.share == pytest.approx(share)
    assert not found.is_explained


def test_where_times_do_not_differ_by_more_than_the_margin_there_is_nothing_to_explain() -> None:
    assert only(run_of((1.0, 1.015), (100, 900))).share is None


def test_launches_are_the_cause_where_both_are_launch_bound() -> None:
    run = run_of((1.0, 6.0), (100, 900), (1, 6))
    bound = {Case(cell=CELL, implementation=name): (Flag.LAUNCH_BOUND,) for name in ("nn-layernorm", "eager-rmsnorm")}
    assert only(run, bound).cause is Cause.LAUNCHES
    assert only(run, bound).share == pytest.approx(1.0)
    del bound[Case(cell=CELL, implementation="nn-layernorm")]
    assert only(run, bound).cause is Cause.TRAFFIC


def test_without_a_count_of_both_there_is_no_explanation() -> None:
    assert explain(run_of((1.0, 2.0), (100, 0)), {}) == []
    assert explain(replace(run_of((1.0, 2.0), (100, 200)), profiles=()), {}) == []


def test_amplification_is_op_bytes_by_floor_bytes() -> None:
    run = run_of((1.0, 2.0), (100, 3 * (FLOOR + 64 * 4)))
    base, eager = run.profiles
    assert amplification(run, eager) == pytest.approx(3.0)
    assert amplification(run, replace(base, ops=())) is None
    assert make_cell().width == 64
