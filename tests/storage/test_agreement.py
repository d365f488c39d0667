"""What the files of a run contradict each other in is refused, with the file, the line and the field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from normbench.errors import StorageError
from normbench.records import Status
from normbench.storage import RunFolder, load
from tests.hostile.folders import good_folders
from tests.runs import TIMES, make_header, make_plan, make_records, write_run

PLAN = make_plan(widths=(64, 128))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", PLAN, {**TIMES, "eager-rmsnorm": Status.FAILED}).path


def change(path: Path, line: int, *replaced: tuple[str, str]) -> None:
    """Change a line of a CSV file, counted from 1."""
    lines = path.read_text(encoding="utf-8").split("\n")
    for old, new in replaced:
        assert old in lines[line - 1]
        lines[line - 1] = lines[line - 1].replace(old, new, 1)
    path.write_text("\n".join(lines), encoding="utf-8")


def refused(path: Path, said: str) -> None:
    with pytest.raises(StorageError, match=re.escape(said)):
        load(path)


@pytest.mark.parametrize(
    ("file", "line", "replaced", "said"),
    [
        ("results.csv", 2, (",64,", ",96,"), "row: the cell 32×96 fp32 forward warm is not in the plan of run.json"),
        ("results.csv", 2, (",64,", ",0064,"), "width: '0064' is written as '64'"),
        ("results.csv", 2, (",copy,", ",nan,"), "implementation: 'nan' is not in run.json"),
        (
            "results.csv",
            4,
            (",nn-layernorm,", ",copy,"),
            "row: copy 32×64 fp32 forward warm stands twice",
        ),
        ("results.csv", 2, (",1e-06,,", ",1e-16,,"), "wall_s: 1e-16 is no time of a call, in seconds"),
        ("results.csv", 3, (",because,", ",=because,"), "reason: '=because' is a formula to a spreadsheet"),
        ("results.csv", 3, (",because,", ",be\x1bcause,"), "reason: holds the character U+001B"),
        ("results.csv", 3, (",because,", ',"because,'), "a quote is opened and not closed"),
        ("results.csv", 2, ("1e-07", "inf"), "row: what is off by no number is never right"),
        ("comparisons.csv", 3, (",faster,", ",slower,"), "outcome: slower (interval_excludes_1) is not what"),
        ("comparisons.csv", 3, (",nn-layernorm,", ",nn-rmsnorm,"), "row: nothing is compared with itself"),
        ("comparisons.csv", 3, (",nn-rmsnorm,", ",eager-rmsnorm,"), "row: eager-rmsnorm against nn-layernorm"),
        ("comparisons.csv", 3, (",nn-rmsnorm,", ",zz,"), "candidate: 'zz' is not in run.json"),
        ("comparisons.csv", 3, (",64,", ",96,"), "row: the cell 32×96"),
        ("swaps.csv", 2, (",faster,", ",same,"), "outcome: same"),
        ("cells.csv", 3, (",128,", ",64,"), "row: 32×64 fp32 forward warm stands twice in this file"),
        ("cells.csv", 2, (",64,", ",96,"), "row: the cell 32×96"),
        ("cells.csv", 2, (",0.0,", ",inf,"), "row: a cell takes some finite time"),
    ],
)
def test_a_row_that_contradicts_the_others_is_refused(
    run: Path, file: str, line: int, replaced: tuple[str, str], said: str
) -> None:
    change(run / file, line, replaced)

    refused(run, f"{run / file}: line {line}: {said}")


def test_a_speedup_of_what_has_no_time_is_refused(run: Path) -> None:
    path = run / "comparisons.csv"
    change(path, 2, (",nn-layernorm,eager-rmsnorm,", ",nn-layernorm,nn-rmsnorm,"))
    change(path, 3, (",nn-layernorm,nn-rmsnorm,", ",nn-layernorm,eager-rmsnorm,"))

    refused(run, f"{path}: line 3: candidate: eager-rmsnorm has no time here, so it has no speedup either")


def test_an_interval_that_includes_1_is_not_faster(run: Path) -> None:
    path = run / "comparisons.csv"
    change(path, 3, ("2.0,1.9801980198019802,2.02", "2.0,0.5,4.0"))

    refused(run, f"{path}: line 3: outcome: faster (interval_excludes_1) is not what the interval says: undecided")


def test_rows_of_a_cell_without_results_may_stand_twice_since_they_are_no_part_of_the_run(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", make_header(PLAN))
    first = make_records(next(PLAN.cells()), plan=PLAN)
    folder.write(first)
    folder.write(make_records(list(PLAN.cells())[1], plan=PLAN))
    results = (folder.path / "results.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder.path / "results.csv").write_text("".join(results[:5]), encoding="utf-8")
    with (folder.path / "comparisons.csv").open("r+", encoding="utf-8") as file:
        file.write(file.readlines()[-1])

    assert load(folder.path).comparisons == first.comparisons


def with_header(change_it: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def change_file(path: Path) -> None:
        data = json.loads((path / "run.json").read_text(encoding="utf-8"))
        change_it(data)
        (path / "run.json").write_text(json.dumps(data), encoding="utf-8")

    return change_file


def named(name: str) -> dict[str, object]:
    return {"name": name, "op": "rmsnorm", "provider": "x", "summary": "x", "compiled": False}


@pytest.mark.parametrize(
    ("change_it", "said"),
    [
        (lambda d: d.update(more=1), "more: this version knows no such field"),
        (lambda d: d["plan"].update(more=1), "plan.more: this version knows no such field"),
        (
            lambda d: d.update(findings={"spent": {"more": 1}}),
            "findings.spent.more: this version knows no such field",
        ),
        (lambda d: d.update(findings=[]), "findings: Input should be an object"),
        (lambda d: d["plan"].update(widths=["64"]), "plan.widths.0: Input should be a valid integer"),
        (lambda d: d["plan"].update(eps="1e-6"), "plan.eps: Input should be a valid number"),
        (lambda d: d["plan"].update(seed=2**64), "plan: the seed has 64 bits"),
        (lambda d: d["device"].update(memory_bytes=-1), "device: memory_bytes, threads and cache_bytes are above 0"),
        (lambda d: d["device"].update(kind="tpu"), "device: kind is cpu or cuda, not 'tpu'"),
        (lambda d: d["device"].update(peak_bytes_per_s=0), "device: peak_bytes_per_s is above 0"),
        (lambda d: d["device"].update(name="a\x1b[31m"), "can't be read: device.name: holds the character U+001B"),
        (
            lambda d: d["implementations"].append(named("../x")),
            "implementations.4.name: '../x' is no name",
        ),
        (
            lambda d: d["implementations"].append(named("=1")),
            "implementations.4.name: '=1' is a formula",
        ),
        (lambda d: d["implementations"].append(named("copy")), "implementations: none stands there twice"),
        (lambda d: d["implementations"].pop(), "plan.implementations: 'nn-rmsnorm' is not among implementations"),
        (
            lambda d: d["plan"].update(widths=list(range(1, 1001)), rows=list(range(1, 1001))),
            "plan: 4000000 cases are more than 200000",
        ),
    ],
)
def test_a_header_that_no_run_has_is_refused_naming_the_field(
    run: Path, change_it: Callable[[dict[str, Any]], object], said: str
) -> None:
    with_header(change_it)(run)

    refused(run, f"{run / 'run.json'}: {said}")


@pytest.mark.parametrize(
    ("file", "replaced", "said"),
    [
        ("traffic.csv", (",eager-rmsnorm,", ",nn-layernorm,"), "line 3: row: nn-layernorm"),
        ("traffic.csv", (",eager-rmsnorm,", ",zz,"), "line 3: implementation: 'zz' is not in run.json"),
        ("kernels.csv", (",count,", ",guess,"), "line 3: source: 'guess' is neither count nor profile"),
        ("kernels.csv", (",2,16384,", ",many,16384,"), "line 3: calls: Input should be a valid integer"),
        ("kernels.csv", (",2,16384,", ",2,-16384,"), "line 3: row: a number of bytes is 0 or more"),
    ],
)
def test_a_profile_that_contradicts_the_run_is_refused_in_the_file_it_stands_in(
    tmp_path: Path, file: str, replaced: tuple[str, str], said: str
) -> None:
    good_folders(tmp_path)
    change(tmp_path / "profiled" / file, 3, replaced)

    refused(tmp_path / "profiled", f"{tmp_path / 'profiled' / file}: {said}")


def test_a_trace_lies_below_the_folder_of_traces(tmp_path: Path) -> None:
    good_folders(tmp_path)
    change(tmp_path / "profiled" / "traffic.csv", 2, ("x/y.json.gz", "../../y"))

    refused(tmp_path / "profiled", "traffic.csv: line 2: row: trace is the name of a file below traces/")
