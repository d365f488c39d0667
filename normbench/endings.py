"""From how a worker process ended to the status and the reason of the case that it was busy with."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

from normbench.failures import Failure
from normbench.records import Status

_COUNTERS = (Path("/sys/fs/cgroup/memory.events"), Path("/proc/vmstat"))
"""Where Linux counts the processes that it has killed for want of memory: of this container, of the machine."""


def memory_kills() -> int | None:
    """Processes that the system has killed so far for want of memory; None where it does not count them."""
    for path in _COUNTERS:
        try:
            found = re.search(r"^oom_kill (\d+)$", path.read_text(encoding="ascii"), re.MULTILINE)
        except (OSError, ValueError):
            continue
        if found:
            return int(found[1])
    return None


class Ending:
    """Watches a process from its start on, so that its end can be explained.

    Args:
        kills: Counts the processes that were killed for want of memory.
    """

    def __init__(self, kills: Callable[[], int | None] = memory_kills) -> None:
        self._kills = kills
        self._before = kills()

    def explain(self, exit_code: int | None) -> Failure:
        """Why the process is gone, by its exit code: minus the number of the signal that ended it."""
        if exit_code == -signal.SIGKILL and self._has_killed():
            return Failure(
                status=Status.OUT_OF_MEMORY, reason="its process was killed by the system for want of memory"
            )
        if exit_code is not None and exit_code < 0:
            reason = f"its process was ended by {_signal_name(-exit_code)}"
        else:
            reason = f"its process ended by itself (exit code {exit_code})"
        return Failure(status=Status.FAILED, reason=reason)

    def _has_killed(self) -> bool:
        after = self._kills()
        return self._before is not None and after is not None and after > self._before


def timed_out(seconds: float) -> Failure:
    """Of a case that was busy for longer than it may."""
    return Failure(
        status=Status.TIMED_OUT, reason=f"busy for over {seconds:g} s without a pause: its process was ended"
    )


def _signal_name(number: int) -> str:
    try:
        found = signal.Signals(number)
    except ValueError:
        return f"signal {number}"
    said = (signal.strsignal(number) or "").lower()
    return f"{found.name} ({said})" if said else found.name
