from __future__ import annotations

import math
from typing import Any

import pytest

from normbench.records import SPOT_KEY, Check, DType, Gap, Mark, Output, Property, Spot


def make_spot(**changes: Any) -> Spot:
    fields: dict[str, Any] = {"rows": 33, "width": 64, "dtype": DType.BF16, "parameter_dtype": DType.BF16}
    return Spot(**{**fields, **changes})


def make_check(**changes: Any) -> Check:
    fields: dict[str, Any] = {
        "implementation": "eager-rmsnorm",
        "property": Property.ZEROS,
        "spot": make_spot(),
        "output": Output.Y,
        "mark": Mark.PASS,
    }
    return Check(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "33×64 bf16"),
        ({"rows": 0}, "0×64 bf16"),
        ({"parameter_dtype": DType.FP32}, "33×64 bf16 parameters fp32"),
        ({"autocast": DType.FP16}, "33×64 bf16 autocast fp16"),
        ({"parameter_dtype": DType.FP32, "autocast": DType.FP16}, "33×64 bf16 parameters fp32 autocast fp16"),
    ],
)
def test_a_spot_says_its_shape_and_what_is_unusual_of_its_formats(changes: dict[str, Any], text: str) -> None:
    assert str(make_spot(**changes)) == text


@pytest.mark.parametrize("changes", [{"rows": -1}, {"width": 0}])
def test_a_spot_may_have_no_rows_but_not_less_and_no_width_of_0(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="there is no x of"):
        make_spot(**changes)


def test_the_key_of_a_spot_is_all_of_it() -> None:
    assert SPOT_KEY == ("rows", "width", "dtype", "parameter_dtype", "autocast")
    assert make_spot() == make_spot()
    assert len({make_spot(), make_spot(), make_spot(autocast=DType.BF16)}) == 2


@pytest.mark.parametrize("field", ["ulp", "relative", "allowed_ulp"])
@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_a_distance_is_a_number_that_is_not_below_0(field: str, value: float) -> None:
    with pytest.raises(ValueError, match="not a distance"):
        Gap(**{"ulp": 0.0, "relative": 0.0, "allowed_ulp": 0.0, field: value})


def test_a_distance_may_be_infinite() -> None:
    assert Gap(ulp=math.inf, relative=math.inf, allowed_ulp=1.0).ulp == math.inf


@pytest.mark.parametrize(
    ("mark", "reason", "allowed"),
    [
        (Mark.PASS, None, True),
        (Mark.PASS, "because", False),
        (Mark.FAIL, None, False),
        (Mark.FAIL, "because", True),
        (Mark.NOT_APPLICABLE, None, False),
        (Mark.NOT_APPLICABLE, "because", True),
    ],
)
def test_all_but_who_passes_have_a_reason(mark: Mark, reason: str | None, allowed: bool) -> None:
    if allowed:
        assert make_check(mark=mark, reason=reason).reason == reason
    else:
        with pytest.raises(ValueError, match="whoever passes has no reason"):
            make_check(mark=mark, reason=reason)


def test_only_what_passes_passes_by_the_coarser_tolerance() -> None:
    assert make_check(coarse=True).coarse
    with pytest.raises(ValueError, match="only what passes"):
        make_check(coarse=True, mark=Mark.FAIL, reason="because")


def test_marks_and_outputs_are_their_words() -> None:
    assert [str(mark) for mark in Mark] == ["pass", "fail", "n.a."]
    assert [str(output) for output in Output] == ["y", "dx", "dgain", "dbias"]
