from __future__ import annotations

import errno
import gzip
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from normbench.records import CellRecords
from normbench.storage import load
from normbench.sweeping import Sweep
from tests.cli.command import NAMES, Done, normbench, rows, statuses, sweep

FAR_TOO_WIDE = str(2**50)
SWAPS = [(64, "nn-layernorm", "eager-rmsnorm")]
"""Nobody has both formulas: the fastest of each is all there is."""


@pytest.fixture(autouse=True)
def nothing_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs in an empty folder, and without plots, which have tests of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("normbench.reporters.plots.draw", lambda _run, _most=None: iter(()))


def everybody(*widths: int, status: str = "ok") -> list[tuple[int, str, str]]:
    return [(width, name, status) for width in widths for name in NAMES]


def stop_after(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """As if Ctrl-C were pressed in the cell that follows."""
    whole = Sweep.run

    def run(self: Sweep, *args: object) -> Iterator[CellRecords]:
        for index, records in enumerate(whole(self, *args)):  # type: ignore[arg-type]
            if index == cells:
                os.kill(os.getpid(), signal.SIGINT)
            yield records

    monkeypatch.setattr(Sweep, "run", run)


def test_a_sweep_leaves_a_complete_run_folder_and_says_where() -> None:
    done = sweep("--widths", "64", "128", "--out", "run")

    assert done.code == 0
    assert {path.name for path in Path("run").iterdir()} == {
        "run.json",
        "results.csv",
        "cells.csv",
        "comparisons.csv",
        "swaps.csv",
        "samples.csv.gz",
        "verdict.md",
        "report.html",
    }
    assert statuses(Path("run")) == everybody(64, 128)
    assert [row["candidate"] for row in rows(Path("run/comparisons.csv"))] == ["eager-rmsnorm"] * 2
    assert done.err.endswith("written: run/ (read verdict.md first)\n")
    assert "speedup over nn-layernorm" in done.out
    assert Path("run/verdict.md").read_text(encoding="utf-8").startswith(("**On ", "**Not reliable, since "))


def test_without_out_the_folder_is_named_by_time_and_device_and_never_used_twice() -> None:
    codes = [sweep("--widths", "64", "--max-seconds", "0.01").code for _ in range(2)]
    names = [path.name for path in Path("reports").iterdir()]

    assert codes == [0, 0]
    assert len(names) == 2
    assert all(name[:8].isdigit() and name[8] == "T" and "Z-" in name for name in names)


def test_the_record_holds_the_command_that_repeats_it_and_no_path() -> None:
    sweep("--widths", "64", "--out", "run")
    header = load(Path("run")).header

    assert header.command[:2] == ("normbench", "sweep")
    assert "--out" not in header.command
    assert header.plan.implementations == NAMES
    assert normbench(*header.command[1:], "--dry-run").code == 0


def test_progress_goes_to_stderr_and_results_to_stdout() -> None:
    done = sweep("--widths", "64", "--out", "run")

    assert done.err.splitlines()[0] == "measuring into run/"
    assert done.err.splitlines()[1].startswith("[1/1] 32×64 fp32 forward warm: ")
    assert "[1/1]" not in done.out
    assert "How sure: " in done.out
    assert "How sure: " not in done.err


def test_a_quiet_sweep_says_nothing_on_stderr() -> None:
    done = sweep("--widths", "64", "--out", "run", "--quiet")

    assert (done.code, done.err) == (0, "")
    assert "How sure: " in done.out


def test_json_on_stdout_is_json_and_nothing_else_with_numbers_as_numbers() -> None:
    done = sweep("--widths", "64", FAR_TOO_WIDE, "--max-seconds", "2", "--out", "run", "--json")
    read = json.loads(done.out)

    assert read["folder"] == "run"
    assert read["complete"] is True
    first, *_, last = read["results"]
    assert (first["width"], first["implementation"], first["status"]) == (64, "copy", "ok")
    assert 0 < first["time_s"] < 1
    assert (last["width"], last["time_s"], last["status"]) == (2**50, None, "out_of_memory")
    assert [row["candidate"] for row in read["comparisons"]] == ["eager-rmsnorm"] * 2
    assert isinstance(read["comparisons"][0]["speedup"], float)
    assert [(row["width"], row["baseline"], row["candidate"]) for row in read["swaps"]] == SWAPS


def test_a_dry_run_names_cells_memory_and_time_and_makes_no_folder(tmp_path: Path) -> None:
    done = sweep("--widths", "64", "128", FAR_TOO_WIDE, "--out", "run", "--dry-run")
    first, second, third, what, memory, time = done.out.splitlines()

    assert (done.code, done.err) == (0, "")
    assert first.startswith("32×64 fp32 forward warm: ")
    assert second.startswith("32×128 fp32 forward warm: ")
    assert third.startswith(f"32×{FAR_TOO_WIDE} fp32 forward warm: ")
    assert third.endswith(", more than there is: out_of_memory")
    assert what.startswith("3 cells × 3 implementations on ")
    assert memory.startswith("memory: ")
    assert time.startswith("time: about ")
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_expects_no_more_time_than_the_sweep_is_given() -> None:
    assert "time: about 7 s" in sweep("--widths", "64:6400:64", "--total-seconds", "7", "--dry-run").out


def test_where_nothing_can_be_measured_every_case_says_why_and_the_exit_code_is_3() -> None:
    done = sweep("--widths", FAR_TOO_WIDE, "--out", "run")

    assert done.code == 3
    assert "error: nothing could be measured" in done.err
    assert statuses(Path("run")) == everybody(2**50, status="out_of_memory")
    assert all(row["reason"].startswith("estimated ") for row in rows(Path("run/results.csv")))
    assert all(row["time_s"] == "" for row in rows(Path("run/results.csv")))
    assert "no verdict" in Path("run/verdict.md").read_text(encoding="utf-8").splitlines()[0]


def test_where_one_case_can_be_measured_the_exit_code_is_0() -> None:
    done = sweep("--widths", FAR_TOO_WIDE, "64", "--out", "run")

    assert done.code == 0
    assert statuses(Path("run")) == everybody(2**50, status="out_of_memory") + everybody(64)


def test_a_failed_baseline_leaves_its_cell_undecided_and_not_the_others() -> None:
    done = sweep("--widths", "64", "--param-dtype", "bf16", "same", "--out", "run")
    found = rows(Path("run/results.csv"))

    assert done.code == 0
    assert [(r["parameter_dtype"], r["implementation"]) for r in found if r["status"] != "ok"] == [
        ("bf16", "nn-layernorm")
    ]
    (failed,) = (row for row in found if row["status"] == "failed")
    assert "mixed dtype" in failed["reason"]
    assert (failed["time_s"], failed["floor_ratio"], failed["samples"]) == ("", "", "")
    mixed, same = rows(Path("run/comparisons.csv"))
    assert [mixed[name] for name in ("outcome", "reason", "speedup")] == ["undecided", "no_baseline", ""]
    assert (same["reason"] == "no_baseline", same["speedup"] == "") == (False, False)


def test_a_time_budget_that_is_spent_leaves_cells_that_were_not_run_and_the_exit_code_is_3() -> None:
    done = sweep("--widths", "64:3200:64", "--total-seconds", "0.01", "--out", "run")
    found = rows(Path("run/results.csv"))

    assert done.code == 3
    assert "cells are missing\nhint: normbench sweep --resume run\n" in done.err
    assert len(found) == 50 * len(NAMES)
    assert (found[-1]["status"], found[-1]["time_s"]) == ("not_run", "")
    assert found[-1]["reason"] == "the sweep's time budget was spent before it"
    assert "This run is incomplete" in Path("run/verdict.md").read_text(encoding="utf-8")


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Done:
    stop_after(monkeypatch, 1)
    return sweep("--widths", "64", "128", "256", "--out", "run")


def test_an_interrupted_sweep_keeps_what_was_measured_and_reports_it(interrupted: Done) -> None:
    assert interrupted.code == 130
    assert statuses(Path("run")) == everybody(64) + everybody(128, 256, status="not_run")
    assert "on with: normbench sweep --resume run" in interrupted.err
    verdict = Path("run/verdict.md").read_text(encoding="utf-8")
    assert "This run is incomplete: 2 of 3 cells lack a final status: fp32 forward at widths 128 and 256." in verdict
    assert "fp32 forward at width 64" in verdict.splitlines()[0]
    assert "2 cells are missing" in interrupted.out


def test_an_interrupted_sweep_can_be_loaded_and_its_samples_read(interrupted: Done) -> None:
    assert interrupted.code == 130
    assert load(Path("run")).header.plan.widths == (64, 128, 256)
    assert {row["width"] for row in rows(Path("run/samples.csv"))} == {"64"}


def test_the_samples_are_packed_before_anything_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_args: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("normbench.reporters.console.show", gone)

    assert sweep("--widths", "64", "--out", "run").code != 0
    assert gzip.decompress(Path("run/samples.csv.gz").read_bytes()).startswith(b"operation,mode,rows,width,")
    assert Path("run/verdict.md").exists()


def test_a_dry_run_is_json_where_a_program_asks() -> None:
    done = sweep("--widths", "64", "1000000000000000", "--dry-run", "--json")
    found = json.loads(done.out)

    assert {cell["width"]: cell["fits"] for cell in found["cells"]} == {64: True, 10**15: False}
    assert found["seconds"] > 0
