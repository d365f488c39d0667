"""What a run measured against its own baseline: who is judged, what fails, what can't be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from normbench import run_gate
from normbench.records import Cell, Outcome, Reason, Run, Status
from normbench.run_gate import RunGate, gated
from tests.paired import QUIET, brought, paired_plan, paired_run, ratios_of
from tests.runs import Times, make_plan

TIMES: Times = {"copy": 1e-6, "base": 4e-6, "head": 4e-6}


def examine(run: Run, threshold: float = 0.05, noise: Sequence[float] = QUIET) -> RunGate:
    return run_gate.examine(run, threshold, ratios_of(run, noise))


def of(head: float | Status, base: float | Status = 4e-6) -> Run:
    return paired_run(times={"copy": 1e-6, "base": base, "head": head})


# --- who is judged


def test_what_is_brought_is_judged_and_neither_the_baseline_nor_what_is_there_anyway() -> None:
    plan = paired_plan(
        implementations=("copy", "nn-rmsnorm", "base", "head", "mine"),
        brought=(brought("base"), brought("head"), brought("mine")),
    )

    assert gated(plan) == ("head", "mine")


def test_where_nothing_is_brought_all_candidates_are_judged() -> None:
    assert gated(make_plan()) == ("eager-rmsnorm", "nn-rmsnorm")


def test_where_the_baseline_alone_is_brought_all_candidates_are_judged() -> None:
    plan = paired_plan(implementations=("copy", "nn-rmsnorm", "base"), brought=(brought("base"),))

    assert gated(plan) == ("nn-rmsnorm",)


# --- what fails


@pytest.mark.parametrize(("factor", "fails"), [(0.5, False), (1.0, False), (1.04, False), (1.07, True), (2.0, True)])
def test_slower_by_more_than_the_threshold_fails(factor: float, fails: bool) -> None:
    found = examine(of(4e-6 * factor))

    assert found.fails is fails
    assert found.passes is not fails
    assert [each.case.implementation for each in found.slower] == (["head"] if fails else [])


def test_the_speedup_is_the_baselines_time_over_the_candidates_with_an_interval() -> None:
    [worst] = examine(of(8e-6)).slower

    assert worst.speedup.value == pytest.approx(0.5)
    assert worst.speedup.low
    assert worst.speedup.high
    assert 0.49 < worst.speedup.low < 0.5 < worst.speedup.high < 0.51


def test_the_worst_comes_first() -> None:
    def times(cell: Cell) -> Times:
        return {**TIMES, "head": 4e-6 * (3 if cell.width == 128 else 2)}

    found = examine(paired_run(paired_plan(widths=(64, 128)), times=times))

    assert [each.case.cell.width for each in found.slower] == [128, 64]


def test_of_many_cells_one_that_only_its_own_interval_calls_slower_is_perhaps_chance() -> None:
    noise = (-0.03, 0.0, 0.0, 0.0, 0.03)
    alone = of(4e-6 * 1.06)
    many = paired_run(paired_plan(widths=tuple(64 * n for n in range(1, 41))), times={**TIMES, "head": 4e-6 * 1.06})

    assert alone.comparisons[0].outcome is Outcome.SLOWER
    assert len(examine(alone, noise=noise).slower) == 1
    found = examine(many, noise=noise)
    assert (found.judged, len(found.slower), len(found.chance)) == (40, 0, 40)
    assert set(found.chance) <= set(found.blind)
    assert found.passes


def test_an_interval_that_may_hide_a_regression_is_said_and_passes() -> None:
    found = examine(of(4e-6), noise=(-0.4, -0.2, 0.0, 0.2, 0.4))

    assert len(found.blind) == found.judged == 1
    assert found.passes


@pytest.mark.parametrize("status", [Status.INCORRECT, Status.FAILED, Status.TIMED_OUT, Status.OUT_OF_MEMORY])
def test_a_fault_where_the_baseline_has_a_time_fails(status: Status) -> None:
    found = examine(of(status))

    assert found.fails
    assert found.judged == 0
    assert [result.status for result in found.broken] == [status]
    assert found.unjudged == ()


# --- what can't be told


@pytest.mark.parametrize("head", [4e-6, Status.FAILED])
def test_where_the_baseline_has_no_time_nothing_passes_and_nothing_fails(head: float | Status) -> None:
    found = examine(of(head, base=Status.INCORRECT))

    assert (found.fails, found.passes) == (False, False)
    assert [each.reason for each in found.unjudged] == [Reason.NO_BASELINE]


def test_a_cell_that_the_run_has_not_got_to_is_not_judged() -> None:
    plan = paired_plan(widths=(64, 128))
    found = examine(paired_run(plan, times=TIMES, cells=list(plan.cells())[:1]))

    assert (found.judged, found.fails, found.passes) == (1, False, False)
    assert [(each.case.cell.width, each.reason) for each in found.unjudged] == [(128, None)]


def test_a_comparison_without_an_interval_is_not_judged() -> None:
    run = of(4e-6)
    [comparison] = run.comparisons
    assert comparison.speedup
    bare = replace(comparison.speedup, low=None, high=None)
    short = replace(comparison, speedup=bare, outcome=Outcome.UNDECIDED, reason=Reason.TOO_FEW_PLACEMENTS)

    found = examine(replace(run, comparisons=(short,)))

    assert (found.judged, found.passes) == (0, False)
    assert [each.reason for each in found.unjudged] == [Reason.TOO_FEW_PLACEMENTS]


def test_what_is_unsupported_here_is_said_and_held_against_nobody() -> None:
    def times(cell: Cell) -> Times:
        return {**TIMES, "head": Status.UNSUPPORTED} if cell.width == 128 else TIMES

    found = examine(paired_run(paired_plan(widths=(64, 128)), times=times))

    assert found.passes
    assert [case.cell.width for case in found.unsupported] == [128]


def test_where_nothing_could_be_compared_nothing_passes() -> None:
    assert not examine(of(Status.UNSUPPORTED)).passes


def test_without_samples_nothing_passes_and_nothing_fails() -> None:
    found = run_gate.examine(of(8e-6), 0.05, None)

    assert not found.has_samples
    assert (found.judged, found.fails, found.passes) == (0, False, False)
