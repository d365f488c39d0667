"""What a check, its plan, its header and its run hold, and what none can be."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from normbench.records import Allowance, DType, Gap, Mark, Property
from tests.checked import make_check, make_check_header, make_check_plan, make_check_run, make_gap, make_spot
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
        Gap(ulp=figures[0], relative=figures[1], of_allowed=figures[2])


def test_a_gap_may_be_infinite() -> None:
    assert Gap(ulp=inf, relative=inf, of_allowed=inf).ulp == inf


@pytest.mark.parametrize(
    ("mark", "reason"), [(Mark.PASS, "why"), (Mark.FAIL, None), (Mark.FAIL, ""), (Mark.NOT_APPLICABLE, None)]
)
def test_whoever_does_not_pass_says_why_in_words_and_nobody_else(mark: Mark, reason: str | None) -> None:
    with pytest.raises(ValueError, match="reason"):
        make_check(mark=mark, reason=reason)


@pytest.mark.parametrize(
    ("gap", "coarse"),
    [(make_gap(5.1, 5.0), False), (make_gap(inf, 5.0, inf), False), (make_gap(inf, 5.0, inf), True)],
)
def test_what_is_off_by_more_than_is_allowed_does_not_pass(gap: Gap, coarse: bool) -> None:
    with pytest.raises(ValueError, match="does not pass"):
        make_check(gap=gap, coarse=coarse)

    assert make_check(mark=Mark.FAIL, gap=gap).gap == gap


def test_what_is_off_by_all_that_is_allowed_passes_and_coarsely_by_more() -> None:
    assert make_check(gap=make_gap(5.0, 5.0)).mark is Mark.PASS
    assert make_check(gap=make_gap(50.0, 5.0), coarse=True).mark is Mark.PASS


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
        ({"eps": 1e-31}, "eps: from 1e-30 to 1e\\+08"),
        ({"eps": 1e9}, "eps"),
        ({"eps": inf}, "eps"),
        ({"seed": 2**64}, "the seed has 64 bits"),
        ({"seed": -(2**63) - 1}, "the seed has 64 bits"),
        ({"widths": tuple(range(1, 100_000))}, "799992 questions are more than 200000"),
        ({"eps": nan}, "eps"),
    ],
)
def test_a_plan_asks_something_of_sizes_that_exist_with_an_eps_above_0(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_check_plan(**changes)


def test_a_check_of_more_than_anyone_waits_for_is_none() -> None:
    plan = make_check_plan()
    most = 200_000 // (4 * 2 * 2)
    plan.refuse_too_many(most)
    with pytest.raises(ValueError, match="ask for fewer widths or properties"):
        plan.refuse_too_many(most + 1)
    with pytest.raises(ValueError, match="ask for fewer"):
        make_check_header(plan=make_check_plan(widths=tuple(range(1, 10_000))))
    with pytest.raises(ValueError, match="1001 implementations are more than 1000"):
        make_check_header(f"x{number}-rmsnorm" for number in range(1001))


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
