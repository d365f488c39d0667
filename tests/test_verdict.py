from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench import stats, verdict
from normbench.records import (
    CaseResult,
    Cell,
    Comparison,
    DType,
    Estimate,
    Mode,
    Outcome,
    Precision,
    Reason,
    Run,
    Sample,
    Status,
)
from tests.helpers import make_cell, make_header, make_plan, make_result, make_samples

MARGIN = 0.02
CELL = make_cell()
BASELINE = "nn-layernorm"


def estimate(low: float, value: float, high: float) -> Estimate:
    return Estimate(value=value, low=low, high=high)


def make_comparison(candidate: str, low: float, value: float, high: float, **changes: Any) -> Comparison:
    outcome, reason = verdict.judge(estimate(low, value, high), MARGIN)
    fields: dict[str, Any] = {"cell": CELL, "speedup": estimate(low, value, high), "outcome": outcome}
    return Comparison(baseline=BASELINE, candidate=candidate, reason=reason, **{**fields, **changes})


def open_comparison(candidate: str, reason: Reason, cell: Cell = CELL) -> Comparison:
    return Comparison(
        cell=cell, baseline=BASELINE, candidate=candidate, speedup=None, outcome=Outcome.UNDECIDED, reason=reason
    )


@pytest.mark.parametrize(
    ("interval", "outcome", "reason"),
    [
        ((1.001, 1.021, 1.05), Outcome.FASTER, Reason.INTERVAL_EXCLUDES_1),
        ((1.3, 1.5, 1.7), Outcome.FASTER, Reason.INTERVAL_EXCLUDES_1),
        ((1.001, 1.02, 1.05), Outcome.UNDECIDED, Reason.EFFECT_BELOW_MARGIN),
        ((1.0, 1.03, 1.05), Outcome.UNDECIDED, Reason.INTERVAL_TOO_WIDE),
        ((0.95, 0.97, 0.999), Outcome.SLOWER, Reason.INTERVAL_EXCLUDES_1),
        ((0.5, 0.6, 0.7), Outcome.SLOWER, Reason.INTERVAL_EXCLUDES_1),
        ((0.97, 1 / 1.02, 0.999), Outcome.UNDECIDED, Reason.EFFECT_BELOW_MARGIN),
        ((0.95, 0.97, 1.0), Outcome.UNDECIDED, Reason.INTERVAL_TOO_WIDE),
        ((1 / 1.02, 1.0, 1.02), Outcome.SAME, Reason.INTERVAL_INSIDE_MARGIN),
        ((1.005, 1.01, 1.015), Outcome.SAME, Reason.INTERVAL_INSIDE_MARGIN),
        ((0.98, 1.0, 1.02), Outcome.UNDECIDED, Reason.INTERVAL_TOO_WIDE),
        ((0.99, 1.0, 1.021), Outcome.UNDECIDED, Reason.INTERVAL_TOO_WIDE),
    ],
)
def test_an_outcome_is_what_the_interval_allows(
    interval: tuple[float, float, float], outcome: Outcome, reason: Reason
) -> None:
    assert verdict.judge(estimate(*interval), MARGIN) == (outcome, reason)


def test_without_an_interval_nothing_is_decided() -> None:
    assert verdict.judge(Estimate(value=9.0), MARGIN) == (Outcome.UNDECIDED, Reason.TOO_FEW_PLACEMENTS)


@given(st.floats(0.2, 5.0), st.floats(1.0, 1.5), st.floats(1.0, 1.5))
def test_seen_from_the_other_side_faster_is_slower_and_same_is_same(value: float, below: float, above: float) -> None:
    mirrored = {Outcome.FASTER: Outcome.SLOWER, Outcome.SLOWER: Outcome.FASTER}
    there, reason = verdict.judge(estimate(value / below, value, value * above), 0.0201)
    back, same_reason = verdict.judge(estimate(1 / (value * above), 1 / value, 1 / (value / below)), 0.0201)

    assert (back, same_reason) == (mirrored.get(there, there), reason)


def compare(
    baseline: CaseResult | None, candidate: CaseResult, samples: Sequence[Sample] = ()
) -> tuple[Outcome, Reason, Estimate | None]:
    comparison = verdict.compare(baseline, candidate, samples, MARGIN, BASELINE)
    assert (comparison.baseline, comparison.candidate) == (BASELINE, "nn-rmsnorm")
    assert comparison.cell == candidate.case.cell
    return comparison.outcome, comparison.reason, comparison.speedup


def two(baseline: list[list[float]], candidate: list[list[float]]) -> list[Sample]:
    return make_samples(baseline, BASELINE) + make_samples(candidate, "nn-rmsnorm")


def test_the_speedup_is_the_baseline_s_time_over_the_candidate_s() -> None:
    outcome, reason, speedup = compare(make_result(BASELINE), make_result(), two([[3.0]] * 5, [[2.0]] * 5))

    assert (outcome, reason) == (Outcome.FASTER, Reason.INTERVAL_EXCLUDES_1)
    assert speedup is not None
    assert speedup.value == pytest.approx(1.5)


def test_placements_whose_spreads_overlap_leave_it_undecided() -> None:
    samples = two([[100.0]] * 5, [[90.0], [110.0], [105.0], [95.0], [104.0]])
    outcome, reason, _ = compare(make_result(BASELINE), make_result(), samples)

    assert (outcome, reason) == (Outcome.UNDECIDED, Reason.INTERVAL_TOO_WIDE)


@pytest.mark.parametrize("baseline", [None, make_result(BASELINE, status=Status.OUT_OF_MEMORY)])
def test_without_a_measured_baseline_there_is_no_speedup(baseline: CaseResult | None) -> None:
    samples = make_samples([[1.0], [1.0]])

    assert compare(baseline, make_result(), samples) == (Outcome.UNDECIDED, Reason.NO_BASELINE, None)


@pytest.mark.parametrize("status", [Status.FAILED, Status.INCORRECT, Status.UNSUPPORTED])
def test_a_candidate_without_a_time_is_undecided_even_if_it_left_samples(status: Status) -> None:
    samples = two([[3.0]] * 5, [[2.0]] * 5)
    found = compare(make_result(BASELINE), make_result(status=status), samples)

    assert found == (Outcome.UNDECIDED, Reason.NO_CANDIDATE, None)


def test_outputs_of_unlike_dtypes_are_not_compared() -> None:
    samples = two([[3.0]] * 5, [[2.0]] * 5)
    found = compare(make_result(BASELINE), make_result(out_dtype=DType.BF16), samples)

    assert found == (Outcome.UNDECIDED, Reason.OUT_DTYPE_DIFFERS, None)


def test_a_backward_returns_no_y_and_is_compared_all_the_same() -> None:
    samples = two([[3.0]] * 5, [[2.0]] * 5)
    outcome, _, _ = compare(make_result(BASELINE, out_dtype=None), make_result(out_dtype=None), samples)

    assert outcome is Outcome.FASTER


@pytest.mark.parametrize(("samples", "value"), [(two([[3.0]], [[2.0]]), 1.5), (make_samples([[1.0], [1.0]]), None)])
def test_one_placement_or_no_round_in_common_is_too_few_placements(
    samples: list[Sample], value: float | None
) -> None:
    outcome, reason, speedup = compare(make_result(BASELINE), make_result(), samples)

    assert (outcome, reason) == (Outcome.UNDECIDED, Reason.TOO_FEW_PLACEMENTS)
    assert (speedup.value if speedup else None) == (pytest.approx(value) if value else None)


@pytest.mark.parametrize(("share", "settled"), [(1.01, True), (0.99, False)])
def test_measuring_may_stop_when_the_widest_pair_is_narrower_than_the_target(share: float, settled: bool) -> None:
    baseline = make_samples([[1.0]] * 5, BASELINE)
    narrow, wide = make_samples([[2.0]] * 4 + [[2.001]]), make_samples([[2.0]] * 4 + [[2.2]])
    target = share * stats.relative_half_width(stats.ratio_estimate(baseline, wide))

    assert verdict.is_settled(baseline, [narrow, wide], Precision(target=target)) is settled


def test_one_placement_settles_nothing() -> None:
    assert not verdict.is_settled(make_samples([[1.0]], BASELINE), [make_samples([[1.0]])], Precision())


def test_the_choice_is_the_fastest_of_those_found_faster() -> None:
    found = [make_comparison("a", 1.1, 1.2, 1.3), make_comparison("b", 1.4, 1.5, 1.6)]
    choice = verdict.choose(CELL, found, BASELINE)

    assert (choice.best, choice.speedup, choice.rivals) == ("b", estimate(1.4, 1.5, 1.6), ())


def test_rivals_are_those_whose_interval_reaches_into_the_best_one_s_best_first() -> None:
    found = [
        make_comparison("below", 1.1, 1.2, 1.39),
        make_comparison("touches", 1.2, 1.3, 1.4),
        make_comparison("best", 1.4, 1.6, 1.8),
        make_comparison("near", 1.3, 1.5, 1.7),
        make_comparison("vague", 0.9, 1.7, 3.0),
    ]
    choice = verdict.choose(CELL, found, BASELINE)

    assert choice.best == "best"
    assert choice.rivals == ("vague", "near", "touches")
    assert choice.undecided == ("vague",)


def test_the_baseline_stays_unless_something_was_found_faster() -> None:
    found = [
        make_comparison("same", 0.99, 1.0, 1.01),
        make_comparison("slower", 0.7, 0.8, 0.9),
        make_comparison("vague", 0.9, 1.2, 1.6),
        open_comparison("failed", Reason.NO_CANDIDATE),
    ]
    choice = verdict.choose(CELL, found, BASELINE)

    assert (choice.best, choice.speedup) == (BASELINE, None)
    assert (choice.rivals, choice.undecided) == (("same",), ("vague",))


@pytest.mark.parametrize("comparisons", [[], [open_comparison("a", Reason.NO_BASELINE)]])
def test_a_verdict_abstains_where_there_is_no_measured_baseline(comparisons: list[Comparison]) -> None:
    assert verdict.choose(CELL, comparisons, BASELINE) == verdict.Choice(cell=CELL, best=None)


def test_comparisons_of_other_cells_have_no_say() -> None:
    elsewhere = make_comparison("a", 1.4, 1.5, 1.6, cell=make_cell(width=128))

    assert verdict.choose(CELL, [elsewhere, make_comparison("a", 0.7, 0.8, 0.9)], BASELINE).best == BASELINE


def test_cells_are_grouped_by_all_but_their_width_and_sorted_by_it() -> None:
    cells = [make_cell(width=w, mode=mode) for w in (512, 64) for mode in (Mode.BACKWARD, Mode.FORWARD)]
    grouped = verdict.group_cells(cells)

    assert [[(c.mode, c.width) for c in group] for group in grouped] == [
        [(Mode.BACKWARD, 64), (Mode.BACKWARD, 512)],
        [(Mode.FORWARD, 64), (Mode.FORWARD, 512)],
    ]


@pytest.mark.parametrize("axis", [{"rows": 13}, {"dtype": DType.BF16, "parameter_dtype": DType.FP32}])
def test_a_difference_on_any_other_axis_makes_another_group(axis: dict[str, Any]) -> None:
    assert len(verdict.group_cells([CELL, make_cell(**axis)])) == 2


def test_a_run_s_verdict_counts_what_was_settled_what_is_open_and_what_has_no_time() -> None:
    wide, failed = make_cell(width=128), make_result("eager-rmsnorm", status=Status.FAILED)
    results = [make_result("a"), make_result("a", wide), make_result("b"), failed]
    comparisons = (
        make_comparison("a", 1.4, 1.5, 1.6),
        make_comparison("a", 0.99, 1.0, 1.01, cell=wide),
        make_comparison("b", 0.9, 1.0, 1.1),
        open_comparison("eager-rmsnorm", Reason.NO_CANDIDATE),
    )
    run = Run(header=make_header(make_plan(widths=(64, 128))), results=tuple(results), comparisons=comparisons)
    found = verdict.of_run(run)

    assert (found.decided, found.undecided, found.not_measured) == (2, 1, (failed,))
    (group,) = found.groups
    assert group.first == CELL
    assert [choice.best for choice in group.choices] == ["a", BASELINE]


def test_a_run_without_results_says_nothing() -> None:
    found = verdict.of_run(Run(header=make_header(), results=(), comparisons=()))

    assert found == verdict.Verdict(groups=(), decided=0, undecided=0, not_measured=())


@pytest.mark.parametrize(
    ("high", "is_open"), [(1.5, True), (1.01, False)], ids=["it may be faster", "it can't be by more than the margin"]
)
def test_the_verdict_abstains_where_an_undecided_candidate_may_be_faster(high: float, is_open: bool) -> None:
    speedup = Estimate(value=0.97, low=0.9, high=high)
    undecided = Comparison(
        cell=make_cell(),
        baseline=BASELINE,
        candidate="nn-rmsnorm",
        speedup=speedup,
        outcome=Outcome.UNDECIDED,
        reason=Reason.INTERVAL_TOO_WIDE,
    )

    found = verdict.choose(make_cell(), [undecided], BASELINE)

    assert (found.best, found.undecided, found.is_open) == (BASELINE, ("nn-rmsnorm",), is_open)
