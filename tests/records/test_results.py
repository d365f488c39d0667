from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench.records import Accuracy, Comparison, DType, Estimate, Outcome, Reason, Status
from tests.helpers import make_cell, make_result, make_sample

UNTIMED = [status for status in Status if status is not Status.OK]


def make_comparison(outcome: Outcome, speedup: Estimate | None) -> Comparison:
    return Comparison(
        cell=make_cell(),
        baseline="nn-layernorm",
        candidate="nn-rmsnorm",
        speedup=speedup,
        outcome=outcome,
        reason=Reason.INTERVAL_EXCLUDES_1,
    )


@pytest.mark.parametrize("ends", [{"low": 1.0}, {"high": 1.0}])
def test_an_interval_has_both_ends_or_none(ends: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="two ends"):
        Estimate(value=1.0, **ends)


@pytest.mark.parametrize(
    ("low", "value", "high"), [(1.1, 1.0, 1.2), (0.8, 1.0, 0.9), (0.0, 1.0, 2.0), (-1.0, 1.0, 2.0)]
)
def test_an_interval_surrounds_its_value_and_is_above_0(low: float, value: float, high: float) -> None:
    with pytest.raises(ValueError, match="not an interval of a positive quantity"):
        Estimate(value=value, low=low, high=high)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_an_estimate_is_of_a_positive_quantity(value: float) -> None:
    with pytest.raises(ValueError, match="positive quantity"):
        Estimate(value=value)


def test_an_interval_of_width_0_is_one() -> None:
    assert Estimate(value=1.0, low=1.0, high=1.0).low == 1.0


@pytest.mark.parametrize("status", UNTIMED)
def test_nothing_but_an_ok_result_has_a_time(status: Status) -> None:
    with pytest.raises(ValueError, match="a time belongs to status ok"):
        make_result(status=status, timing=make_result().timing)


def test_an_ok_result_has_a_time() -> None:
    with pytest.raises(ValueError, match="a time belongs to status ok"):
        make_result(timing=None)


def test_an_ok_result_was_checked() -> None:
    with pytest.raises(ValueError, match="nothing is timed that was not checked"):
        make_result(accuracy=None)


@pytest.mark.parametrize("status", UNTIMED)
@pytest.mark.parametrize("reason", [None, ""])
def test_a_result_that_is_not_ok_says_why(status: Status, reason: str | None) -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        make_result(status=status, reason=reason)


def test_a_wrong_result_keeps_how_wrong_it_was() -> None:
    accuracy = Accuracy(max_abs_error=0.3, max_rel_error=0.1, out_dtype=DType.FP16)
    result = make_result(status=Status.INCORRECT, accuracy=accuracy)

    assert result.accuracy == accuracy
    assert result.timing is None


def test_only_a_case_that_was_not_run_is_measured_again() -> None:
    assert [status for status in Status if not status.is_final] == [Status.NOT_RUN]


@pytest.mark.parametrize("outcome", [Outcome.FASTER, Outcome.SLOWER, Outcome.SAME])
@pytest.mark.parametrize("speedup", [None, Estimate(value=1.5)])
def test_nothing_is_decided_without_an_interval(outcome: Outcome, speedup: Estimate | None) -> None:
    with pytest.raises(ValueError, match="without an interval"):
        make_comparison(outcome, speedup)


@pytest.mark.parametrize("speedup", [None, Estimate(value=1.5), Estimate(value=1.5, low=0.9, high=2.0)])
def test_a_comparison_may_stay_undecided_with_and_without_an_interval(speedup: Estimate | None) -> None:
    assert make_comparison(Outcome.UNDECIDED, speedup).speedup == speedup


@given(st.integers(1, 64), st.floats(1e-9, 1e3))
def test_a_sample_shares_its_seconds_out_among_its_calls(calls: int, seconds: float) -> None:
    sample = make_sample(seconds, calls=calls)

    assert sample.seconds_per_call * calls == pytest.approx(seconds)
    assert sample.seconds == seconds


@pytest.mark.parametrize("word", [*Status, *Outcome, *Reason])
def test_no_status_word_reads_as_a_number_or_as_a_missing_value(word: str) -> None:
    assert str(word).isidentifier()
    assert str(word) not in {"nan", "none", "null", "na", "inf"}


@pytest.mark.parametrize(
    "numbers",
    [
        {"value": inf},
        {"value": nan},
        {"value": 1.0, "low": 0.5, "high": inf},
        {"value": 1.0, "low": nan, "high": 2.0},
    ],
)
def test_no_quantity_is_infinite_or_no_number(numbers: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="not a"):
        Estimate(**numbers)


@pytest.mark.parametrize(
    "changes",
    [
        {"wall_s": nan},
        {"wall_s": -1.0},
        {"graph_s": inf},
        {"samples": 0},
        {"placements": 0},
        {"processes": 0},
        {"throttled_samples": -1},
        {"throttled_samples": 5},
    ],
)
def test_a_time_rests_on_numbers_that_can_be(changes: dict[str, float]) -> None:
    timing = make_result("copy", make_cell()).timing
    assert timing is not None

    with pytest.raises(ValueError, match="time"):
        replace(timing, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"compile_s": -1.0},
        {"compile_s": nan},
        {"compile_s": inf},
        {"peak_memory_bytes": -1},
        {"saved_bytes": 2**63},
    ],
)
def test_a_result_holds_no_number_that_is_none(changes: dict[str, object]) -> None:
    fine = make_result()

    with pytest.raises(ValueError, match=r"not a time|number of bytes"):
        replace(fine, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [{"other_cores": -0.1}, {"other_cores": nan}, {"samples": 2**63}])
def test_a_timing_holds_no_number_that_is_none(changes: dict[str, object]) -> None:
    fine = make_result().timing
    assert fine is not None

    with pytest.raises(ValueError, match=r"cores|fewer"):
        replace(fine, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", ["max_abs_error", "max_rel_error"])
@pytest.mark.parametrize("value", [nan, inf])
def test_what_is_off_by_no_number_is_never_ok_and_may_be_incorrect(error: str, value: float) -> None:
    accuracy = Accuracy(**{"max_abs_error": 0.0, "max_rel_error": 0.0, "out_dtype": None, error: value})
    with pytest.raises(ValueError, match="never right"):
        make_result(accuracy=accuracy)
    assert make_result(status=Status.INCORRECT, accuracy=accuracy).accuracy is accuracy
