"""What other programs do to the processor while a cell is measured."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

import psutil

_BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
"""Kinds of processor time that something uses; steal is what other virtual machines took."""


def busy_seconds() -> float:
    """Processor seconds that everything on the machine has used, over all cores."""
    times = psutil.cpu_times()
    return float(sum(getattr(times, name, 0.0) for name in _BUSY))


def own_seconds(workers: Iterable[int | None] = ()) -> float:
    """Processor seconds that this process, and those with these numbers, have used, over all threads."""
    return sum(_process_seconds(pid) for pid in (os.getpid(), *workers) if pid is not None)


def _process_seconds(pid: int) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


class OtherLoad:
    """How many cores other programs have kept busy since this was made.

    Args:
        busy: Processor seconds of everything.
        own: Processor seconds of this process.
        now: A clock, in seconds.
    """

    def __init__(
        self,
        busy: Callable[[], float] = busy_seconds,
        own: Callable[[], float] = own_seconds,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._busy, self._own, self._now = busy, own, now
        self._start = (busy(), own(), now())

    def cores(self) -> float | None:
        """Cores' worth of other programs' work, 0 or more; None where no time has passed."""
        busy, own, now = self._start
        seconds = self._now() - now
        if seconds <= 0:
            return None
        return max(0.0, ((self._busy() - busy) - (self._own() - own)) / seconds)


def other_cores(
    seconds: float,
    load: Callable[[], OtherLoad] = OtherLoad,
    sleep: Callable[[float], None] = time.sleep,
) -> float | None:
    """Cores that other programs keep busy during the next ``seconds``, in which this one sleeps."""
    watched = load()
    sleep(seconds)
    return watched.cores()
