from __future__ import annotations

import pytest

from normbench.properties import QUESTIONS, Where
from normbench.properties.spots import spots, usual_width
from normbench.records import DType, Property, Spot
from tests.properties.asking import plan

WIDTHS = (1, 3, 64, 1000)


def of(one: Property, dtype: DType = DType.BF16, widths: tuple[int, ...] = WIDTHS) -> list[Spot]:
    return list(spots(plan(properties=(one,), widths=widths), dtype))


def test_every_property_has_a_question_and_they_stand_in_the_order_of_reports() -> None:
    assert list(QUESTIONS) == list(Property)


@pytest.mark.parametrize("dtype", list(DType))
def test_every_property_is_asked_of_each_format_at_one_spot_at_least(dtype: DType) -> None:
    asked = [one for properties in spots(plan(widths=WIDTHS), dtype).values() for one in properties]

    assert set(asked) == set(Property)


def test_most_are_asked_at_every_width_with_an_odd_number_of_rows() -> None:
    found = of(Property.NORMAL_VALUES)

    assert [spot.width for spot in found] == list(WIDTHS)
    assert {spot.rows % 2 for spot in found} == {1}
    assert {(spot.dtype, spot.parameter_dtype, spot.autocast) for spot in found} == {(DType.BF16, DType.BF16, None)}


@pytest.mark.parametrize(("width", "rows"), [(16384, 33), (31775, 33), (31776, 9), (65536, 9)])
def test_of_very_wide_rows_there_are_few(width: int, rows: int) -> None:
    assert [(spot.rows, spot.width) for spot in of(Property.NORMAL_VALUES, widths=(width,))] == [(rows, width)]


@pytest.mark.parametrize(("one", "rows"), [(Property.NO_ROWS, 0), (Property.ONE_ROW, 1), (Property.STRIDED, 64)])
def test_some_are_asked_at_one_width_with_rows_of_their_own(one: Property, rows: int) -> None:
    assert [(spot.rows, spot.width) for spot in of(one)] == [(rows, 64)]


def test_no_square_is_made_of_a_width_that_would_take_gigabytes() -> None:
    assert [(spot.rows, spot.width) for spot in of(Property.TRANSPOSED, widths=(65536,))] == [(9, 65536)]


@pytest.mark.parametrize(
    ("dtype", "other"), [(DType.FP32, DType.BF16), (DType.BF16, DType.FP32), (DType.FP16, DType.FP32)]
)
def test_mixed_parameters_are_of_another_format(dtype: DType, other: DType) -> None:
    assert [(spot.dtype, spot.parameter_dtype) for spot in of(Property.MIXED_PARAMETERS, dtype)] == [(dtype, other)]


@pytest.mark.parametrize(
    ("dtype", "to"), [(DType.FP32, DType.BF16), (DType.BF16, DType.BF16), (DType.FP16, DType.FP16)]
)
def test_autocast_goes_to_half_precision(dtype: DType, to: DType) -> None:
    assert [spot.autocast for spot in of(Property.AUTOCAST, dtype)] == [to]


def test_what_can_share_a_spot_shares_it_so_that_a_compiler_builds_few_graphs() -> None:
    found = spots(plan(widths=WIDTHS), DType.FP32)

    assert len(found) == len(WIDTHS) + 5  # no rows, one row, a square, mixed parameters, autocast
    assert Property.NO_GRAD in found[of(Property.NO_GRAD, DType.FP32)[0]]
    assert Property.NORMAL_VALUES in found[of(Property.NO_GRAD, DType.FP32)[0]]


@pytest.mark.parametrize(
    ("widths", "usual"), [((1, 64, 4096), 64), ((1, 3), 3), ((1000, 4096), 1000), ((60, 68), 60), ((68, 60), 60)]
)
def test_the_usual_width_is_64_or_the_one_nearest_to_it(widths: tuple[int, ...], usual: int) -> None:
    assert usual_width(widths) == usual


def test_every_place_is_used() -> None:
    assert {question.where for question in QUESTIONS.values()} == set(Where)
