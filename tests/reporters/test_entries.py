from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from normbench import spread
from normbench.records import Cache, Case, DType, Flag, Run, Status
from normbench.reporters import entries
from normbench.reporters.entries import Entry, Source
from tests.runs import TIMES, make_device, make_plan, make_run

ALWAYS = ["mode", "dtype", "width", "implementation", "time", "× floor", "speedup", "outcome", "flags"]
GPU = make_device(kind="cuda", name="Some GPU", slug="some-gpu")


def titles(*sources: Source) -> list[str]:
    return [column.title for column in entries.columns(sources)]


def table(source: Source) -> dict[str, dict[str, Entry]]:
    """The fields of a source with one cell by implementation and title."""
    columns = entries.columns([source])
    named = [dict(zip((c.title for c in columns), row, strict=True)) for row in entries.rows([source], columns)]
    return {str(row["implementation"].text): row for row in named}


def with_timings(run: Run, **changes: Any) -> Run:
    """The run with other fields in each timing."""
    results = [replace(r, timing=replace(r.timing, **changes)) if r.timing else r for r in run.results]
    return replace(run, results=tuple(results))


def flagged(run: Run, name: str, *flags: Flag) -> Run:
    results = [replace(r, flags=flags) if r.case.implementation == name else r for r in run.results]
    return replace(run, results=tuple(results))


def test_one_cell_on_a_cpu_has_only_what_every_result_has() -> None:
    assert titles(Source(run=make_run())) == ALWAYS


@pytest.mark.parametrize(
    ("plan", "title"),
    [
        ({"rows": (32, 64)}, "rows"),
        ({"caches": (Cache.WARM, Cache.COLD)}, "cache"),
        ({"dtypes": (DType.BF16,), "parameter_dtypes": (DType.FP32,)}, "parameters"),
        ({"autocasts": (DType.BF16,)}, "autocast"),
    ],
)
def test_an_axis_has_a_column_where_it_tells_rows_apart(plan: dict[str, Any], title: str) -> None:
    run = make_run(make_plan(**plan))

    assert set(titles(Source(run=run))) - set(ALWAYS) == {title}


def test_several_runs_have_a_column_that_says_which() -> None:
    sources = [Source(run=make_run(), label="A"), Source(run=make_run(), label="B")]
    columns = entries.columns(sources)

    assert columns[0].title == "device"
    assert [row[0].text for row in entries.rows(sources, columns)] == ["A"] * 4 + ["B"] * 4


def test_a_gpu_has_a_column_of_wall_times() -> None:
    assert "wall" in titles(Source(run=make_run(device=GPU)))


def test_replayed_graphs_have_a_column_where_one_has_a_time() -> None:
    assert "graph" in titles(Source(run=with_timings(make_run(device=GPU), graph_s=1e-6)))


def test_samples_have_a_column_where_somebody_has_some() -> None:
    run = make_run()
    drawn = {Case(cell=run.results[1].case.cell, implementation="nn-rmsnorm"): spread.of_seconds(np.array([1.0, 2]))}
    found = table(Source(run=run, spreads=drawn))

    assert "<svg" in found["nn-rmsnorm"]["samples"].text
    assert found["nn-rmsnorm"]["samples"].key == pytest.approx(0.6)
    assert found["copy"]["samples"] == Entry(text="-", key=None)


def test_a_time_is_shown_for_people_and_sorted_by_seconds() -> None:
    assert table(Source(run=make_run()))["nn-rmsnorm"]["time"] == Entry(text="2.00 µs", key=2e-6)


def test_what_a_candidate_does_is_shown_with_its_interval_and_outcome() -> None:
    found = table(Source(run=make_run()))["nn-rmsnorm"]

    assert found["speedup"] == Entry(text="2.00 [1.98, 2.02]", key=2.0)
    assert found["outcome"] == Entry(text="faster", key="faster")
    assert found["× floor"] == Entry(text="2.00", key=2.0)


def test_baseline_and_floor_are_called_so_and_have_no_speedup() -> None:
    found = table(Source(run=make_run()))

    assert [found[name]["outcome"].text for name in ("copy", "nn-layernorm")] == ["floor", "baseline"]
    assert {found[name]["speedup"] for name in ("copy", "nn-layernorm")} == {Entry(text="-", key=None)}


def test_without_a_time_nothing_is_shown_as_a_number_and_nothing_can_be_sorted_by() -> None:
    run = make_run(times={**TIMES, "nn-rmsnorm": Status.UNSUPPORTED}, reason="needs a GPU", device=GPU)
    found = table(Source(run=with_timings(run, graph_s=1e-6)))["nn-rmsnorm"]

    assert {found[title] for title in ("time", "wall", "graph", "× floor", "speedup")} == {Entry(text="-", key=None)}
    assert found["outcome"].text == "unsupported"
    assert found["flags"].text == "needs a GPU"


def test_a_candidate_that_was_not_compared_has_no_outcome_to_sort_by() -> None:
    run = replace(make_run(), comparisons=())

    assert table(Source(run=run))["nn-rmsnorm"]["outcome"] == Entry(text="-", key=None)


def test_flags_are_those_of_the_whole_run_and_results_without_any_come_last() -> None:
    found = table(Source(run=flagged(make_run(), "nn-rmsnorm", Flag.DRIFTED, Flag.BIMODAL)))

    assert found["nn-rmsnorm"]["flags"].text.startswith("drifted, bimodal")
    assert found["nn-layernorm"]["flags"] == Entry(text="", key=None)


def test_each_row_has_a_field_for_each_column() -> None:
    run = make_run(make_plan(widths=(64, 128), rows=(32, 64)))
    columns = entries.columns([Source(run=run)])
    rows = entries.rows([Source(run=run)], columns)

    assert len(rows) == len(run.results)
    assert {len(row) for row in rows} == {len(columns)}
