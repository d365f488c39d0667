"""Steps in words: the answer, where it changes, and what must be known beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normbench.records import Flag, Status
from normbench.reporters import steps, steps_widths
from tests.runs import make_device
from tests.step_runs import (
    CELLS,
    NAMES,
    RATIOS,
    complete_run,
    empty_run,
    failed_run,
    make_step_header,
    make_step_plan,
    make_step_run,
    training_run,
)

ONE = "nn-layernorm", "eager-rmsnorm", "nn-rmsnorm", "compile-rmsnorm"
CELL = "width 256, 4 layers, 8×256 tokens, fp32, eager model"


def test_one_cell_is_answered_by_what_swapping_does_to_its_step() -> None:
    run = make_step_run(make_step_plan(implementations=ONE))

    assert steps.headline(run) == (
        f"On Some CPU, {CELL}: swapping nn-layernorm for eager-rmsnorm makes this step 1.087 times as long "
        "(1.079 to 1.095); for nn-rmsnorm no difference (0.995 to 1.009); for compile-rmsnorm 0.940 times as long "
        "(0.933 to 0.947)"
    )


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (1.087, "swapping nn-layernorm for nn-rmsnorm makes this step 1.087 times as long (1.079 to 1.095)"),
        (0.9, "swapping nn-layernorm for nn-rmsnorm makes this step 0.900 times as long (0.894 to 0.906)"),
        (1.0, "swapping nn-layernorm for nn-rmsnorm makes no difference to this step (0.993 to 1.007)"),
        (
            1.018,
            "swapping nn-layernorm for nn-rmsnorm: undecided (1.011 to 1.025: different, but by no more than the "
            "margin)",
        ),
        (Status.FAILED, "swapping nn-layernorm for nn-rmsnorm: no time (failed)"),
    ],
)
def test_each_outcome_has_its_words(ratio: float | Status, said: str) -> None:
    plan = make_step_plan(implementations=("nn-layernorm", "nn-rmsnorm"))
    run = make_step_run(plan, {"nn-layernorm": 1.0, "nn-rmsnorm": ratio})

    assert steps.swap(run, plan.cells[0]) == said


def test_a_wide_interval_is_no_answer() -> None:
    plan = make_step_plan(implementations=("nn-layernorm", "nn-rmsnorm"))
    run = make_step_run(plan, {"nn-layernorm": 1.0, "nn-rmsnorm": 1.005}, spread=0.025)

    assert steps.swap(run, plan.cells[0]).endswith("undecided (0.980 to 1.030: the interval is too wide)")


def test_over_several_cells_each_candidate_has_its_range_and_is_counted_where_cells_differ() -> None:
    assert steps.headline(complete_run()) == (
        "On Some CPU, widths 256 and 512, fp32, eager and compiled model: swapping nn-layernorm for eager-layernorm "
        "makes the step 1.120 times as long; for eager-rmsnorm: longer in 2 and no difference in 2 of 4 cells "
        "(estimates 1.003 to 1.087 times as long); for nn-rmsnorm no difference; for compile-layernorm: undecided "
        "(estimates 1.015 times as long); for compile-rmsnorm: shorter in 2 and no difference in 2 of 4 cells "
        "(estimates 0.940 to 1.001 times as long)"
    )


def test_whoever_has_no_time_comes_last_in_the_answer() -> None:
    said = steps.headline(failed_run())

    assert "swapping nn-layernorm for eager-rmsnorm makes this step 1.087" in said
    assert said.endswith("for compile-rmsnorm no time (unsupported)")


def test_without_a_baseline_or_a_measurement_there_is_no_verdict() -> None:
    no_baseline = make_step_run(ratios={**RATIOS, "nn-layernorm": Status.FAILED})

    assert steps.headline(empty_run()) == "On Some CPU: no verdict, since nothing has been measured yet"
    assert steps.headline(no_baseline) == "On Some CPU: no verdict, since the baseline nn-layernorm has no time"


def test_beside_other_programs_the_answer_says_first_that_it_is_not_reliable() -> None:
    run = make_step_run()
    busy = replace(run, results=(replace(run.results[0], flags=(Flag.BUSY_MACHINE,)), *run.results[1:]))

    assert steps.headline(busy).startswith("Not reliable, since other programs ran beside it: On Some CPU")


def test_more_candidates_than_a_headline_holds_are_counted() -> None:
    names = ("nn-layernorm", *(f"x{n}-rmsnorm" for n in range(11)))
    run = make_step_run(make_step_plan(implementations=names), dict.fromkeys(names, 1.0))

    assert steps.headline(run).endswith("for x7-rmsnorm no difference (0.993 to 1.007); and 3 more")
    assert "x10-rmsnorm" in steps.swaps(run)[0]


def test_with_one_width_nothing_is_said_of_several_and_the_command_for_another_is_there() -> None:
    run = make_step_run()
    (note,) = [note for note in steps.notes(run) if "re-measure" in note]

    assert steps_widths.along_widths(run) == []
    assert note.endswith(
        f"re-measure at width 512: normbench step --device cpu --widths 512 --impls {' '.join(NAMES)}"
    )
    assert not any("re-measure" in note for note in steps.notes(complete_run()))


@pytest.mark.parametrize(
    ("command", "again"),
    [
        (("normbench", "step", "--widths", "256", "300", "-q"), "normbench step --widths 512 -q"),
        (("normbench", "step", "--width", "256"), "normbench step --widths 512"),
        (("normbench", "step", "--width=256", "--quick"), "normbench step --widths 512 --quick"),
        (("normbench", "step"), "normbench step --widths 512"),
    ],
)
def test_the_command_for_another_width_replaces_what_it_says_of_widths_and_nothing_else(
    command: tuple[str, ...], again: str
) -> None:
    assert steps.at_width(make_step_run(command=command), 512) == again


def test_a_cpu_verdict_says_that_it_is_none_of_a_gpu_and_training_is_no_device_s() -> None:
    said = "This is a verdict about a CPU, not about a GPU: the kernels that decide there are others."
    gpu = make_step_run(device=make_device(kind="cuda", name="Some GPU"))

    assert said in steps.notes(make_step_run())
    assert said not in steps.notes(gpu)
    assert said not in steps.notes(training_run())


def test_an_incomplete_run_says_what_is_missing_and_a_complete_one_nothing() -> None:
    plan = make_step_plan(cells=CELLS)
    notes = steps.notes(make_step_run(plan, cells=CELLS[:3]))
    trained = training_run()
    cut = replace(trained, curves=trained.curves[:-2])

    assert (
        "This run is incomplete: 1 of 4 cells lacks a final status: width 512, 4 layers, 8×256 tokens, fp32, "
        "compiled model." in notes
    )
    assert "This run is incomplete: 2 of 9 runs are still to be trained to the end." in steps.notes(cut)
    assert not any("incomplete" in note for run in (complete_run(), trained) for note in steps.notes(run))


def test_quick_says_that_less_was_asked_for() -> None:
    assert any("--quick" in note for note in steps.notes(make_step_run(make_step_plan(quick=True))))
    assert not any("--quick" in note for note in steps.notes(make_step_run()))


def test_the_parameters_that_swapping_saves_are_counted_for_each_model() -> None:
    assert steps.parameters(complete_run()) == [
        "Width 256, 4 layers: 2,304 fewer parameters (3,740,160 → 3,737,856) with eager-rmsnorm, nn-rmsnorm and "
        "compile-rmsnorm.",
        "Width 512, 4 layers: 4,608 fewer parameters (13,771,776 → 13,767,168) with eager-rmsnorm, nn-rmsnorm and "
        "compile-rmsnorm.",
    ]
    other = make_step_run(make_step_plan(baseline="nn-rmsnorm", implementations=("nn-layernorm", "nn-rmsnorm")))
    assert steps.parameters(other) == [
        "Width 256, 4 layers: 2,304 more parameters (3,737,856 → 3,740,160) with nn-layernorm."
    ]


def test_a_device_s_name_can_not_break_a_line() -> None:
    run = make_step_run()
    bad = replace(run, header=make_step_header(device=make_device(name="a\nb\x1b[31m")))

    assert steps.headline(bad).startswith("On a b\\x1b[31m, width 256")
