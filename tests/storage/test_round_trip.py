"""Whatever a run leaves is read again as it was written, however it is called and whatever went wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from normbench import failures
from normbench.errors import StorageError
from normbench.records import CaseResult, Plan, Run, Status
from normbench.storage import RunFolder, load, samples
from normbench.storage.texts import cleaned_field, name_objection
from tests.runs import TIMES, make_header, make_info, make_plan, make_records

same_scratch = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])

ODD = (
    "=1+1",
    "@x",
    "-1",
    "+1",
    "\t=1",
    "x;=1",
    'a "b", c',
    "a\nb",
    "a\r\nb",
    "<b>|`x`",
    "[/data/x]",
    "\x1b[31m",
    "\ud800",
    "nan",
)
texts = st.one_of(st.text(min_size=1), st.sampled_from(ODD), st.text("=+-@;,\"'\n\r\t \u202e", min_size=1))
names = st.one_of(
    st.text(min_size=1, max_size=12),
    st.sampled_from(("None", "nan", "NA", "null", "1", "1e5", "true", "nn.RMSNorm[compile]")),
).filter(lambda name: name_objection(name) is None and name not in TIMES)


def written(path: Path, plan: Plan, candidate: str, time: float | Status, reason: str) -> Run:
    rmtree(path, ignore_errors=True)
    header = make_header(plan, implementations=tuple(make_info(name) for name in plan.implementations))
    folder = RunFolder.create(path, header)
    for cell in plan.cells():
        folder.write(make_records(cell, {**TIMES, candidate: time}, plan, reason))
    return load(path)


@same_scratch
@given(names, st.sampled_from([3e-6, *(s for s in Status if s is not Status.OK)]), texts)
def test_a_run_comes_back_with_any_name_status_and_reason(
    tmp_path: Path, name: str, time: float | Status, reason: str
) -> None:
    plan = make_plan(widths=(64, 128), implementations=("copy", "nn-layernorm", name))
    run = written(tmp_path / "run", plan, name, time, reason)
    expected = [
        replace(result, reason=cleaned_field(reason) if result.reason else None)
        for cell in plan.cells()
        for result in make_records(cell, {**TIMES, name: time}, plan, reason).results
    ]

    assert list(run.results) == expected
    assert run.comparisons == tuple(
        one for cell in plan.cells() for one in make_records(cell, {**TIMES, name: time}, plan).comparisons
    )
    timed = {result.case for result in run.results if result.timing}
    assert set(samples.logarithms(tmp_path / "run", run)) == timed


@same_scratch
@given(texts)
def test_what_failures_say_of_any_exception_is_read_as_it_was_said(tmp_path: Path, message: str) -> None:
    plan = make_plan(implementations=("copy", "nn-layernorm", "nn-rmsnorm"))
    reason = failures.describe(RuntimeError(message))
    run = written(tmp_path / "run", plan, "nn-rmsnorm", Status.FAILED, reason)
    found: CaseResult = next(r for r in run.results if r.case.implementation == "nn-rmsnorm")

    assert found.reason == cleaned_field(reason)


@given(texts)
@same_scratch
def test_a_reason_that_is_seen_and_no_formula_is_kept_to_the_letter(tmp_path: Path, message: str) -> None:
    seen = cleaned_field(message)
    plan = make_plan(implementations=("copy", "nn-layernorm", "nn-rmsnorm"))
    run = written(tmp_path / "run", plan, "nn-rmsnorm", Status.FAILED, seen)

    assert {r.reason for r in run.results if r.reason} <= {seen}


def test_a_folder_is_not_begun_with_a_name_that_would_not_be_read_again(tmp_path: Path) -> None:
    plan = make_plan(implementations=("copy", "nn-layernorm", "../x"))
    with pytest.raises(StorageError, match=r"implementations\.2\.name: '\.\./x' is no name of an implementation"):
        RunFolder.create(tmp_path / "run", make_header(plan))
