"""What a report says of base and head: how they compare, where their code lies, whether it is one code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normbench.records import Cell, Mode, Status
from normbench.reporters import against, document
from tests.paired import COMMIT, OTHER, brought, info, paired_plan, paired_run, source
from tests.runs import Times, make_run

TIMES: Times = {"copy": 1e-6, "base": 4e-6, "head": 4e-6}
PLAN = paired_plan(widths=(64, 128), modes=(Mode.FORWARD, Mode.BACKWARD))


def slow_backward(cell: Cell) -> Times:
    return {**TIMES, "head": 8e-6} if cell.mode is Mode.BACKWARD and cell.width == 128 else TIMES


def test_the_answer_is_what_head_does_against_base_and_where() -> None:
    run = paired_run(PLAN, times=slow_backward, spread=0.001)

    assert against.sentence(run) == (
        "head is slower than base in 1 of 4 cells (fp32 backward at width 128: 0.50 times as fast), as fast in 3 "
        "(fp32 forward; fp32 backward at width 64)"
    )
    assert document.of_run(run).headline.use.endswith(f"32 rows: {against.sentence(run)}")


@pytest.mark.parametrize(
    ("head", "spread", "said"),
    [
        (4e-6, 0.001, "head is as fast as base in 1 of 1 cell (fp32 forward at width 64)"),
        (2e-6, 0.001, "head is faster than base in 1 of 1 cell (fp32 forward at width 64: 2.00 times as fast)"),
        (4e-6, 0.5, "head is undecided against base in 1 of 1 cell (fp32 forward at width 64)"),
    ],
)
def test_each_outcome_has_its_words(head: float, spread: float, said: str) -> None:
    assert against.sentence(paired_run(times={**TIMES, "head": head}, spread=spread)) == said


def test_too_many_places_are_counted() -> None:
    def times(cell: Cell) -> Times:
        is_slow = cell.width == (64 if cell.mode is Mode.FORWARD else 128)
        return {**TIMES, "head": 8e-6 if is_slow else 4e-6}

    run = paired_run(PLAN, times=times, spread=0.001)

    assert against.sentence(run) == "head is slower than base in 2 of 4 cells (0.50 times as fast), as fast in 2"


def test_cells_without_a_comparison_are_counted() -> None:
    def times(cell: Cell) -> Times:
        return {**TIMES, "head": Status.FAILED} if cell.width == 128 else TIMES

    run = paired_run(paired_plan(widths=(64, 128)), times=times, spread=0.001)

    assert str(against.sentence(run)).endswith("in 1 of 2 cells (fp32 forward at width 64), not compared in 1")


def test_where_nothing_could_be_compared_the_answer_says_so() -> None:
    run = paired_run(times={**TIMES, "head": Status.FAILED})

    assert against.sentence(run) == "head could not be compared with base in any of 1 cell"


def test_before_anything_is_measured_the_answer_is_the_usual_one() -> None:
    run = paired_run(times={}, cells=())

    assert against.sentence(run) is None
    assert "no verdict" in document.of_run(run).headline.use


def test_a_run_that_brings_no_base_is_reported_as_ever() -> None:
    plan = paired_plan(
        implementations=("copy", "nn-rmsnorm", "head"), brought=(brought("head"),), baseline="nn-rmsnorm"
    )
    run = paired_run(plan, times={"copy": 1e-6, "nn-rmsnorm": 4e-6, "head": 8e-6})

    assert against.sentence(run) is None
    assert against.notes(run) == []
    assert against.notes(make_run()) == []


def test_the_notes_say_where_the_code_was_found() -> None:
    run = paired_run(head=source(commit=OTHER, line=14, digest="cd" * 32, has_changes=True), times=TIMES)

    assert against.notes(run) == [
        "base is kernels/rms.py:12 at commit 1a2b3c4d5e; head is kernels/rms.py:14 at commit 6f7a8b9c0d, with "
        "uncommitted changes."
    ]
    assert set(against.notes(run)) <= set(document.of_run(run).notes)


def test_the_same_code_twice_is_said_to_be_an_a_a_test() -> None:
    [_where, same] = against.notes(paired_run(head=source(), times=TIMES))

    assert same == "base and head are the same code: whatever differs between them is noise (an A/A test)."


@pytest.mark.parametrize("head", [source(commit=OTHER), source(commit=COMMIT, has_changes=True)])
def test_the_same_file_among_others_is_said_to_be_one_file(head: object) -> None:
    [_where, same] = against.notes(paired_run(head=head, times=TIMES))  # type: ignore[arg-type]

    assert same.startswith("base and head are one file, letter for letter")


def test_two_attributes_of_one_file_are_two_codes() -> None:
    plan = paired_plan(brought=(brought("base", "old_rmsnorm"), brought("head")))

    assert len(against.notes(paired_run(plan, head=source(), times=TIMES))) == 1


def test_head_of_another_formula_is_no_other_version_of_base() -> None:
    run = paired_run(times=TIMES)
    infos = [replace(each, op="layernorm") if each.name == "head" else each for each in run.header.implementations]

    assert against.pair(replace(run.header, implementations=tuple(infos)))[1] == []
    assert info("head", None).source is None
