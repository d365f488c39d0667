"""``check.md``: the answer first, tables that GitHub reads, and never too long."""

from __future__ import annotations

import re
from typing import Any

import pytest

from normbench import grades
from normbench.records import ROUNDING, Check, CheckRun, Mark, Property
from normbench.reporters.checks_markdown import render
from normbench.reporters.markdown import MOST_CHARACTERS
from tests.checked import ALLOWED, NAMES, PROPERTIES, checks_of, make_check, make_check_run, make_gap
from tests.reporters.reading import GITHUB, assert_tables_keep_their_shape, parsed, table_after, tables
from tests.runs import make_environment


def check_md(run: CheckRun | None = None, **changes: Any) -> str:
    return render(grades.of_run(run or make_check_run(**changes)))


def words(text: str) -> str:
    return " ".join("".join(parsed(GITHUB.render(text)).text).split())


def test_the_first_line_is_the_answer() -> None:
    first = check_md().splitlines()[0]

    assert first == ("**3 implementations, 4 properties: 1 fails something: naive-rmsnorm (fp16-squares-overflow).**")


def test_the_grades_are_a_table_of_properties_and_implementations() -> None:
    assert table_after(check_md(), "Properties") == [
        ["property", *NAMES],
        ["normal-values", "coarse 40", "ok 0.62", "ok 0.62"],
        ["fp16-squares-overflow", "ok 0.50", "ok 0.50", "FAIL fp16"],
        ["zero-mean", "ok 0.50", "-", "-"],
        ["determinism", "ok", "ok", "ok"],
    ]


def test_a_failure_is_a_row_with_the_worst_of_its_places() -> None:
    row = [
        "naive-rmsnorm",
        "fp16-squares-overflow",
        "fp16, all widths",
        "dx[0, 2] is 0, not 1.3 (100% of the elements are wrong)",
        "inf ulp (inf), inf times what is allowed",
        "5×3 fp16",
    ]

    assert table_after(check_md(), "What fails")[1:] == [row]
    row[1] += " (allowed)"
    assert table_after(check_md(allowed=ALLOWED), "What fails")[1:] == [row]


def test_where_nothing_fails_or_is_coarse_there_is_no_such_part() -> None:
    text = check_md(checks=checks_of("nn-rmsnorm"), names=("nn-rmsnorm",))

    assert "What fails" not in text
    assert "only coarsely\n" not in text


def details(text: str, name: str) -> list[list[str]]:
    return next(tables(text[text.index(f"<summary>{name}") :]))


def test_each_implementation_has_its_figures_by_output_with_where_they_are() -> None:
    found = details(check_md(), "naive-rmsnorm")

    assert found == [
        ["property", "", "y", "dx", "dgain", "dbias"],
        ["normal-values", "ok", *["0.62 (7.4e-08), 5×3 fp32"] * 3, ""],
        ["fp16-squares-overflow", "FAIL", "6e+04 (1.0e+00), 5×64 fp16", "inf (inf), 5×3 fp16", "", ""],
        ["zero-mean", "n.a.: RMSNorm takes no mean off", "", "", "", ""],
        ["determinism", "ok", "", "", "", ""],
    ]
    assert "<summary>naive-rmsnorm: 2 pass, 1 fail, 1 n.a.</summary>" in check_md()


def test_what_was_not_asked_everywhere_says_why() -> None:
    checks = [make_check(), make_check(output=None, mark=Mark.NOT_APPLICABLE, reason="fp16 can't hold it", width=64)]

    assert details(check_md(checks=checks), "nn-rmsnorm")[1][1] == "ok, not asked everywhere: fp16 can't hold it"


def test_who_was_not_come_to_has_a_table_that_says_so() -> None:
    text = check_md(checks=checks_of(NAMES[0]), complete=False)

    assert "<summary>nn-rmsnorm: not come to</summary>" in text
    assert "This check was ended before it was done" in text


def test_each_property_that_was_asked_is_explained_and_what_rounding_means_once() -> None:
    text = check_md()
    found = next(tables(text[text.index("<summary>4 properties</summary>") :]))

    assert [row[0] for row in found[1:]] == [str(asked) for asked in PROPERTIES]
    assert [row[1:] for row in found[1:]] == [[asked.asks, asked.allows] for asked in PROPERTIES]
    assert words(text).count(ROUNDING) == 1


def test_device_software_and_command_are_there() -> None:
    text = check_md(environment=make_environment(packages=(("some", "1.0"),)))

    assert ["some", "1.0"] in next(tables(text[text.index("<summary>On what</summary>") :]))
    assert text.endswith("Again: `normbench check --device cpu`\n")


def many(implementations: int, reasons: int = 1, name: str = "x") -> CheckRun:
    """A check of so many implementations which all fail a lot, each for so many reasons."""
    names = tuple(f"{name}{number}-rmsnorm" for number in range(implementations))
    checks: list[Check] = []
    for who in names:
        for asked in Property:
            checks += [
                make_check(who, asked, mark=Mark.FAIL, gap=make_gap(9.0), width=w, reason="reason " + "a" * w)
                for w in range(1, reasons + 1)
            ]
    plan = make_check_run().header.plan
    whole = type(plan)(**{**vars(plan), "properties": tuple(Property)})
    return make_check_run(checks, names=names, plan=whole)


@pytest.mark.parametrize(
    "run",
    [many(7), many(60), many(7, reasons=40), many(300), many(60, name="|" * 150), many(2, 3, name="é" * 180)],
    ids=["usual", "many", "many reasons", "very many", "long names", "letters of two bytes"],
)
def test_however_much_there_is_it_stays_short_and_its_tables_whole(run: CheckRun) -> None:
    text = check_md(run)

    assert len(text) < MOST_CHARACTERS
    assert text.startswith(f"**{len(run.header.implementations)} implementations, 35 properties: ")
    assert_tables_keep_their_shape(text)
    assert len(list(tables(text))) >= 4


def test_what_is_left_out_is_counted_and_who_fails_is_kept_first() -> None:
    names = tuple(f"{'long' * 30}{number}-rmsnorm" for number in range(250))
    checks = [make_check(name, asked) for name in names for asked in Property]
    checks[-1] = make_check(names[-1], Property.FINITE_DIFFERENCES, mark=Mark.FAIL)
    plan = make_check_run().header.plan
    text = check_md(checks=checks, names=names, plan=type(plan)(**{**vars(plan), "properties": tuple(Property)}))
    shown = table_after(text, "Properties")[0][1:]

    assert names[-1] in shown
    said = re.search(r"Left out here, to stay below 60,000 characters: (\d+) implementations", text)
    assert said
    assert int(said[1]) == len(names) - len(shown) > 0


def test_a_usual_check_is_shown_with_all_its_figures() -> None:
    assert "Left out" not in check_md(many(7))
