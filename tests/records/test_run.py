from __future__ import annotations

import pytest

from normbench.records import CaseResult, Cell, Comparison, DType, Op, Outcome, Plan, Reason, Run, Status
from tests.helpers import make_header, make_plan, make_result


def make_run(plan: Plan, results: list[CaseResult]) -> Run:
    return Run(header=make_header(plan), results=tuple(results), comparisons=())


def results_of(plan: Plan, cells: list[Cell], status: Status = Status.OK) -> list[CaseResult]:
    return [make_result(name, cell, status) for cell in cells for name in plan.implementations]


@pytest.fixture
def plan() -> Plan:
    return make_plan(widths=(64, 128), dtypes=(DType.FP32, DType.BF16))


def test_a_run_with_a_result_for_every_case_is_complete(plan: Plan) -> None:
    run = make_run(plan, results_of(plan, list(plan.cells())))

    assert run.missing == ()
    assert run.is_complete


def test_the_missing_cells_come_in_the_order_of_the_plan(plan: Plan) -> None:
    cells = list(plan.cells())
    run = make_run(plan, results_of(plan, [cells[2]]))

    assert run.missing == (cells[0], cells[1], cells[3])
    assert not run.is_complete


def test_a_cell_that_lacks_one_implementation_is_missing(plan: Plan) -> None:
    cells = list(plan.cells())
    run = make_run(plan, results_of(plan, cells)[:-1])

    assert run.missing == (cells[-1],)


@pytest.mark.parametrize("status", [s for s in Status if s.is_final and s is not Status.OK])
def test_a_case_that_failed_for_good_is_not_missing(plan: Plan, status: Status) -> None:
    assert make_run(plan, results_of(plan, list(plan.cells()), status)).is_complete


def test_a_case_that_was_not_run_is_missing(plan: Plan) -> None:
    cells = list(plan.cells())
    run = make_run(plan, results_of(plan, cells, Status.NOT_RUN))

    assert run.missing == tuple(cells)


def test_a_case_measured_after_it_was_not_run_is_no_longer_missing(plan: Plan) -> None:
    cells = list(plan.cells())
    run = make_run(plan, results_of(plan, cells, Status.NOT_RUN) + results_of(plan, cells))

    assert run.is_complete


def test_results_of_cells_that_the_plan_does_not_have_complete_nothing(plan: Plan) -> None:
    other = make_plan(widths=(4096,))
    run = make_run(plan, results_of(plan, list(other.cells())))

    assert run.missing == tuple(plan.cells())


def test_a_run_has_times_as_soon_as_one_case_is_ok(plan: Plan) -> None:
    failed = results_of(plan, list(plan.cells()), Status.FAILED)

    assert not make_run(plan, failed).has_times
    assert make_run(plan, [*failed, make_result()]).has_times


def test_an_empty_run_has_no_times_and_is_incomplete(plan: Plan) -> None:
    run = make_run(plan, [])

    assert not run.has_times
    assert not run.is_complete


def test_candidates_are_all_but_the_floor_and_the_baseline() -> None:
    plan = make_plan(implementations=("copy", "eager-rmsnorm", "nn-layernorm", "nn-rmsnorm"), baseline="nn-rmsnorm")

    assert [info.name for info in make_header(plan).candidates] == ["eager-rmsnorm", "nn-layernorm"]


def test_a_header_knows_its_implementations_by_name() -> None:
    assert make_header().info("nn-rmsnorm").op is Op.RMSNORM


def test_results_are_found_by_their_cell_in_the_order_written(plan: Plan) -> None:
    first, second, *_ = plan.cells()
    results = results_of(plan, [second, first])

    assert dict(make_run(plan, results).results_by_cell) == {second: tuple(results[:3]), first: tuple(results[3:])}


def test_a_comparison_is_found_by_cell_and_candidate_and_absent_otherwise(plan: Plan) -> None:
    cell, other, *_ = plan.cells()
    comparison = Comparison(
        cell=cell,
        baseline="nn-layernorm",
        candidate="nn-rmsnorm",
        speedup=None,
        outcome=Outcome.UNDECIDED,
        reason=Reason.NO_CANDIDATE,
    )
    run = Run(header=make_header(plan), results=(), comparisons=(comparison,))

    assert run.comparison(cell, "nn-rmsnorm") is comparison
    assert run.comparison(cell, "eager-rmsnorm") is None
    assert run.comparison(other, "nn-rmsnorm") is None
