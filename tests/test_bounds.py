"""What limits a result, where only other cells can tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normbench import bounds
from normbench.records import Case, Cell, Flag, Mode, Run
from tests.runs import Times, make_plan, make_run

PLAN = make_plan(widths=(64, 128, 256))


def run_of(copy: tuple[float, ...], other: tuple[float, ...]) -> Run:
    """A run over three widths in which the floor and nn-rmsnorm take so long."""

    def times(cell: Cell) -> Times:
        at = PLAN.widths.index(cell.width)
        return {"copy": copy[at], "nn-layernorm": 100 * copy[at], "nn-rmsnorm": other[at], "eager-rmsnorm": 1.0}

    return make_run(PLAN, times)


def flagged(run: Run, flag: Flag, name: str = "nn-rmsnorm") -> list[int]:
    """The widths at which an implementation carries a flag."""
    return [c.cell.width for c, flags in bounds.flags(run).items() if flag in flags and c.implementation == name]


def test_times_that_grow_with_the_bytes_are_not_launch_bound() -> None:
    assert flagged(run_of((1.0, 2.0, 4.0), (2.0, 4.0, 8.0)), Flag.LAUNCH_BOUND) == []


@pytest.mark.parametrize(
    ("times", "widths"), [((8.0, 8.1, 16.0), [64]), ((8.0, 8.1, 8.2), [64, 128]), ((8.0, 9.7, 19.0), [])]
)
def test_where_twice_the_bytes_take_hardly_longer_it_is_launching_that_takes_the_time(
    times: tuple[float, ...], widths: list[int]
) -> None:
    assert flagged(run_of((1.0, 2.0, 4.0), times), Flag.LAUNCH_BOUND) == widths


def test_more_bytes_a_second_than_the_floor_at_the_largest_cell_are_a_caches() -> None:
    run = run_of((1.0, 2.0, 20.0), (2.0, 4.0, 40.0))
    assert flagged(run, Flag.CACHE_RESIDENT, "copy") == [64, 128]
    assert flagged(run, Flag.CACHE_RESIDENT) == [64, 128]
    assert flagged(run_of((1.0, 2.0, 4.0), (2.0, 4.0, 8.0)), Flag.CACHE_RESIDENT) == []


def test_flags_that_were_recorded_stay_and_come_first() -> None:
    run = run_of((1.0, 2.0, 20.0), (2.0, 4.0, 40.0))
    first = replace(run.results[0], flags=(Flag.DRIFTED,))
    found = bounds.flags(replace(run, results=(first, *run.results[1:])))
    assert found[first.case] == (Flag.DRIFTED, Flag.CACHE_RESIDENT)


def test_every_result_has_its_flags_also_one_without_a_time() -> None:
    run = make_run(PLAN, {"copy": 1.0})
    assert set(bounds.flags(run)) == {result.case for result in run.results}
    assert set(bounds.flags(run).values()) == {(), (Flag.LAUNCH_BOUND,)}


def test_the_floors_bandwidth_is_that_of_the_largest_cell_of_each_kind() -> None:
    plan = make_plan(widths=(64, 256, 128), modes=(Mode.FORWARD, Mode.BACKWARD))
    forward, backward = bounds.bandwidths(make_run(plan, {"copy": 2e-6}))
    assert (forward.cell.width, forward.cell.mode) == (256, Mode.FORWARD)
    assert (backward.cell.width, backward.cell.mode) == (256, Mode.BACKWARD)
    assert forward.floor_bytes_per_s == 2 * 32 * 256 * 4 / 2e-6
    assert backward.floor_bytes_per_s == 3 * 32 * 256 * 4 / 2e-6
    assert {cell.width for cell in forward.cells} == {64, 128, 256}


def test_without_the_floors_time_there_is_no_bandwidth() -> None:
    assert bounds.bandwidths(make_run(PLAN, {"nn-rmsnorm": 1.0})) == []


def test_effective_bandwidth_is_floor_bytes_by_time() -> None:
    run = make_run(PLAN, {"nn-rmsnorm": 1e-6})
    by_case = {result.case: result for result in run.results}
    cell = next(PLAN.cells())
    rms = by_case[Case(cell=cell, implementation="nn-rmsnorm")]
    assert bounds.effective_bandwidth(run, rms) == pytest.approx((2 * 32 * 64 + 64) * 4 / 1e-6)
    assert bounds.effective_bandwidth(run, by_case[Case(cell=cell, implementation="copy")]) is None
