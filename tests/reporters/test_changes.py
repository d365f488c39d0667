from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from normbench import gate
from normbench.changes import Side, between
from normbench.records import Cell, Flag, Precision, Status
from normbench.reporters import changes_notes
from normbench.reporters.changes import Report
from normbench.reporters.changes_data import as_dictionary
from normbench.reporters.changes_markdown import LIMIT, render
from normbench.reporters.changes_table import show
from normbench.reporters.console import console
from tests.runs import TIMES, Times, make_environment, make_plan, make_run
from tests.test_changes import SPREAD, logs_of, make_side, with_result


class Terminal(io.StringIO):
    """Text that is shown to somebody."""

    def isatty(self) -> bool:
        return True


def report(base: Side, head: Side, *, relative: bool = False, threshold: float | None = None) -> Report:
    found = between(base, head, relative=relative)
    judged = None if threshold is None else gate.examine(found, base, head, threshold)
    return Report(found=found, gate=judged, base="before", head="after")


def shown(told: Report, file: io.StringIO | None = None) -> str:
    file = file or io.StringIO()
    show(told, console(file))
    return file.getvalue()


def wide_side(times: Callable[[Cell], Times] | Times = TIMES, cells: int = 12) -> Side:
    run = make_run(make_plan(widths=tuple(64 * n for n in range(1, cells + 1))), times)
    return Side(run=run, logs=logs_of(run))


CHANGED = {**TIMES, "nn-rmsnorm": 1e-6, "eager-rmsnorm": 12e-6}


def test_the_table_has_a_line_a_case_and_the_answer_last() -> None:
    lines = shown(report(make_side(), make_side(CHANGED), threshold=0.05)).splitlines()

    assert lines[0].startswith("fp32 forward, 32 rows, warm cache: time, speedup of HEAD")
    assert [line.split() for line in lines if " nn-rmsnorm " in line and "[" in line] == [
        ["64", "nn-rmsnorm", "2.00", "µs", "1.00", "µs", "2.00", "[1.99,", "2.01]", "faster"]
    ]
    assert lines[-3] == "HEAD (after) against BASE (before): of 3 cases 1 slower, 1 faster and 1 same, margin 2 %."
    assert lines[-2].startswith("Geometric mean of the speedups 1.10 over 3 cases: eager-rmsnorm 0.67, ")
    assert lines[-1].startswith("--fail-on: failed: 1 of 3 cases is slower by more than 5 %, by intervals widened")


def test_the_table_fits_into_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = shown(report(make_side(), make_side(CHANGED), threshold=0.05), Terminal())

    assert "…" not in text
    table = [line for line in text.splitlines() if "nn-rmsnorm" in line and "µs" in line]
    assert len(table) == 1, "nothing is folded"
    assert "faster" in table[0]


@pytest.mark.parametrize("relative", [False, True])
def test_it_says_which_of_the_two_ratios_it_is(relative: bool) -> None:
    told = report(make_side(), make_side(), relative=relative)

    for text in (shown(told), render(told), " ".join(changes_notes.notes(told))):
        assert ("each time ÷ its own run's nn-layernorm" in text) == relative
        assert ("what the machine did in one of them alone is in every ratio" in text) != relative


def test_the_floor_tells_how_much_the_machine_did() -> None:
    told = report(make_side(), make_side({**TIMES, "copy": 1e-6 / 1.03}))

    assert "The floor copy came out 1.03 times as fast in HEAD: about so much is the machine" in changes_notes.notes(
        told
    )


def test_with_other_software_the_floor_may_be_its_doing() -> None:
    told = report(make_side(), make_side(environment=make_environment(torch="3.0")))

    assert any(note.endswith("about so much is the machine, or the software") for note in changes_notes.notes(told))


def test_what_differs_between_the_environments_is_a_warning_with_both_values() -> None:
    told = report(make_side(), make_side(environment=make_environment(torch="3.0")))

    assert "warning: the runs differ in torch: 2.13.0 in BASE, 3.0 in HEAD" in shown(told)
    assert "- torch: 2.13.0 in BASE, 3.0 in HEAD" in render(told)


def test_a_broken_case_is_said_before_the_tables() -> None:
    told = report(
        make_side(), make_side({**TIMES, "nn-rmsnorm": Status.INCORRECT}, reason="y[0] is 3"), threshold=0.05
    )
    text = render(told)

    assert "1 case that had a time broke" in text.splitlines()[0]
    assert text.index("nn-rmsnorm: ok in BASE, incorrect in HEAD") < text.index("## The same")
    assert "y\\[0\\] is 3" in text
    assert "nn-rmsnorm: ok in BASE, incorrect in HEAD, fp32 forward at width 64: y[0] is 3" in shown(told)


def test_what_is_in_one_run_alone_is_named_in_both() -> None:
    told = report(wide_side(cells=2), make_side())

    for text in (shown(told), render(told)):
        assert "only in BASE: copy, eager-rmsnorm, nn-layernorm and nn-rmsnorm, fp32 forward at width 128" in text


def test_beside_other_programs_nothing_is_reliable_and_the_lines_are_marked() -> None:
    told = report(make_side(), with_result(make_side(), "nn-rmsnorm", flags=(Flag.BUSY_MACHINE, Flag.THROTTLED)))
    text = shown(told)

    assert "Not reliable, since other programs ran beside HEAD: HEAD (after) against" in text
    assert "busy_machine (0 in BASE, 1 in HEAD, of 3)" in text
    assert next(line for line in text.splitlines() if "nn-rmsnorm" in line).rstrip().endswith(" bt")
    assert "busy\\_machine (HEAD), throttled (HEAD)" in render(told)


@pytest.mark.parametrize(("cells", "about"), [(2, None), (12, "Of 36 intervals of 95 % about 2 will miss")])
def test_of_many_intervals_some_miss_by_chance(cells: int, about: str | None) -> None:
    notes = " ".join(changes_notes.notes(report(wide_side(cells=cells), wide_side(cells=cells))))

    assert (about in notes) if about else ("by chance" not in notes)


def test_one_process_is_no_replication_and_five_are() -> None:
    five = make_plan(precision=Precision(processes=5))
    alone = changes_notes.notes(report(make_side(), make_side(plan=five)))
    both = changes_notes.notes(report(make_side(plan=five), make_side(plan=five)))

    assert any(note.startswith("BASE measured in one process") for note in alone)
    assert not any("one process" in note for note in both)


def test_an_incomplete_run_is_said() -> None:
    run = make_run(make_plan(widths=(64, 128)), cells=list(make_plan().cells()))
    notes = changes_notes.notes(report(make_side(), Side(run=run, logs=logs_of(run))))

    assert "HEAD is incomplete: 1 cell is missing" in notes


def test_the_same_run_twice_is_said() -> None:
    assert "BASE and HEAD are the same run: nothing can have changed" in changes_notes.notes(
        report(make_side(), make_side())
    )


def test_two_runs_without_a_common_time_say_so() -> None:
    told = report(make_side(), make_side(dict.fromkeys(TIMES, Status.UNSUPPORTED)))

    assert "HEAD (after) against BASE (before): no case has a time in both." in shown(told)
    assert render(told).startswith("**HEAD (after) against BASE (before): no case has a time in both.**\n")


def test_markdown_has_the_slowest_first_then_the_fastest() -> None:
    def times(cell: Cell) -> Times:
        return {**TIMES, "nn-rmsnorm": 2e-6 * cell.width / 192}

    text = render(report(wide_side(cells=4), wide_side(times, cells=4)))
    order = [text.index(what) for what in ("## Slower in HEAD", "32×256", "## Faster in HEAD", "32×64", "32×128")]

    assert order == sorted(order)


def test_markdown_stays_short_and_names_what_it_leaves_out() -> None:
    def times(cell: Cell) -> Times:
        return {**TIMES, "nn-rmsnorm": 3e-6 if cell.width > 64 * 890 else 2e-6}

    text = render(report(wide_side(cells=900), wide_side(times, cells=900), threshold=0.05))

    assert LIMIT * 0.95 < len(text) < LIMIT
    assert text.count("| 3.00 µs |") == 10, "every regression is there"
    assert "Left out, to stay short enough for a comment: " in text
    assert " same." in text


def test_markdown_stays_short_whatever_the_reasons_say() -> None:
    plan = make_plan(implementations=("copy", "nn-layernorm", *(f"mine-{n}" for n in range(500))))
    fine = dict.fromkeys(plan.implementations, 1e-6)
    broken = {name: Status.FAILED if name.startswith("mine") else 1e-6 for name in plan.implementations}
    base, head = make_side(fine, plan), make_side(broken, plan, reason="x|`*<b>" * 5000)
    text = render(report(base, head, threshold=0.05))

    assert len(text) < LIMIT
    assert "And 475 more." in text
    assert "500 cases that had a time broke" in text


def test_no_name_or_reason_is_read_as_markup() -> None:
    plan = make_plan(implementations=("copy", "nn-layernorm", "mine|<b>*x*"))
    base = make_side({"copy": 1e-6, "nn-layernorm": 4e-6, "mine|<b>*x*": 1e-6}, plan)
    head = make_side({"copy": 1e-6, "nn-layernorm": 4e-6, "mine|<b>*x*": 2e-6}, plan)

    assert "| mine\\|&lt;b&gt;\\*x\\* | " in render(report(base, head))
    assert "mine|<b>*x*" in shown(report(base, head))


@pytest.mark.parametrize("threshold", [None, 0.05])
@pytest.mark.parametrize("relative", [False, True])
def test_a_program_reads_numbers_and_none_for_what_is_absent(relative: bool, threshold: float | None) -> None:
    few = (-0.001, 0.001)
    base, head = make_side(spread=few), make_side({**CHANGED, "nn-layernorm": Status.INCORRECT})
    data = json.loads(json.dumps(as_dictionary(report(base, head, relative=relative, threshold=threshold))))
    (change,) = [each for each in data["changes"] if each["implementation"] == "nn-rmsnorm"]

    assert change["speedup"] == pytest.approx(2.0)
    assert (change["speedup_low"], change["outcome"], change["reason"]) == (None, "undecided", "too_few_placements")
    assert (change["width"], change["autocast"]) == (64, None)
    assert data["relative"] is relative
    assert [each["head_status"] for each in data["time_in_one"]] == ["incorrect"]
    assert (data["gate"] is None) == (threshold is None)


def test_a_program_reads_what_the_gate_found() -> None:
    data = as_dictionary(report(make_side(), make_side(CHANGED), threshold=0.05))
    found = json.loads(json.dumps(data))["gate"]

    assert (found["threshold"], found["judged"], found["fails"]) == (0.05, 3, True)
    assert [each["implementation"] for each in found["slower"]] == ["eager-rmsnorm"]
    assert math.isclose(found["slower"][0]["speedup"], 2 / 3)


def test_the_message_of_a_regression_names_how_many_and_the_worst() -> None:
    head = make_side({**CHANGED, "nn-layernorm": Status.FAILED}, reason="no memory\nleft")
    told = report(make_side(), head, threshold=0.05)
    assert told.gate is not None

    message = changes_notes.regression_message(told.gate)

    slower, broken = message.split("; ")
    case = "32×64 fp32 forward warm"
    assert slower.startswith(f"1 of 2 cases is slower by more than 5 %, the worst eager-rmsnorm {case} at 0.667 [")
    assert broken == f"1 case that had a time broke, the first nn-layernorm {case}: failed: no memory left"


def test_a_gate_that_can_judge_nothing_does_not_say_that_it_passed() -> None:
    told = report(make_side(spread=SPREAD[:2]), make_side(spread=SPREAD[:2]), threshold=0.05)
    assert told.gate is not None

    assert changes_notes.gate_note(told.gate) == (
        "--fail-on: no case can be judged to be slower, by an estimate of more than 5 %, since none has an interval"
    )


def test_the_reason_of_an_undecided_case_is_explained() -> None:
    other = replace(make_side().run.results[0].accuracy, out_dtype=None)  # type: ignore[type-var]
    told = report(make_side(), with_result(make_side(), "nn-rmsnorm", accuracy=other))

    assert "out_dtype_differs (1): its output has another dtype in HEAD than in BASE" in shown(told)
