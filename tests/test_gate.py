from __future__ import annotations

import pytest

from normbench import gate, stats
from normbench.changes import Side, between
from normbench.gate import Gate
from normbench.records import Outcome, Status
from tests.runs import TIMES, Times, make_plan
from tests.test_changes import SPREAD, change_of, make_side

NOISY = (-0.03, 0.0, 0.0, 0.0, 0.03)


def examine(base: Side, head: Side, threshold: float = 0.05) -> Gate:
    return gate.examine(between(base, head), base, head, threshold)


def slower(factor: float) -> Times:
    return {**TIMES, "nn-rmsnorm": 2e-6 * factor}


@pytest.mark.parametrize(
    ("factor", "fails"), [(0.5, False), (1.0, False), (1.049, False), (1.051, True), (2.0, True)]
)
def test_slower_by_more_than_the_threshold_fails(factor: float, fails: bool) -> None:
    found = examine(make_side(spread=(0.0,) * 5), make_side(slower(factor), spread=(0.0,) * 5))

    assert found.fails == fails
    assert [each.change.case.implementation for each in found.slower] == (["nn-rmsnorm"] if fails else [])


def test_what_is_judged_does_not_include_the_floor() -> None:
    found = examine(make_side(), make_side({**TIMES, "copy": 1.0}))

    assert found.judged == 3
    assert not found.fails


def test_the_worst_comes_first() -> None:
    head = {**TIMES, "nn-rmsnorm": 3e-6, "eager-rmsnorm": 80e-6, "nn-layernorm": 8e-6}
    found = examine(make_side(), make_side(head))

    assert [e.change.case.implementation for e in found.slower] == ["eager-rmsnorm", "nn-layernorm", "nn-rmsnorm"]


@pytest.mark.parametrize("comparisons", [1, 20, 84])
def test_all_intervals_together_hold_as_often_as_one_alone(comparisons: int) -> None:
    assert comparisons * (1 - gate.confidence(comparisons)) == pytest.approx(1 - stats.CONFIDENCE)


def test_of_many_cases_one_that_only_its_own_interval_calls_slower_is_perhaps_chance() -> None:
    plan = make_plan(widths=tuple(64 * n for n in range(1, 41)))
    base, head = make_side(plan=plan, spread=NOISY), make_side(slower(1.06), plan, NOISY)
    found = examine(base, head)
    one = between(base, head)

    assert change_of(one, "nn-rmsnorm").outcome is Outcome.SLOWER
    assert found.judged == 120
    assert (len(found.slower), len(found.chance)) == (0, 40)
    assert {change.case for change in found.chance} <= {change.case for change in found.blind}


def test_alone_the_same_case_is_a_regression() -> None:
    plan = make_plan(implementations=("copy", "nn-layernorm"))
    times = {"copy": 1e-6, "nn-layernorm": 4e-6}
    found = examine(make_side(times, plan, NOISY), make_side({**times, "nn-layernorm": 4.24e-6}, plan, NOISY))

    assert len(found.slower) == 1
    assert found.slower[0].speedup == found.slower[0].change.speedup


def test_an_interval_that_may_hide_a_regression_is_said() -> None:
    wide = (-0.4, -0.2, 0.0, 0.2, 0.4)

    assert {c.case.implementation for c in examine(make_side(), make_side(spread=wide)).blind} == set(TIMES) - {
        "copy"
    }
    assert examine(make_side(), make_side(spread=SPREAD)).blind == ()


@pytest.mark.parametrize("status", [Status.INCORRECT, Status.FAILED, Status.TIMED_OUT, Status.OUT_OF_MEMORY])
def test_a_case_that_had_a_time_and_ends_with_a_fault_fails(status: Status) -> None:
    found = examine(make_side(), make_side({**TIMES, "nn-rmsnorm": status}))

    assert found.fails
    assert found.slower == ()
    assert [pair.case.implementation for pair in found.broken] == ["nn-rmsnorm"]


@pytest.mark.parametrize("status", [Status.UNSUPPORTED, Status.NOT_RUN])
def test_a_case_that_is_not_supported_or_was_not_reached_does_not_fail(status: Status) -> None:
    assert not examine(make_side(), make_side({**TIMES, "nn-rmsnorm": status})).fails


def test_a_case_that_was_broken_before_does_not_fail() -> None:
    broken = {**TIMES, "nn-rmsnorm": Status.INCORRECT}

    assert not examine(make_side(broken), make_side(broken)).fails


def test_without_intervals_nothing_is_judged() -> None:
    found = examine(make_side(spread=SPREAD[:2]), make_side(slower(9.0), spread=SPREAD[:2]))

    assert (found.judged, found.fails) == (0, False)
