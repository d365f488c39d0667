from __future__ import annotations

import psutil
import pytest

from normbench.other_load import OtherLoad, busy_seconds, other_cores
from tests.fakes import Timer


def load_after(*, busy_s: float, own_s: float, seconds: float) -> float | None:
    """What is said of a stretch of time in which everything and this process used so much of the processor."""
    busy, own, now = Timer(), Timer(), Timer()
    for timer in (busy, own, now):
        timer.advance(1000.0)
    load = OtherLoad(busy, own, now)
    busy.advance(busy_s)
    own.advance(own_s)
    now.advance(seconds)
    return load.cores()


@pytest.mark.parametrize(
    ("busy_s", "own_s", "cores"),
    [(10.0, 10.0, 0.0), (15.0, 10.0, 0.5), (40.0, 20.0, 2.0), (9.9, 10.0, 0.0)],
    ids=["alone", "half a core", "two cores", "coarser counters than ours"],
)
def test_what_others_used_is_everything_less_what_this_process_used(
    busy_s: float, own_s: float, cores: float
) -> None:
    assert load_after(busy_s=busy_s, own_s=own_s, seconds=10.0) == cores


def test_nothing_is_said_of_no_time_at_all() -> None:
    assert load_after(busy_s=0.0, own_s=0.0, seconds=0.0) is None


def test_idle_time_and_waiting_for_disks_are_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Times:
        user, nice, system, irq, softirq, steal = 1.0, 2.0, 4.0, 8.0, 16.0, 32.0
        idle, iowait, guest, guest_nice = 1000.0, 1000.0, 1000.0, 1000.0

    monkeypatch.setattr(psutil, "cpu_times", Times)
    assert busy_seconds() == 63.0


def test_kinds_of_time_that_a_system_does_not_count_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class Times:
        user, system, idle = 1.0, 4.0, 1000.0

    monkeypatch.setattr(psutil, "cpu_times", Times)
    assert busy_seconds() == 5.0


def test_the_load_of_the_next_moment_is_what_others_do_while_this_sleeps() -> None:
    busy, own, now = Timer(), Timer(), Timer()

    def sleep(seconds: float) -> None:
        now.advance(seconds)
        busy.advance(3 * seconds)

    assert other_cores(0.5, lambda: OtherLoad(busy, own, now), sleep) == 3.0
