"""What ran on a device, and when: by torch's profiler, or in a rehearsal by what was dispatched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch.profiler import ProfilerActivity, profile

from normbench.clock import Task
from normbench.device import CudaDevice
from normbench.profiling.quiet import profiler_lines_kept_back

_WAITING = ("Context Sync", "Stream Sync", "Event Sync", "Stream Wait Event")
"""What a profiler may list among a device's work, and is none."""

HOLD_CYCLES = 20_000_000
"""Some ten milliseconds: queueing takes longer while it is profiled."""


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel, or what else a device does in its queue; seconds from whatever beginning."""

    name: str
    start_s: float
    end_s: float


def ran(gpu: CudaDevice, work: Callable[[], object]) -> list[Kernel]:
    """What the device ran for ``work``, in the order in which it began."""
    if (own := getattr(gpu, "ran", None)) is not None:
        found: list[Kernel] = own(work)
        return found
    _warm()
    return _profiled(work)


@cache
def _warm() -> None:
    """The first profile of a process may miss what comes first in it."""
    _profiled(lambda: torch.ones(1, device="cuda").add_(1))


def _profiled(work: Callable[[], object]) -> list[Kernel]:
    torch.cuda.synchronize()
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profiler_lines_kept_back(), profile(activities=activities) as recorded:
        work()
        torch.cuda.synchronize()
    found = [
        Kernel(name=event.name, start_s=event.time_range.start * 1e-6, end_s=event.time_range.end * 1e-6)
        for event in recorded.events()
        if str(event.device_type).endswith("CUDA") and event.name not in _WAITING
    ]
    return sorted(found, key=lambda kernel: kernel.start_s)


@dataclass(frozen=True, kw_only=True)
class Held:
    """A call of a task queued as the event clock queues it, behind a spin, so that no launch gap is in it."""

    gpu: CudaDevice
    task: Task
    flush: Callable[[], None]

    def spans(self, count: int) -> list[float]:
        """Seconds from the beginning of a call's first kernel to the end of its last, of so many calls."""
        self.task.run()
        self.flush()  # what is loaded or allocated for the first time waits for the device
        self._queue()
        before = [kernel.name for kernel in ran(self.gpu, lambda: self._queue(calls=False))]
        kernels = ran(self.gpu, lambda: [self._queue() for _ in range(count)])
        size, rest = divmod(len(kernels), count)
        assert rest == 0, "each time the same runs"
        each = [kernels[at : at + size] for at in range(0, len(kernels), size)]
        assert all([kernel.name for kernel in one[: len(before)]] == before for one in each)
        calls = [one[len(before) :] for one in each]
        assert all(calls), "a call runs something"
        return [max(kernel.end_s for kernel in call) - call[0].start_s for call in calls]

    def _queue(self, *, calls: bool = True) -> None:
        cuda = self.gpu.cuda
        cuda.synchronize()
        cuda._sleep(HOLD_CYCLES)
        with self.task.context():
            call = self.task.prepare()
            self.flush()
            reached = cuda.Event(enable_timing=True)
            reached.record()
            result = call() if calls else None
        assert not reached.query(), "the spin outlasts the queueing"
        cuda.synchronize()
        del result
