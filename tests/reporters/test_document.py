"""A report of a run as data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normbench import bounds
from normbench.records import Cache, Cell, DType, Flag, Mode, Status
from normbench.reporters import caveats, document
from normbench.reporters.document import StandingLine, SwapLine
from normbench.swaps import BEST
from tests.runs import TIMES, Times, flagged, make_device, make_plan, make_run

NAMES = ("copy", "eager-layernorm", "eager-rmsnorm", "nn-layernorm", "nn-rmsnorm")
PLAN = make_plan(widths=(64, 128), implementations=NAMES)


def growing(cell: Cell) -> Times:
    """Times in proportion to the width: nothing is launch-bound."""
    times = {"copy": 1e-8, "eager-layernorm": 16e-8, "eager-rmsnorm": 8e-8, "nn-layernorm": 4e-8, "nn-rmsnorm": 2e-8}
    return {name: time * cell.width for name, time in times.items()}


def test_a_swap_line_has_an_answer_for_each_provider_in_their_order() -> None:
    report = document.of_run(make_run(PLAN, growing))

    assert report.providers == ("eager", "nn", BEST)
    assert report.swaps == (
        SwapLine(
            what="fp32 forward",
            rows=32,
            cache="warm",
            answers=("yes, 2.00 times as fast",) * 3,
            but="",
        ),
    )


def test_a_provider_that_was_not_tried_in_a_group_has_no_answer_there() -> None:
    plan = replace(PLAN, modes=(Mode.FORWARD, Mode.BACKWARD))

    def times(cell: Cell) -> Times:
        lost = {"eager-rmsnorm": Status.NOT_RUN} if cell.mode is Mode.BACKWARD else {}
        return {**growing(cell), **lost}

    forward, backward = document.of_run(make_run(plan, times)).swaps

    assert forward.answers[0] == "yes, 2.00 times as fast"
    assert backward.answers == ("-", *forward.answers[1:])


def test_groups_that_differ_in_their_cache_alone_can_be_told_apart() -> None:
    report = document.of_run(make_run(replace(PLAN, caches=tuple(Cache)), growing))

    assert [line.cache for line in report.swaps] == [str(cache) for cache in Cache]
    assert [row.cache for row in report.recommendations] == [str(cache) for cache in Cache]


@pytest.mark.parametrize("flag", caveats.WORDS)
def test_every_statement_that_rests_on_a_flagged_result_says_so(flag: Flag) -> None:
    """None is made of results that are launch-bound, in the cache, throttled or beside other programs silently."""
    run = flagged(make_run(PLAN, growing), flag, lambda case: case.cell.width == 64)
    report, word = document.of_run(run), caveats.WORDS[flag]

    assert [row.but for row in report.recommendations] == [f"{word} at width 64"]
    assert [line.but for line in report.swaps] == [f"{word} at width 64"]
    assert [chart.but for chart in report.charts] == [f"{word} at width 64"]
    assert {line.but for line in report.standings} == {f"{word} in 1 of 2 cells"}
    assert (report.headline.caveat or "").endswith(f" rests on results that were {word} in 1 of 2 cells")
    assert any(note.startswith(f"{flag} (5 results: ") for note in report.flags)


def test_without_a_flag_no_statement_is_hedged() -> None:
    run = make_run(PLAN, growing)
    report = document.of_run(run)

    assert set(bounds.flags(run).values()) == {()}
    lines = (*report.recommendations, *report.swaps, *report.charts, *report.standings)
    assert {line.but for line in lines} == {""}
    assert report.headline.caveat is None
    assert report.flags == ()


def test_a_standing_counts_flags_of_the_candidates_own_comparisons_alone() -> None:
    run = flagged(make_run(PLAN, growing), Flag.THROTTLED, lambda case: case.implementation == "nn-rmsnorm")
    lines = {line.candidate: line for line in document.of_run(run).standings}

    assert lines["nn-rmsnorm"] == StandingLine(
        mode="forward",
        candidate="nn-rmsnorm",
        speedups="2.00",
        faster=2,
        same=0,
        slower=0,
        undecided=0,
        but="throttled in 2 of 2 cells",
    )
    assert lines["eager-rmsnorm"].but == ""


def test_wrong_results_are_among_the_notes_and_have_no_time() -> None:
    report = document.of_run(make_run(times={**TIMES, "nn-rmsnorm": Status.INCORRECT}))

    assert "Wrong results, and so without a time: nn-rmsnorm for fp32 forward at width 64." in report.notes
    (line,) = (line for line in report.results[0].lines if line.name == "nn-rmsnorm")
    assert (line.time, line.speedup, line.outcome) == ("-", "-", "incorrect")


def test_flags_of_a_whole_cell_are_below_the_tables_and_not_in_every_line() -> None:
    run = flagged(flagged(make_run(PLAN, growing), Flag.CACHE_RESIDENT), Flag.DRIFTED)
    report = document.of_run(run)

    assert {line.flags for table in report.results for line in table.lines} == {"drifted"}
    assert [note.partition(" ")[0] for note in report.flags] == ["cache_resident", "drifted"]


@pytest.mark.parametrize(("kind", "has_wall"), [("cpu", False), ("cuda", True)])
def test_wall_time_is_a_column_where_it_is_not_the_time_itself(kind: str, has_wall: bool) -> None:
    assert document.of_run(make_run(device=make_device(kind=kind))).has_wall is has_wall


def test_an_incomplete_run_says_so_and_a_complete_one_does_not() -> None:
    plan = make_plan(widths=(64, 128, 256))
    notes = document.of_run(make_run(plan, cells=list(plan.cells())[:1])).notes

    assert (
        notes[-1] == "This run is incomplete: 2 of 3 cells lack a final status: fp32 forward at widths 128 and 256."
    )
    assert not any("incomplete" in note for note in document.of_run(make_run(plan)).notes)


def test_without_an_a_a_test_that_is_said_and_not_passed_over() -> None:
    assert document.of_run(make_run()).trust[0].startswith("No A/A test ran along")


def test_what_is_asked_again_is_the_command() -> None:
    assert document.of_run(make_run(command=("normbench", "sweep", "--quick"))).command == "normbench sweep --quick"


def test_each_group_has_a_table_of_its_results_with_its_title() -> None:
    run = make_run(replace(PLAN, dtypes=(DType.FP32, DType.BF16)), growing)

    assert [(table.title, len(table.lines)) for table in document.of_run(run).results] == [
        ("fp32 forward, 32 rows, warm cache", 10),
        ("bf16 forward, 32 rows, warm cache", 10),
    ]
