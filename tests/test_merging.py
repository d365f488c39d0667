from __future__ import annotations

from typing import Any

import pytest

from normbench import merging
from normbench.records import Cache, DType, Mode, Operation, Precision, Run
from tests.runs import NAMES, TIMES, Times, make_device, make_environment, make_plan, make_run

WIDTHS = (64, 128, 256)
FAST_EAGER: Times = {"copy": 1e-6, "eager-rmsnorm": 2e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": 8e-6}
EVEN: Times = {"copy": 1e-6, "eager-rmsnorm": 2e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": 2e-6}
"""Both candidates are equally fast: rivals of each other."""


def run_on(name: str, times: Any = TIMES, plan: Any = None, **changes: Any) -> Run:
    return make_run(plan or make_plan(widths=WIDTHS), times, device=make_device(name=name), **changes)


def widths_of(row: merging.Row) -> list[int]:
    return [cell.width for cell in row.cells]


def shown(runs: list[Run]) -> list[tuple[list[int], bool]]:
    return [(widths_of(row), row.differs) for row in merging.rows(runs)]


def test_runs_of_the_same_plan_can_be_compared() -> None:
    assert merging.differences([run_on("A"), run_on("B")]) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"baseline": "nn-rmsnorm"}, "--baseline is nn-layernorm against nn-rmsnorm"),
        ({"eps": 1e-5}, "--eps is 1e-06 against 1e-05"),
        ({"precision": Precision(margin=0.05)}, "margin is 2 % against 5 %"),
    ],
)
def test_what_must_be_alike_is_named_with_both_values(changes: dict[str, Any], said: str) -> None:
    other = run_on("B", plan=make_plan(widths=WIDTHS, **changes))

    assert merging.differences([run_on("A"), other]) == [said]


def test_runs_of_two_operations_are_never_put_side_by_side_even_with_names_alike() -> None:
    norms = run_on("A")
    adding = run_on("B", plan=make_plan(widths=WIDTHS, operation=Operation.ADD_NORM))

    assert merging.differences([norms, adding]) == ["--operation is norm against add-norm"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rows": (64,)}, "rows 32 against 64"),
        ({"widths": (512, 1024)}, "width 64 128 256 against 512 1024"),
        ({"dtypes": (DType.BF16,)}, "dtype fp32 against bf16, parameter_dtype fp32 against bf16"),
        ({"modes": (Mode.BACKWARD,)}, "mode forward against backward"),
        ({"caches": (Cache.COLD,)}, "cache warm against cold"),
    ],
)
def test_without_a_common_cell_the_axis_is_named_with_both_values(changes: dict[str, Any], said: str) -> None:
    runs = [run_on("A"), run_on("B", plan=make_plan(**{"widths": WIDTHS, **changes}))]
    found = merging.differences(runs)

    assert len(found) == 2
    assert found[0] == f"A has no cell in common with another: {said}"


def test_where_only_combinations_differ_that_is_said() -> None:
    plan = make_plan(widths=(64, 128), rows=(32, 64))
    alike = [cell for cell in plan.cells() if cell.width == 2 * cell.rows]
    others = [cell for cell in plan.cells() if cell not in alike]
    found = merging.differences([run_on("A", plan=plan, cells=alike), run_on("B", plan=plan, cells=others)])

    assert found[0].endswith("no combination of mode, rows, width, dtypes and cache occurs in both")


def test_a_run_without_results_has_none_in_common() -> None:
    found = merging.differences([run_on("A"), run_on("B", cells=())])

    assert "B has no cell in common with another: one has no results" in found


def test_runs_of_one_device_are_told_apart_where_they_have_no_cell_in_common() -> None:
    found = merging.differences([run_on("A"), run_on("A", plan=make_plan(rows=(64,)), created_utc="later")])

    assert [line.partition(" has")[0] for line in found] == [
        "A, torch 2.13.0, 2026-01-02T03:04:05Z",
        "A, torch 2.13.0, later",
    ]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (run_on("B"), ("A", "B")),
        (run_on("A", environment=make_environment(torch="3.0")), ("A, torch 2.13.0", "A, torch 3.0")),
        (
            run_on("A", created_utc="later"),
            ("A, torch 2.13.0, 2026-01-02T03:04:05Z", "A, torch 2.13.0, later"),
        ),
        (
            run_on("A"),
            (
                "A, torch 2.13.0, 2026-01-02T03:04:05Z, run 1",
                "A, torch 2.13.0, 2026-01-02T03:04:05Z, run 2",
            ),
        ),
    ],
)
def test_a_run_is_called_by_as_little_as_tells_it_apart(second: Run, expected: tuple[str, ...]) -> None:
    assert merging.labels([run_on("A"), second]) == expected


def test_neighbouring_widths_with_the_same_answers_share_a_row() -> None:
    other = run_on("B", times=lambda cell: FAST_EAGER if cell.width == 256 else TIMES)

    assert shown([run_on("A"), other]) == [([64, 128], False), ([256], True)]


def test_widths_that_are_no_neighbours_have_rows_of_their_own() -> None:
    other = run_on("B", times=lambda cell: FAST_EAGER if cell.width == 128 else TIMES)

    assert shown([run_on("A"), other]) == [([64], False), ([128], True), ([256], False)]


def test_a_rival_of_the_best_one_will_do() -> None:
    assert shown([run_on("A", EVEN), run_on("B", TIMES), run_on("C", EVEN)]) == [(list(WIDTHS), False)]


def test_three_differ_where_no_one_will_do_for_all_though_two_and_two_agree() -> None:
    runs = [run_on("A", EVEN), run_on("B", TIMES), run_on("C", FAST_EAGER)]

    assert shown(runs) == [(list(WIDTHS), True)]


def test_widths_at_which_rivals_will_do_are_not_marked_with_those_where_they_will_not() -> None:
    """Both runs say the same along all widths; only at 128 and 256 can't one be replaced by the other."""
    some_even = run_on("A", lambda cell: EVEN if cell.width == 64 else FAST_EAGER)
    found = shown([some_even, run_on("B", TIMES)])

    assert found == [([64], False), ([128, 256], True)]


def test_a_run_that_abstains_contradicts_nobody() -> None:
    undecided = run_on("B", {**TIMES, "nn-rmsnorm": 4e-6}, spread=0.5)
    rows = list(merging.rows([run_on("A"), undecided]))

    assert [row.differs for row in rows] == [False]
    assert [row.decided for row in rows] == [1]


def test_a_run_that_lacks_cells_has_no_choice_there_and_contradicts_nobody() -> None:
    fewer = run_on("B", FAST_EAGER, make_plan(widths=(64,)))
    first, rest = merging.rows([run_on("A"), fewer])

    assert (widths_of(first), first.differs, first.decided) == ([64], True, 2)
    assert (widths_of(rest), rest.differs, rest.decided) == ([128, 256], False, 1)
    assert rest.choices[1] == ()


def test_a_cell_that_only_the_second_run_has_is_shown() -> None:
    assert shown([run_on("A", plan=make_plan(widths=(64,))), run_on("B")]) == [([64], False), ([128, 256], False)]


def test_cells_of_other_dtypes_have_rows_of_their_own() -> None:
    plan = make_plan(widths=WIDTHS, dtypes=(DType.FP32, DType.BF16), implementations=NAMES)
    rows = list(merging.rows([run_on("A", plan=plan), run_on("B", plan=plan)]))

    assert [row.cells[0].dtype for row in rows] == [DType.FP32, DType.BF16]
