"""Does RMSNorm pay here, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normbench.records import Cell, Flag, Outcome, Reason, Run, Status
from normbench.reporters import caveats, swapping
from tests.runs import TIMES, Times, flagged, make_plan, make_run

NAMES = ("copy", "eager-layernorm", "eager-rmsnorm", "nn-layernorm", "nn-rmsnorm")
PLAN = make_plan(widths=(64, 128, 256), implementations=NAMES)
PAYS: Times = {**TIMES, "eager-layernorm": 16e-6}


def depends(cell: Cell) -> Times:
    """nn-rmsnorm is faster at 64, the same at 128, slower at 256."""
    return {**PAYS, "nn-rmsnorm": {64: 2e-6, 128: 4e-6, 256: 8e-6}[cell.width]}


def recorded(run: Run) -> caveats.Flags:
    return {result.case: result.flags for result in run.results}


def said(run: Run) -> str | None:
    return swapping.sentence(run, recorded(run))


def answers(run: Run) -> dict[str, str]:
    return swapping.by_provider(run, list(run.header.plan.cells()))


def test_each_provider_has_one_answer_where_all_its_cells_agree() -> None:
    assert said(make_run(PLAN, PAYS)) == (
        "Does RMSNorm pay here? eager: yes, 2.00 times as fast; nn: yes, 2.00 times as fast; "
        "fastest of each: yes, 2.00 times as fast"
    )


@pytest.mark.parametrize(("time", "answer"), [(8e-6, "no, 0.50 times as fast"), (4e-6, "no difference (within 2 %)")])
def test_a_swap_that_costs_or_changes_nothing_says_so(time: float, answer: str) -> None:
    assert answers(make_run(PLAN, {**PAYS, "nn-rmsnorm": time}))["nn"] == answer


def test_where_the_cells_disagree_it_depends_and_each_answer_is_counted() -> None:
    text = said(make_run(PLAN, depends))

    assert text is not None
    assert "nn: it depends, yes in 1, no in 1 and no difference in 1 of 3 cells (0.50 to 2.00 times as fast);" in text


def test_undecided_cells_are_counted_beside_the_one_answer_of_the_rest() -> None:
    run = make_run(PLAN, PAYS)
    swaps = tuple(
        replace(s, outcome=Outcome.UNDECIDED, reason=Reason.INTERVAL_TOO_WIDE) if s.cell.width == 64 else s
        for s in run.swaps
    )
    text = said(replace(run, swaps=swaps))

    assert text is not None
    assert "nn: yes in 2 and undecided in 1 of 3 cells (2.00 times as fast);" in text


def test_an_open_swap_is_undecided_with_what_was_found() -> None:
    run = make_run(PLAN, {**PAYS, "nn-rmsnorm": 3.9e-6}, spread=0.1)

    assert answers(run)["nn"] == "undecided (1.03 times as fast)"


@pytest.mark.parametrize(
    ("gone", "why"),
    [("nn-layernorm", "LayerNorm has no time"), ("nn-rmsnorm", "RMSNorm has no time")],
)
def test_where_one_of_two_has_no_time_there_is_no_answer_and_it_says_who(gone: str, why: str) -> None:
    assert answers(make_run(PLAN, {**PAYS, gone: Status.FAILED}))["nn"] == f"no answer, since {why}"


def test_outputs_of_unlike_dtypes_are_not_said_to_lack_a_time() -> None:
    run = make_run(PLAN, PAYS)
    undecided = {"speedup": None, "outcome": Outcome.UNDECIDED, "reason": Reason.OUT_DTYPE_DIFFERS}
    swaps = tuple(replace(swap, **undecided) for swap in run.swaps)

    assert answers(replace(run, swaps=swaps))["nn"] == "no answer, since their outputs have unlike dtypes"


def test_without_both_formulas_there_is_no_answer_at_all() -> None:
    run = make_run(make_plan(implementations=("copy", "nn-layernorm", "eager-layernorm")), PAYS)

    assert said(run) is None
    assert answers(run) == {}


def test_along_the_widths_neighbours_with_one_answer_share_it() -> None:
    def times(cell: Cell) -> Times:
        return {**PAYS, "nn-rmsnorm": {64: 2e-6, 128: 3e-6, 256: 8e-6}[cell.width]}

    assert answers(make_run(PLAN, times))["nn"] == (
        "up to 128: yes, 1.33 to 2.00 times as fast; at 256: no, 0.50 times as fast"
    )


@pytest.mark.parametrize("flag", caveats.WORDS)
@pytest.mark.parametrize("name", ["eager-layernorm", "nn-rmsnorm"])
def test_answers_that_rest_on_flagged_results_say_so(flag: Flag, name: str) -> None:
    run = flagged(make_run(PLAN, PAYS), flag, lambda case: case.implementation == name and case.cell.width < 256)
    word = caveats.WORDS[flag]

    assert str(said(run)).endswith(f"fast. These results were {word} in 2 of 3 cells")
    assert swapping.but(run, list(PLAN.cells()), recorded(run)) == f"{word} at widths 64 and 128"


def test_a_flag_on_all_widths_is_said_without_them_and_none_not_at_all() -> None:
    run = make_run(PLAN, PAYS)
    busy = flagged(run, Flag.BUSY_MACHINE)

    assert swapping.but(busy, list(PLAN.cells()), recorded(busy)) == "beside other programs"
    assert swapping.but(run, list(PLAN.cells()), recorded(run)) == ""


def test_flags_of_what_was_not_compared_are_not_spoken_of() -> None:
    run = flagged(make_run(PLAN, PAYS), Flag.LAUNCH_BOUND, lambda case: case.implementation == "copy")

    assert "These results" not in str(said(run))
    assert swapping.but(run, list(PLAN.cells()), recorded(run)) == ""
