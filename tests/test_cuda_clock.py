from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from normbench.clock import CudaEventClock, Task
from normbench.records import Cache
from tests.fake_cuda import FakeCuda
from tests.fakes import Output

SPIN = 2**20
SPIN_S = SPIN / FakeCuda.hz
KERNEL_S = 2.0**-14
EVENT_S = 2.0**-18


def make_clock(cuda: FakeCuda, *, spin_cycles: int = SPIN, attempts: int = 8) -> CudaEventClock:
    """An event clock whose calibration is no longer in the log."""
    flush = lambda: cuda.launch("flush", device_s=8 * KERNEL_S)  # noqa: E731
    clock = CudaEventClock(cuda, flush=flush, spin_cycles=spin_cycles, attempts=attempts)
    cuda.synchronize()
    cuda.log.clear()
    return clock


def make_task(
    cuda: FakeCuda,
    *,
    host_s: float = 0.0,
    kernel_s: float = KERNEL_S,
    after: Callable[[], None] = lambda: None,
) -> Task:
    """A task that prepares with one kernel and calls another, which the host takes ``host_s`` to queue."""

    def call() -> Output:
        cuda.launch("call", device_s=kernel_s, host_s=host_s)
        after()
        return Output(cuda.log)

    def prepare() -> Callable[[], Output]:
        cuda.launch("prepare", device_s=2 * KERNEL_S)
        return call

    @contextmanager
    def context() -> Iterator[None]:
        cuda.log.append("enter")
        yield
        cuda.log.append("exit")

    return Task(name="it", prepare=prepare, repeatable=True, context=context)


def test_a_cold_hold_queues_spin_then_for_each_call_preparation_flush_event_call_event() -> None:
    cuda = FakeCuda()
    timed = make_clock(cuda).time(make_task(cuda), calls=2, cache=Cache.COLD)
    call = ["prepare", "flush", "record", "call", "record", "drop"]
    assert cuda.log == ["enter", "synchronize", f"sleep {SPIN}", *call, *call, "query", "synchronize", "exit"]
    assert timed.seconds == pytest.approx(2 * KERNEL_S, rel=1e-12)
    assert timed.clock == "cuda-event"


def test_a_warm_hold_follows_one_untimed_call_and_flushes_nothing() -> None:
    cuda = FakeCuda()
    timed = make_clock(cuda).time(make_task(cuda), calls=2, cache=Cache.WARM)
    call = ["prepare", "record", "call", "record", "drop"]
    untimed = ["prepare", "call", "drop"]
    assert cuda.log == [
        "enter",
        *untimed,
        "synchronize",
        f"sleep {SPIN}",
        *call,
        *call,
        "query",
        "synchronize",
        "exit",
    ]
    assert timed.seconds == pytest.approx(2 * KERNEL_S, rel=1e-12)


def test_neither_launch_gaps_nor_preparation_nor_flush_are_in_a_held_time() -> None:
    cuda = FakeCuda()
    task = make_task(cuda, host_s=SPIN_S / 16)
    assert SPIN_S / 16 >= KERNEL_S, "the host is no faster than the kernel: unheld, the device would wait"
    timed = make_clock(cuda).time(task, calls=8, cache=Cache.COLD)
    assert timed.seconds == pytest.approx(8 * KERNEL_S, rel=1e-12)


def test_a_spin_that_ended_before_everything_was_queued_is_doubled_until_it_does_not() -> None:
    cuda = FakeCuda()
    task = make_task(cuda, host_s=1.5 * SPIN_S)  # two calls are queued in three spins' time
    timed = make_clock(cuda).time(task, calls=2, cache=Cache.COLD)
    assert cuda.sleeps == [SPIN, 2 * SPIN, 4 * SPIN]
    assert timed.clock == "cuda-event"
    assert timed.seconds == pytest.approx(2 * KERNEL_S, rel=1e-12)


def test_a_spin_that_was_long_enough_is_where_the_next_sample_begins() -> None:
    cuda = FakeCuda()
    clock = make_clock(cuda)
    slow_to_queue = make_task(cuda, host_s=1.5 * SPIN_S)
    clock.time(slow_to_queue, calls=2, cache=Cache.COLD)
    cuda.log.clear()
    clock.time(slow_to_queue, calls=2, cache=Cache.COLD)
    assert cuda.sleeps == [4 * SPIN]


def test_a_queue_that_no_spin_can_hold_gives_a_time_that_says_so() -> None:
    cuda = FakeCuda()
    waits = make_task(cuda, after=cuda.synchronize)  # as ``.item()`` in a forward does
    timed = make_clock(cuda, attempts=3).time(waits, calls=1, cache=Cache.COLD)
    assert cuda.sleeps == [SPIN, 2 * SPIN, 4 * SPIN]
    assert timed.clock == "cuda-event-unheld"
    assert timed.seconds == pytest.approx(KERNEL_S, rel=1e-12)


def test_a_task_that_no_spin_can_hold_does_not_lengthen_anybodys_next_spin() -> None:
    cuda = FakeCuda()
    clock = make_clock(cuda, attempts=3)
    for _ in range(2):
        clock.time(make_task(cuda, after=cuda.synchronize), calls=1, cache=Cache.COLD)
    clock.time(make_task(cuda), calls=1, cache=Cache.COLD)
    assert cuda.sleeps == [SPIN, 2 * SPIN, 4 * SPIN] * 2 + [SPIN]


@pytest.mark.parametrize("calls", [1, 5])
def test_the_cost_of_an_empty_pair_of_events_is_subtracted_for_each_call(calls: int) -> None:
    cuda = FakeCuda(event_s=EVENT_S)
    timed = make_clock(cuda).time(make_task(cuda), calls=calls, cache=Cache.COLD)
    assert timed.seconds == pytest.approx(calls * KERNEL_S, rel=1e-12)


def test_the_least_of_several_empty_pairs_is_what_is_subtracted() -> None:
    cuda = FakeCuda(event_s=EVENT_S, hiccups=(KERNEL_S,) * 18)  # all pairs but the last one of ten
    timed = make_clock(cuda).time(make_task(cuda), calls=1, cache=Cache.COLD)
    assert timed.seconds == pytest.approx(KERNEL_S, rel=1e-12)


def test_each_empty_pair_is_held_by_a_spin_as_the_calls_are() -> None:
    cuda = FakeCuda()
    CudaEventClock(cuda, flush=lambda: None, spin_cycles=SPIN)
    assert cuda.log == [f"sleep {SPIN}", "record", "record", "synchronize"] * 10


def test_a_call_that_queues_nothing_takes_a_nanosecond_and_not_zero_or_less() -> None:
    cuda = FakeCuda(event_s=EVENT_S, hiccups=(EVENT_S,) * 20 + (EVENT_S, EVENT_S / 2))
    timed = make_clock(cuda).time(make_task(cuda, kernel_s=0.0), calls=1, cache=Cache.COLD)
    assert timed.seconds == 1e-9
