"""Predicted against measured in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from normbench.records import StepRun
from normbench.reporters import steps_gap
from tests.runs import make_device
from tests.step_runs import make_alone, make_cell, make_step_plan, make_step_run

NAMES = ("nn-layernorm", "eager-rmsnorm")


def gap_run(alone: float, ratio: float, kind: str = "cpu", *, compiled: bool = False) -> StepRun:
    """A norm that takes ``alone`` times as long as the baseline's, which all take a tenth of the eager step."""
    plan = make_step_plan(cells=(make_cell(compiled=compiled),), implementations=NAMES)
    return make_step_run(
        plan,
        {"nn-layernorm": 1.0, "eager-rmsnorm": ratio},
        alone=make_alone(plan, {"eager-rmsnorm": alone}),
        device=make_device(kind=kind),
    )


def test_a_row_has_one_norm_s_difference_all_norms_and_the_step_s_with_intervals() -> None:
    (line,) = steps_gap.lines(gap_run(alone=1.9, ratio=1.12))

    assert (line.candidate, line.norm, line.predicted, line.measured) == (
        "eager-rmsnorm",
        "+1.00 ms [+0.98, +1.02]",
        "+9.00 ms [+8.81, +9.19]",
        "+12.0 ms [+11.2, +12.8]",
    )
    assert line.gap == "3.00 ms more than predicted"


@pytest.mark.parametrize(
    ("alone", "ratio", "kind", "compiled", "gap", "why"),
    [
        (1.9, 1.09, "cpu", False, "as predicted", "nothing to explain"),
        (1.5, 1.12, "cpu", False, "7.00 ms more than predicted", "another cache"),
        (1.5, 1.12, "cuda", False, "7.00 ms more than predicted", "too short to hide their launches"),
        (1.9, 1.01, "cpu", True, "8.30 ms less than predicted", "fuses the norms with their neighbours"),
        (1.9, 1.01, "cuda", False, "8.00 ms less than predicted", "hidden behind the longer kernels"),
        (1.9, 1.01, "cpu", False, "8.00 ms less than predicted", "may still be in a cache"),
    ],
)
def test_a_gap_is_explained_by_what_is_possible_there(
    alone: float, ratio: float, kind: str, compiled: bool, gap: str, why: str
) -> None:
    run = gap_run(alone, ratio, kind, compiled=compiled)
    (line,) = steps_gap.lines(run)

    assert line.gap == gap
    assert why in line.why
    assert ("possible, not looked into" in line.why) == (gap != "as predicted")
    assert len(steps_gap.explanations(run)) == (gap != "as predicted")


def test_launches_explain_nothing_on_a_cpu_nor_fusion_an_eager_model() -> None:
    for ratio in (1.2, 1.01):
        (line,) = steps_gap.lines(gap_run(1.9, ratio))
        assert "launch" not in line.why
        assert "fuse" not in line.why


def test_what_the_forward_keeps_is_said_as_counted() -> None:
    run = gap_run(1.9, 1.2)
    alike = replace(run, results=tuple(replace(result, saved_bytes=7) for result in run.results))

    assert steps_gap.lines(run)[0].why.endswith(". Counted: it keeps 2.00 MiB more for the backward")
    assert "Counted" not in steps_gap.lines(alike)[0].why


def test_the_share_of_the_norms_says_what_could_be_saved() -> None:
    assert steps_gap.shares(gap_run(1.9, 1.09)) == [
        "Width 256, 4 layers, 8×256 tokens, fp32, eager model: by themselves the 9 norms take 10 % of the step of "
        "nn-layernorm (9 × 1.11 ms). About that much could be saved if they cost in the model what they cost "
        "alone."
    ]


def test_without_the_norms_alone_nothing_is_predicted() -> None:
    run = make_step_run()

    assert (steps_gap.lines(run), steps_gap.shares(run), steps_gap.explanations(run)) == ([], [], [])
    assert steps_gap.share_of(run, make_cell(), "nn-layernorm") is None


def test_where_it_can_not_be_told_nothing_is_explained() -> None:
    wide = make_step_run(
        ratios={"nn-layernorm": 1.0, "eager-rmsnorm": 1.09}, alone=make_alone(make_step_plan()), spread=0.3
    )
    (line,) = [line for line in steps_gap.lines(wide) if line.candidate == "eager-rmsnorm"]

    assert line.gap == "cannot tell"
    assert steps_gap.explanations(wide) == []
