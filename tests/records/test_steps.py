from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest

from normbench.records import (
    MOST_CASES,
    STEP_KEY,
    Cache,
    DType,
    Estimate,
    Mode,
    Op,
    Optimizer,
    Outcome,
    Part,
    Reason,
    Status,
    StepCell,
    StepComparison,
    StepPlan,
    StepResult,
)
from tests.runs import around
from tests.step_runs import (
    CELLS,
    Ratios,
    make_cell,
    make_curve,
    make_step_header,
    make_step_plan,
    make_step_result,
    make_step_run,
    make_training_plan,
    training_run,
)

UNTIMED = [status for status in Status if status is not Status.OK]
NAMES = ("nn-layernorm", "nn-rmsnorm")
OTHER_SIZES = {"layers": 3, "heads": 4, "context": 8, "batch": 1, "vocabulary": 9, "widening": 2}


def make_ok(**changes: Any) -> StepResult:
    return make_step_result(make_cell(), "nn-rmsnorm", 1.0, **changes)


def test_a_cell_s_norm_is_asked_for_forward_and_backward_in_the_model_s_own_format() -> None:
    cell = make_cell(512, dtype=DType.BF16, autocast=DType.FP16, compiled=True).norm_cell

    assert (cell.mode, cell.rows, cell.width) == (Mode.FORWARD_BACKWARD, 2048, 512)
    assert (cell.dtype, cell.parameter_dtype, cell.autocast) == (DType.BF16, DType.BF16, DType.FP16)
    assert cell.cache is Cache.WARM


def test_a_cell_s_key_has_every_field_and_tells_every_two_cells_apart() -> None:
    cells = [
        make_cell(),
        make_cell(512),
        make_cell(dtype=DType.BF16),
        make_cell(autocast=DType.BF16),
        make_cell(compiled=True),
        make_cell(optimizer=Optimizer.SGD),
        *(
            make_cell(shape=replace(make_cell().shape, **{name: value}))
            for name, value in {
                "layers": 3,
                "heads": 4,
                "context": 8,
                "batch": 1,
                "vocabulary": 9,
                "widening": 2,
            }.items()
        ),
        make_cell(shape=replace(make_cell().shape, tied=False)),
    ]

    assert len({cell.key for cell in cells}) == len({str(cell.key) for cell in cells}) == len(cells)
    assert all(len(cell.key) == len(STEP_KEY) == 13 - 1 for cell in cells)
    keyed = dict(zip(STEP_KEY, make_cell().key, strict=True))
    assert (keyed["width"], keyed["dtype"], keyed["autocast"], keyed["compiled"]) == ("256", "fp32", "", "false")
    assert (keyed["tied"], keyed["optimizer"]) == ("true", "adamw")


def test_a_cell_reads_as_a_person_would_say_it() -> None:
    assert str(make_cell()) == "width 256, 4 layers, 8×256 tokens, fp32, eager model"
    assert str(make_cell(autocast=DType.BF16, compiled=True)).endswith("fp32, autocast bf16, compiled model")


@pytest.mark.parametrize("status", UNTIMED)
def test_nothing_but_an_ok_step_has_a_time(status: Status) -> None:
    with pytest.raises(ValueError, match="a time belongs to status ok"):
        make_ok(status=status, reason="because")


def test_an_ok_step_has_the_time_of_the_whole() -> None:
    with pytest.raises(ValueError, match="a time belongs to status ok"):
        make_ok(times={Part.FORWARD: around(1.0)})


def test_an_ok_step_needs_no_times_of_its_parts() -> None:
    assert make_ok(times={Part.STEP: around(1.0)}).tokens_per_s == 2048


@pytest.mark.parametrize("status", UNTIMED)
@pytest.mark.parametrize("reason", [None, ""])
def test_a_step_that_did_not_end_well_says_why(status: Status, reason: str | None) -> None:
    with pytest.raises(ValueError, match="has a reason"):
        make_step_result(make_cell(), "nn-rmsnorm", status, reason=reason)


def test_a_step_that_did_says_nothing() -> None:
    with pytest.raises(ValueError, match="has a reason"):
        make_ok(reason="why?")


@pytest.mark.parametrize("changes", [{"samples": 0}, {"placements": 0}, {"samples": -1}])
def test_a_time_rests_on_samples_and_placements(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        make_ok(**changes)


@pytest.mark.parametrize("value", [-1.0, inf, nan])
def test_a_compile_time_is_a_time(value: float) -> None:
    with pytest.raises(ValueError, match="not a time"):
        make_ok(compile_s=value)


@pytest.mark.parametrize("value", [-1.0, inf, nan])
def test_what_is_off_by_no_number_is_never_ok(value: float) -> None:
    with pytest.raises(ValueError, match="never right"):
        make_ok(max_rel_error=value)
    wrong = make_step_result(make_cell(), "nn-rmsnorm", Status.INCORRECT, max_rel_error=inf)
    assert wrong.max_rel_error == inf


@pytest.mark.parametrize("outcome", [Outcome.FASTER, Outcome.SLOWER, Outcome.SAME])
@pytest.mark.parametrize("speedup", [None, Estimate(value=1.5)])
def test_nothing_is_decided_without_an_interval(outcome: Outcome, speedup: Estimate | None) -> None:
    with pytest.raises(ValueError, match="without an interval"):
        replace(comparison(speedup), outcome=outcome)


@pytest.mark.parametrize("name", ["parameters", "norm_parameters", "peak_memory_bytes", "saved_bytes"])
@pytest.mark.parametrize("value", [-1, 2**63])
def test_no_count_is_below_0_or_beyond_63_bits(name: str, value: int) -> None:
    with pytest.raises(ValueError, match="number of bytes"):
        make_ok(**{name: value})


def test_tokens_per_second_are_those_of_a_step_over_its_time() -> None:
    assert make_ok().tokens_per_s == pytest.approx(2048 / 0.1)
    assert make_step_result(make_cell(), "nn-rmsnorm", Status.FAILED).tokens_per_s is None


def comparison(speedup: Estimate | None) -> StepComparison:
    return StepComparison(
        cell=make_cell(),
        baseline=NAMES[0],
        candidate=NAMES[1],
        speedup=speedup,
        outcome=Outcome.UNDECIDED,
        reason=Reason.NO_CANDIDATE,
    )


def test_how_many_times_as_long_a_step_is_is_the_speedup_upside_down() -> None:
    found = comparison(Estimate(value=0.8, low=0.5, high=1.25)).as_long

    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((1.25, 0.8, 2.0))
    without = comparison(Estimate(value=0.8)).as_long
    assert without is not None
    assert (without.value, without.low, without.high) == (1.25, None, None)
    assert comparison(None).as_long is None


def test_nothing_is_compared_with_itself() -> None:
    with pytest.raises(ValueError, match="with itself"):
        replace(comparison(None), candidate=NAMES[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": ()}, "one of the two"),
        ({"training": make_training_plan()}, "one of the two"),
        ({"cells": (make_cell(), make_cell())}, "none stands there twice"),
        ({"implementations": ("nn-layernorm", "nn-layernorm")}, "none stands there twice"),
        ({"baseline": "copy"}, "the baseline 'copy' is not among them"),
        ({"eps": 0.0}, "eps is above 0"),
        ({"eps": inf}, "eps is above 0"),
        ({"eps": nan}, "eps is above 0"),
        ({"seed": 2**63}, "63 bits"),
        ({"seed": -(2**63) - 1}, "63 bits"),
    ],
)
def test_a_plan_that_could_not_be_carried_out_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_step_plan(**changes)


def test_a_plan_has_a_bounded_number_of_results() -> None:
    cells = tuple(make_cell(8 * width) for width in range(1, MOST_CASES // 2 + 1))

    assert len(StepPlan(cells=cells, implementations=NAMES).cells) == MOST_CASES // 2
    with pytest.raises(ValueError, match="results"):
        StepPlan(cells=(*cells, make_cell(compiled=True)), implementations=NAMES)


@pytest.mark.parametrize("seed", [2**63 - 1, -(2**63), 0])
def test_a_seed_at_its_border_is_accepted(seed: int) -> None:
    assert make_step_plan(seed=seed).seed == seed


def test_a_header_tells_of_the_plan_s_implementations_in_its_order() -> None:
    header = make_step_header()

    assert header.info("nn-rmsnorm").op is Op.RMSNORM
    with pytest.raises(KeyError):
        header.info("nobody")
    with pytest.raises(ValueError, match="in its order"):
        replace(header, implementations=header.implementations[::-1])
    with pytest.raises(ValueError, match="in its order"):
        replace(header, implementations=header.implementations[1:])


def test_what_is_missing_are_the_cells_in_which_someone_has_no_final_status() -> None:
    plan = make_step_plan(cells=CELLS, implementations=NAMES)
    ratios: dict[StepCell, Ratios] = {
        CELLS[0]: {NAMES[0]: 1.0, NAMES[1]: 1.0},
        CELLS[1]: {NAMES[0]: 1.0, NAMES[1]: Status.FAILED},
    }
    run = make_step_run(plan, lambda cell: ratios.get(cell, {NAMES[0]: 1.0}), CELLS[:3])

    assert run.missing == CELLS[2:]
    assert not run.is_complete
    assert make_step_run(plan, {NAMES[0]: 1.0, NAMES[1]: Status.INCORRECT}).is_complete


def test_results_and_comparisons_are_found_by_cell_and_name() -> None:
    run = make_step_run(make_step_plan(cells=CELLS[:2]))

    assert list(run.results_by_cell) == list(CELLS[:2])
    assert list(run.results_by_cell[CELLS[1]]) == list(run.header.plan.implementations)
    assert run.results_by_cell[CELLS[1]]["nn-rmsnorm"].cell == CELLS[1]
    assert "nn-layernorm" not in run.comparisons_by_cell[CELLS[0]]
    assert run.comparisons_by_cell[CELLS[0]]["nn-rmsnorm"].candidate == "nn-rmsnorm"


def test_a_run_without_a_step_or_a_model_has_no_figures() -> None:
    plan = make_step_plan(implementations=NAMES)

    assert not make_step_run(plan, cells=()).has_figures
    assert not make_step_run(plan, dict.fromkeys(NAMES, Status.FAILED)).has_figures
    assert make_step_run(plan, {NAMES[0]: 1.0}).has_figures
    assert training_run().has_figures


def test_what_is_to_be_trained_comes_seed_by_seed_and_nothing_twice() -> None:
    run = training_run()
    names, training = run.header.plan.implementations, run.header.plan.training
    assert training is not None

    assert run.untrained == ()
    assert run.is_complete
    assert replace(run, curves=()).untrained == tuple((seed, name) for seed in (0, 1, 2) for name in names)
    half = make_curve(names[1], 0, 2.0, training, until=200)
    failed = make_curve(names[0], 0, 2.0, training, until=200, status=Status.FAILED, reason="diverged")
    stopped = make_curve(names[2], 0, 2.0, training, until=200, status=Status.NOT_RUN, reason="interrupted")
    left = replace(run, curves=(half, failed, stopped, *(c for c in run.curves if c.seed))).untrained
    assert left == ((0, names[1]), (0, names[2]))
    assert make_step_run().untrained == ()


def test_the_words_of_parts_and_optimizers_are_a_contract() -> None:
    assert [str(part) for part in Part] == ["step", "forward", "backward", "optimizer"]
    assert [str(optimizer) for optimizer in Optimizer] == ["adamw", "sgd"]
    assert StepCell(shape=make_cell().shape, dtype=DType.FP32).optimizer is Optimizer.ADAMW
