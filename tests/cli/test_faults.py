"""What goes wrong outside of any implementation: what was measured is kept, and the message says what to do."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, BinaryIO

import pytest

from normbench.device import CpuDevice
from normbench.records import Status
from normbench.storage import files, load
from tests.cli.command import NAMES, PLAIN, normbench, rows, statuses, sweep

TWO = ("--widths", "64", "128")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("normbench.reporters.plots.draw", lambda _run, _most=None: iter(()))
    return tmp_path


def full_after_the_first_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every write to the disk fails from the moment on that results are in their file."""
    sync = files._sync

    def limited(file: BinaryIO) -> None:
        results = Path("run/results.csv")
        if results.exists() and results.read_text(encoding="utf-8").count("\n") > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    monkeypatch.setattr(files, "_sync", limited)


def test_a_full_disk_ends_the_run_and_what_was_measured_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        full_after_the_first_cell(full)
        done = sweep(*TWO, "--out", "run")
    assert (done.code, done.out) == (3, "")
    assert "No space left on device" in done.err
    assert "Traceback" not in done.err
    assert statuses(Path("run")) == [(64, name, "ok") for name in NAMES]

    assert normbench("sweep", "--resume", "run").code == 0
    assert statuses(Path("run")) == [(width, name, "ok") for width in (64, 128) for name in NAMES]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_told_before_anything_is_measured(here: Path) -> None:
    here.chmod(0o555)
    done = sweep(*TWO, "--out", "run")
    assert done.code == 2
    assert "run: can't be written: Permission denied" in done.err


def test_a_device_that_vanishes_ends_the_run_and_what_was_measured_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free, cells = CpuDevice.free_bytes, []

    def once(device: CpuDevice) -> int:
        cells.append(1)
        if len(cells) > 1:
            raise RuntimeError("CUDA error: device is lost\nCUDA kernel errors might be reported later")
        return free(device)

    monkeypatch.setattr(CpuDevice, "free_bytes", once)
    done = sweep(*TWO, "--out", "run")
    assert done.code == 3
    assert "error: the device does not answer any more: RuntimeError: CUDA error: device is lost\n" in done.err
    assert "--resume" in done.err
    assert [result.status for result in load(Path("run")).results] == [Status.OK] * len(NAMES)
    assert "1 of 2 cells" in Path("run/verdict.md").read_text(encoding="utf-8")


def nowhere() -> IO[bytes]:
    """A pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "wb", buffering=0)


def full_disk() -> IO[bytes]:
    """A file on one."""
    return os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb", buffering=0)


@pytest.mark.parametrize("stdout", [nowhere, full_disk])
def test_a_stdout_that_takes_nothing_loses_nothing(here: Path, stdout: Callable[[], IO[bytes]]) -> None:
    words = ["--device", "cpu", "--rows", "32", "--dtype", "fp32", "--modes", "forward", "--no-isolate"]
    words += ["--widths", "64", "--placements", "5", "--max-seconds", "0.05", *PLAIN, "--out", "run"]
    command = [sys.executable, "-m", "normbench", "sweep", *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with stdout() as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    assert done.returncode == 3
    assert "error: stdout " in done.stderr
    assert "Traceback" not in done.stderr
    assert {row["status"] for row in rows(here / "run" / "results.csv")} == {"ok"}
    assert (here / "run" / "report.html").exists()
    assert (here / "run" / "samples.csv.gz").exists()
