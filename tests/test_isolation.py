"""A sweep whose implementations end their processes: each costs itself a status, and nobody else anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psutil
import pytest

from normbench.answering import Spec
from normbench.device import CpuDevice
from normbench.records import CellRecords, Mode, Plan, Precision, Status
from normbench.sweeping import Sweep
from normbench.workers import Worker, crew
from tests import culprits
from tests.fakes import Watcher, row
from tests.helpers import make_plan

INNOCENT = ("copy", "nn-layernorm", "eager-rmsnorm")
QUICK = Precision(placements=5, max_seconds=0.2)


def plan_with(*names: str, **changes: Any) -> Plan:
    return make_plan(**{"implementations": (*INNOCENT, *names), "precision": QUICK, **changes})


@contextmanager
def sweep_in_workers(plan: Plan, count: int = 1) -> Iterator[Sweep]:
    device = CpuDevice()
    spec = Spec(plan=plan, device="cpu", threads=1, catalog=culprits.catalog)
    with crew(spec, count) as workers:
        yield Sweep(
            plan=plan,
            implementations=culprits.found(plan.implementations),
            device=device,
            benches=workers,
            observer=Watcher(),
        )


def measured(plan: Plan, count: int = 1) -> list[CellRecords]:
    with sweep_in_workers(plan, count) as sweep:
        return list(sweep.run())


BUSY = "busy for over 3 s without a pause: its process was ended"

GUILTY = {
    "check-segfault": (Status.FAILED, "its process was ended by SIGSEGV (segmentation fault)"),
    "timed-abort": (Status.FAILED, "its process was ended by SIGABRT (aborted)"),
    "build-exit": (Status.FAILED, "its process ended by itself (exit code 3)"),
    "check-quit": (Status.FAILED, "SystemExit: good-bye"),
    "timed-kill": (Status.FAILED, "its process was ended by SIGKILL (killed)"),
    "timed-close": (Status.FAILED, "its process ended by itself (exit code 1)"),
    "check-mute": (Status.FAILED, "MuteError"),
    "build-hang": (Status.TIMED_OUT, BUSY),
    "timed-spin": (Status.TIMED_OUT, BUSY),
}
"""In the build, in the first call and in one that is timed."""


@pytest.fixture(scope="module")
def together() -> list[CellRecords]:
    """All of them in one sweep of two cells; in the second those that were out of time are not attempted."""
    return measured(plan_with(*GUILTY, widths=(64, 128), modes=(Mode.FORWARD,), case_timeout_s=3.0))


@pytest.mark.parametrize("name", GUILTY)
def test_who_ends_its_process_or_does_not_come_back_costs_itself_a_status_and_a_reason(
    together: list[CellRecords], name: str
) -> None:
    result = row(together[0], name)
    assert (result.status, result.reason) == GUILTY[name]


def test_everyone_else_is_measured_in_that_cell_and_in_the_next_one(together: list[CellRecords]) -> None:
    assert [{row(records, innocent).status for innocent in INNOCENT} for records in together] == [{Status.OK}] * 2


def test_who_was_out_of_time_is_not_attempted_at_a_larger_size_and_who_crashed_is(
    together: list[CellRecords],
) -> None:
    reasons = {name: row(together[1], name).reason for name in GUILTY}
    skipped = "not attempted: timed_out at 12×64 already"
    assert {name for name, reason in reasons.items() if reason == skipped} == {"build-hang", "timed-spin"}
    assert reasons["check-segfault"] == GUILTY["check-segfault"][1]


def test_a_culprit_is_found_in_whichever_of_several_processes_it_is() -> None:
    precision = replace(QUICK, processes=5)
    (records,) = measured(plan_with("check-kill", precision=precision), 5)
    assert row(records, "check-kill").status is Status.FAILED
    for name in INNOCENT:
        timing = row(records, name).timing
        assert timing is not None
        assert timing.processes == 5


def test_a_copy_that_an_implementation_forks_off_answers_nobody() -> None:
    (records,) = measured(plan_with("timed-fork"))
    assert {row(records, name).status for name in (*INNOCENT, "timed-fork")} == {Status.OK}


def test_a_baseline_that_ends_its_process_leaves_the_others_their_times() -> None:
    (records,) = measured(plan_with("check-abort", baseline="check-abort"))
    assert row(records, "check-abort").status is Status.FAILED
    assert {row(records, name).status for name in INNOCENT} == {Status.OK}
    assert {comparison.speedup for comparison in records.comparisons} == {None}


def test_the_same_process_measures_cell_after_cell() -> None:
    with sweep_in_workers(plan_with(widths=(64, 32, 16))) as sweep:
        (worker,) = sweep.benches
        assert isinstance(worker, Worker)
        pids = {worker.pid for _records in sweep.run()}
    assert len(pids) == 1


def test_nothing_is_left_running() -> None:
    before = set(psutil.Process().children(recursive=True))
    measured(plan_with("check-hang", case_timeout_s=0.5))
    left = [
        p for p in set(psutil.Process().children(recursive=True)) - before if "tracker" not in " ".join(p.cmdline())
    ]
    assert left == []
