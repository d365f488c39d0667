"""A check in words."""

from __future__ import annotations

from typing import Any

import pytest

from normbench import grades
from normbench.grades import Card
from normbench.records import Allowance, Check, DType, Gap, Mark, Output, Property
from normbench.reporters import checks as words
from tests.checked import (
    ALLOWED,
    NAMES,
    PROPERTIES,
    checks_of,
    make_check,
    make_check_plan,
    make_check_run,
    make_gap,
)

WELL = [check for name in NAMES[:2] for check in checks_of(name)]


def card(checks: list[Check] | None = None, **changes: Any) -> Card:
    return grades.of_run(make_check_run(checks, **changes))


def well(**changes: Any) -> Card:
    return card(WELL, names=NAMES[:2], **changes)


def cell(checks: list[Check]) -> str:
    return words.cell(grades.grade(checks))


def failed(**changes: Any) -> Check:
    return make_check(mark=Mark.FAIL, gap=make_gap(9.0), **changes)


def test_a_grade_is_a_few_letters() -> None:
    fp16 = {"dtype": DType.FP16}
    assert (
        cell([make_check(gap=make_gap(0.62)), make_check(output=Output.DX, gap=make_gap(130.0, 200.0))]) == "ok 130"
    )
    assert cell([make_check(output=None)]) == "ok"
    assert cell([make_check(coarse=True), make_check(width=5)]) == "coarse 0.50"
    assert cell([make_check(mark=Mark.NOT_APPLICABLE)]) == "-"
    assert cell([failed(**fp16), make_check()]) == "FAIL fp16"
    assert cell([failed(**fp16)]) == "FAIL"
    assert cell([failed(**fp16), failed(), make_check(dtype=DType.BF16)]) == "FAIL"
    assert words.cell(None) == "?"


def test_who_fails_in_gradients_alone_is_told_from_whose_y_is_wrong() -> None:
    dx, y = failed(output=Output.DX), failed(output=Output.Y)

    assert cell([dx, make_check(output=Output.Y)]) == "FAIL grad"
    assert cell([dx, y]) == "FAIL"
    assert cell([make_check(mark=Mark.FAIL, output=None, reason="TypeError: no")]) == "FAIL"
    assert cell([failed(output=Output.DGAIN, dtype=DType.FP16), make_check()]) == "FAIL grad fp16"


def test_the_answer_names_who_fails_and_what() -> None:
    assert words.headline(card()) == (
        "3 implementations, 4 properties: 1 fails something: naive-rmsnorm (fp16-squares-overflow)"
    )
    assert words.headline(well()) == "2 implementations, 4 properties: nothing fails"


def test_what_is_allowed_to_fail_is_said_apart() -> None:
    assert words.headline(card(allowed=ALLOWED)) == (
        "3 implementations, 4 properties: 1 fails what is allowed to fail: naive-rmsnorm (fp16-squares-overflow)"
    )


def test_many_properties_are_counted_and_many_names_too() -> None:
    names = tuple(f"some{number}-rmsnorm" for number in range(9))
    run = card([failed(name=n, asked=asked) for n in names for asked in PROPERTIES], names=names)
    said = words.headline(run)

    assert said.startswith("9 implementations, 4 properties: 9 fail something: some0-rmsnorm (4 properties), ")
    assert said.endswith("some5-rmsnorm (4 properties), 3 more")


def test_a_check_that_was_ended_says_so_and_is_no_verdict() -> None:
    early = card(checks_of(NAMES[0]), complete=False)

    assert words.headline(early) == "3 implementations, 4 properties: so far nothing fails"
    assert words.headline(card([], complete=False)) == "3 implementations, 4 properties: nothing was checked yet"
    assert words.end(early) == "incomplete, so this is no verdict on what was not asked"
    assert words.notes(early) == [
        "This check was ended before it was done; not come to: nn-rmsnorm (4 properties) and naive-rmsnorm (4 "
        "properties)."
    ]
    assert words.notes(card(complete=False)) == [
        "This check was ended before it was done; of what was begun last not every spot may be there."
    ]
    assert "8 not come to" in words.totals(early)


def test_the_totals_are_of_pairs() -> None:
    assert words.totals(card()) == (
        "Of 12 pairs of implementation and property 9 pass (1 only coarsely), 1 fail, 2 can't be asked"
    )
    one = card([make_check()], plan=make_check_plan(properties=(Property.NORMAL_VALUES,)), names=["nn-rmsnorm"])
    assert words.totals(one) == "Of 1 pair of implementation and property 1 pass, 0 fail, 0 can't be asked"
    assert "1 fail (1 allowed)" in words.totals(card(allowed=ALLOWED))


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (card(), "exit code 1: a property that is not allowed to fail does"),
        (card(allowed=ALLOWED), "exit code 0: nothing fails that is not allowed to"),
        (well(), "exit code 0: nothing fails"),
        (card([make_check(mark=Mark.NOT_APPLICABLE)]), "exit code 3: nothing could be checked"),
    ],
)
def test_the_end_says_the_exit_code_and_its_meaning(of: Card, said: str) -> None:
    assert words.end(of) == said


def test_a_failure_says_who_what_where_why_and_how_far_off() -> None:
    (line,) = words.failures(card())

    assert (line.who, line.what, line.where) == ("naive-rmsnorm", "fp16-squares-overflow", "fp16, all widths")
    assert line.why == "dx[0, 2] is 0, not 1.3 (100% of the elements are wrong)"
    assert (line.off, line.spot, line.allowed) == ("inf ulp (inf), inf times what is allowed", "5×3 fp16", False)


def test_a_failure_without_a_distance_gives_none() -> None:
    (line,) = words.failures(card([make_check(mark=Mark.FAIL, output=None, reason="TypeError: no")]))

    assert (line.why, line.off) == ("TypeError: no", "")


@pytest.mark.parametrize(("rows", "said"), [(6, None), (7, "1 more such place"), (9, "3 more such places")])
def test_places_beyond_six_are_counted(rows: int, said: str | None) -> None:
    good = [make_check(width=64, rows=r) for r in range(rows)]
    (line,) = words.failures(card([failed(rows=r) for r in range(rows)] + good))
    *named, last = line.where.split("; ")

    assert (last if said else None) == said
    assert len(named) == (6 if said else 5)


def test_what_is_only_coarsely_right_is_told_together_where_the_places_are_alike() -> None:
    more = [
        make_check("eager-layernorm", Property.DETERMINISM, Output.DGAIN, dtype=DType.FP16, width=w, coarse=True)
        for w in (3, 64)
    ]
    others = [check for check in make_check_run().checks if check.property is not Property.DETERMINISM]
    some = [make_check("eager-layernorm", Property.DETERMINISM, dtype=d, width=w) for d in DType for w in (3, 64)]
    found = words.coarse(card([*others, *more, *some]))

    assert found == [("eager-layernorm", "fp16, all widths: dgain", "normal-values and determinism")]
    assert words.coarse(card([*others, *more, *some]), 1)[0][2] == "2 properties"


def test_who_could_be_asked_nothing_is_named_with_the_reason() -> None:
    gone = [make_check("nn-rmsnorm", asked, None, Mark.NOT_APPLICABLE, reason="needs a GPU") for asked in PROPERTIES]

    assert words.notes(card([*checks_of("eager-layernorm"), *gone])) == [
        "Nothing could be asked of nn-rmsnorm: needs a GPU."
    ]


def test_an_allowance_without_a_failure_is_named_once_everything_was_asked() -> None:
    stale = (*ALLOWED, Allowance(property=Property.ZEROS))

    assert words.notes(card(allowed=stale)) == ["Allowed to fail, and does not: zeros."]
    assert not any("Allowed" in note for note in words.notes(card(allowed=stale, complete=False)))


def test_the_scope_says_on_what_with_what_and_how_long() -> None:
    said = "Some CPU, torch 2.13.0: fp32 and fp16, widths 3 and 64, eps 1e-06, seed 0"

    assert words.scope(card()) == f"{said}; took 1 min 15 s"
    assert words.scope(card(seconds=None)) == said


def test_a_distance_that_is_nothing_is_0() -> None:
    assert words.off(make_gap(0.0)) == "0 ulp (0.0e+00), 0 times what is allowed"
    assert words.off(Gap(ulp=40.0, relative=1e-6, of_allowed=3.2)) == "40 ulp (1.0e-06), 3.2 times what is allowed"


def test_it_is_said_whose_output_has_another_format_than_x() -> None:
    half = {"dtype": DType.BF16, "parameter_dtype": DType.FP32, "out_dtype": DType.FP32}
    checks = [
        make_check(NAMES[0], **half),
        make_check(NAMES[1], **half),
        make_check(NAMES[1], output=Output.DX, **half),
        make_check(NAMES[1], **{**half, "dtype": DType.FP16, "autocast": DType.FP16}),
        make_check(NAMES[1], dtype=DType.BF16),
    ]

    assert words.notes(card(checks, names=NAMES[:2]))[-2:] == [
        f"y is fp32, which is not x's format, for bf16 with fp32 parameters: {NAMES[0]} and {NAMES[1]}.",
        f"y is fp32, which is not x's format, for fp16 with fp32 parameters under autocast fp16: {NAMES[1]}.",
    ]
