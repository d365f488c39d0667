from __future__ import annotations

import shutil
import subprocess
import sys
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
    monkeypatch.setattr("normbench.reporters.plots.draw", lambda _run: iter([("time.svg", b"picture")]))
    path = write_run(tmp_path / "run").path
    first = normbench("report", path)
    files = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}
    shutil.rmtree(path / "plots")
    (path / "verdict.md").write_text("spoiled", encoding="utf-8")

    assert normbench("report", path) == first
    assert {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()} == files
    assert (path / "plots" / "time.svg").read_bytes() == b"picture"


def test_a_picture_that_cannot_be_drawn_does_not_cost_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_run: object) -> None:
        raise MemoryError

    monkeypatch.setattr("normbench.reporters.plots.draw", fail)
    path = write_run(tmp_path / "run").path

    with pytest.raises(MemoryError):
        normbench("report", path)
    assert (path / "verdict.md").read_text(encoding="utf-8").startswith("**On Some CPU, 32 rows: ")


def test_a_report_needs_no_torch(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run").path
    command = [sys.executable, "-c", WITHOUT_TORCH, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    assert (done.returncode, done.stderr) == (0, "")
    assert (path / "plots" / "speedup-forward.svg").exists()


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
        ("run.json", '{"schema": 3}', "run.json: schema is 3, this version reads 2\nhint: update normbench"),
        ("run.json", '{"schema": 1}', "run.json: schema is 1, this version reads 2\nhint: read it with the version"),
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
    assert done.err.endswith("hint: name a folder that a sweep has written\n")


def test_a_report_without_a_folder_is_bad_usage() -> None:
    done = normbench("report")

    assert (done.code, done.out) == (2, "")
    assert "RUN" in done.err
