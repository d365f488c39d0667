"""What reports say of a gate: one sentence, what fails first, and numbers for programs."""

from __future__ import annotations

from io import StringIO

import pytest

from normbench import run_gate
from normbench.records import Cell, Run, Status
from normbench.reporters import console, document, html, markdown, room
from normbench.reporters import gate as gates
from normbench.reporters.entries import Source
from normbench.reporters.room import ROOMS
from normbench.run_gate import RunGate
from tests.paired import QUIET, paired_plan, paired_run, ratios_of
from tests.reporters.reading import table_after
from tests.runs import Times

TIMES: Times = {"copy": 1e-6, "base": 4e-6, "head": 4e-6}
WIDE = (-0.4, -0.2, 0.0, 0.2, 0.4)


def run_of(head: float | Status = 4e-6, base: float | Status = 4e-6, widths: tuple[int, ...] = (64,)) -> Run:
    return paired_run(paired_plan(widths=widths), times={**TIMES, "head": head, "base": base}, reason="it | broke")


def examined(run: Run, noise: tuple[float, ...] = QUIET) -> RunGate:
    return run_gate.examine(run, 0.05, ratios_of(run, noise))


def mixed(cell: Cell) -> Times:
    return {**TIMES, "head": {64: 4e-6, 128: 8e-6, 256: Status.FAILED}[cell.width]}


MIXED = paired_run(paired_plan(widths=(64, 128, 256)), times=mixed, reason="it | broke")


@pytest.mark.parametrize(
    ("run", "noise", "said"),
    [
        (
            run_of(),
            QUIET,
            "Gate: passed: head not shown to be slower than base by an estimate of more than 5 % in any of "
            "1 comparison",
        ),
        (
            run_of(8e-6),
            QUIET,
            "Gate: failed: head is slower than base by an estimate of more than 5 % in 1 of 1 comparison",
        ),
        (
            run_of(Status.FAILED),
            QUIET,
            "Gate: failed: head ended with a fault in 1 case in which base has a time",
        ),
        (run_of(base=Status.FAILED), QUIET, "Gate: not judged: 1 case could not be judged"),
        (
            run_of(Status.UNSUPPORTED),
            QUIET,
            "Gate: not judged: nothing of head could be compared with base; 1 case unsupported here",
        ),
        (
            run_of(),
            WIDE,
            "Gate: undecided: head not shown to be slower than base by an estimate of more than 5 % in any of "
            "1 comparison; in 1 the interval is too wide to exclude it; none could be cleared, so this says nothing",
        ),
        (
            MIXED,
            QUIET,
            "Gate: failed: head is slower than base by an estimate of more than 5 % in 1 of 2 comparisons; head "
            "ended with a fault in 1 case in which base has a time; intervals are widened so that all 2 hold "
            "together (Bonferroni)",
        ),
    ],
)
def test_one_sentence_says_what_was_found_and_how_sure_that_is(run: Run, noise: tuple[float, ...], said: str) -> None:
    assert gates.sentence(examined(run, noise)) == said


def test_without_samples_the_sentence_says_what_is_missing() -> None:
    found = gates.sentence(run_gate.examine(run_of(8e-6), 0.05, None))

    assert found.startswith("Gate: not judged: intervals are taken from the samples, which are not there")


def test_rows_name_what_fails_first_and_where() -> None:
    rows = [(row.where, row.found) for row in gates.section(examined(MIXED), MIXED.header.plan).rows]

    assert rows == [
        ("32×128 fp32 forward", "slower by more than 5 %"),
        ("fp32 forward at width 256", "failed: it | broke"),
    ]


def test_cells_of_which_the_same_is_to_be_said_share_a_row() -> None:
    run = run_of(base=Status.INCORRECT, widths=(64, 128))

    [row] = gates.section(examined(run), run.header.plan).rows

    assert (row.where, row.found) == ("fp32 forward", "not judged: the baseline has no time here")


def test_the_error_names_the_worst_and_the_first_that_broke() -> None:
    said = gates.message(examined(MIXED))

    assert "the worst is head at 32×128 fp32 forward: 0.500 [0.499, 0.501] times base's speed" in said
    assert "the first that broke is head at 32×256 fp32 forward: failed: it | broke" in said


def test_programs_get_numbers_and_whole_keys() -> None:
    found = gates.as_dictionary(examined(MIXED))

    assert (found["threshold"], found["fails"], found["passes"]) == (0.05, True, False)
    [slower] = found["slower"]  # type: ignore[misc]
    assert (slower["width"], slower["implementation"]) == (128, "head")
    assert slower["speedup_low"] < slower["speedup"] < slower["speedup_high"] < 1
    [broken] = found["broken"]  # type: ignore[misc]
    assert (broken["width"], broken["status"]) == (256, "failed")


def test_the_verdict_says_it_right_after_the_answer_and_in_a_table() -> None:
    text = markdown.render_document(document.of_run(MIXED, examined(MIXED)))

    assert text.splitlines()[2].startswith("- Gate: failed: head is slower than base")
    assert table_after(text, "What the gate found")[1][:2] == ["head", "32×128 fp32 forward"]


def test_a_gate_that_stumbled_over_nothing_has_no_table() -> None:
    run = run_of()
    text = markdown.render_document(document.of_run(run, examined(run)))

    assert "- Gate: passed" in text
    assert "What the gate found" not in text


def test_a_run_without_a_gate_says_nothing_of_one() -> None:
    assert "Gate" not in markdown.render_document(document.of_run(MIXED))


def test_the_page_and_the_console_say_the_same() -> None:
    gate, out = examined(MIXED), StringIO()

    console.show(MIXED, console.console(out), gate)
    page = html.render(document.of_run(MIXED, gate), [Source(run=MIXED)])

    assert f"{gates.sentence(gate)}." in out.getvalue()
    assert "slower by more than 5 %" in out.getvalue()
    assert '<h2 id="gate">What the gate found</h2>' in page
    assert "ended with a fault in 1 case in which base has a time" in page


def test_in_little_room_the_rows_are_cut_and_the_sentence_stays() -> None:
    run = run_of(8e-6, widths=tuple(range(64, 94)))
    whole = document.of_run(run, examined(run))

    shown, left_out = room.shortened(whole, ROOMS[-1])

    assert shown.gate == whole.gate
    assert len(shown.gate_rows) == ROOMS[-1].rows
    assert any("rows of the gate" in said for said in left_out)
