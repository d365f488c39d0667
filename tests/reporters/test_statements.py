from __future__ import annotations

from dataclasses import replace

import pytest

from normbench import verdict
from normbench.records import Cache, Cell, DType, Flag, Mode, Outcome, Plan, Reason, Run, Status
from normbench.reporters import statements
from normbench.reporters.statements import Headline
from tests.runs import TIMES, Times, make_cell, make_device, make_plan, make_run

WIDE = make_plan(widths=(64, 128, 256))
SLOWER: Times = {"copy": 1e-6, "eager-rmsnorm": 8e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": 5e-6}
FAILED: Times = {**TIMES, "nn-layernorm": Status.FAILED}


def headline(run: Run) -> Headline:
    return statements.headline(run, verdict.of_run(run))


def two_winners(cell: Cell) -> Times:
    return TIMES if cell.width == 64 else SLOWER


def scattered(cell: Cell) -> Times:
    """The winner changes with every width, and with the mode."""
    index = (64, 128, 256, 512).index(cell.width) + (cell.mode is Mode.BACKWARD)
    return TIMES if index % 2 else SLOWER


def run_of(plan: Plan, names: tuple[str, ...]) -> Run:
    return make_run(replace(plan, implementations=names))


def test_one_winner_everywhere_is_said_with_all_dtypes_modes_and_widths() -> None:
    run = make_run(make_plan(widths=(64, 128, 256), dtypes=(DType.FP32, DType.BF16), modes=tuple(Mode)[:2]))

    assert headline(run) == Headline(
        use="On Some CPU, 32 rows: use nn-rmsnorm for fp32 and bf16, forward and backward, at widths 64, 128 and 256",
        gain="Where nn-layernorm is not the fastest, the best is 2.00 times as fast, "
        "for fp32 and bf16 forward and backward",
        certainty="How sure: 24 of 24 comparisons are decided (95 % intervals over placements, margin 2 %; "
        "half of them ±1 % or narrower)",
    )


def test_several_winners_are_each_said_with_their_place() -> None:
    said = headline(make_run(WIDE, two_winners))

    assert said.use == (
        "On Some CPU, 32 rows: use nn-rmsnorm for fp32 forward at width 64; "
        "use nn-layernorm for fp32 forward at widths 128 and 256"
    )
    assert said.gain.endswith("the best is 2.00 times as fast, for fp32 forward at width 64")


def test_winners_in_too_many_places_are_counted() -> None:
    plan = make_plan(
        widths=(64, 128, 256, 512), dtypes=tuple(DType), rows=(32, 48), modes=(Mode.FORWARD, Mode.BACKWARD)
    )
    said = headline(make_run(plan, scattered))

    assert said.use == (
        "On Some CPU: of 48 cells, use nn-layernorm in 24 and use nn-rmsnorm in 24 (the table below says where)"
    )
    assert said.gain.endswith("the best is 2.00 times as fast (in 24 cells)")


def test_where_nothing_is_faster_it_says_so_and_how_much_slower_the_rest_is() -> None:
    said = headline(make_run(WIDE, SLOWER))

    assert said.use == "On Some CPU, 32 rows: use nn-layernorm for fp32, forward, at widths 64, 128 and 256"
    assert (
        said.gain == "Nothing was found faster than nn-layernorm; the slower ones run at 0.50 to 0.80 times its speed"
    )


def test_where_a_candidate_is_the_same_it_says_how_often() -> None:
    run = make_run(times={**SLOWER, "nn-rmsnorm": 4e-6})

    assert headline(run).gain == (
        "Nothing was found faster than nn-layernorm; the slower ones run at 0.50 times its speed; "
        "1 of 2 comparisons find no difference"
    )


def test_where_somebody_may_be_faster_the_verdict_abstains() -> None:
    run = make_run(times={**SLOWER, "eager-rmsnorm": 4.1e-6}, spread=0.5)

    assert headline(run) == Headline(
        use="On Some CPU, 32 rows: undecided for fp32, forward, at width 64",
        gain="Nothing could be told apart from nn-layernorm",
        certainty="How sure: 0 of 2 comparisons are decided (95 % intervals over placements, margin 2 %; "
        "half of them ±41 % or narrower)",
    )


def test_without_a_baseline_there_is_no_verdict() -> None:
    assert headline(make_run(times=FAILED)) == Headline(
        use="On Some CPU, 32 rows: no verdict, since the baseline nn-layernorm has no time",
        gain="Nothing could be compared with nn-layernorm",
        certainty="Not sure of anything: no comparison was possible",
    )


def test_a_baseline_alone_is_not_said_to_lack_a_time() -> None:
    said = headline(run_of(make_plan(), ("copy", "nn-layernorm")))

    assert said.use == "On Some CPU, 32 rows: no verdict, since nothing was compared with nn-layernorm"


def test_a_winner_is_not_claimed_for_cells_without_a_verdict() -> None:
    plan = make_plan(widths=(64, 128), dtypes=(DType.FP32, DType.BF16))
    run = make_run(plan, lambda cell: FAILED if (cell.width, cell.dtype) == (128, DType.FP32) else TIMES)

    assert headline(run).use == (
        "On Some CPU, 32 rows: use nn-rmsnorm for fp32 forward at width 64 and for bf16 forward"
    )


@pytest.mark.parametrize(("count", "said"), [(2, "; 1 cell is missing"), (1, "; 2 cells are missing")])
def test_an_incomplete_run_says_how_much_is_missing(count: int, said: str) -> None:
    assert headline(make_run(WIDE, cells=list(WIDE.cells())[:count])).certainty.endswith(said)


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


def test_a_choice_names_its_gain_its_rivals_and_what_is_undecided() -> None:
    run = make_run(times={**TIMES, "eager-rmsnorm": 2.01e-6})
    (group,) = verdict.of_run(run).groups
    (_, choice), *_ = statements.group_choices(group)

    assert statements.choice_text(choice) == "nn-rmsnorm 2.00 [1.98, 2.02]; not told apart from it: eager-rmsnorm"
    assert statements.choice_text(replace(choice, speedup=None, rivals=(), undecided=("a", "b", "c"))) == (
        "nn-rmsnorm; undecided: a, b and c"
    )
    assert statements.choice_text(replace(choice, best=None)) == "no verdict"


def test_standings_count_outcomes_and_give_the_range_of_speedups() -> None:
    standing, other = statements.standings(make_run(WIDE, two_winners))

    assert (standing.candidate, standing.low, standing.high) == ("eager-rmsnorm", 0.5, 0.5)
    assert standing.counts == {Outcome.FASTER: 0, Outcome.SLOWER: 3, Outcome.SAME: 0, Outcome.UNDECIDED: 0}
    assert (other.candidate, other.mode) == ("nn-rmsnorm", Mode.FORWARD)
    assert (other.low, other.high) == (pytest.approx(0.8), 2.0)


def test_undecided_comparisons_are_listed_by_reason_with_their_meaning() -> None:
    lines = statements.open_questions(make_run(WIDE, lambda cell: FAILED if cell.width == 64 else TIMES))

    assert lines == ["no_baseline (2: eager-rmsnorm and nn-rmsnorm): the baseline has no time here"]


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
        "times drifted by more than 10 % while the cell was measured; ratios are paired and not affected"
    )


def test_every_flag_and_every_reason_has_a_meaning() -> None:
    assert set(statements.FLAGS) == set(Flag)
    assert set(statements.REASONS) == set(Reason)


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


def test_busy_cells_are_said_in_the_first_line() -> None:
    run = make_run(WIDE)
    busy = tuple(replace(r, flags=(Flag.BUSY_MACHINE,)) if r.case.cell.width == 64 else r for r in run.results)

    assert "other programs ran beside 1 of 3 cells" in headline(replace(run, results=busy)).use
    assert "other programs" not in headline(run).certainty


@pytest.mark.parametrize("differ", [True, False])
def test_a_training_step_is_told_to_measure_both_passes_as_one_where_their_winners_differ(differ: bool) -> None:
    plan = make_plan(widths=(64, 128), modes=(Mode.FORWARD, Mode.BACKWARD))
    run = make_run(plan, lambda cell: SLOWER if differ and cell == next(plan.cells()) else TIMES)

    notes = statements.advice_notes(run, verdict.of_run(run))

    assert notes[0].startswith("LayerNorm and RMSNorm are different functions")
    assert any("--modes forward-backward" in note for note in notes) == differ
