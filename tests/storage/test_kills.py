"""SIGKILL at random moments of sweeps in processes of their own: what is left loads, is reported and gone on with."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest.mock import patch

import pytest

from normbench.errors import StorageError
from normbench.records import Run
from normbench.reporters import plots
from tests.cli.command import Done, normbench
from tests.sweeping import SIX, contents

NORMAL, ALL = 20, 100
TRIALS = [pytest.param(n, marks=[] if n < NORMAL else pytest.mark.slow) for n in range(ALL)]


@dataclass(frozen=True, kw_only=True)
class Sweeps:
    """Sweeps in processes of their own.

    Args:
        context: Gives processes that are there in milliseconds: copies of one that has imported everything.
        duration_s: How long a sweep takes with its reports, by whether it waits for the disk.
    """

    context: ForkServerContext
    duration_s: Mapping[bool, float]

    def start(self, path: Path, stop: int | None = None, *, waits: bool = False) -> BaseProcess:
        """Begin a sweep, or go on with it."""
        return started(self.context, sweep, path, stop, waits)

    def kill(self, path: Path, after_s: float, stop: int | None = None, *, waits: bool = False) -> bool:
        """Begin a sweep, or go on with it, and kill it; whether it was still there to be killed."""
        process = self.start(path, stop, waits=waits)
        time.sleep(after_s)
        process.kill()
        process.join()
        assert process.exitcode in (-signal.SIGKILL, 0)
        return process.exitcode == -signal.SIGKILL


def sweep(path: Path, stop: int | None, waits: bool) -> None:
    """What runs in a process: what the command line does, but without measuring, and so without torch.

    A kill leaves what was written, on the disk or not, so it need not wait for the disk, which is most of its time.
    """
    assert "torch" not in sys.modules
    with nullcontext() if waits else patch.object(os, "fsync", lambda _file: None):
        SIX.run(path, stop)


def started(context: ForkServerContext, target: Callable[..., None], *args: object) -> BaseProcess:
    """A process that has begun. It does without the program that runs the tests, which would be imported again."""
    process = context.Process(target=target, args=args)
    with patch.object(sys.modules["__main__"], "__file__", None, create=True):
        process.start()
    return process


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory: pytest.TempPathFactory) -> Sweeps:
    """The sweeps of all tests, timed first."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["tests.storage.test_kills", "normbench.reporters.html", "normbench.storage.samples"]
    )
    found = Sweeps(context=context, duration_s={})
    return replace(found, duration_s={waits: timed(found, tmp_path_factory, waits=waits) for waits in (False, True)})


def timed(sweeps: Sweeps, folders: pytest.TempPathFactory, *, waits: bool) -> float:
    """How long a sweep takes: the least of three, since the first one warms everything up."""
    seconds = []
    for _ in range(3):
        process = sweeps.start(folders.mktemp("timed") / "run", waits=waits)
        began = time.monotonic()
        process.join()
        seconds.append(time.monotonic() - began)
        assert process.exitcode == 0
    return min(seconds)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What is in the folder of a sweep that nobody killed."""
    path = tmp_path_factory.mktemp("expected") / "run"
    SIX.run(path)
    return contents(path)


def report(path: Path, target: Path) -> Done:
    with patch.object(plots, "draw", lambda _run, _most=None: iter(())):
        return normbench("report", path, "--out", target)


def assert_what_is_there_loads(path: Path, target: Path) -> None:
    """Either there is no run, or one of whole cells."""
    if path.exists():
        assert_reported(path, SIX.assert_whole_cells(path), target)


def assert_reported(path: Path, run: Run, target: Path) -> None:
    """A report can be made of what is there, and says which cells are not."""
    done = report(path, target)
    verdict = (target / "verdict.md").read_text(encoding="utf-8")
    assert (done.code, (target / "report.html").exists()) == (0, True)
    for text in (done.out, verdict):
        said = [line for line in text.splitlines() if "This run is incomplete: " in line]
        assert len(said) == (not run.is_complete)
        for line in said:
            assert f"{len(run.missing)} of 6 cells lack a final status: " in line
            by_mode = {mode: [c.width for c in run.missing if c.mode is mode] for mode in run.header.plan.modes}
            for mode, widths in by_mode.items():
                assert (str(mode) in line) == bool(widths)
                assert len(widths) in (0, 3) or all(str(width) in line for width in widths)


@pytest.mark.parametrize("trial", TRIALS)
def test_a_sweep_killed_at_a_random_moment_is_reported_gone_on_with_and_whole_in_the_end(
    trial: int, sweeps: Sweeps, expected: dict[str, bytes], tmp_path: Path
) -> None:
    random_ = random.Random(trial)
    waits = trial >= NORMAL
    duration_s = sweeps.duration_s[waits]
    path = tmp_path / "root" / "run"
    path.parent.mkdir()
    stop = random_.choice([None, None, 2])
    moment_s = random_.uniform(0, duration_s)
    while not sweeps.kill(path, moment_s, stop, waits=waits):  # it had ended: too late
        shutil.rmtree(path)
        moment_s *= 0.9
    for again in range(trial % 3):
        assert_what_is_there_loads(path, tmp_path / f"report-{again}")
        sweeps.kill(path, random_.uniform(0, duration_s), waits=waits)
    assert_what_is_there_loads(path, tmp_path / "report")

    last = sweeps.start(path, waits=waits)
    last.join()
    assert last.exitcode == 0
    SIX.assert_every_case_once(path)
    assert contents(path) == expected
    assert [other.name for other in path.parent.iterdir()] == ["run"]


def limited(path: Path, bytes_: int, said: Path) -> None:
    """A sweep whose files may not become larger; what it says of that goes into another one."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))
    try:
        SIX.run(path, report=False)
    except StorageError as error:
        said.write_text(f"{error.message}\n{error.hint}", encoding="utf-8")


@pytest.mark.parametrize("share", [0.6, 0.8, 0.99])
def test_where_the_system_lets_no_file_grow_the_cells_before_stay_and_the_run_can_be_gone_on_with(
    share: float, sweeps: Sweeps, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    SIX.run(tmp_path / "expected", report=False)
    samples = len(gzip.decompress((tmp_path / "expected" / "samples.csv.gz").read_bytes()))
    process = started(sweeps.context, limited, path, int(share * samples), tmp_path / "said.txt")
    process.join()

    assert process.exitcode == 0
    message, hint = (tmp_path / "said.txt").read_text(encoding="utf-8").splitlines()
    assert message == f"{path / 'samples.csv'}: can't be written: File too large"
    assert hint == f"make room there, then go on with: normbench sweep --resume {path}"
    assert 0 < len(SIX.assert_whole_cells(path).missing) < len(SIX.cells)
    SIX.run(path, report=False)
    assert contents(path) == contents(tmp_path / "expected")
