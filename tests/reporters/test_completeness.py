from __future__ import annotations

from dataclasses import replace

import pytest

from normbench.changes import Side
from normbench.records import Mode, Plan, Resumption, Run
from normbench.reporters import changes_notes, completeness, document, markdown, merged, method
from tests.reporters.test_changes import report
from tests.reporters.test_console import shown
from tests.reporters.test_html import page_of
from tests.runs import make_header, make_plan, make_run
from tests.test_changes import logs_of, make_side

PLAN = make_plan(widths=(64, 128, 256, 512))
WHEN = "2026-01-03T04:05:06Z"
LATER = "2026-01-04T00:00:00Z"
NEW_TORCH = Resumption(created_utc=WHEN, cells=1, differences=("torch was 2.12.0, is 2.13.0", "numpy was 2, is 3"))
BACK = Resumption(created_utc=LATER, cells=3, differences=())
MORE = Resumption(created_utc=WHEN, cells=2, differences=(), plan=("--widths was 64 128, is 64 128 256 512",))


def run_of(*resumed: Resumption, done: int = 4, plan: Plan = PLAN) -> Run:
    return make_run(plan, cells=list(plan.cells())[:done], resumed=resumed)


def test_a_run_that_is_complete_and_was_made_at_one_go_has_nothing_to_say() -> None:
    assert completeness.notes(run_of()) == []


def test_it_is_said_which_cells_are_missing() -> None:
    plan = make_plan(widths=(64, 128), modes=(Mode.FORWARD, Mode.BACKWARD), rows=(32, 64))

    assert completeness.notes(run_of(done=3, plan=plan)) == [
        "This run is incomplete: 5 of 8 cells lack a final status: "
        "fp32 forward, 64 rows at width 128; fp32 backward, 32 rows; fp32 backward, 64 rows."
    ]


def test_more_places_than_can_be_read_are_counted() -> None:
    plan = make_plan(rows=tuple(range(1, 21)))
    (note,) = completeness.notes(run_of(done=0, plan=plan))

    assert note.startswith(
        "This run is incomplete: 20 of 20 cells lack a final status: fp32 forward, 1 rows at width 64"
    )
    assert note.endswith("12 rows at width 64; 8 more such places.")


def test_cells_that_were_measured_on_something_else_are_counted_and_what_it_was_is_said() -> None:
    assert completeness.notes(run_of(NEW_TORCH)) == [
        f"The 3 cells measured from {WHEN} on, after its first cell, ran on something else than the run began with "
        "(--force): torch was 2.12.0, is 2.13.0; numpy was 2, is 3. Compare times within one cell only; each speedup "
        "was taken within one."
    ]


def test_only_those_until_the_next_time_are_counted() -> None:
    (note,) = completeness.notes(run_of(NEW_TORCH, BACK))

    assert note.startswith(f"The 2 cells measured from {WHEN} on, after its first cell, ran on")


def test_where_none_was_measured_so_nothing_is_said() -> None:
    assert completeness.resumption_notes(run_of(NEW_TORCH, replace(BACK, cells=1))) == []
    assert completeness.resumption_notes(run_of(NEW_TORCH, done=1)) == []


def test_a_plan_that_was_changed_is_said_with_when_and_how() -> None:
    assert completeness.notes(run_of(MORE)) == [
        f"The plan of this run was changed at {WHEN}, after its first 2 cells (--force): "
        "--widths was 64 128, is 64 128 256 512."
    ]


@pytest.mark.parametrize("made", [NEW_TORCH, MORE])
def test_every_report_says_it(made: Resumption) -> None:
    run = run_of(made)
    (note,) = completeness.resumption_notes(run)
    sentence = note.removesuffix(".")

    assert note in document.of_run(run).notes
    assert f"- {markdown.escape(note)}" in markdown.render(run).partition("\n## ")[0]
    assert note in shown(run)
    assert note.split(": ")[0] in page_of(run).replace('<span class="whole">', "").replace("</span>", "")
    assert any(note in line for line in merged.of_runs([run, run_of()]).notes)
    assert f"HEAD: {sentence}" in changes_notes.notes(report(make_side(), Side(run=run, logs=logs_of(run))))


def test_the_surroundings_name_what_changed_and_when() -> None:
    rows = method.environment(make_header(PLAN, resumed=(NEW_TORCH, BACK)))

    assert rows[-2:] == [
        (f"from {WHEN} on", "torch was 2.12.0, is 2.13.0; numpy was 2, is 3"),
        (f"from {LATER} on", "as at first"),
    ]
