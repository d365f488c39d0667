"""Words for places, and the sentences around a verdict."""

from __future__ import annotations

import pytest

from normbench import bounds, verdict
from normbench.crossover import Stretch
from normbench.records import Cache, Cell, DType, Flag, Mode, Outcome, Reason, Status
from normbench.reporters import statements
from normbench.reporters.meanings import FLAGS, REASONS, REMEDIES
from tests.runs import TIMES, Times, flagged, make_cell, make_device, make_plan, make_run

WIDE = make_plan(widths=(64, 128, 256))
SLOWER: Times = {"copy": 1e-6, "eager-rmsnorm": 8e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": 5e-6}
FAILED: Times = {**TIMES, "nn-layernorm": Status.FAILED}


def two_winners(cell: Cell) -> Times:
    return TIMES if cell.width == 64 else SLOWER


def test_places_with_the_same_widths_are_said_once_for_all_their_dtypes() -> None:
    plan = make_plan(widths=(64, 128), dtypes=tuple(DType))
    cells = [cell for cell in plan.cells() if (cell.dtype, cell.width) != (DType.BF16, 128)]

    assert statements.where(plan, cells) == ["fp32 and fp16 forward", "bf16 forward at width 64"]


def test_places_name_the_axes_in_which_the_plan_varies_and_no_others() -> None:
    plan = make_plan(rows=(32, 48), caches=(Cache.WARM, Cache.COLD))
    odd = make_cell(rows=48, parameter_dtype=DType.BF16, autocast=DType.FP16, cache=Cache.COLD)

    assert statements.where(plan, [odd]) == [
        "fp32 forward, bf16 parameters, autocast fp16, 48 rows, cold cache at width 64"
    ]
    assert statements.where(make_plan(), [make_cell()]) == ["fp32 forward at width 64"]


def test_standings_count_outcomes_and_give_the_range_of_speedups() -> None:
    standing, other = statements.standings(make_run(WIDE, two_winners))

    assert (standing.candidate, standing.low, standing.high) == ("eager-rmsnorm", 0.5, 0.5)
    assert standing.counts == {Outcome.FASTER: 0, Outcome.SLOWER: 3, Outcome.SAME: 0, Outcome.UNDECIDED: 0}
    assert (other.candidate, other.mode) == ("nn-rmsnorm", Mode.FORWARD)
    assert (other.low, other.high) == (pytest.approx(0.8), 2.0)


def test_undecided_comparisons_are_listed_by_reason_with_what_would_decide_them() -> None:
    run = make_run(WIDE, lambda cell: FAILED if cell.width == 64 else TIMES)

    assert statements.open_questions(run, {}) == [
        "eager-rmsnorm and nn-rmsnorm for fp32 forward at width 64 (no_baseline): the baseline has no time here. "
        "What would decide it: a --baseline that runs here"
    ]


def test_each_undecided_candidate_is_listed_where_it_is_undecided_and_nowhere_else() -> None:
    plan = make_plan(widths=(64, 128))
    near = {64: "nn-rmsnorm", 128: "eager-rmsnorm"}
    run = make_run(plan, lambda cell: {**TIMES, near[cell.width]: 3.9e-6}, spread=0.1)

    assert statements.open_questions(run, {}) == [
        "nn-rmsnorm for fp32 forward at width 64; eager-rmsnorm for fp32 forward at width 128 (interval_too_wide): "
        "the interval is too wide. What would decide it: more time (--max-seconds), more --processes on a CPU, or a "
        "quieter machine"
    ]


def test_undecided_comparisons_in_too_many_places_are_counted() -> None:
    plan = make_plan(widths=(64, 128, 256, 512), rows=(32, 48), dtypes=tuple(DType), modes=tuple(Mode)[:2])
    wide: Times = {**SLOWER, "nn-rmsnorm": 3.9e-6}
    odd = lambda cell: (cell.width // 64 + cell.rows // 16 + list(DType).index(cell.dtype)) % 2  # noqa: E731
    run = make_run(plan, lambda cell: wide if odd(cell) else TIMES, spread=0.1)
    (line,) = statements.open_questions(run, {})

    assert line.startswith("nn-rmsnorm in 24 comparisons (interval_too_wide): the interval is too wide. What would")


def test_a_candidate_without_a_time_is_no_open_question() -> None:
    assert statements.open_questions(make_run(times={**TIMES, "nn-rmsnorm": Status.FAILED}), {}) == []


@pytest.mark.parametrize(
    ("kind", "graphs", "said"), [("cuda", False, True), ("cuda", True, False), ("cpu", False, False)]
)
def test_where_launching_dominates_it_is_said_how_to_measure_without(kind: str, graphs: bool, said: bool) -> None:
    run = flagged(make_run(make_plan(graphs=graphs), device=make_device(kind=kind)), Flag.LAUNCH_BOUND)
    lines = statements.open_questions(run, bounds.flags(run))

    assert (
        any(line.startswith("Launch-bound results say what an eager loop feels: --graphs") for line in lines) is said
    )


def test_cases_without_a_time_are_listed_by_status_and_reason_with_their_places() -> None:
    run = make_run(WIDE, lambda cell: FAILED if cell.width > 64 else TIMES, reason="RuntimeError: no")

    assert statements.unmeasured(run) == [
        ("nn-layernorm: failed", "fp32 forward at widths 128 and 256", "RuntimeError: no")
    ]


def test_flags_are_said_with_who_has_them_and_what_they_mean() -> None:
    cases = [result.case for result in make_run().results]

    (note,) = statements.flag_notes({c: (Flag.DRIFTED,) if c.implementation != "copy" else () for c in cases})
    assert note == (
        "drifted (3 results: eager-rmsnorm, nn-layernorm and nn-rmsnorm): "
        "times drifted by more than 10 % while the cell was measured; ratios are of pairs timed within "
        "moments, which a slow drift leaves alone"
    )


def test_every_flag_and_every_reason_has_a_meaning_and_what_is_undecided_a_remedy() -> None:
    assert set(FLAGS) == set(Flag)
    assert set(REASONS) == set(Reason)
    assert set(REMEDIES) == set(Reason) - {Reason.INTERVAL_EXCLUDES_1, Reason.INTERVAL_INSIDE_MARGIN}


def test_a_cpu_run_says_that_it_is_none_about_gpus() -> None:
    cpu = make_run(device=make_device(fused_rmsnorm=False))
    gpu = make_run(device=make_device(kind="cuda", fused_rmsnorm=True))
    turing = make_run(device=make_device(kind="cuda", native_bf16=False))

    assert [note.partition(":")[0] for note in statements.device_notes(cpu)] == [
        "This is a verdict about a CPU, not about a GPU",
        "This device has no fused RMSNorm in this torch",
    ]
    assert statements.device_notes(gpu) == []
    assert statements.device_notes(turing) == ["This device emulates bfloat16."]


@pytest.mark.parametrize("differ", [True, False])
def test_a_training_step_is_told_to_measure_both_passes_as_one_where_their_winners_differ(differ: bool) -> None:
    plan = make_plan(widths=(64, 128), modes=(Mode.FORWARD, Mode.BACKWARD))
    run = make_run(plan, lambda cell: SLOWER if differ and cell == next(plan.cells()) else TIMES)

    notes = statements.advice_notes(run, verdict.of_run(run))

    assert notes[0].startswith("LayerNorm and RMSNorm are different functions")
    assert any("--modes forward-backward" in note for note in notes) == differ


def test_whoever_gave_wrong_results_is_named_with_the_places() -> None:
    plan = make_plan(widths=(64, 128), dtypes=(DType.FP32, DType.FP16))

    def times(cell: Cell) -> Times:
        wrong = {"eager-rmsnorm": Status.INCORRECT} if cell.dtype is DType.FP16 else {}
        return {**TIMES, **wrong, **({"nn-rmsnorm": Status.INCORRECT} if cell.width == 64 else {})}

    run = make_run(plan, times)
    assert statements.advice_notes(run, verdict.of_run(run))[1:] == [
        "Wrong results, and so without a time: nn-rmsnorm for fp32 and fp16 forward at width 64; "
        "eager-rmsnorm for fp16 forward."
    ]


@pytest.mark.parametrize("beside", [False, True])
def test_where_torch_ran_its_copy_of_quack_s_kernel_the_verdict_says_that_two_names_are_one_kernel(
    beside: bool,
) -> None:
    times = {**TIMES, **({"quack-rmsnorm": 2e-6} if beside else {})}
    plan = make_plan(widths=(64, 128), implementations=tuple(times))
    run = make_run(plan, times)
    replaced = flagged(
        run,
        Flag.VENDORED_QUACK,
        lambda case: case.implementation == "nn-rmsnorm" and case.cell.width == 64,
    )

    (note,) = [note for note in statements.advice_notes(replaced, verdict.of_run(replaced)) if "quack's" in note]
    one = "nn-rmsnorm and quack-rmsnorm are one kernel there, as far as their versions are one"
    meant = one if beside else "not torch's own"
    assert note == (
        "torch ran its copy of quack's kernel as nn-rmsnorm for fp32 forward at width 64: "
        f"{meant} (with TORCH_DISABLE_NATIVE_JIT=1 it runs its own)."
    )
    assert not any("quack's" in note for note in statements.advice_notes(run, verdict.of_run(run)))


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.INCORRECT])
def test_no_other_status_is_said_to_be_a_wrong_result(status: Status) -> None:
    run = make_run(times=TIMES if status is Status.OK else {**TIMES, "nn-rmsnorm": status})

    assert not any("Wrong" in note for note in statements.advice_notes(run, verdict.of_run(run)))


def test_advice_that_rests_on_coarse_sums_says_so() -> None:
    run = flagged(make_run(WIDE), Flag.COARSE_SUMS, lambda case: case.implementation == "nn-rmsnorm")

    assert statements.advice_notes(run, verdict.of_run(run))[1:] == [
        "nn-rmsnorm sums the gradients of gain and bias in half precision for fp32 forward: far less exact."
    ]
    unadvised = flagged(make_run(WIDE), Flag.COARSE_SUMS, lambda case: case.implementation == "eager-rmsnorm")
    assert len(statements.advice_notes(unadvised, verdict.of_run(unadvised))) == 1


@pytest.mark.parametrize(
    ("widths", "is_first", "is_last", "said"),
    [
        ((64, 128), True, True, ""),
        ((64,), True, True, ""),
        ((64, 128), True, False, "up to 128: "),
        ((64, 128), False, True, "from 64 on: "),
        ((64, 128), False, False, "64 to 128: "),
        ((64,), True, False, "at 64: "),
        ((64,), False, True, "at 64: "),
    ],
)
def test_a_stretch_is_said_by_its_ends(widths: tuple[int, ...], is_first: bool, is_last: bool, said: str) -> None:
    assert statements.along(Stretch(answer=0, widths=widths, items=(), is_first=is_first, is_last=is_last)) == said


def test_many_widths_are_counted_with_their_ends() -> None:
    assert statements.at([64]) == "width 64"
    assert statements.at([64, 128]) == "widths 64 and 128"
    assert statements.at([1024, 64, 2, 3, 4, 5, 6]) == "7 widths from 2 to 1024"


def test_a_range_of_ratios_that_are_written_alike_is_one_number() -> None:
    assert statements.value_range([1.004, 1.0041]) == "1.00"
    assert statements.value_range([0.5, 2]) == "0.50 to 2.00"
