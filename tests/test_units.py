from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench import units

SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}


def value_of(text: str, scales: dict[str, float] | dict[str, int]) -> float:
    number, unit = text.split(" ")
    return float(number) * scales[unit]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1.5, "1.50"), (0.000123456, "0.000123"), (123456, "123000"), (-12.34, "-12.3"), (9.999, "10.0")],
)
def test_a_number_is_written_with_three_significant_digits_and_no_exponent(value: float, text: str) -> None:
    assert units.significant(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (12.34e-6, "12.3 µs"),
        (1.0, "1.00 s"),
        (75.0, "75.0 s"),
        (1.5e-3, "1.50 ms"),
        (42e-9, "42.0 ns"),
        (4e-11, "0.0400 ns"),
        (0.0, "0 ns"),
        (999.4e-6, "999 µs"),
        (999.6e-6, "1.00 ms"),
        (None, "-"),
    ],
)
def test_a_duration_is_shown_in_the_unit_that_keeps_it_between_1_and_1000(seconds: float | None, text: str) -> None:
    assert units.duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (512, "512 B"), (1024, "1.00 KiB"), (8 * 2**20, "8.00 MiB"), (2**20 - 1, "1.00 MiB"), (None, "-")],
)
def test_a_size_is_shown_in_binary_units_that_are_named_as_such(count: float | None, text: str) -> None:
    assert units.size(count) == text


@pytest.mark.parametrize(("rate", "text"), [(41.2e9, "41.2 GB/s"), (4.8e12, "4800 GB/s"), (None, "-")])
def test_a_bandwidth_is_shown_in_decimal_units(rate: float | None, text: str) -> None:
    assert units.bandwidth(rate) == text


@pytest.mark.parametrize(("seconds", "text"), [(5, "5 s"), (59.7, "1 min 00 s"), (65, "1 min 05 s"), (0.2, "0 s")])
def test_time_left_is_rounded_before_it_is_split_into_minutes(seconds: float, text: str) -> None:
    assert units.time_left(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3.0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h 00 min"), (90061, "25 h 01 min")],
)
def test_an_age_is_told_by_its_largest_units(seconds: float, text: str) -> None:
    assert units.age(seconds) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (1.05, 1.04, 1.06, "1.05 [1.04, 1.06]"),
        (1.05, None, None, "1.05"),
        (1.0004, 0.9996, 1.0012, "1.000 [1.000, 1.001]"),
        (None, None, None, "-"),
    ],
)
def test_a_ratio_shows_its_interval_and_a_third_decimal_where_it_is_narrow(
    value: float | None, low: float | None, high: float | None, text: str
) -> None:
    assert units.ratio(value, low, high) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.02, "2 %"),
        (0.0025, "0.25 %"),
        (0.1, "10 %"),
        (0.09999, "10 %"),
        (0.5, "50 %"),
        (0.0, "0 %"),
        (-0.5, "-50 %"),
    ],
)
def test_a_fraction_is_shown_as_a_percentage_without_idle_zeros(fraction: float, text: str) -> None:
    assert units.percent(fraction) == text


@pytest.mark.parametrize(("value", "text"), [(1.517, "1.52×"), (9.0, "9.00×"), (0.5, "0.500×")])
def test_a_factor_ends_in_a_multiplication_sign(value: float, text: str) -> None:
    assert units.times(value) == text


@pytest.mark.parametrize(("value", "text"), [(3.14e-7, "3.1e-07"), (float("inf"), "inf"), (None, "-")])
def test_an_error_is_shown_with_an_exponent(value: float | None, text: str) -> None:
    assert units.scientific(value) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [((), "-"), ((256,), "256"), ((256, 512), "256 and 512"), ([256, 512, 4096], "256, 512 and 4096")],
)
def test_several_numbers_are_listed_as_in_a_sentence(values: tuple[int, ...], text: str) -> None:
    assert units.numbers(values) == text


@given(st.floats(min_value=1e-9, max_value=1e6))
def test_a_duration_read_back_is_the_same_to_half_of_its_last_digit(seconds: float) -> None:
    assert value_of(units.duration(seconds), SECONDS) == pytest.approx(seconds, rel=0.0051)


@given(st.integers(min_value=1, max_value=2**60))
def test_a_size_read_back_is_the_same_to_half_of_its_last_digit(count: int) -> None:
    assert value_of(units.size(count), BYTES) == pytest.approx(count, rel=0.0051)


@given(st.floats(min_value=1e-9, max_value=999.0))
def test_a_duration_below_1000_s_never_needs_more_than_three_digits_before_the_point(seconds: float) -> None:
    assert value_of(units.duration(seconds).partition(" ")[0] + " s", SECONDS) < 1000


@given(st.floats(min_value=1e-12, max_value=1e12), st.integers(min_value=1, max_value=6))
def test_significant_digits_are_as_many_as_asked_for(value: float, digits: int) -> None:
    text = units.significant(value, digits)

    assert "e" not in text
    assert float(text) == pytest.approx(value, rel=0.5 * 10 ** (1 - digits) * 1.001)
    if "." in text:
        assert len(text.replace(".", "").lstrip("0")) == digits


@pytest.mark.parametrize(
    ("number", "what", "said"),
    [
        *((0, "cell", "0 cells"), (1, "cell", "1 cell"), (2, "process", "2 processes")),
        *((2, "property", "2 properties"), (2, "batch", "2 batches")),
    ],
)
def test_things_are_counted_in_the_right_number(number: int, what: str, said: str) -> None:
    assert units.count(number, what) == said


@pytest.mark.parametrize(("number", "said"), [(1, "another run"), (2, "2 other runs")])
def test_others_are_counted_besides(number: int, said: str) -> None:
    assert units.others(number, "run") == said


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([-1.2247449, 0.0, 1.2247449], ("-1.224745", "0.000000", "1.224745")),
        ([0.46291, 1e-9], ("0.462910", "0.000000")),
        ([-1e-9, 1.0], ("0.000000", "1.000000")),
        ([-0.0], ("0.000000",)),
        ([1e-3], ("0.001000",)),
        ([9.99e-4, 0.0, -1e-8], ("9.990000e-04", "0.000000", "-1.000000e-08")),
        ([9999999.0], ("9999999.000000",)),
        ([1e7, 1.0], ("1.000000e+07", "1.000000e+00")),
        ([1e-300, -1e-308], ("1.000000e-300", "-1.000000e-308")),
        ([math.nan, 1.0, -math.inf, math.inf], ("NaN", "1.000000", "-inf", "inf")),
        ([math.nan], ("NaN",)),
        ([0.0078125], ("0.007813",)),  # half way: away from 0, as a script has it
        ([-0.0078125], ("-0.007813",)),
        ([], ()),
    ],
)
def test_figures_to_be_compared_have_one_form(values: list[float], texts: tuple[str, ...]) -> None:
    assert units.figures(values) == texts


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_figures_are_right_to_six_decimals_or_digits(values: list[float]) -> None:
    for value, text in zip(values, units.figures(values), strict=True):
        assert float(text) == pytest.approx(value, rel=1e-6, abs=5.0001e-7)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        *((2.0, 6, "2"), (-3.5, 6, "-3.5"), (1e-6, 6, "1e-06"), (0.0001, 6, "0.0001"), (-0.0, 6, "0")),
        *((1 / 3, 6, "0.333333"), (1e25, 6, "1e+25"), (999999.4, 6, "999999"), (999999.6, 6, "1e+06")),
        *((18100.0, 3, "18100"), (1.2247, 3, "1.22"), (1234567.0, 3, "1.23e+06"), (9.999, 3, "10")),
        *((0.3828125, 6, "0.382813"), (math.nan, 3, "NaN"), (-math.inf, 3, "-inf")),
    ],
)
def test_a_plain_number_is_as_short_as_it_was_typed(value: float, digits: int, text: str) -> None:
    assert units.plain(value, digits) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.01, "<0.1"),
        (0.1, "0.10"),
        (0.616, "0.62"),
        (9.96, "10"),
        (137.0, "140"),
        (999.0, "1000"),
        (3.4e5, "3e+05"),
        (float("inf"), "inf"),
    ],
)
def test_a_distance_in_ulp_is_short_whatever_its_size(value: float, text: str) -> None:
    assert units.ulps(value) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (1.0869, None, None, "1.087"),
        (0.5, 0.4, 0.6, "0.500 [0.400, 0.600]"),
        (12.34, None, None, "12.3"),
        (9.5, 9.0, 10.4, "9.500 [9.000, 10.4]"),
    ],
)
def test_how_many_times_as_long_is_told_to_a_thousandth(
    value: float, low: float | None, high: float | None, text: str
) -> None:
    assert units.as_long(value, low, high) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.1, 0.0995, 0.101, "100 ms [100, 101]"),
        (12.3e-6, 12.1e-6, 12.55e-6, "12.3 µs [12.1, 12.6]"),
        (0.999, 0.99, 1.01, "999 ms [990, 1010]"),
        (0.1, None, None, "100 ms"),
    ],
)
def test_a_measured_time_shares_its_unit_with_its_interval(
    value: float, low: float | None, high: float | None, text: str
) -> None:
    assert units.measured(value, low, high) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (1.234e-3, -0.1e-3, 2.6e-3, "+1.23 ms [-0.10, +2.60]"),
        (-45e-6, -50e-6, -40e-6, "-45.0 µs [-50.0, -40.0]"),
        (0.0, -99e-6, 100e-6, "+0 µs [-99, +100]"),
        (-0.0, -0.0, 0.0, "+0 ns [+0, +0]"),
    ],
)
def test_a_difference_of_times_has_its_sign_and_one_unit(value: float, low: float, high: float, text: str) -> None:
    assert units.longer(value, low, high) == text


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [(2.10341, False, "2.1034"), (0.00126, True, "+0.0013"), (-0.5, True, "-0.5000"), (None, False, "-")],
)
def test_bits_per_byte_are_told_to_a_ten_thousandth(value: float | None, signed: bool, text: str) -> None:
    assert units.bits(value, signed=signed) == text


def test_whole_numbers_and_rates_have_their_thousands_apart() -> None:
    assert units.whole(3740160) == "3,740,160"
    assert [units.rate(value) for value in (12345.0, 987.0, 9.871, 1e6, None)] == [
        *("12,300", "987", "9.87", "1,000,000", "-"),
    ]
