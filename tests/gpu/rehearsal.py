"""A device that poses as a GPU and computes on the CPU, so that the tests of a GPU run where there is none.

Its times are the host's, its spins take no time, and no figure that comes of it says anything about a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import psutil
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from normbench.device import CudaDevice
from normbench.records import DeviceInfo
from tests.gpu.seen import Kernel

NAME = "rehearsal: no GPU"


class HostEvent:
    """An event whose moment is when the host records it."""

    def __init__(self, cuda: HostCuda) -> None:
        self._cuda = cuda
        self._moment = float("nan")

    def record(self) -> None:
        self._moment = self._cuda.now()

    def query(self) -> bool:
        return not self._cuda.is_held

    def elapsed_time(self, end: HostEvent) -> float:
        return (end._moment - self._moment) * 1e3


class HostStream:
    """A stream in which everything happens at once."""

    def wait_stream(self, other: HostStream) -> None:
        """Nothing is pending."""


class HostCuda:
    """``torch.cuda`` on the host: what is queued is done at once, and counts as pending until it is waited for."""

    hz = 2.0**30

    def __init__(self) -> None:
        self.is_held = False
        self.spins: list[Kernel] = []
        self._spun_s = 0.0
        self.nvtx = SimpleNamespace(range_push=lambda _name: None, range_pop=lambda: None)

    def now(self) -> float:
        """Seconds, with those in which it pretended to spin."""
        return time.perf_counter() + self._spun_s

    def _sleep(self, cycles: int) -> None:
        began = self.now()
        self._spun_s += cycles / self.hz
        self.is_held = True
        self.spins.append(Kernel(name="spin", start_s=began, end_s=self.now()))

    def synchronize(self) -> None:
        self.is_held = False

    def Event(self, *, enable_timing: bool = False) -> HostEvent:  # noqa: N802 - torch's name
        assert enable_timing, "an event without timing has no time"
        return HostEvent(self)

    def Stream(self) -> HostStream:  # noqa: N802 - torch's name
        return HostStream()

    def current_stream(self) -> HostStream:
        return HostStream()

    @contextmanager
    def stream(self, _stream: HostStream) -> Iterator[None]:
        yield

    def CUDAGraph(self) -> SimpleNamespace:  # noqa: N802 - torch's name
        return SimpleNamespace(replay=lambda: None)

    @contextmanager
    def graph(self, _graph: object) -> Iterator[None]:
        yield

    def mem_get_info(self) -> tuple[int, int]:
        memory = psutil.virtual_memory()
        return int(memory.available), int(memory.total)

    def memory_reserved(self) -> int:
        return 0

    def memory_allocated(self) -> int:
        return 0

    def max_memory_allocated(self) -> int:
        return int(psutil.Process().memory_info().rss)

    def reset_peak_memory_stats(self) -> None:
        """Nothing is counted."""

    def empty_cache(self) -> None:
        """Nothing is cached."""


class RehearsalDevice(CudaDevice):
    """The CPU as a GPU."""

    def __init__(self) -> None:
        self.cuda = HostCuda()
        self.torch_device = torch.device("cpu")
        self._monitor = None
        self.info = DeviceInfo(
            kind="cuda",
            name=NAME,
            slug="rehearsal",
            memory_bytes=int(psutil.virtual_memory().total),
            cache_bytes=2**20,
            capability=(9, 0),
            native_bf16=True,
        )

    def ran(self, work: Callable[[], object]) -> list[Kernel]:
        """The ops that ran, and the spins, in order."""
        cuda, ops = self.cuda, list[Kernel]()
        cuda.spins.clear()

        class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                began = cuda.now()
                result = func(*args, **(kwargs or {}))
                if not func.is_view:
                    ops.append(Kernel(name=func.overloadpacket.__name__, start_s=began, end_s=cuda.now()))
                return result

        with Recorder():  # type: ignore[no-untyped-call]
            work()
        return sorted([*ops, *cuda.spins], key=lambda kernel: kernel.start_s)
