"""Where the answer of steps changes along the widths."""

from __future__ import annotations

from dataclasses import replace

from normbench.records import Status, StepCell
from normbench.reporters import steps_widths
from tests.step_runs import Ratios, make_cell, make_step_plan, make_step_run


def along(ratios: dict[int, float | Status]) -> str:
    plan = make_step_plan(
        cells=tuple(make_cell(width) for width in ratios), implementations=("nn-layernorm", "nn-rmsnorm")
    )

    def of(cell: StepCell) -> Ratios:
        return {"nn-layernorm": 1.0, "nn-rmsnorm": ratios[cell.shape.width]}

    (line,) = steps_widths.along_widths(make_step_run(plan, of))
    return line.removeprefix("Eager model, fp32, 4 layers, 8×256 tokens, nn-rmsnorm: ").removesuffix(".")


def test_where_the_answer_changes_is_said_between_two_widths() -> None:
    assert along({1024: 0.9, 256: 1.1, 512: 1.05}) == (
        "the answer changes between width 512 and 1024: longer up to 512 (1.050 to 1.100 times as long) and shorter "
        "at 1024 (0.900 times as long)"
    )


def test_a_width_without_an_answer_lies_within_the_gap() -> None:
    assert along({256: 1.1, 512: 1.018, 1024: 1.0}).startswith(
        "the answer changes between width 256 and 1024: longer at 256 (1.100 times as long), undecided at 512 "
    )


def test_an_answer_that_only_some_widths_have_is_no_change() -> None:
    assert along({256: 1.1, 512: 1.018, 1024: Status.FAILED}) == (
        "longer at 256 (1.100 times as long), undecided at 512 (1.018 times as long) and no time at 1024"
    )


def test_an_answer_that_all_widths_share_is_said_once() -> None:
    assert along({256: 1.1, 512: 1.2}) == "at all widths, 256 and 512: longer"


def test_cells_of_other_layers_share_no_answer_along_the_widths() -> None:
    tall = make_cell(512)
    tall = replace(tall, shape=replace(tall.shape, layers=8))

    assert steps_widths.groups([make_cell(512), tall, make_cell(256)]) == [(make_cell(256), make_cell(512)), (tall,)]
