"""What the stand-in for ``torch.cuda`` assumes holds on the device: tests by it say something about a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import torch

from normbench.clock import CudaEventClock, Task
from normbench.device import CudaDevice, make_flush
from normbench.records import Cache
from tests.assumptions import SPIN, Recording, asked_in_a_hold, eviction, passing, resolution, spin
from tests.fake_cuda import FakeCuda
from tests.gpu.figures import Figures
from tests.gpu.seen import ran

ROW = 1024
"""Floats of a row that one block sums up."""


def test_the_device_runs_a_cold_hold_in_the_order_in_which_it_was_queued(gpu: CudaDevice) -> None:
    """Spin, then for each call its preparation, the flush, the call."""
    x, flush = torch.randn(ROW, ROW, device=gpu.torch_device), make_flush(gpu)
    flush()

    def prepare() -> Callable[[], object]:
        x.sin()
        return x.cos

    def names(work: Callable[[], object]) -> list[str]:
        return [kernel.name for kernel in ran(gpu, work)]

    clock = CudaEventClock(gpu.cuda, flush=flush)
    task = Task(name="it", prepare=prepare, repeatable=False)
    clock.time(task, calls=2, cache=Cache.COLD)
    assert names(x.sin) != names(x.cos), "who can be told apart"
    expected = [*names(lambda: gpu.cuda._sleep(SPIN)), *(names(x.sin) + names(flush) + names(x.cos)) * 2]
    found = names(lambda: clock.time(task, calls=2, cache=Cache.COLD))
    assert found[-len(expected) :] == expected, "the last hold, since one that was too short is tried again"


def test_torch_is_asked_for_the_same_in_the_same_order_as_the_stand_in(gpu: CudaDevice) -> None:
    x, recording, stand_in = torch.zeros(8, device=gpu.torch_device), Recording(gpu.cuda), FakeCuda()

    def launch(name: str) -> None:
        recording.log.append(name)
        x.add_(1)

    assert asked_in_a_hold(recording, launch) == asked_in_a_hold(stand_in, stand_in.launch)


def test_an_event_behind_a_spin_passes_when_the_spin_is_over_and_not_before(gpu: CudaDevice) -> None:
    assert passing(gpu.cuda).problem is None


def test_times_between_events_are_as_fine_as_assumed_and_add_up(gpu: CudaDevice, figures: Figures) -> None:
    found = resolution(gpu.cuda)
    step = "none" if found.step_s is None else f"{found.step_s * 1e9:.0f} ns"
    figures.say(f"{step} between times, {found.missing_s * 1e9:.0f} ns missing of the sum", "events")
    assert found.problem is None, found


def test_a_spin_is_as_long_as_assumed(gpu: CudaDevice, figures: Figures) -> None:
    x = torch.zeros(8, device=gpu.torch_device)
    found = spin(gpu.cuda, lambda: x.add_(1))
    figures.say(f"{found.once_s * 1e3:.3f} ms, twice as many {found.twice_s * 1e3:.3f} ms", f"{SPIN:,} cycles")
    assert found.problem is None, found


def test_a_flush_empties_the_cache_and_a_larger_one_empties_no_more_of_it(gpu: CudaDevice, figures: Figures) -> None:
    """Seen by reading a quarter of what the cache holds."""
    size = gpu.info.cache_bytes
    assert size is not None
    x = torch.zeros(size // 4 // 4 // ROW, ROW, device=gpu.torch_device)
    larger = SimpleNamespace(info=replace(gpu.info, cache_bytes=2 * size), torch_device=gpu.torch_device)
    found = eviction(gpu.cuda, read=lambda: x.sum(1), flush=make_flush(gpu), twice=make_flush(larger))
    times = ", ".join(f"{seconds * 1e6:.2f} µs" for seconds in (found.warm_s, found.flushed_s, found.twice_s))
    figures.say(f"{times}: warm, flushed, flushed twice as much", f"reading {x.numel() * 4 / 2**20:.1f} MiB")
    figures.hold(found.problem is None, f"{found.problem}: {times}")
