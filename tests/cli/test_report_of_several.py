from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from normbench.records import Run
from normbench.storage import RunFolder, load
from tests.cli.command import normbench
from tests.runs import TIMES, Times, make_device, make_header, make_plan, make_records, write_run

FAST_EAGER: Times = {"copy": 1e-6, "eager-rmsnorm": 2e-6, "nn-layernorm": 4e-6, "nn-rmsnorm": 8e-6}
PLAN = make_plan(widths=(64, 128))


def write(path: Path, name: str, wide: Times = TIMES) -> Path:
    """A run on a device of this name, with other times at the wider of two widths."""
    folder = RunFolder.create(path, make_header(PLAN, device=make_device(name=name)))
    for cell in PLAN.cells():
        folder.write(make_records(cell, wide if cell.width == 128 else TIMES, PLAN))
    return path


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two runs that differ at width 128, and an empty folder to be in."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return write(tmp_path / "one", "Alpha"), write(tmp_path / "two", "Beta", FAST_EAGER)


def test_several_runs_give_one_report_with_a_column_each_and_the_places_that_differ(two: tuple[Path, Path]) -> None:
    done = normbench("report", *two, "--out", "both", "--pictures", "0")
    verdict, page = (Path("both", name).read_text(encoding="utf-8") for name in ("verdict.md", "report.html"))

    assert (done.code, done.err) == (0, "written: both/ (read verdict.md first)\n")
    assert done.out.endswith("Alpha and Beta differ in 1 of the 2 cells where two or more have a verdict.\n")
    assert "| dtype and mode | rows | cache | widths | Alpha | Beta | differs |" in verdict
    assert re.findall(r"^\| fp32 forward \|.*\| (\d+) \|.*\| (\w*) ?\|$", verdict, re.MULTILINE) == [
        ("64", ""),
        ("128", "differs"),
    ]
    assert page.count('<tr class="marked">') == 1
    assert "4 samples: median " in page


def test_the_runs_stay_as_they_were(two: tuple[Path, Path]) -> None:
    before = [{file.name: file.read_bytes() for file in path.iterdir()} for path in two]
    normbench("report", *two, "--pictures", "0")

    assert [{file.name: file.read_bytes() for file in path.iterdir()} for path in two] == before


def test_unless_told_the_report_goes_beside_others_and_is_named_by_the_time(two: tuple[Path, Path]) -> None:
    done = normbench("report", *two, "--pictures", "0")
    (folder,) = Path("reports").iterdir()

    assert done.code == 0
    assert re.fullmatch(r"\d{8}T\d{6}Z-merged", folder.name)
    assert {file.name for file in folder.iterdir()} == {"verdict.md", "report.html"}


def test_a_program_reads_both_runs_and_where_the_report_is(two: tuple[Path, Path]) -> None:
    done = normbench("report", *two, "--json", "--out", "both", "--pictures", "0")
    found = json.loads(done.out)

    assert (done.code, found["folder"]) == (0, "both")
    assert [(run["folder"], run["label"]) for run in found["runs"]] == [("one", "Alpha"), ("two", "Beta")]


def test_the_first_pictures_of_each_run_are_in_the_page_and_what_is_left_out_is_said(
    two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = b'<svg xmlns="http://www.w3.org/2000/svg" width="1pt" height="1pt"><title>a</title></svg>'

    def draw(_run: Run, most: int) -> list[tuple[str, bytes]]:
        return [("speedup-forward.png", b""), ("speedup-forward.svg", picture)][: 2 * most]

    monkeypatch.setattr("normbench.reporters.plots.draw", draw)
    monkeypatch.setattr("normbench.cli.rendering._OF_EACH", 1)
    done = normbench("report", *two, "--out", "both")
    page = Path("both", "report.html").read_text(encoding="utf-8")

    assert re.findall('<figure aria-label="([^"]+)"', page) == ["Alpha: speedup-forward", "Beta: speedup-forward"]
    assert len(set(re.findall('id="([^"]+-title)"', page))) == 2
    assert done.err.startswith("drawing 1 of up to 3 pictures of each run; all: --pictures 3\n")


def test_runs_that_cannot_be_compared_are_refused_with_what_differs_and_nothing_is_written(
    tmp_path: Path, two: tuple[Path, Path]
) -> None:
    other = write_run(tmp_path / "other", make_plan(widths=(64, 128), eps=1e-5)).path
    done = normbench("report", two[0], other)

    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error: these runs can't be compared: --eps is 1e-06 against 1e-05\n"
        "hint: measure again with the same options, or report each by itself\n"
    )
    assert list(Path.cwd().iterdir()) == []


def test_runs_without_a_common_cell_are_refused_with_the_axis(tmp_path: Path, two: tuple[Path, Path]) -> None:
    done = normbench("report", two[0], write_run(tmp_path / "other", make_plan(rows=(64,))).path)

    assert done.code == 2
    assert "Alpha has no cell in common with another: rows 32 against 64" in done.err


def test_a_folder_that_is_named_twice_is_refused(two: tuple[Path, Path]) -> None:
    done = normbench("report", two[0], two[1], two[0] / ".." / "one")

    assert (done.code, done.out) == (2, "")
    assert done.err == "error: RUN: a folder is named twice\nhint: name each once\n"


def test_a_folder_that_exists_is_not_written_over(two: tuple[Path, Path]) -> None:
    done = normbench("report", *two, "--out", two[1])

    assert (done.code, done.out) == (2, "")
    assert "exists, and no run is ever overwritten" in done.err
    assert not (two[1] / "verdict.md").exists()


def test_one_of_several_that_is_not_there_is_named(tmp_path: Path, two: tuple[Path, Path]) -> None:
    done = normbench("report", two[0], tmp_path / "nowhere")

    assert (done.code, done.out) == (3, "")
    assert f"{tmp_path}/nowhere/run.json: can't be read: " in done.err
    assert list(Path.cwd().iterdir()) == []


def test_samples_of_one_that_cannot_be_read_are_named_and_do_not_cost_the_text(two: tuple[Path, Path]) -> None:
    (two[1] / "samples.csv").write_text("a,b\n", encoding="utf-8")
    done = normbench("report", *two, "--out", "both", "--pictures", "0")

    assert (done.code, done.out) == (3, "")
    assert f"{two[1]}/samples.csv: line 1: these are not the columns" in done.err
    assert Path("both", "verdict.md").exists()


def test_more_runs_than_there_is_room_for_are_refused(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(13)]
    done = normbench("report", *folders)

    assert (done.code, done.out) == (2, "")
    assert done.err == "error: RUN: 13 folders\nhint: allowed: up to 12, a column each\n"


def test_samples_that_cannot_be_read_cost_their_distributions_and_not_the_page(two: tuple[Path, Path]) -> None:
    (two[1] / "samples.csv").write_bytes(b"no samples\n")
    done = normbench("report", *two, "--out", "both", "--pictures", "0")
    page = Path("both", "report.html").read_text(encoding="utf-8")

    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: {two[1] / 'samples.csv'}: line 1: these are not the columns of this version")
    assert page.count('class="spread"') == len(load(two[0]).results)
