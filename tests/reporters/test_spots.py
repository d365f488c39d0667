"""Where some of the checks of a property lie, in as few places as say it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from normbench.records import Check, DType, Output
from normbench.reporters.spots import EVERYWHERE, places
from tests.checked import make_check

FP32, BF16, FP16 = DType.FP32, DType.BF16, DType.FP16
Y, DX, DGAIN = Output.Y, Output.DX, Output.DGAIN


def asked(
    dtypes: Iterable[DType] = (FP32, BF16, FP16),
    widths: Iterable[int] = (1, 3, 64),
    outputs: Iterable[Output | None] = (Y, DX, DGAIN),
    **changes: Any,
) -> list[Check]:
    outputs = tuple(outputs)
    return [make_check(output=o, dtype=d, width=w, **changes) for d in dtypes for w in widths for o in outputs]


@pytest.mark.parametrize(
    ("which", "said"),
    [
        (bool, [EVERYWHERE]),
        (lambda c: c.spot.dtype is FP16, ["fp16, all widths"]),
        (lambda c: c.spot.dtype is not BF16, ["fp32 and fp16, all widths"]),
        (lambda c: c.output is DX, ["fp32, bf16 and fp16, all widths: dx"]),
        (lambda c: c.spot.dtype is FP32 and c.spot.width == 3 and c.output is DX, ["fp32 at width 3: dx"]),
        (lambda c: c.spot.dtype is FP32 and c.spot.width > 1, ["fp32 at widths 3 and 64"]),
        (lambda c: c.spot.dtype is FP16 and c.output is not DX, ["fp16, all widths: y and dgain"]),
        (
            lambda c: c.spot.dtype is FP16 or (c.spot.dtype is FP32 and c.spot.width == 3 and c.output is DX),
            ["fp32 at width 3: dx", "fp16, all widths"],
        ),
        (
            lambda c: c.spot.dtype is FP16 and (c.output is Y or c.spot.width == 64),
            ["fp16, all widths: y", "fp16 at width 64: dx and dgain"],
        ),
    ],
)
def test_the_words_name_what_is_needed_and_no_more(which: Callable[[Check], bool], said: list[str]) -> None:
    every = asked()

    assert places(filter(which, every), every) == said


def test_many_widths_are_counted() -> None:
    every = asked(dtypes=(FP32,), widths=range(1, 30), outputs=(Y,))

    assert places(every[:20], every) == ["fp32 at 20 widths from 1 to 20"]


def test_where_there_is_one_width_or_one_output_it_is_not_named() -> None:
    every = asked(widths=(64,), outputs=(Y,))

    assert places(every[:1], every) == ["fp32"]


def test_other_parameters_and_autocast_are_kinds_of_their_own() -> None:
    every = [*asked(), *asked(parameter_dtype=FP32, dtypes=(FP16,)), *asked(autocast=BF16, dtypes=(FP32,))]
    odd = [check for check in every if check.spot.parameter_dtype is not check.spot.dtype or check.spot.autocast]

    assert places(odd, every) == ["fp16 with fp32 parameters and fp32 under autocast bf16, all widths"]


def test_rows_are_named_where_they_alone_tell_spots_apart() -> None:
    every = [*asked(dtypes=(FP32,), rows=0), *asked(dtypes=(FP32,), rows=1)]

    assert places(every[:9], every) == ["fp32, all widths, 0 rows"]
    assert places(every[9:12], every) == ["fp32 at width 1, 1 row"]


def test_what_is_of_the_whole_call_names_no_output() -> None:
    every = asked(outputs=(None,))

    assert places(every[:1], every) == ["fp32 at width 1"]


def test_a_call_that_gave_nothing_names_no_output_beside_those_that_gave_something() -> None:
    every = [*asked(dtypes=(FP32,)), *asked(dtypes=(FP16,), outputs=(None,))]

    assert places(every[9:], every) == ["fp16, all widths"]
