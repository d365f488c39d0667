from __future__ import annotations

from collections.abc import Callable

import pytest

from normbench.clock import CudaGraphClock, NotTimed, Task
from normbench.records import Cache
from tests.fake_cuda import FakeCuda
from tests.fakes import Output, measure

KERNEL_S = 2.0**-14
LAUNCH_S = 2.0**-10


def make_task(cuda: FakeCuda, *, repeatable: bool = True, after: Callable[[], None] = lambda: None) -> Task:
    """A task of one kernel, which takes the host sixteen times as long to launch as the device to run."""

    def call() -> Output:
        cuda.launch("call", device_s=KERNEL_S, host_s=0.0 if cuda.capturing else LAUNCH_S)
        after()
        return Output([])

    return Task(name="it", prepare=lambda: call, repeatable=repeatable)


def make_clock(cuda: FakeCuda) -> CudaGraphClock:
    return CudaGraphClock(cuda, now=lambda: cuda.host_s)


def test_a_call_is_made_on_a_side_stream_then_captured_replayed_once_and_then_timed() -> None:
    cuda = FakeCuda()
    make_clock(cuda).time(make_task(cuda), calls=2, cache=Cache.WARM)
    warming = ["side waits for main", "on side", "call", "call", "call", "back", "main waits for side"]
    assert cuda.log == [
        *warming,
        "capture",
        "call",
        "captured",
        "replay",
        "synchronize",
        "replay",
        "replay",
        "synchronize",
    ]


def test_no_launch_is_in_the_time_of_a_graph() -> None:
    cuda = FakeCuda()
    timed = make_clock(cuda).time(make_task(cuda), calls=8, cache=Cache.WARM)
    assert timed.seconds == pytest.approx(8 * KERNEL_S)
    assert timed.clock == "cuda-graph"
    assert timed.spent.warming_s > 3 * LAUNCH_S


def test_a_call_that_waits_for_the_device_cannot_be_captured_and_is_not_timed() -> None:
    cuda = FakeCuda()
    with pytest.raises(NotTimed):
        make_clock(cuda).time(make_task(cuda, after=cuda.synchronize), calls=2, cache=Cache.WARM)
    assert cuda.log[-1] == "synchronize"
    assert not cuda.capturing


def test_a_backward_which_needs_a_fresh_forward_each_time_is_not_timed() -> None:
    cuda = FakeCuda()
    with pytest.raises(NotTimed):
        make_clock(cuda).time(make_task(cuda, repeatable=False), calls=2, cache=Cache.WARM)
    assert cuda.log == []


def test_what_one_clock_cannot_time_the_others_do() -> None:
    class Refusing:
        name = "cuda-graph"

        def time(self, *_arguments: object, **_named: object) -> None:
            raise NotTimed

    measured = measure(wall=Refusing(), placements=5)  # type: ignore[arg-type]
    assert measured.failures == {}
    assert {sample.clock for sample in measured.samples} == {"fake"}
