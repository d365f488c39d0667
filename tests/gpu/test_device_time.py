"""The event clock says what the device took for a call, and nothing else."""

from __future__ import annotations

from statistics import median

import pytest
import torch

from normbench.clock import CudaEventClock, Task, WallClock
from normbench.device import CudaDevice, flush_bytes, make_flush
from normbench.gpu_acceptance.limits import LEAST_SPAN_S, OFF_THE_PROFILER
from normbench.records import Cache, DType, Mode
from tests.fakes import fake_task
from tests.gpu.figures import Figures
from tests.gpu.seen import Held
from tests.gpu.sizes import Sizes
from tests.gpu.sweeps import task_of

COMPARED = [
    ("copy", Mode.FORWARD),
    ("nn-layernorm", Mode.FORWARD),
    ("nn-rmsnorm", Mode.FORWARD),
    ("eager-rmsnorm", Mode.FORWARD),
    ("nn-layernorm", Mode.BACKWARD),
    ("nn-rmsnorm", Mode.BACKWARD),
]


def device_times(clock: CudaEventClock, task: Task, cache: Cache, count: int, calls: int = 1) -> list[float]:
    """Seconds of a call, so many times."""
    timed = [clock.time(task, calls=calls, cache=cache) for _ in range(count)]
    assert {one.clock for one in timed} == {"cuda-event"}, "the stream was held"
    return [one.seconds / calls for one in timed]


@pytest.mark.parametrize(("name", "mode"), COMPARED, ids=[f"{name} {mode}" for name, mode in COMPARED])
def test_device_time_is_the_profilers_span_of_the_calls_kernels(
    gpu: CudaDevice, clock: CudaEventClock, sizes: Sizes, figures: Figures, name: str, mode: Mode
) -> None:
    """Both with the cache emptied before the call and the stream held; timed before and after it is profiled."""
    rows, width = sizes.large
    task = task_of(gpu, name, rows=rows, width=width, dtype=DType.BF16, mode=mode)
    before = device_times(clock, task, Cache.COLD, sizes.repeats)
    span = median(Held(gpu=gpu, task=task, flush=make_flush(gpu)).spans(sizes.repeats))
    after = device_times(clock, task, Cache.COLD, sizes.repeats)
    figures.hold(span > LEAST_SPAN_S, f"{span:g} s are too short to be compared")
    figures.near(median(before + after), span, OFF_THE_PROFILER, f"{name} {rows}x{width} bf16 {mode}")


@pytest.mark.parametrize("caches", [4, 16], ids=["4 times the cache", "16 times the cache"])
def test_so_it_is_of_a_plain_op_on_an_input_larger_than_the_cache(
    gpu: CudaDevice, clock: CudaEventClock, sizes: Sizes, figures: Figures, caches: int
) -> None:
    """So large that what the last call left in the cache does not matter: warm, and without a flush."""
    x = torch.randn(caches * flush_bytes(gpu.info) // 8, device=gpu.torch_device)
    task = fake_task("add", lambda: torch.add(x, 0))
    seconds = median(device_times(clock, task, Cache.WARM, sizes.repeats))
    span = median(Held(gpu=gpu, task=task, flush=lambda: None).spans(sizes.repeats))
    figures.hold(span > LEAST_SPAN_S, f"{span:g} s are too short to be compared")
    figures.near(seconds, span, OFF_THE_PROFILER, f"torch.add, {caches} times the cache, warm")


def test_an_empty_pair_of_events_costs_less_than_what_is_compared(clock: CudaEventClock, figures: Figures) -> None:
    seconds = min(clock.empty_pair() for _ in range(10))
    figures.say(f"{seconds * 1e6:.2f} µs", "an empty pair of events")
    assert seconds >= 0
    figures.hold(seconds < LEAST_SPAN_S, f"an empty pair costs {seconds:g} s")


def test_device_time_has_no_launch_gaps_in_it_and_wall_time_has(
    gpu: CudaDevice, clock: CudaEventClock, sizes: Sizes, figures: Figures
) -> None:
    x = torch.randn(1024, device=gpu.torch_device)

    def many_small_kernels() -> None:
        for _ in range(100):
            x.add_(1)

    task = fake_task("small", many_small_kernels)
    wall = WallClock(flush=lambda: None, synchronize=gpu.synchronize)
    device_s = median(device_times(clock, task, Cache.WARM, sizes.repeats))
    wall_s = median(wall.time(task, calls=1, cache=Cache.WARM).seconds for _ in range(sizes.repeats))
    figures.say(f"{device_s * 1e6:.0f} µs of {wall_s * 1e6:.0f} µs wall", "100 small kernels")
    figures.hold(device_s < wall_s, f"{device_s:g} s of device time, {wall_s:g} s of wall time")


@pytest.mark.parametrize(
    "how", [pytest.param("item", marks=pytest.mark.needs_the_device("a copy that waits")), "synchronize"]
)
def test_a_call_that_waits_for_the_device_says_that_its_queue_was_not_held(gpu: CudaDevice, how: str) -> None:
    x = torch.ones(8, device=gpu.torch_device)

    def waits() -> None:
        total = x.sum()
        total.item() if how == "item" else gpu.synchronize()

    clock = CudaEventClock(gpu.cuda, flush=make_flush(gpu), attempts=3)
    timed = clock.time(fake_task("waits", waits), calls=1, cache=Cache.WARM)
    assert timed.clock == "cuda-event-unheld"


def test_the_several_calls_of_one_hold_take_as_long_as_one_call_each(
    gpu: CudaDevice, clock: CudaEventClock, sizes: Sizes, figures: Figures
) -> None:
    x = torch.randn(flush_bytes(gpu.info), device=gpu.torch_device)
    task = fake_task("add", lambda: torch.add(x, 0))
    one = median(device_times(clock, task, Cache.COLD, sizes.repeats))
    ten = median(device_times(clock, task, Cache.COLD, sizes.repeats, calls=10))
    figures.say(f"{ten / one - 1:+.2%}", "each of ten calls in a hold against one alone")
    figures.hold(abs(ten / one - 1) <= OFF_THE_PROFILER, f"{ten:g} s each, {one:g} s alone")
