from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from normbench.errors import StorageError, UsageError
from normbench.records import DType, Mode, Precision, Status
from normbench.storage import RunFolder, load, read_header
from tests.runs import make_device, make_environment, make_header, make_plan, make_records, make_run, write_run

PLAN = make_plan(widths=(64, 128, 256))
TABLES = ("results.csv", "comparisons.csv", "swaps.csv", "samples.csv")


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


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
        assert run.results == whole.results[: len(run.results)]
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

    RunFolder.reopen(folder.path)
    assert contents(folder.path) == before


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

    with pytest.raises(StorageError, match=r"samples\.csv\.gz: can't be read"):
        RunFolder.reopen(folder.path)


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
    assert caught.value.hint == "name a folder that a sweep has written"


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
