"""Numbers on a command line: negative ones are values, wherever they stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench.cli.numbers import apart, number, numbers
from normbench.errors import UsageError

VALUED = ("--shift", "--gain")


@pytest.mark.parametrize(
    ("words", "sorted_out"),
    [
        (["1", "-2", "-.5"], ["--", "1", "-2", "-.5"]),
        (["-1", "--shift", "-3", "-2"], ["--shift", "-3", "--", "-1", "-2"]),
        (["--shift=-3", "-2", "--json"], ["--shift=-3", "--json", "--", "-2"]),
        (["1", "--", "-2", "--json"], ["--", "1", "-2", "--json"]),
        (["--shift", "--json", "1"], ["--shift", "--json", "--", "1"]),
        (["1", "--shift"], ["--shift", "--", "1"]),
        (["-q", "-inf", "-nan", "-Infinity"], ["-q", "--", "-inf", "-nan", "-Infinity"]),
        (["-infinite", "-n"], ["-infinite", "-n", "--"]),
        ([], ["--"]),
    ],
)
def test_options_come_first_and_what_is_no_option_behind_a_double_dash(
    words: list[str], sorted_out: list[str]
) -> None:
    assert apart(words, VALUED) == sorted_out


@given(st.lists(st.floats(allow_nan=False).map(repr)))
def test_no_number_is_ever_an_option(words: list[str]) -> None:
    assert apart(words, VALUED) == ["--", *words]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("-2.5", -2.5), ("1e-3", 1e-3), (".5", 0.5), ("+4", 4), (" 7 ", 7), ("10", 10), ("0e-9999", 0)],
)
def test_a_number_within_its_limits_is_taken(text: str, value: float) -> None:
    assert number("--shift", text, -10, 10) == value


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x", "is not a number"),
        ("1/3", "is not a number"),
        ("", "is not a number"),
        ("1_0", "is not a number"),
        ("0x1", "is not a number"),
        ("\u0663", "is not a number"),
        ("\u22121", "is not a number"),
        ("1e-400", "is so near to 0 that float64 can't hold it"),
        ("-0.1E-9999", "is so near to 0 that float64 can't hold it"),
        ("nan", "is not a finite number"),
        ("-inf", "is not a finite number"),
        ("1e999", "is not a finite number"),
        ("10.1", "is out of range"),
        ("-0.1", "is out of range"),
    ],
)
def test_what_is_no_number_that_is_allowed_is_named_with_what_is(text: str, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        number("--eps", text, 0, 10)

    assert caught.value.message == f"--eps: {text!r} {what}"
    assert caught.value.hint == "allowed: numbers such as 1, -2.5 or 1e-3, from 0 to 10"


def test_several_are_parted_by_commas_blanks_and_words() -> None:
    assert numbers("X", ["1,2", "-3, 4", "5 6,"], -10, 10) == (1, 2, -3, 4, 5, 6)
