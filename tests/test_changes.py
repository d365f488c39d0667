from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log

import pytest

from normbench.changes import BROKEN, Change, Changes, Side, between
from normbench.records import Accuracy, Case, Cell, DType, Flag, Outcome, Plan, Reason, Run, Status
from tests.runs import TIMES, Times, make_cell, make_plan, make_run

CELL = make_cell()
SPREAD = (-0.002, -0.001, 0.0, 0.001, 0.002)
"""Five placements that agree within a few thousandths."""


def make_side(
    times: Times = TIMES, plan: Plan | None = None, spread: tuple[float, ...] = SPREAD, **changes: object
) -> Side:
    """A run whose placements are spread around its times."""
    run = make_run(plan, times, **changes)  # type: ignore[arg-type]
    return Side(run=run, logs=logs_of(run, spread))


def logs_of(run: Run, spread: tuple[float, ...] = SPREAD) -> Mapping[Case, Mapping[tuple[int, int], float]]:
    return {
        result.case: {(0, n): log(result.timing.time_s.value) + off for n, off in enumerate(spread)}
        for result in run.results
        if result.timing is not None
    }


def with_result(side: Side, name: str, **changes: object) -> Side:
    """The same side, with one implementation's results changed."""
    results = tuple(
        replace(result, **changes) if result.case.implementation == name else result  # type: ignore[arg-type]
        for result in side.run.results
    )
    return replace(side, run=replace(side.run, results=results))


def change_of(found: Changes, name: str, cell: Cell = CELL) -> Change:
    every = [*found.changes, *found.floor]
    return next(change for change in every if change.case == Case(cell=cell, implementation=name))


def test_above_1_head_is_faster() -> None:
    found = between(make_side(), make_side({**TIMES, "nn-rmsnorm": 1e-6, "eager-rmsnorm": 10e-6}))
    faster, slower, same = (change_of(found, name) for name in ("nn-rmsnorm", "eager-rmsnorm", "nn-layernorm"))

    assert (faster.outcome, slower.outcome, same.outcome) == (Outcome.FASTER, Outcome.SLOWER, Outcome.SAME)
    assert faster.speedup is not None
    assert faster.speedup.value == pytest.approx(2.0)
    assert faster.before is not None
    assert faster.before.value == pytest.approx(2e-6)
    assert faster.after is not None
    assert faster.after.value == pytest.approx(1e-6)


def test_turned_round_faster_becomes_slower() -> None:
    base, head = make_side(), make_side({**TIMES, "nn-rmsnorm": 1e-6})

    assert change_of(between(head, base), "nn-rmsnorm").outcome is Outcome.SLOWER


def test_a_run_against_itself_is_the_same_everywhere() -> None:
    found = between(make_side(), make_side())

    assert {change.outcome for change in (*found.changes, *found.floor)} == {Outcome.SAME}
    assert [mean.speedup for mean in found.means] == pytest.approx([1.0] * 4)


def test_the_margin_is_that_of_base() -> None:
    wide = make_plan(precision=replace(make_plan().precision, margin=0.5))
    head = {**TIMES, "nn-rmsnorm": 2.2e-6}

    assert change_of(between(make_side(plan=wide), make_side(head)), "nn-rmsnorm").outcome is Outcome.SAME
    assert change_of(between(make_side(), make_side(head, wide)), "nn-rmsnorm").outcome is Outcome.SLOWER


def test_too_few_placements_decide_nothing() -> None:
    head = {**TIMES, "nn-rmsnorm": 1.0}
    change = change_of(between(make_side(), make_side(head, spread=SPREAD[:4])), "nn-rmsnorm")

    assert (change.outcome, change.reason) == (Outcome.UNDECIDED, Reason.TOO_FEW_PLACEMENTS)
    assert change.speedup is not None


def test_another_dtype_of_the_output_is_undecided_however_much_faster() -> None:
    accuracy = Accuracy(max_abs_error=0.0, max_rel_error=0.0, out_dtype=DType.BF16)
    head = with_result(make_side({**TIMES, "nn-rmsnorm": 1e-9}), "nn-rmsnorm", accuracy=accuracy)
    change = change_of(between(make_side(), head), "nn-rmsnorm")

    assert (change.speedup, change.outcome, change.reason) == (None, Outcome.UNDECIDED, Reason.OUT_DTYPE_DIFFERS)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_a_case_that_lost_its_time_is_kept_with_its_status_and_broke_only_by_a_fault(status: Status) -> None:
    found = between(make_side(), make_side({**TIMES, "nn-rmsnorm": status}))

    (pair,) = found.lopsided
    assert (pair.base.status, pair.head.status) == (Status.OK, status)
    assert pair.is_broken == (status in BROKEN)
    assert (found.broken == (pair,)) == (status in BROKEN)
    assert "nn-rmsnorm" not in {change.case.implementation for change in found.changes}


def test_faults_are_these_and_neither_a_missing_ability_nor_an_interruption() -> None:
    assert {Status.INCORRECT, Status.FAILED, Status.TIMED_OUT, Status.OUT_OF_MEMORY} == BROKEN


def test_a_case_that_got_a_time_broke_nothing() -> None:
    found = between(make_side({**TIMES, "nn-rmsnorm": Status.FAILED}), make_side())

    assert len(found.lopsided) == 1
    assert found.broken == ()


def test_a_case_without_a_time_in_either_is_said() -> None:
    times = {**TIMES, "nn-rmsnorm": Status.UNSUPPORTED}
    found = between(make_side(times), make_side(times))

    assert [case.implementation for case in found.untimed] == ["nn-rmsnorm"]
    assert found.lopsided == ()


def test_what_is_in_one_run_alone_is_said() -> None:
    wide, narrow = make_plan(widths=(64, 128)), make_plan(widths=(64,), implementations=("copy", "nn-layernorm"))
    found = between(make_side(plan=wide), make_side(plan=narrow))

    assert len(found.only_base) == 6
    assert found.only_head == ()
    assert len(between(make_side(plan=narrow), make_side(plan=wide)).only_head) == 6
    assert [change.case.implementation for change in found.changes] == ["nn-layernorm"]


def test_the_floor_is_a_gauge_and_no_candidate() -> None:
    found = between(make_side(), make_side({**TIMES, "copy": 0.5e-6}))

    assert [change.case.implementation for change in found.floor] == ["copy"]
    assert "copy" not in {change.case.implementation for change in found.changes}
    assert "copy" not in {mean.implementation for mean in found.means}
    assert found.floor_speedup == pytest.approx(2.0)


def test_a_floor_of_one_run_alone_is_a_candidate_like_others() -> None:
    other = make_plan(floor="nn-rmsnorm")
    found = between(make_side(), make_side(plan=other))

    assert found.floor == ()
    assert found.floor_speedup is None
    assert "copy" in {change.case.implementation for change in found.changes}


def test_geometric_means_are_over_the_cells_of_each_and_over_all() -> None:
    plan = make_plan(widths=(64, 128), implementations=("copy", "nn-layernorm", "nn-rmsnorm"))
    base = make_side({"copy": 1e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": 2e-6}, plan)
    halved = {64: 2e-6, 128: 1e-6}
    head = make_run(plan, lambda cell: {"copy": 1e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": halved[cell.width]})
    found = between(base, Side(run=head, logs=logs_of(head)))
    means = {mean.implementation: (mean.speedup, mean.cases) for mean in found.means}

    assert means["nn-layernorm"] == (pytest.approx(1.0), 2)
    assert means["nn-rmsnorm"] == (pytest.approx(2**0.5), 2), "of 1 and 2"
    assert means[None] == (pytest.approx(2**0.25), 4)


def test_of_one_implementation_there_is_no_mean_over_all() -> None:
    plan = make_plan(implementations=("copy", "nn-layernorm"))

    assert [mean.implementation for mean in between(make_side(plan=plan), make_side(plan=plan)).means] == [
        "nn-layernorm"
    ]


def test_relative_to_the_baseline_it_has_no_ratio_of_its_own() -> None:
    found = between(make_side(), make_side(), relative=True)

    assert {change.case.implementation for change in found.changes} == {"eager-rmsnorm", "nn-rmsnorm"}
    assert [change.case.implementation for change in found.floor] == ["copy"]


def test_a_relative_time_that_is_missing_is_undecided_for_want_of_a_baseline() -> None:
    head = make_side()
    logs = {case: logs for case, logs in head.logs.items() if case.implementation != "nn-rmsnorm"}
    change = change_of(between(make_side(), replace(head, logs=logs), relative=True), "nn-rmsnorm")

    assert (change.speedup, change.after, change.outcome) == (None, None, Outcome.UNDECIDED)
    assert change.reason is Reason.NO_BASELINE


def test_flags_that_make_a_ratio_doubtful_come_along_with_their_run() -> None:
    base = with_result(make_side(), "nn-rmsnorm", flags=(Flag.BUSY_MACHINE, Flag.COMPOSITE))
    head = with_result(make_side(), "nn-rmsnorm", flags=(Flag.THROTTLED,))
    change = change_of(between(base, head), "nn-rmsnorm")

    assert (change.base_flags, change.head_flags) == ((Flag.BUSY_MACHINE,), (Flag.THROTTLED,))


def test_nothing_is_decided_without_an_interval() -> None:
    with pytest.raises(ValueError, match="without an interval"):
        Change(
            case=Case(cell=CELL, implementation="nn-rmsnorm"),
            before=None,
            after=None,
            speedup=None,
            outcome=Outcome.FASTER,
            reason=Reason.INTERVAL_EXCLUDES_1,
        )


def test_two_empty_runs_have_nothing_to_say() -> None:
    empty = Side(run=make_run(cells=[]), logs={})
    found = between(empty, empty)

    assert (found.changes, found.floor, found.lopsided, found.means, found.floor_speedup) == ((), (), (), (), None)


def test_results_are_compared_and_not_mixed_up_between_cells() -> None:
    plan = make_plan(widths=(64, 128))
    head = make_run(plan, lambda cell: {**TIMES, "nn-rmsnorm": 2e-6 if cell.width == 64 else 4e-6})
    found = between(make_side(plan=plan), Side(run=head, logs=logs_of(head)))

    assert change_of(found, "nn-rmsnorm").outcome is Outcome.SAME
    assert change_of(found, "nn-rmsnorm", make_cell(width=128)).outcome is Outcome.SLOWER
