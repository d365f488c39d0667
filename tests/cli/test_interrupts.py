"""Signals to a real sweep: the first one ends the round and everything is reported, the second ends at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from normbench.cli.interrupts import Interrupts
from normbench.records import Status
from normbench.storage import load
from tests.cli.command import PLAIN, rows

ENDLESS = (
    *("--device", "cpu", "--dtype", "fp32", "--processes", "1"),
    *("--placements", "40", "--max-seconds", "600", "--target", "0.01%"),
)
SMALL = ("--rows", "32", "--modes", "forward")
"""Measures each cell for minutes."""

_TELLING = """
from pathlib import Path
from typing import Any
from normbench import measure
from normbench.__main__ import run

if __name__ == "__main__":
    before = measure.Measurer.measure

    def measuring(self, benches, names):
        Path("measuring").touch()
        return before(self, benches, names)

    measure.Measurer.measure = measuring
    run()
"""
"""The command, which makes a file when the first cell's rounds begin."""


@contextmanager
def sweeping(folder: Path, *words: str, program: Sequence[str] = ("telling.py",)) -> Iterator[subprocess.Popen[str]]:
    """A sweep in a session of its own, as a terminal gives it one; whatever is left of it is killed."""
    (folder / "telling.py").write_text(_TELLING, encoding="utf-8")
    command = [sys.executable, *program, "sweep", *ENDLESS, *PLAIN, "--out", "run", *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


def measuring(folder: Path) -> None:
    """Wait until the first cell's rounds have begun."""
    eventually((folder / "measuring").exists, "measuring")


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def ended(process: subprocess.Popen[str], within_s: float) -> tuple[str, str]:
    out, err = process.communicate(timeout=within_s)
    return out, err


@pytest.mark.parametrize(
    ("number", "options"), [(signal.SIGINT, ()), (signal.SIGTERM, ()), (signal.SIGINT, ("--no-isolate",))]
)
def test_the_first_signal_ends_the_round_and_what_was_measured_is_reported(
    tmp_path: Path, number: signal.Signals, options: tuple[str, ...]
) -> None:
    with sweeping(tmp_path, *SMALL, "--widths", "64", "128", *options) as process:
        measuring(tmp_path)
        workers = workers_of(process)
        os.killpg(process.pid, number)
        _out, err = ended(process, 60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "interrupted; go on with: normbench sweep --resume run" in err
    run = load(tmp_path / "run")
    assert [r.status for r in run.results] == [Status.NOT_RUN] * 6
    first, *_, last = (r.reason or "" for r in run.results)
    assert first.startswith("interrupted ")
    assert last == "interrupted before it was measured"
    assert "2 of 2 cells lack a final status" in (tmp_path / "run" / "verdict.md").read_text(encoding="utf-8")
    eventually(lambda: not [worker for worker in workers if worker.is_running()], "the end of the workers")
    assert not list((tmp_path / "run").rglob(".*"))


def test_samples_of_the_cell_that_was_interrupted_are_kept(tmp_path: Path) -> None:
    with sweeping(tmp_path, *SMALL, "--widths", "64", "--no-isolate") as process:
        measuring(tmp_path)
        os.killpg(process.pid, signal.SIGINT)
        _out, err = ended(process, 60)
    (reason,) = {row["reason"] for row in rows(tmp_path / "run" / "results.csv")}
    count = int(reason.removeprefix("interrupted after ").partition(" ")[0])
    kept = rows(tmp_path / "run" / "samples.csv")
    assert {int(row["placement"]) for row in kept} == set(range(count))
    assert "finishing the round" in err


def test_the_second_signal_ends_at_once(tmp_path: Path) -> None:
    with sweeping(tmp_path, "--modes", "forward", "--rows", "8192", "--widths", "1024") as process:
        measuring(tmp_path)
        workers = workers_of(process)
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _out, err = ended(process, 20)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "ended at once, without a report; go on with: normbench sweep --resume run" in err
    eventually(lambda: not [worker for worker in workers if worker.is_running()], "the end of the workers")
    assert load(tmp_path / "run").results == ()


@pytest.mark.parametrize("after_s", [0.1, 0.5, 1.0, 1.5, 2.0])
def test_an_interrupt_while_everything_is_starting_is_no_traceback(tmp_path: Path, after_s: float) -> None:
    with sweeping(tmp_path, *SMALL, "--widths", "64", program=("-m", "normbench")) as process:
        time.sleep(after_s)
        os.killpg(process.pid, signal.SIGINT)
        _out, err = ended(process, 60)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_a_signal_while_something_is_written_waits_for_it_to_be_whole() -> None:
    written = []

    def write(interrupts: Interrupts) -> None:
        with interrupts.put_off():
            os.kill(os.getpid(), signal.SIGTERM)
            written.append("all of it")

    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            write(interrupts)
        assert interrupts.is_asked_for
    assert written == ["all of it"]


def test_only_the_first_signal_waits_for_the_round() -> None:
    with Interrupts() as interrupts:
        with interrupts.may_wait():
            os.kill(os.getpid(), signal.SIGINT)
            assert interrupts.is_asked_for
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_afterwards_signals_do_what_they_did_before() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with Interrupts():
        pass
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_a_hangup_that_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_at_the_very_end_keeps_nothing_from_doing_what_it_did_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    put_back = signal.signal

    def interrupted(number: int, handler: Any) -> object:
        os.kill(os.getpid(), signal.SIGTERM if number == signal.SIGINT else signal.SIGUSR1)
        return put_back(number, handler)

    put_back(signal.SIGUSR1, signal.SIG_IGN)
    try:
        with Interrupts():
            monkeypatch.setattr(signal, "signal", interrupted)
    finally:
        monkeypatch.undo()
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)

    assert {number: signal.getsignal(number) for number in before} == before
