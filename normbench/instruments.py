"""What times on a device: its clocks, and how many calls a sample holds."""

from __future__ import annotations

from dataclasses import dataclass

from normbench.clock import Clock, CudaEventClock, CudaGraphClock, WallClock
from normbench.device import CudaDevice, Device, make_flush
from normbench.rounds import Batching


@dataclass(frozen=True, kw_only=True)
class Instruments:
    """What times on a device.

    ``beside`` holds wall time where ``clock`` is not that, and what else was asked for.
    """

    clock: Clock
    batching: Batching
    beside: tuple[Clock, ...] = ()

    @property
    def names_beside(self) -> tuple[str, ...]:
        """The names of the clocks in ``beside``."""
        return tuple(clock.name for clock in self.beside)


def instruments(device: Device, *, graphs: bool = False) -> Instruments:
    """CUDA events and wall time on a GPU, and captured graphs where asked for; wall time on a CPU."""
    flush = make_flush(device)
    wall = WallClock(flush=flush, synchronize=device.synchronize)
    if isinstance(device, CudaDevice):
        clock = CudaEventClock(device.cuda, flush=flush)
        beside: tuple[Clock, ...] = (wall, CudaGraphClock(device.cuda)) if graphs else (wall,)
        return Instruments(clock=clock, beside=beside, batching=Batching(least_s=100e-6, most_calls=10))
    return Instruments(clock=wall, batching=Batching())


def names_beside(kind: str, *, graphs: bool = False) -> tuple[str, ...]:
    """The names of the clocks beside the one that ratios are taken by, on a kind of device.

    So that a process which measures nothing itself need not touch the device for them.
    """
    if kind == "cpu":
        return ()
    return (WallClock.name, CudaGraphClock.name) if graphs else (WallClock.name,)
