"""A check as plain data."""

from __future__ import annotations

import json
from math import inf
from typing import Any

from normbench import grades
from normbench.cli.output import json_text
from normbench.records import Mark
from normbench.reporters.checks_data import as_dictionary
from tests.checked import ALLOWED, make_check, make_check_run, make_gap


def data(**changes: Any) -> Any:
    return json.loads(json_text(as_dictionary(grades.of_run(make_check_run(**changes)))))


def test_it_holds_the_answer_the_grades_and_every_check() -> None:
    found = data()

    assert found["headline"].startswith("3 implementations")
    assert found["totals"] == {
        "passed": 9,
        "coarse": 1,
        "failed": 1,
        "allowed": 0,
        "not_applicable": 2,
        "unreached": 0,
    }
    assert (found["failed"], found["complete"], found["seconds"]) == (True, True, 75.0)
    assert len(found["grades"]) == 12
    assert len(found["checks"]) == len(make_check_run().checks)
    assert found["plan"]["widths"] == [3, 64]
    assert found["device"]["kind"] == "cpu"


def test_a_failure_that_is_allowed_is_no_failure_of_the_check() -> None:
    found = data(allowed=ALLOWED)

    assert (found["failed"], found["allowed"]) == (False, ["naive-rmsnorm:fp16-squares-overflow"])


def test_a_grade_has_its_worst_by_output_and_each_failure_with_its_places() -> None:
    grade = next(g for g in data()["grades"] if g["mark"] == "fail")

    assert grade["worst"]["dx"] == {
        "max_ulp": None,
        "max_rel_error": None,
        "max_of_allowed": None,
        "infinite": True,
        "rows": 5,
        "width": 3,
        "dtype": "fp16",
        "parameter_dtype": "fp16",
        "autocast": None,
    }
    (failure,) = grade["failures"]
    assert (failure["where"], failure["checks"], failure["output"]) == (["fp16, all widths"], 4, "dx")
    assert failure["reason"].startswith("dx[0, 2] is 0")


def test_what_is_infinite_is_told_from_what_is_absent() -> None:
    checks = [
        make_check(mark=Mark.FAIL, gap=make_gap(inf, 5.0, inf)),
        make_check(output=None, width=64),
        make_check(gap=make_gap(0.5, 5.0), width=65),
    ]
    figures = [(c["max_ulp"], c["max_rel_error"], c["infinite"]) for c in data(checks=checks)["checks"]]

    assert figures[:2] == [(None, None, True), (None, None, False)]
    assert figures[2] == (0.5, 0.5 * 2**-23, False)


def test_there_is_no_number_that_json_has_not() -> None:
    json.dumps(as_dictionary(grades.of_run(make_check_run())), allow_nan=False)
