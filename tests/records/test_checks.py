"""What a check, its plan, its header and its run hold, and what none can be."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from normbench.records import Allowance, DType, Gap, Mark, Property
from tests.checked import make_check, make_check_header, make_check_plan, make_check_run, make_spot
from tests.runs import make_info


def test_a_spot_says_what_is_not_as_by_default() -> None:
    assert str(make_spot()) == "5×3 fp32"
    assert str(make_spot(parameter_dtype=DType.BF16, autocast=DType.FP16)) == "5×3 fp32 parameters bf16 autocast fp16"


@pytest.mark.parametrize("changes", [{"rows": -1}, {"width": 0}])
def test_an_x_of_fewer_than_no_rows_or_without_columns_is_none(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="there is no x of"):
        make_spot(**changes)


def test_an_x_may_have_no_rows() -> None:
    assert make_spot(rows=0).rows == 0


@pytest.mark.parametrize("figures", [(nan, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, nan, 0.0), (0.0, 0.0, -inf)])
def test_a_gap_is_of_distances(figures: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="not a distance"):
        Gap(ulp=figures[0], relative=figures[1], allowed_ulp=figures[2])


def test_a_gap_may_be_infinite() -> None:
    assert Gap(ulp=inf, relative=inf, allowed_ulp=inf).ulp == inf


@pytest.mark.parametrize(
    ("mark", "reason"), [(Mark.PASS, "why"), (Mark.FAIL, None), (Mark.FAIL, ""), (Mark.NOT_APPLICABLE, None)]
)
def test_whoever_does_not_pass_says_why_in_words_and_nobody_else(mark: Mark, reason: str | None) -> None:
    with pytest.raises(ValueError, match="reason"):
        make_check(mark=mark, reason=reason)


def test_only_what_passes_is_coarse() -> None:
    with pytest.raises(ValueError, match="coarser"):
        make_check(mark=Mark.FAIL, coarse=True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"properties": ()}, "properties"),
        ({"properties": (Property.ZEROS, Property.ZEROS)}, "properties"),
        ({"dtypes": ()}, "dtypes"),
        ({"widths": (64, 3, 64)}, "widths"),
        ({"widths": (0,)}, "widths"),
        ({"widths": (3, 10**18 + 1)}, "widths"),
        ({"eps": 0.0}, "eps"),
        ({"eps": inf}, "eps"),
        ({"eps": nan}, "eps"),
    ],
)
def test_a_plan_asks_something_of_sizes_that_exist_with_an_eps_above_0(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_check_plan(**changes)


@pytest.mark.parametrize("names", [(), ("a-rmsnorm", "a-rmsnorm")])
def test_a_check_is_of_implementations_that_have_names_of_their_own(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="implementations"):
        make_check_header(implementations=tuple(map(make_info, names)))


@pytest.mark.parametrize("seconds", [-1.0, nan, inf])
def test_a_check_takes_some_finite_time_or_none_is_known(seconds: float) -> None:
    with pytest.raises(ValueError, match="no time"):
        make_check_run(seconds=seconds)
    assert make_check_run(seconds=None).seconds is None


def test_an_allowance_is_written_as_the_command_line_takes_it() -> None:
    assert str(Allowance(property=Property.ZEROS)) == "zeros"
    assert str(Allowance(property=Property.ZEROS, implementation="a:b")) == "a:b:zeros"
