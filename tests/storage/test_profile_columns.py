"""Profiles come back from a run folder as they were written."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from normbench.errors import StorageError
from normbench.records import Case, CaseProfile, CountedTraffic, KernelTime, Memory, OpTraffic
from normbench.storage import KERNELS, TRAFFIC, RunFolder, load
from normbench.storage.profile_columns import kernel_rows
from tests.runs import make_header, make_plan, make_records

PLAN = make_plan(profile=True, widths=(64, 128))
FIRST, SECOND = PLAN.cells()

FULL = CaseProfile(
    case=Case(cell=FIRST, implementation="eager-rmsnorm"),
    ops=(
        OpTraffic(name="pow", calls=1, bytes=12, read_bytes=8, written_bytes=4),
        OpTraffic(name='kernel 0: mul, "odd"', calls=2, bytes=2**53 + 1),
    ),
    kernels=(
        KernelTime(name="mul", calls=1.5, seconds=1 / 3, bytes=7),
        KernelTime(name="pow", calls=1, seconds=1e-9),
    ),
    counted=CountedTraffic(dram_read_bytes=1, dram_written_bytes=0, l2_bytes=None),
    memory=Memory(saved_bytes=0, alive_bytes=5, peak_bytes=None, net_bytes=-4),
    findings=("one", "two"),
    trace="eager-rmsnorm/x.json.gz",
)
EMPTY = CaseProfile(
    case=Case(cell=FIRST, implementation="nn-rmsnorm"),
    ops_reason="not counted",
    kernels_reason="no GPU events",
    counted_reason="no counters",
)


def written(path: Path) -> RunFolder:
    folder = RunFolder.create(path, make_header(PLAN))
    records = make_records(FIRST, plan=PLAN)
    folder.write(replace(records, profiles=(FULL, EMPTY), traces={"eager-rmsnorm/x.json.gz": b"packed"}))
    return folder


def test_a_profile_comes_back_as_it_was(tmp_path: Path) -> None:
    written(tmp_path / "run")
    assert load(tmp_path / "run").profiles == (FULL, EMPTY)
    assert (tmp_path / "run" / "traces" / "eager-rmsnorm" / "x.json.gz").read_bytes() == b"packed"


@pytest.mark.parametrize(("name", "columns"), [("traffic.csv", TRAFFIC), ("kernels.csv", KERNELS)])
def test_the_files_have_the_documented_columns(tmp_path: Path, name: str, columns: dict[str, str]) -> None:
    written(tmp_path / "run")
    with (tmp_path / "run" / name).open(encoding="utf-8", newline="") as file:
        assert csv.DictReader(file).fieldnames == list(columns)


def test_a_kernels_bandwidth_is_set_against_what_the_floor_reached_in_the_same_pass() -> None:
    floor = CaseProfile(
        case=Case(cell=FIRST, implementation="copy"),
        ops=(OpTraffic(name="add", calls=1, bytes=100),),
        kernels=(KernelTime(name="add", calls=1, seconds=2.0, bytes=100),),
    )
    rows = [row for row in kernel_rows((floor, FULL), make_header(PLAN)) if row["source"] == "profile"]
    add, mul, pow_ = rows
    assert float(add["floor_share"]) == 1.0
    assert float(mul["effective_bytes_per_s"]) == pytest.approx(21.0)
    assert float(mul["floor_share"]) == pytest.approx(21.0 / 50.0)
    assert pow_["floor_share"] == ""


def test_what_was_not_found_is_an_empty_field_and_never_zero(tmp_path: Path) -> None:
    written(tmp_path / "run")
    with (tmp_path / "run" / "traffic.csv").open(encoding="utf-8", newline="") as file:
        _full, empty = csv.DictReader(file)
    for name in (
        "op_bytes",
        "amplification",
        "launches",
        "profiled_s",
        "dram_read_bytes",
        "saved_bytes",
        "peak_bytes",
    ):
        assert empty[name] == ""
    assert empty["kernels_reason"] == "no GPU events"


def test_profiles_of_a_cell_that_was_not_committed_are_ignored_and_removed_by_a_resumption(tmp_path: Path) -> None:
    written(tmp_path / "run")
    results = tmp_path / "run" / "results.csv"
    results.write_text(results.read_text(encoding="utf-8").splitlines(keepends=True)[0], encoding="utf-8")
    assert load(tmp_path / "run").profiles == ()
    RunFolder.reopen(tmp_path / "run")
    assert len((tmp_path / "run" / "kernels.csv").read_text(encoding="utf-8").splitlines()) == 1


def test_a_field_that_is_no_number_is_named_with_file_and_line(tmp_path: Path) -> None:
    written(tmp_path / "run")
    path = tmp_path / "run" / "traffic.csv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(",5,,-4,", ",five,,-4,"), encoding="utf-8")
    with pytest.raises(StorageError, match=r"traffic\.csv: line 2: memory\.alive_bytes"):
        load(tmp_path / "run")


def test_a_run_without_profiles_has_neither_file(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", make_header(make_plan()))
    assert not (tmp_path / "run" / "traffic.csv").exists()
    assert load(tmp_path / "run").profiles == ()
