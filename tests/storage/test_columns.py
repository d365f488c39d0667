from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normbench import traffic
from normbench.records import (
    CELL_KEY,
    CaseResult,
    Comparison,
    DType,
    Estimate,
    Flag,
    Mode,
    Op,
    Outcome,
    Reading,
    Reason,
    Status,
)
from normbench.storage import COMPARISONS, RESULTS, SAMPLES, as_dictionary, columns
from tests.runs import make_cell, make_header, make_plan, make_records, make_result, make_run

FILES = {"results.csv": RESULTS, "comparisons.csv": COMPARISONS, "samples.csv": SAMPLES}

positive = st.floats(min_value=5e-324, max_value=1e300)


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    low, value, high = sorted(draw(st.lists(positive, min_size=3, max_size=3)))
    return draw(st.sampled_from([Estimate(value=value, low=low, high=high), Estimate(value=value)]))


def round_trip(result: CaseResult) -> CaseResult:
    records = replace(make_records(result.case.cell), results=(result,))
    (row,) = columns.result_rows(records, make_header())
    return columns.result(row)


@pytest.mark.parametrize("name", FILES)
def test_every_column_says_what_it_holds(name: str) -> None:
    assert all(description.strip() and "|" not in description for description in FILES[name].values())


@pytest.mark.parametrize("name", FILES)
def test_every_file_starts_with_the_key_of_the_cell(name: str) -> None:
    assert tuple(FILES[name])[: len(CELL_KEY)] == CELL_KEY


def test_rows_have_exactly_the_documented_columns() -> None:
    records = make_records(make_cell())

    assert {frozenset(row) for row in columns.result_rows(records, make_header())} == {frozenset(RESULTS)}
    assert {frozenset(row) for row in columns.comparison_rows(records.comparisons)} == {frozenset(COMPARISONS)}
    assert {frozenset(row) for row in columns.sample_rows(records)} == {frozenset(SAMPLES)}


@given(estimates(), st.one_of(st.none(), positive), st.one_of(st.none(), estimates()), positive)
def test_a_result_comes_back_as_it_was_to_the_last_bit(
    time: Estimate, wall_s: float | None, floor_ratio: Estimate | None, error: float
) -> None:
    plain = make_result("nn-rmsnorm", make_cell(autocast=DType.BF16, mode=Mode.FORWARD_BACKWARD), 1e-6)
    assert plain.timing is not None
    assert plain.accuracy is not None
    result = replace(
        plain,
        timing=replace(plain.timing, time_s=time, wall_s=wall_s, floor_ratio=floor_ratio, other_cores=0.0),
        accuracy=replace(plain.accuracy, max_abs_error=error, max_rel_error=error / 3),
        compile_s=wall_s,
        peak_memory_bytes=2**53 + 1,
        saved_bytes=0,
        flags=(Flag.DRIFTED, Flag.COMPOSITE),
    )

    assert round_trip(result) == result


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_a_case_without_a_time_comes_back_with_its_reason(status: Status) -> None:
    result = make_result("nn-rmsnorm", make_cell(), status, reason="no, nan, None")

    assert round_trip(result) == result


def test_a_wrong_result_keeps_its_error_though_it_has_no_time() -> None:
    accuracy = make_result("nn-rmsnorm", make_cell(), 1e-6).accuracy
    result = make_result("nn-rmsnorm", make_cell(), Status.INCORRECT, accuracy=accuracy)

    assert round_trip(result) == result


@given(st.one_of(st.none(), estimates()), st.lists(st.text(min_size=1), min_size=2, max_size=2, unique=True))
def test_a_comparison_comes_back_as_it_was(speedup: Estimate | None, names: list[str]) -> None:
    comparison = Comparison(
        cell=make_cell(parameter_dtype=DType.FP16),
        baseline=names[0],
        candidate=names[1],
        speedup=speedup,
        outcome=Outcome.FASTER if speedup and speedup.low else Outcome.UNDECIDED,
        reason=Reason.INTERVAL_EXCLUDES_1,
    )
    (row,) = columns.comparison_rows([comparison])

    assert columns.comparison(row) == comparison


def test_what_is_absent_is_an_empty_field_and_no_zero() -> None:
    records = make_records(make_cell(), {"copy": 1e-6, "nn-rmsnorm": Status.FAILED})
    rows = {row["implementation"]: row for row in columns.result_rows(records, make_header())}
    absent = ("autocast", "time_s", "time_low_s", "wall_s", "samples", "floor_ratio", "max_abs_error", "compile_s")

    assert [rows["nn-rmsnorm"][name] for name in absent] == [""] * len(absent)
    assert rows["nn-rmsnorm"]["effective_bytes_per_s"] == rows["nn-rmsnorm"]["flags"] == ""
    assert rows["copy"]["reason"] == rows["copy"]["dynamic"] == ""


def test_the_floor_bytes_are_those_of_the_formula_and_give_the_effective_bandwidth() -> None:
    cell = make_cell(mode=Mode.BACKWARD, width=100, dtype=DType.BF16)
    rows = columns.result_rows(make_records(cell), make_header())
    found = {row["implementation"]: row for row in rows}

    x, parameter = 32 * 100 * 2, 100 * 2
    assert found["copy"]["floor_bytes"] == str(3 * x)
    assert found["nn-rmsnorm"]["floor_bytes"] == str(3 * x + 2 * parameter)
    assert found["nn-layernorm"]["floor_bytes"] == str(traffic.floor_bytes(Op.LAYERNORM, cell))
    assert float(found["nn-layernorm"]["effective_bytes_per_s"]) == (3 * x + 4 * parameter) / 4e-6


def test_only_a_compiled_implementation_says_that_its_graph_is_static() -> None:
    plan = make_plan(implementations=("copy", "nn-layernorm", "compile-rmsnorm"))
    records = make_records(make_cell(), {"copy": 1e-6, "nn-layernorm": 1e-6, "compile-rmsnorm": 1e-6}, plan)

    assert [row["dynamic"] for row in columns.result_rows(records, make_header(plan))] == ["", "", "false"]


def test_a_sample_says_what_the_device_read_and_is_empty_where_nothing_was_read() -> None:
    records = make_records(make_cell())
    reading = Reading(sm_clock_hz=1.5e9, throttle_reasons=("power", "heat"))
    read = replace(records.samples[0], reading=reading, seconds=1 / 3)
    row, without = columns.sample_rows(replace(records, samples=(read, records.samples[1])))

    assert (row["sm_clock_hz"], row["temperature_c"], row["throttle_reasons"]) == ("1500000000.0", "", "power;heat")
    assert row["seconds"] == repr(1 / 3)
    assert (without["sm_clock_hz"], without["throttle_reasons"]) == ("", "")


def test_a_program_gets_numbers_as_numbers_and_null_for_what_is_absent() -> None:
    run = make_run(times={"copy": 1e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": Status.FAILED})
    read = json.loads(json.dumps(as_dictionary(run)))
    by_name = {row["implementation"]: row for row in read["results"]}

    assert by_name["nn-layernorm"]["time_s"] == 4e-6
    assert by_name["nn-layernorm"]["width"] == 64
    assert by_name["nn-rmsnorm"]["time_s"] is None
    assert {frozenset(row) for row in read["results"]} == {frozenset(RESULTS)}
    assert {frozenset(row) for row in read["comparisons"]} == {frozenset(COMPARISONS)}


def test_the_key_of_a_row_is_the_key_of_its_cell() -> None:
    cell = make_cell(autocast=DType.FP16)
    records = make_records(cell)

    assert {columns.key(row) for row in columns.result_rows(records, make_header())} == {cell.key}


def test_a_comparison_gives_speedup_interval_outcome_and_reason() -> None:
    first, second = columns.comparison_rows(make_records(make_cell(), spread=0.25).comparisons)

    assert (first["candidate"], first["outcome"], first["reason"]) == (
        "eager-rmsnorm",
        "slower",
        "interval_excludes_1",
    )
    assert (second["candidate"], second["outcome"]) == ("nn-rmsnorm", "faster")
    assert [second[name] for name in ("speedup", "speedup_low", "speedup_high")] == ["2.0", "1.6", "2.5"]
