"""What to use along the widths, where the winner changes, and what that rests on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from normbench import verdict
from normbench.records import Cache, Cell, DType, Flag, Plan, Run, Status
from normbench.reporters import caveats, recommendation
from normbench.reporters.recommendation import Recommendation
from tests.runs import TIMES, Times, flagged, make_plan, make_run

PLAN = make_plan(widths=(64, 128, 256, 512))
SLOWER: Times = {**TIMES, "nn-rmsnorm": 5e-6}
FAILED: Times = {**TIMES, "nn-layernorm": Status.FAILED}


def of_run(run: Run) -> Recommendation:
    flags = {result.case: result.flags for result in run.results}
    (group,) = verdict.of_run(run).groups
    return recommendation.recommend(run, group, flags)


def of_times(times: Times | Callable[[Cell], Times], plan: Plan = PLAN, spread: float = 0.01) -> Recommendation:
    return of_run(make_run(plan, times, spread=spread))


def test_a_row_says_where_and_one_winner_everywhere_needs_no_widths() -> None:
    plan = make_plan(
        widths=(64, 128), rows=(48,), dtypes=(DType.BF16,), parameter_dtypes=(DType.FP32,), caches=(Cache.COLD,)
    )

    assert of_times(TIMES, plan) == Recommendation(
        what="bf16 forward, fp32 parameters",
        rows=48,
        cache="cold",
        use="nn-rmsnorm, 2.00 times as fast as nn-layernorm",
        changes="",
        but="",
    )


def test_at_one_width_the_gain_has_its_interval() -> None:
    assert of_times(TIMES, make_plan()).use == "nn-rmsnorm, 2.00 [1.98, 2.02] times as fast as nn-layernorm"


def test_along_the_widths_each_stretch_has_its_winner_and_the_range_of_its_gain() -> None:
    def times(cell: Cell) -> Times:
        return {64: TIMES, 128: {**TIMES, "nn-rmsnorm": 1e-6}}.get(cell.width, SLOWER)

    found = of_times(times)
    assert found.use == "up to 128: nn-rmsnorm, 2.00 to 4.00 times as fast as nn-layernorm; from 256 on: nn-layernorm"
    assert found.changes == "nn-rmsnorm to nn-layernorm between 128 and 256"


def test_every_change_of_the_winner_is_said() -> None:
    found = of_times(lambda cell: SLOWER if cell.width in (64, 512) else TIMES)

    assert found.changes == (
        "nn-layernorm to nn-rmsnorm between 64 and 128, nn-rmsnorm to nn-layernorm between 256 and 512"
    )


def test_what_is_as_good_at_all_widths_stands_beside_the_winner() -> None:
    assert of_times({**TIMES, "eager-rmsnorm": 2.01e-6}).use.startswith("nn-rmsnorm or eager-rmsnorm, 2.00 times")


def test_what_is_as_good_at_some_widths_does_not() -> None:
    def times(cell: Cell) -> Times:
        return {**TIMES, "eager-rmsnorm": 2.01e-6 if cell.width == 64 else 8e-6}

    assert of_times(times).use == "nn-rmsnorm, 2.00 times as fast as nn-layernorm"


def test_where_somebody_may_be_faster_it_abstains_and_names_them() -> None:
    found = of_times({**SLOWER, "nn-rmsnorm": 4.1e-6}, spread=0.3)

    assert found.use == "undecided between nn-layernorm and nn-rmsnorm"
    assert found.changes == ""


def test_without_a_baseline_there_is_no_verdict_there() -> None:
    found = of_times(lambda cell: FAILED if cell.width == 64 else TIMES)

    assert found.use == "at 64: no verdict; from 128 on: nn-rmsnorm, 2.00 times as fast as nn-layernorm"
    assert found.changes == ""


@pytest.mark.parametrize("flag", caveats.WORDS)
@pytest.mark.parametrize("name", ["nn-layernorm", "nn-rmsnorm"])
def test_a_recommendation_that_rests_on_flagged_results_says_so(flag: Flag, name: str) -> None:
    run = make_run(PLAN, TIMES)
    word = caveats.WORDS[flag]

    assert of_run(flagged(run, flag, lambda case: case.implementation == name)).but == word
    some = flagged(run, flag, lambda case: case.implementation == name and case.cell.width in (128, 512))
    assert of_run(some).but == f"{word} at widths 128 and 512"


def test_flags_of_a_loser_are_not_the_recommendations() -> None:
    run = flagged(make_run(PLAN, TIMES), Flag.LAUNCH_BOUND, lambda case: case.implementation == "eager-rmsnorm")

    assert of_run(run).but == ""


def test_flags_of_whoever_is_named_beside_the_winner_are() -> None:
    run = make_run(PLAN, {**TIMES, "eager-rmsnorm": 2.01e-6})
    busy = flagged(run, Flag.THROTTLED, lambda case: case.implementation == "eager-rmsnorm")

    assert of_run(busy).but == "throttled"
