"""Checks to grades: which mark, which worst, which failures, what counts."""

from __future__ import annotations

from math import inf

import pytest

from normbench import grades
from normbench.records import Allowance, Check, DType, Gap, Mark, Output, Property
from tests.checked import ALLOWED, NAMES, checks_of, make_check, make_check_run, make_gap

UNASKED = make_check(mark=Mark.NOT_APPLICABLE, output=None, reason="not here", width=7)
FAILED = make_check(mark=Mark.FAIL, width=5, gap=make_gap(9.0), reason="y[0, 1] is 3, not 4")
PASSED = make_check(width=3)


@pytest.mark.parametrize(
    ("checks", "mark"),
    [
        ([PASSED], Mark.PASS),
        ([UNASKED], Mark.NOT_APPLICABLE),
        ([UNASKED, PASSED], Mark.PASS),
        ([PASSED, UNASKED, FAILED], Mark.FAIL),
        ([FAILED, PASSED], Mark.FAIL),
    ],
)
def test_one_failure_fails_one_pass_passes_and_else_it_cannot_be_asked(checks: list[Check], mark: Mark) -> None:
    assert grades.grade(checks).mark is mark


def test_what_could_not_be_asked_is_not_among_what_was_and_says_why_once() -> None:
    found = grades.grade([UNASKED, PASSED, make_check(mark=Mark.NOT_APPLICABLE, output=None, reason="not here")])

    assert found.asked == (PASSED,)
    assert found.unasked == ("not here",)


def worst(*gaps: Gap | None) -> Gap | None:
    checks = [make_check(width=n + 1, mark=Mark.FAIL, gap=gap, reason="r") for n, gap in enumerate(gaps)]
    return grades.grade(checks).worst[Output.Y].gap


def speaks(*gaps: Gap | None) -> Gap | None:
    checks = [make_check(width=n + 1, mark=Mark.FAIL, gap=gap, reason="r") for n, gap in enumerate(gaps)]
    (failure,) = grades.grade(checks).failures
    return failure.worst.gap


def test_the_worst_of_an_output_is_the_largest_and_a_failure_is_told_by_the_most_of_what_is_allowed() -> None:
    large, bad = make_gap(30.0, 100.0), make_gap(4.0, 5.0)

    assert worst(large, bad) == worst(bad, large) == large
    assert speaks(large, bad) == speaks(bad, large) == bad


def test_what_is_infinite_or_allowed_nothing_is_worst_and_no_distance_is_least() -> None:
    nothing, exact = make_gap(1e-3, 0.0), make_gap(0.0, 0.0)

    assert speaks(make_gap(1e9, 1.0), nothing) == nothing
    assert worst(nothing, make_gap(inf, 1e9)) == make_gap(inf, 1e9)
    assert worst(make_gap(inf, 1e9), make_gap(2.0, 0.0)) == make_gap(inf, 1e9)
    assert worst(exact, make_gap(1e-9, 1.0)) == make_gap(1e-9, 1.0)
    assert worst(None, exact, None) == exact


def test_each_output_has_a_worst_of_its_own_with_its_spot_and_those_without_a_gap_have_none() -> None:
    y, dx = make_check(width=3, gap=make_gap(2.0)), make_check(width=64, output=Output.DX, gap=make_gap(3.0))
    found = grades.grade([make_check(width=1), y, dx, make_check(output=None, width=9)])

    assert found.worst == {Output.Y: y, Output.DX: dx}
    assert found.ulp == 3.0


def test_of_what_has_no_gap_there_is_no_distance() -> None:
    assert grades.grade([make_check(output=None)]).ulp is None


def failed(reason: str, **changes: object) -> Check:
    return make_check(mark=Mark.FAIL, reason=reason, **{"gap": make_gap(9.0), **changes})  # type: ignore[arg-type]


def test_reasons_that_differ_in_their_figures_alone_are_one_and_the_worst_speaks() -> None:
    first = failed("y[0, 3] is inf, not 1.5e-07 (100% of the elements are wrong)", width=3)
    second = failed("dgain[7] is 0, not -2 (3% of the elements are wrong)", width=64, gap=make_gap(inf))
    other = failed("TypeError: no kernel for fp16", width=5, gap=None)
    found = grades.grade([first, other, second])

    assert [(f.worst, f.checks) for f in found.failures] == [(second, (first, second)), (other, (other,))]


def test_reasons_of_other_words_are_others_whatever_digits_their_words_hold() -> None:
    found = grades.grade([failed("no kernel for fp16", width=3), failed("no kernel for bf16", width=4)])

    assert len(found.failures) == 2


def test_what_passes_only_coarsely_is_named_and_a_failure_is_none_of_it() -> None:
    coarse = make_check(width=9, coarse=True)

    assert grades.grade([PASSED, coarse]).is_coarse
    assert grades.grade([PASSED, coarse]).coarse == (coarse,)
    assert not grades.grade([PASSED]).is_coarse
    assert not grades.grade([coarse, FAILED]).is_coarse


@pytest.mark.parametrize(
    ("allowance", "counts"),
    [
        (Allowance(property=Property.NORMAL_VALUES), False),
        (Allowance(property=Property.NORMAL_VALUES, implementation="nn-rmsnorm"), False),
        (Allowance(property=Property.NORMAL_VALUES, implementation="nn-layernorm"), True),
        (Allowance(property=Property.OUTLIER), True),
    ],
)
def test_an_allowance_covers_its_property_of_anyone_or_of_the_one_it_names(
    allowance: Allowance, counts: bool
) -> None:
    found = grades.grade([FAILED], [allowance])

    assert found.mark is Mark.FAIL
    assert found.counts is counts
    assert not grades.grade([PASSED], [allowance]).allowed


def test_a_card_has_a_grade_for_each_pair_in_the_order_of_the_header_whatever_the_order_of_the_checks() -> None:
    run = make_check_run()
    backwards = make_check_run(tuple(reversed(run.checks)))
    pairs = [(name, asked) for name in NAMES for asked in run.header.plan.properties]

    assert [(g.implementation, g.property) for g in grades.of_run(run).grades] == pairs
    assert [(g.implementation, g.property) for g in grades.of_run(backwards).grades] == pairs


def test_the_totals_count_each_pair_once() -> None:
    totals = grades.of_run(make_check_run()).totals

    assert vars(totals) == {
        "passed": 9,
        "coarse": 1,
        "failed": 1,
        "allowed": 0,
        "not_applicable": 2,
        "unreached": 0,
    }
    assert grades.of_run(make_check_run(allowed=ALLOWED)).totals.allowed == 1


def test_pairs_without_a_check_were_not_come_to() -> None:
    card = grades.of_run(make_check_run(checks_of(NAMES[0])))

    assert [name for name, _ in card.unreached] == [NAMES[1]] * 4 + [NAMES[2]] * 4
    assert card.totals.unreached == 8


def test_failures_that_count_come_before_those_that_are_allowed() -> None:
    checks = [
        failed("a", name="eager-layernorm"),
        make_check("nn-rmsnorm", Property.OUTLIER, mark=Mark.FAIL, reason="b"),
    ]
    allowed = (Allowance(property=Property.NORMAL_VALUES),)
    plan = make_check_run().header.plan
    properties = (Property.NORMAL_VALUES, Property.OUTLIER)
    card = grades.of_run(
        make_check_run(checks, allowed=allowed, plan=type(plan)(**{**vars(plan), "properties": properties}))
    )

    assert [grade.implementation for grade in card.failing] == ["nn-rmsnorm", "eager-layernorm"]


def test_an_allowance_of_what_does_not_fail_is_unused() -> None:
    stale = Allowance(property=Property.ZERO_MEAN)

    assert grades.of_run(make_check_run(allowed=(*ALLOWED, stale))).unused == (stale,)


def test_where_nothing_passed_or_failed_there_is_no_verdict() -> None:
    assert grades.of_run(make_check_run()).has_verdict
    assert not grades.of_run(make_check_run([UNASKED])).has_verdict
    assert not grades.of_run(make_check_run([])).has_verdict


def test_a_check_of_fp16_alone_and_one_of_all_formats_have_the_same_failures() -> None:
    only = [check for check in make_check_run().checks if check.spot.dtype is DType.FP16]

    assert [g.failures for g in grades.of_run(make_check_run(only)).failing] == [
        g.failures for g in grades.of_run(make_check_run()).failing
    ]


def test_a_figure_is_of_those_beyond_what_is_allowed_where_there_are_such() -> None:
    coarse = make_check(coarse=True, gap=make_gap(64.0, 3.2), width=64)
    passing = make_check(gap=make_gap(1e4, 1e5), width=3)
    other = make_check(output=Output.DX, gap=make_gap(1e5, 1e6))
    found = grades.grade([passing, coarse, other])

    assert found.worst == {Output.Y: coarse, Output.DX: other}
    assert found.ulp == 64.0
    assert grades.grade([passing, other]).ulp == 1e5
