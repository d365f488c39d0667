from __future__ import annotations

import io
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from normbench.records import Cache, Cell, DType, Mode, Run, Status
from normbench.reporters import markdown, merged
from normbench.reporters.console import console, show_merged
from tests.runs import TIMES, Times, make_device, make_environment, make_plan, make_run

FAST_EAGER: Times = {"copy": 1e-6, "eager-rmsnorm": 2e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": 8e-6}
UNSURE: Times = {**TIMES, "nn-rmsnorm": 4e-6}
WIDTHS = make_plan(widths=(64, 128))


def run_on(name: str, times: Any = TIMES, plan: Any = WIDTHS, **changes: Any) -> Run:
    return make_run(plan, times, device=make_device(name=name), **changes)


def headline(*runs: Run) -> str:
    return merged.of_runs(runs).headline


def test_runs_whose_verdicts_agree_are_said_to() -> None:
    assert headline(run_on("A"), run_on("B")) == (
        "A and B agree: in each of the 2 cells where two or more have a verdict, one implementation will do for all"
    )


def test_one_cell_in_common_is_one_cell() -> None:
    one = make_plan()

    assert "in the one cell where two or more" in headline(run_on("A", plan=one), run_on("B", plan=one))
    assert "differ in the one cell where" in headline(run_on("A", plan=one), run_on("B", FAST_EAGER, one))


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (run_on("B", FAST_EAGER), "The verdict depends on the device: A and B differ in 2 of the 2 cells"),
        (
            run_on("A", FAST_EAGER, environment=make_environment(torch="3.0")),
            "The verdict depends on the software: A, torch 2.13.0 and A, torch 3.0 differ",
        ),
        (
            run_on("B", FAST_EAGER, environment=make_environment(torch="3.0")),
            "The verdict depends on the device or the software: A and B differ",
        ),
        (run_on("A", FAST_EAGER, created_utc="later"), "The verdict is not the same when repeated: A, torch"),
    ],
)
def test_what_may_be_the_cause_is_what_the_runs_have_unlike(second: Run, said: str) -> None:
    assert headline(run_on("A"), second).startswith(said)


def test_only_the_cells_that_differ_are_counted() -> None:
    other = run_on("B", lambda cell: FAST_EAGER if cell.width == 64 else TIMES)

    assert "differ in 1 of the 2 cells where" in headline(run_on("A"), other)


def test_without_two_verdicts_nothing_is_said_to_agree() -> None:
    assert headline(run_on("A"), run_on("B", UNSURE, spread=0.5)) == (
        "No two verdicts to compare: in none of the cells that A and B share have two of them one"
    )


def test_many_runs_are_counted() -> None:
    assert headline(*(run_on(name) for name in "ABCD")).startswith("4 runs agree: ")
    assert headline(*(run_on(name) for name in "ABC")).startswith("A; B and C agree: ")


def test_each_run_says_what_to_use_and_what_its_results_rest_on() -> None:
    (line,) = merged.of_runs([run_on("A"), run_on("B", FAST_EAGER)]).uses

    assert line.widths == "64, 128"
    assert line.differs
    assert [use.partition(",")[0] for use in line.uses] == ["nn-rmsnorm", "eager-rmsnorm"]


def test_a_run_without_a_cell_has_nothing_to_say_there() -> None:
    fewer = run_on("B", plan=make_plan())
    uses = merged.of_runs([run_on("A"), fewer]).uses

    assert [(line.widths, line.uses[1] == "-") for line in uses] == [("64", False), ("128", True)]


def test_a_note_that_holds_for_all_is_said_once_and_others_name_their_run() -> None:
    notes = merged.of_runs([run_on("A"), run_on("B", cells=list(WIDTHS.cells())[:1])]).notes

    assert sum("a verdict about a CPU" in note for note in notes) == 1
    assert any(note.startswith("Each run: This is a verdict about a CPU") for note in notes)
    assert "B: 1 cell is missing." in notes


def test_swapping_formulas_is_warned_of() -> None:
    notes = merged.of_runs([run_on("A"), run_on("B")]).notes

    assert any("LayerNorm and RMSNorm are different functions" in note for note in notes)


def test_times_stand_beside_each_other_and_what_is_absent_is_a_dash() -> None:
    fewer = run_on("B", {**TIMES, "eager-rmsnorm": Status.FAILED}, make_plan())
    (table,) = merged.of_runs([run_on("A"), fewer]).speedups
    lines = {(line.width, line.name): line.entries for line in table.lines}

    assert lines[64, "nn-rmsnorm"] == ("2.00 µs; 2.00 [1.98, 2.02] faster",) * 2
    assert lines[64, "eager-rmsnorm"][1] == "failed"
    assert lines[128, "copy"] == ("1.00 µs", "-")


def test_an_implementation_that_no_run_has_in_a_cell_has_no_line() -> None:
    plan = make_plan(implementations=("copy", "nn-layernorm", "eager-rmsnorm"))
    times = {name: TIMES[name] for name in plan.implementations}
    (table,) = merged.of_runs([run_on("A", times, plan), run_on("B", times, plan)]).speedups

    assert [line.name for line in table.lines] == ["copy", "nn-layernorm", "eager-rmsnorm"]


def test_software_that_one_run_lacks_is_a_dash() -> None:
    runs = [run_on("A", environment=make_environment(triton="3.0")), run_on("B")]

    assert ("Triton", "3.0", "-") in merged.of_runs(runs).environment


def test_answers_on_rmsnorm_name_the_cache_that_they_hold_for() -> None:
    run = run_on("A", plan=make_plan(caches=(Cache.WARM, Cache.COLD)))
    lines = merged.of_runs([run, run_on("B")]).swaps

    assert [(line.cache, line.answers) for line in lines if line.provider == "nn"] == [
        ("warm", ("yes, 2.00 times as fast", "yes, 2.00 times as fast")),
        ("cold", ("yes, 2.00 times as fast", "-")),
    ]


def table_shapes(text: str) -> list[set[int]]:
    """For each markdown table how many columns its rows have."""
    tables = re.findall(r"(?:^\|.*\|[ ]*\n)+", text, re.MULTILINE)
    return [{len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()} for table in tables]


@pytest.mark.parametrize("count", [2, 3, 7])
def test_the_tables_in_markdown_have_as_many_fields_as_heads(count: int) -> None:
    text = markdown.render_document(merged.of_runs([run_on(f"device {number}") for number in range(count)]))

    assert len(table_shapes(text)) >= 3
    assert all(len(shape) == 1 for shape in table_shapes(text))


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_no_name_breaks_a_table_or_begins_one(name: str) -> None:
    runs = [run_on(f"x{name}", environment=make_environment(torch=name)), run_on("B", FAST_EAGER)]
    text = markdown.render_document(merged.of_runs(runs))
    plain = markdown.render_document(merged.of_runs([run_on("xA"), run_on("B", FAST_EAGER)]))

    assert table_shapes(text) == table_shapes(plain)


@settings(max_examples=8)
@given(st.integers(1, 60), st.integers(2, 12), st.integers(1, 400))
def test_markdown_of_several_runs_fits_into_a_pull_request(widths: int, runs: int, length: int) -> None:
    plan = make_plan(
        widths=tuple(range(8, 8 + 8 * widths, 8)),
        dtypes=(DType.FP32, DType.BF16),
        modes=(Mode.FORWARD, Mode.BACKWARD),
    )

    def times(cell: Cell) -> Times:
        return FAST_EAGER if cell.width % 3 else TIMES

    every = [run_on(f"{number}<{'|' * length}", times if number % 2 else TIMES, plan) for number in range(runs)]
    text = markdown.render_document(merged.of_runs(every))

    assert len(text) < 60_000
    assert all(len(shape) == 1 for shape in table_shapes(text))
    assert "## What to use" in text


def test_what_is_left_out_is_said_with_the_file_that_has_it() -> None:
    plan = make_plan(widths=tuple(range(8, 4008, 8)))
    text = markdown.render_document(merged.of_runs([run_on("A", plan=plan), run_on("B", plan=plan)]))

    assert re.search(r"- Left out here, .* of 2000 rows of times and speedups \(all are in results.csv\)", text)


def test_the_name_of_a_device_is_not_said_twice_in_a_line() -> None:
    text = markdown.render_document(merged.of_runs([run_on("Alpha"), run_on("Beta")]))

    assert "\n- On Alpha, 32 rows: " in text


def test_runs_of_one_device_are_named_before_their_answers() -> None:
    text = markdown.render_document(merged.of_runs([run_on("A"), run_on("A", created_utc="later")]))

    assert "\n- A, torch 2.13.0, later: On A, 32 rows: " in text


def shown(*runs: Run) -> str:
    file = io.StringIO()
    show_merged(merged.of_runs(runs), console(file))
    return file.getvalue()


def test_the_terminal_shows_a_column_for_each_run_and_ends_with_the_answer() -> None:
    lines = [line.rstrip() for line in shown(run_on("Alpha"), run_on("Beta", FAST_EAGER)).splitlines()]
    (row,) = [line for line in lines if "fp32 forward" in line]

    assert any(re.search(r"widths +Alpha +Beta", line) for line in lines)
    assert re.search(r"64, 128 +nn-rmsnorm, .* +eager-rmsnorm, .* +differs$", row)
    assert lines[-1] == f"{headline(run_on('Alpha'), run_on('Beta', FAST_EAGER))}."


def test_markup_in_a_name_is_shown_and_not_obeyed() -> None:
    assert "[bold]A[/bold]" in shown(run_on("[bold]A[/bold]"), run_on("B"))
