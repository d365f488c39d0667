from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from normbench.errors import StorageError, UsageError
from normbench.records import DType, Mode, NoiseFloor, Precision, Spent, Status
from normbench.storage import RunFolder, load, read_header
from normbench.storage.header import Findings, write_header
from tests.runs import (
    around,
    make_device,
    make_environment,
    make_header,
    make_plan,
    make_records,
    make_run,
    write_run,
)
from tests.storage.operations import FULL, Operation, watched
from tests.sweeping import THREE

PLAN = make_plan(widths=(64, 128, 256))
TABLES = ("results.csv", "cells.csv", "comparisons.csv", "swaps.csv", "samples.csv")


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir()) if file.is_file()}


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


def change_header(path: Path, **changes: object) -> None:
    data = json.loads((path / "run.json").read_text(encoding="utf-8"))
    (path / "run.json").write_text(json.dumps(data | changes), encoding="utf-8")


def test_a_new_folder_is_a_header_and_empty_tables(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "deep" / "run", make_header(PLAN))

    assert {p.name for p in (tmp_path / "deep" / "run").iterdir()} == {"run.json", *TABLES}
    assert [len(lines(tmp_path / "deep" / "run" / name)) for name in TABLES] == [1] * len(TABLES)
    assert load(tmp_path / "deep" / "run").missing == tuple(PLAN.cells())


def test_everything_the_header_holds_comes_back(tmp_path: Path) -> None:
    plan = make_plan(
        parameter_dtypes=(None, DType.BF16),
        autocasts=(None, DType.FP16),
        modes=tuple(Mode),
        eps=1.2345678901e-7,
        seed=-5,
        precision=Precision(placements=3, target=1 / 3, total_seconds=60.5),
    )
    header = make_header(
        plan,
        device=make_device(
            kind="cuda", name='A "GPU", 80 GB µ', capability=(9, 0), peak_bytes_per_s=3.35e12, threads=2
        ),
        environment=make_environment(cuda="13.0", packages=(("numpy", "2.4"), ("apache-tvm-ffi", "0.1"))),
    )
    RunFolder.create(tmp_path / "run", header)

    assert read_header(tmp_path / "run") == header


def test_an_existing_folder_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("mine", encoding="utf-8")

    with pytest.raises(UsageError, match="exists, and no run is ever overwritten"):
        RunFolder.create(tmp_path / "run", make_header())
    assert contents(tmp_path / "run") == {"run.json": b"mine"}


def test_a_folder_below_a_regular_file_is_refused_naming_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(UsageError, match="file/run: can't be written: Not a directory"):
        RunFolder.create(tmp_path / "file" / "run", make_header())


def test_a_run_comes_back_as_it_was_measured(tmp_path: Path) -> None:
    run = make_run(PLAN, {"copy": 1 / 3e6, "nn-layernorm": 4e-6, "nn-rmsnorm": 2e-6, "eager-rmsnorm": Status.FAILED})
    folder = write_run(tmp_path / "run", PLAN, {r.case.implementation: _time(r) for r in run.results})

    assert load(tmp_path / "run") == run == folder.load()
    assert set(folder.done()) == set(PLAN.cells())


def _time(result: object) -> float | Status:
    timing = getattr(result, "timing", None)
    return timing.time_s.value if timing is not None else Status.FAILED


def test_every_text_file_has_bare_newlines(tmp_path: Path) -> None:
    write_run(tmp_path / "run", PLAN)

    for data in contents(tmp_path / "run").values():
        assert b"\r" not in data
        assert data.endswith(b"\n")


def test_samples_and_comparisons_without_results_are_no_cell(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PLAN)
    (folder.path / "results.csv").write_text("".join(lines(folder.path / "results.csv")[:5]), encoding="utf-8")
    run = load(folder.path)

    first, *rest = PLAN.cells()
    assert run.missing == tuple(rest)
    assert {comparison.cell for comparison in run.comparisons} == {first}


def test_a_folder_cut_anywhere_in_its_results_loads_with_whole_cells_only(tmp_path: Path) -> None:
    whole = write_run(tmp_path / "run", PLAN).load()
    results = (tmp_path / "run" / "results.csv").read_bytes()
    header_bytes = results.index(b"\n") + 1
    counts = []
    for end in [*range(header_bytes, len(results), 37), len(results)]:
        (tmp_path / "run" / "results.csv").write_bytes(results[:end])
        run = load(tmp_path / "run")
        counts.append(len(list(PLAN.cells())) - len(run.missing))
        assert run.results == whole.results[: counts[-1] * len(PLAN.implementations)]
        assert len(run.comparisons) == 2 * counts[-1]
    assert (counts[0], counts[-1]) == (0, 3)
    assert counts == sorted(counts)


def test_reopening_keeps_whole_cells_byte_for_byte_and_removes_the_rest(tmp_path: Path) -> None:
    first, second, _ = PLAN.cells()
    expected = RunFolder.create(tmp_path / "expected", make_header(PLAN))
    expected.write(make_records(first, plan=PLAN))
    folder = RunFolder.create(tmp_path / "run", make_header(PLAN))
    folder.write(make_records(first, plan=PLAN))
    folder.write(make_records(second, plan=PLAN))
    results = (tmp_path / "run" / "results.csv").read_bytes()
    (tmp_path / "run" / "results.csv").write_bytes(results[:-30])

    assert set(RunFolder.reopen(tmp_path / "run").done()) == {first}
    assert contents(tmp_path / "run") == contents(tmp_path / "expected")


def test_a_cell_that_was_not_run_is_missing_and_makes_room_when_reopened(tmp_path: Path) -> None:
    first, second, third = PLAN.cells()
    folder = RunFolder.create(tmp_path / "run", make_header(PLAN))
    folder.write(make_records(first, plan=PLAN))
    folder.write(make_records(second, {}, PLAN, "interrupted"))
    assert folder.load().missing == (second, third)

    again = RunFolder.reopen(tmp_path / "run")
    again.write(make_records(second, plan=PLAN))
    again.write(make_records(third, plan=PLAN))

    assert load(tmp_path / "run").results == make_run(PLAN).results


def test_compressed_samples_hold_the_same_and_come_back_when_reopened(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PLAN)
    before = contents(folder.path)
    folder.compress_samples()

    assert not (folder.path / "samples.csv").exists()
    assert gzip.decompress((folder.path / "samples.csv.gz").read_bytes()) == before["samples.csv"]
    assert load(folder.path).is_complete

    (folder.path / "results.csv").write_bytes(before["results.csv"][:-9])
    RunFolder.reopen(folder.path).write(make_records(list(PLAN.cells())[-1], plan=PLAN))
    assert contents(folder.path) == before


def test_a_complete_run_is_left_as_it_is_when_it_is_reopened(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PLAN)
    folder.compress_samples()
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.path.iterdir()}

    RunFolder.reopen(folder.path).compress_samples()
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.path.iterdir()} == before


def test_a_complete_run_that_gets_more_cells_has_its_samples_unpacked_for_them(tmp_path: Path) -> None:
    more = make_plan(widths=(64, 128, 256, 512))
    write_run(tmp_path / "run", PLAN).compress_samples()
    folder = RunFolder.reopen(tmp_path / "run", make_header(more))
    folder.write(make_records(list(more.cells())[-1], plan=more))

    assert read_header(tmp_path / "run") == make_header(more)
    assert contents(tmp_path / "run") == contents(write_run(tmp_path / "other", more).path)


def test_compressing_the_same_samples_later_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seconds, name in enumerate(("one", "two")):
        monkeypatch.setattr("time.time", lambda now=1e9 * seconds: now)
        write_run(tmp_path / name, PLAN).compress_samples()

    assert contents(tmp_path / "one")["samples.csv.gz"] == contents(tmp_path / "two")["samples.csv.gz"]


def test_packed_samples_that_are_damaged_are_refused_naming_the_file(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PLAN)
    folder.compress_samples()
    packed = folder.path / "samples.csv.gz"
    packed.write_bytes(packed.read_bytes()[:-20])
    results = folder.path / "results.csv"
    results.write_bytes(results.read_bytes()[:-9])
    before = contents(folder.path)

    with pytest.raises(StorageError, match=r"samples\.csv\.gz: can't be read"):
        RunFolder.reopen(folder.path)
    assert contents(folder.path) == before


@pytest.mark.parametrize("schema", [4, 1, 0, "2", None])
def test_another_schema_is_refused_naming_it(tmp_path: Path, schema: object) -> None:
    change_header(write_run(tmp_path / "run").path, schema=schema)

    with pytest.raises(StorageError, match=rf"run\.json: schema is {schema!r}, this version reads 2 and 3"):
        load(tmp_path / "run")


@pytest.mark.parametrize(("schema", "hint"), [(1, "the version that wrote it"), (4, "update normbench")])
def test_a_folder_of_an_older_version_is_not_to_be_updated_for(tmp_path: Path, schema: int, hint: str) -> None:
    change_header(write_run(tmp_path / "run").path, schema=schema)

    with pytest.raises(StorageError) as caught:
        load(tmp_path / "run")
    assert hint in (caught.value.hint or "")


def test_swaps_come_back_as_they_were_and_go_with_their_cell(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PLAN)
    written = [swap for cell in PLAN.cells() for swap in make_records(cell, plan=PLAN).swaps]
    assert list(folder.load().swaps) == written != []

    rows = lines(folder.path / "results.csv")
    (folder.path / "results.csv").write_text("".join(rows[:5]), encoding="utf-8")
    assert {swap.cell for swap in load(folder.path).swaps} == {next(PLAN.cells())}


def test_a_folder_without_its_swaps_is_refused_naming_the_file(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PLAN)
    (folder.path / "swaps.csv").unlink()

    with pytest.raises(StorageError, match=r"swaps\.csv: can't be read"):
        load(folder.path)


@pytest.mark.parametrize("text", ["", "{", "\xff"])
def test_a_header_that_is_no_json_is_refused_naming_the_file(tmp_path: Path, text: str) -> None:
    write_run(tmp_path / "run")
    (tmp_path / "run" / "run.json").write_bytes(text.encode("latin-1"))

    with pytest.raises(StorageError, match=r"run\.json: can't be read"):
        load(tmp_path / "run")


def test_a_header_with_a_bad_field_is_refused_naming_it(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run").path
    plan = json.loads((path / "run.json").read_text(encoding="utf-8"))["plan"]
    change_header(path, plan=plan | {"dtypes": ["fp8"]})

    with pytest.raises(StorageError, match=r"run\.json: plan\.dtypes\.0: Input should be 'fp32', 'bf16' or 'fp16'"):
        load(path)


def test_a_folder_that_is_none_is_refused_naming_it(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"nowhere/run\.json: can't be read") as caught:
        load(tmp_path / "nowhere")
    assert caught.value.hint == "name a folder that a sweep or a check has written"


@pytest.mark.parametrize(
    ("file", "old", "new", "field"),
    [
        ("results.csv", ",ok,", ",fine,", "status"),
        ("results.csv", ",64,", ",wide,", r"case\.cell\.width"),
        ("results.csv", ",64,", ",0,", r"case\.cell"),
        ("comparisons.csv", ",faster,", ",better,", "outcome"),
    ],
)
def test_a_bad_field_is_refused_naming_file_line_and_field(
    tmp_path: Path, file: str, old: str, new: str, field: str
) -> None:
    path = write_run(tmp_path / "run").path / file
    *before, last = lines(path)
    assert old in last
    path.write_text("".join(before) + last.replace(old, new, 1), encoding="utf-8")

    with pytest.raises(StorageError, match=rf"{file}: line {len(before) + 1}: {field}: "):
        load(path.parent)


def test_a_result_of_whom_the_header_does_not_know_is_refused_naming_them(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", PLAN).path
    text = (path / "results.csv").read_text(encoding="utf-8")
    (path / "results.csv").write_text(text.replace(",nn-rmsnorm,", ",zz-new,"), encoding="utf-8")

    with pytest.raises(StorageError, match=r"results\.csv: line 5: implementation: 'zz-new' is not in run\.json"):
        load(path)


def findings(cells: int) -> Findings:
    """What ``run.json`` of schema 2 held after so many cells."""
    noise = NoiseFloor(cell=next(PLAN.cells()), implementation="nn-layernorm", ratio=around(1.001))
    return Findings(noise=(noise,), spent=Spent(timed_s=1.0, elapsed_s=2.0 * cells))


def test_a_folder_of_schema_2_has_its_findings_in_its_header_and_is_gone_on_with(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", PLAN).path
    (path / "cells.csv").unlink()
    write_header(path, make_header(PLAN), findings(3))
    change_header(path, schema=2)
    whole = load(path)
    assert (whole.noise, whole.spent) == (findings(3).noise, findings(3).spent)

    (path / "results.csv").write_bytes((path / "results.csv").read_bytes()[:-9])
    last = list(PLAN.cells())[-1]
    RunFolder.reopen(path).write(replace(make_records(last, plan=PLAN), spent=Spent(timed_s=0.5, elapsed_s=1.0)))
    again = load(path)
    assert (again.results, again.noise) == (whole.results, whole.noise)
    assert again.spent == Spent(timed_s=1.5, elapsed_s=7.0)


def test_a_folder_without_its_cells_is_refused_naming_the_file(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PLAN)
    (folder.path / "cells.csv").unlink()

    with pytest.raises(StorageError, match=r"cells\.csv: can't be read"):
        load(folder.path)


def test_the_time_and_the_noise_of_a_cell_that_was_not_committed_count_nowhere(tmp_path: Path) -> None:
    first, second, third = PLAN.cells()
    folder = RunFolder.create(tmp_path / "run", make_header(PLAN))
    for cell in (first, second):
        noise = NoiseFloor(cell=cell, implementation="nn-layernorm", ratio=around(1.001))
        folder.write(replace(make_records(cell, plan=PLAN), noise=noise, spent=Spent(timed_s=1.0, elapsed_s=2.0)))
    rows = lines(folder.path / "results.csv")
    (folder.path / "results.csv").write_text("".join(rows[:-1]), encoding="utf-8")
    run = load(folder.path)

    assert run.missing == (second, third)
    assert run.spent == Spent(timed_s=1.0, elapsed_s=2.0)
    assert [noise.cell for noise in run.noise] == [first]


def test_what_a_killed_process_left_half_written_goes_when_the_folder_is_reopened(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", make_header(PLAN))
    (folder.path / "traces" / "nn-rmsnorm").mkdir(parents=True)
    before = contents(folder.path)
    for place in (folder.path, folder.path / "traces" / "nn-rmsnorm"):
        (place / f".x.csv.{os.getpid()}.part").write_text("half", encoding="utf-8")

    RunFolder.reopen(folder.path)
    assert contents(folder.path) == before
    assert list((folder.path / "traces" / "nn-rmsnorm").iterdir()) == []


def test_traces_of_cells_that_are_no_more_go_and_those_of_others_stay(tmp_path: Path) -> None:
    THREE.run(tmp_path / "run", report=False)
    rows = lines(tmp_path / "run" / "results.csv")
    (tmp_path / "run" / "results.csv").write_text("".join(rows[:-1]), encoding="utf-8")
    (tmp_path / "run" / "traces" / "notes.txt").write_text("mine", encoding="utf-8")
    RunFolder.reopen(tmp_path / "run")

    names = {path.name for path in (tmp_path / "run" / "traces").rglob("*") if path.is_file()}
    assert names == {"forward-64.1.pt.trace.json.gz", "forward-128.1.pt.trace.json.gz", "notes.txt"}


def test_a_folder_that_cannot_be_filled_is_not_there(tmp_path: Path) -> None:
    with watched(tmp_path, fail_at_the_samples), pytest.raises(UsageError) as caught:
        RunFolder.create(tmp_path / "run", make_header(PLAN))

    assert caught.value.message == f"--out {tmp_path}/run: can't be written: No space left on device"
    assert list(tmp_path.iterdir()) == []


def fail_at_the_samples(operation: Operation) -> None:
    if operation.name == "replace" and operation.path.name.startswith(".samples.csv."):
        raise FULL


def test_of_two_files_of_samples_the_plain_one_counts_and_stays_alone_once_the_run_is_gone_on_with(
    tmp_path: Path,
) -> None:
    folder = write_run(tmp_path / "run", PLAN)
    before = contents(folder.path)
    folder.compress_samples()
    (folder.path / "samples.csv").write_bytes(before["samples.csv"])
    (folder.path / "samples.csv.gz").write_bytes(b"older")
    (folder.path / "results.csv").write_bytes(before["results.csv"][:-9])

    RunFolder.reopen(folder.path).write(make_records(list(PLAN.cells())[-1], plan=PLAN))
    assert contents(folder.path) == before
