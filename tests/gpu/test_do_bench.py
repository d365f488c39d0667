"""An interleaved time is what triton.testing.do_bench says of the same call, where both empty the cache alike."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from types import ModuleType
from typing import Any

import pytest

from normbench.clock import CudaEventClock
from normbench.device import CudaDevice, make_flush
from normbench.gpu_acceptance.limits import OFF_DO_BENCH
from normbench.implementations import by_name
from normbench.records import Cache, DType, Mode
from tests.fakes import quickly, row
from tests.gpu.figures import Figures
from tests.gpu.sizes import Sizes
from tests.gpu.sweeps import swept, task_of

NAME = "nn-layernorm"


class Flushing:
    """What do_bench asks of Triton's driver, with normbench's flush for Triton's."""

    def __init__(self, gpu: CudaDevice) -> None:
        self._cuda = gpu.cuda
        self._flush = make_flush(gpu)

    def get_device_interface(self) -> Any:
        return self._cuda

    def get_empty_cache_for_benchmark(self) -> None:
        """The flush has a buffer of its own."""

    def clear_cache(self, _cache: None) -> None:
        self._flush()


@pytest.fixture
def testing(gpu: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """``triton.testing``, which empties the cache as normbench does."""
    found = pytest.importorskip("triton.testing", reason="Triton is not installed")
    driver = pytest.importorskip("triton.runtime").driver
    monkeypatch.setattr(driver, "_active", Flushing(gpu))
    assert isinstance(driver.active, Flushing)
    return found


@pytest.mark.parametrize("dtype", [DType.BF16, DType.FP32])
def test_an_interleaved_time_is_that_of_do_bench_with_the_same_flush(
    gpu: CudaDevice, clock: CudaEventClock, sizes: Sizes, figures: Figures, testing: ModuleType, dtype: DType
) -> None:
    """Both are medians of pairs of events around one cold call whose x requires grad.

    Of each of its times normbench takes off what an empty pair of events costs, do_bench does not: so the same is
    taken off do_bench's median here. The sweep lies between two runs of do_bench, whose mean it is held to: a clock
    that changes slowly changes both. do_bench holds no stream, but its flush takes longer than the host's queueing.
    """
    rows, width = sizes.larger
    bench = bench_of(testing, task_of(gpu, NAME, rows=rows, width=width, dtype=dtype, mode=Mode.FORWARD).prepare())
    before = bench()
    records = swept(
        gpu,
        tuple(map(by_name, ("copy", NAME))),
        caches=(Cache.COLD,),
        dtypes=(dtype,),
        rows=(rows,),
        widths=(width,),
        precision=quickly(max_seconds=sizes.max_seconds),
    )
    after = bench()
    timing = row(records, NAME).timing
    assert timing is not None
    empty_s = min(clock.empty_pair() for _ in range(10))
    truth = mean((before, after)) - empty_s
    figures.near(timing.time_s.value, truth, OFF_DO_BENCH, f"{NAME} {rows}x{width} {dtype} forward")


def bench_of(testing: ModuleType, call: Callable[[], object]) -> Callable[[], float]:
    """Seconds of a call by do_bench: the median of as many as fit into 100 ms."""
    return lambda: float(testing.do_bench(call, return_mode="median")) * 1e-3
