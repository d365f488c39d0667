from __future__ import annotations

from dataclasses import replace

import pytest

from normbench.implementations import Implementation
from normbench.records import DType, Mark, Op, Output, Property
from tests.faults import (
    by_position,
    every_third,
    into_dy,
    nearly,
    on_y,
    over_all_rows,
    scaled_by_the_batch,
    with_gradients,
    with_root,
    writing_into,
)
from tests.properties.asking import asked, spot, subject
from tests.right_norms import LN, RMS, exact, implementation

P = Property
OPS = [LN, RMS]
BOTH = {Output.Y: Mark.PASS, Output.DX: Mark.PASS}


def marks(one: Property, of: Implementation, **at: object) -> dict[Output | None, Mark]:
    return {output: f.mark for output, f in asked(one, subject(of, spot(**at))).items()}  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("op", OPS)
def test_a_norm_of_rows_keeps_them_apart_and_is_the_same_each_time(op: Op, dtype: DType) -> None:
    right = implementation(op, "exact", exact(op))

    assert marks(P.ROWS_APART, right, dtype=dtype) == BOTH
    assert marks(P.REQUESTS_APART, right, dtype=dtype) == BOTH
    assert set(marks(P.DETERMINISM, right, dtype=dtype).values()) == {Mark.PASS}
    assert marks(P.INPUTS_INTACT, right, dtype=dtype) == {None: Mark.PASS}


@pytest.mark.parametrize("op", OPS)
def test_one_bit_that_hangs_on_another_row_is_found(op: Op) -> None:
    one = implementation(op, "one", scaled_by_the_batch(op))

    assert marks(P.ROWS_APART, one)[Output.Y] is Mark.FAIL
    assert marks(P.REQUESTS_APART, one) == BOTH


@pytest.mark.parametrize("op", OPS)
def test_a_statistic_of_all_rows_changes_with_each_of_them_and_not_with_their_order(op: Op) -> None:
    one = implementation(op, "one", with_root(over_all_rows)(op))

    assert marks(P.ROWS_APART, one) == {Output.Y: Mark.FAIL, Output.DX: Mark.FAIL}
    assert marks(P.REQUESTS_APART, one) == BOTH


@pytest.mark.parametrize("op", OPS)
def test_a_result_that_hangs_on_the_row_s_place_is_found_by_the_order(op: Op) -> None:
    one = implementation(op, "one", on_y(by_position)(op))

    assert marks(P.REQUESTS_APART, one)[Output.Y] is Mark.FAIL
    assert marks(P.ROWS_APART, one) == BOTH


@pytest.mark.parametrize("make", [on_y(nearly), every_third])
def test_a_rounding_that_chance_or_the_count_of_calls_decides_is_found(make: object) -> None:
    one = implementation(RMS, "one", make(RMS))  # type: ignore[operator]
    found = asked(P.DETERMINISM, subject(one))

    assert found[Output.Y].mark is Mark.FAIL
    assert found[Output.DX].mark is Mark.PASS
    assert str(found[Output.Y].reason).startswith("another call gave another result: ")
    assert str(found[Output.Y].reason).endswith(" of 320 elements differ")


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (with_gradients(dx=writing_into(0)), "x"),
        (with_gradients(dx=writing_into(1)), "dy"),
        (with_gradients(dx=writing_into(2)), "gain"),
        (with_gradients(dx=into_dy), "dy"),
    ],
)
def test_what_was_written_into_is_said(make: object, name: str) -> None:
    one = implementation(LN, "one", make(LN))  # type: ignore[operator]
    (found,) = asked(P.INPUTS_INTACT, subject(one)).values()

    assert (found.mark, found.reason) == (Mark.FAIL, f"it has written into {name}")


def test_who_says_that_it_writes_into_its_inputs_is_not_asked() -> None:
    one = replace(implementation(LN, "one", with_gradients(dx=into_dy)(LN)), mutates=True)
    (found,) = asked(P.INPUTS_INTACT, subject(one)).values()

    assert found.mark is Mark.NOT_APPLICABLE
