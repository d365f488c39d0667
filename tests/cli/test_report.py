from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from normbench.records import Status
from tests.cli.command import normbench
from tests.runs import TIMES, make_plan, write_run

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # importing it is an error
from normbench.cli import main
sys.argv = ["normbench", "report", sys.argv[1]]
main()
"""

PICTURE = b'<svg xmlns="http://www.w3.org/2000/svg" width="1pt" height="1pt"><title>a picture</title></svg>'


def files(folder: Path) -> dict[str, bytes]:
    """What a folder holds, by the names of its files."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_report_writes_verdict_and_plots_and_prints_the_summary(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", make_plan(widths=(64, 128)))
    done = normbench("report", folder.path)

    assert (done.code, done.err) == (0, "")
    assert "On Some CPU, 32 rows: use nn-rmsnorm for fp32, forward, at widths 64 and 128." in done.out
    verdict = (folder.path / "verdict.md").read_text(encoding="utf-8")
    assert verdict.startswith("**On Some CPU, 32 rows: use nn-rmsnorm for fp32, forward, at widths 64 and 128.**\n")
    assert {path.name for path in (folder.path / "plots").iterdir()} == {
        f"{kind}-forward.{extension}" for kind in ("time", "speedup", "bandwidth") for extension in ("png", "svg")
    }


def test_a_report_made_again_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normbench.reporters.plots.draw", lambda _run, _most: iter([("time.svg", PICTURE)]))
    path = write_run(tmp_path / "run").path
    first = normbench("report", path)
    before = files(path)
    shutil.rmtree(path / "plots")
    (path / "verdict.md").write_text("spoiled", encoding="utf-8")
    (path / "report.html").unlink()

    assert normbench("report", path) == first
    assert files(path) == before
    assert (path / "plots" / "time.svg").read_bytes() == PICTURE
    assert '<title id="p0-title">a picture</title>' in (path / "report.html").read_text(encoding="utf-8")


def test_a_picture_that_cannot_be_drawn_does_not_cost_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_run: object, _most: object) -> None:
        raise MemoryError

    monkeypatch.setattr("normbench.reporters.plots.draw", fail)
    path = write_run(tmp_path / "run").path

    done = normbench("report", path)

    assert done.code == 3, "1 says that something got slower"
    assert "MemoryError" in done.err
    assert done.err.endswith("error: this is a fault of normbench\nhint: please report it with the lines above\n")
    assert (path / "verdict.md").read_text(encoding="utf-8").startswith("**On Some CPU, 32 rows: ")


def test_a_report_needs_no_torch(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run").path
    command = [sys.executable, "-c", WITHOUT_TORCH, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    assert (done.returncode, done.stderr) == (0, "")
    assert (path / "plots" / "speedup-forward.svg").exists()
    assert "<svg" in (path / "report.html").read_text(encoding="utf-8")


def test_a_run_without_a_time_is_reported_all_the_same(tmp_path: Path) -> None:
    path = write_run(
        tmp_path / "run", times=dict.fromkeys(TIMES, Status.UNSUPPORTED), reason="not on this device"
    ).path
    done = normbench("report", path)

    assert (done.code, done.err) == (0, "")
    assert "everything: unsupported fp32 forward at width 64: not on this device" in done.out


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("run.json", "{}", "run.json: schema is None, this version reads 2"),
        ("run.json", '{"schema": 4}', "run.json: schema is 4, this version reads 2 and 3\nhint: update normbench"),
        (
            "run.json",
            '{"schema": 1}',
            "run.json: schema is 1, this version reads 2 and 3\nhint: read it with the version",
        ),
        ("results.csv", "a,b\n", "results.csv: line 1: these are not the columns of this version\nhint: found: a, b"),
        ("comparisons.csv", "", "comparisons.csv: line 1: these are not the columns of this version"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_the_exit_code_is_3(
    tmp_path: Path, file: str, text: str, said: str
) -> None:
    path = write_run(tmp_path / "run").path
    (path / file).write_text(text, encoding="utf-8")
    done = normbench("report", path)

    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: {path}/{said}")
    assert not (path / "verdict.md").exists()


def test_a_folder_that_is_not_there_is_named_and_the_exit_code_is_3(tmp_path: Path) -> None:
    done = normbench("report", tmp_path / "nowhere")

    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: {tmp_path}/nowhere/run.json: can't be read: ")
    assert done.err.endswith("hint: name a folder that a sweep or a check has written\n")


def test_another_folder_takes_the_reports_and_the_run_stays_as_it_was(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run").path
    before = files(path)
    done = normbench("report", path, "--out", tmp_path / "new", "--pictures", "1")

    assert (done.code, done.err) == (0, "")
    assert files(path) == before
    assert set(files(tmp_path / "new")) == {
        "verdict.md",
        "report.html",
        "plots/speedup-forward.png",
        "plots/speedup-forward.svg",
    }


def test_a_folder_that_exists_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run").path
    before = files(tmp_path)
    done = normbench("report", path, "--out", path)

    assert (done.code, done.out) == (2, "")
    assert done.err == f"error: --out {path}: exists, and no run is ever overwritten\nhint: name a new folder\n"
    assert files(tmp_path) == before


def test_how_samples_spread_is_in_the_page(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    folder.compress_samples()
    normbench("report", folder.path, "--pictures", "0")

    page = (folder.path / "report.html").read_text(encoding="utf-8")
    assert page.count("4 samples: median ") == len(TIMES)
    assert "4 samples: median 2.00 µs, nine tenths from 2.00 µs to 2.00 µs" in page


def test_a_run_without_samples_is_reported_all_the_same(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run").path
    (path / "samples.csv").unlink()
    done = normbench("report", path, "--pictures", "0")

    assert (done.code, done.err) == (0, "")
    assert " samples: median " not in (path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("spoil", [bytes.upper, lambda data: data[:-9], lambda data: data[:40] + data[44:]])
def test_samples_that_cannot_be_read_are_named_and_do_not_cost_the_text(
    tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    folder = write_run(tmp_path / "run")
    folder.compress_samples()
    packed = folder.path / "samples.csv.gz"
    packed.write_bytes(spoil(packed.read_bytes()))
    done = normbench("report", folder.path, "--pictures", "0")

    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: {packed}: can't be read: ")
    assert (folder.path / "verdict.md").exists()
    assert (folder.path / "report.html").exists()


def test_no_picture_is_drawn_where_none_is_wanted(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run").path
    done = normbench("report", path, "--pictures", "0")

    assert (done.code, done.err) == (0, "")
    assert not (path / "plots").exists()
    assert "<figure" not in (path / "report.html").read_text(encoding="utf-8")


def test_pictures_that_are_left_out_are_said_with_what_draws_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("normbench.reporters.plots.choice.MOST", 2)
    path = write_run(tmp_path / "run").path

    assert normbench("report", path).err == ("drawing 2 of 3 pictures; all: normbench report RUN --pictures 3\n")
    assert normbench("report", path, "--pictures", "3").err == ""
    assert len(list((path / "plots").glob("*.svg"))) == 3


def test_a_program_reads_the_run_as_json(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run").path
    done = normbench("report", path, "--json", "--pictures", "0")
    found = json.loads(done.out)

    assert (done.code, found["folder"], found["complete"]) == (0, "run", True)
    assert len(found["results"]) == len(TIMES)


def test_a_reader_that_has_gone_is_said_and_the_reports_are_there(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run").path
    command = [sys.executable, "-m", "normbench", "report", str(path), "--pictures", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()

    assert (process.returncode, "Traceback" in err) == (3, False)
    assert err.startswith("error: stdout was closed before everything was printed\n")
    assert (path / "report.html").exists()


def test_a_report_without_a_folder_is_bad_usage() -> None:
    done = normbench("report")

    assert (done.code, done.out) == (2, "")
    assert "RUN" in done.err
