from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from normbench import device, nvml
from normbench.errors import UsageError
from normbench.records import DType
from tests.fake_cuda import FakeCuda, FakeNvml
from tests.fakes import FakeDevice
from tests.helpers import aten_calls

MakeGpu = Callable[..., device.CudaDevice]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> MakeGpu:
    """Makes a GPU out of a stand-in, which can't hold the tensors that the probe of ``F.rms_norm`` takes."""
    monkeypatch.setattr(device, "runs_fused_rmsnorm", lambda where, *_: where.type == "cuda")
    return lambda cuda, index=0, monitor=None: device.CudaDevice(index, cuda, monitor)


def test_a_gpu_is_described_by_its_own_properties(gpu: MakeGpu) -> None:
    info = gpu(FakeCuda()).info
    assert (info.kind, info.name, info.slug) == ("cuda", "NVIDIA Fake 9000", "nvidia-fake-9000")
    assert (info.memory_bytes, info.cache_bytes, info.capability) == (2**34, 50 * 2**20, (9, 0))
    assert info.fused_rmsnorm is True
    assert info.threads is None


def test_a_gpus_cache_that_it_does_not_tell_is_absent_not_zero(gpu: MakeGpu) -> None:
    cuda = FakeCuda()
    cuda.properties.L2_cache_size = 0
    assert gpu(cuda).info.cache_bytes is None
    del cuda.properties.L2_cache_size
    assert gpu(cuda).info.cache_bytes is None


def test_a_gpu_of_capability_7_5_does_not_have_bf16_although_torch_emulates_it(gpu: MakeGpu) -> None:
    cuda = FakeCuda()
    cuda.native_bf16 = False
    cuda.properties.major, cuda.properties.minor = 7, 5
    info = gpu(cuda).info
    assert info.capability == (7, 5)
    assert info.native_bf16 is False


def test_peak_bandwidth_is_two_times_memory_clock_times_bus_width() -> None:
    h200 = SimpleNamespace(memory_clock_rate=3_201_000, memory_bus_width=6144)
    assert device.peak_bandwidth(h200) == 2 * 3201000e3 * 6144 / 8 == 4.916736e12


@pytest.mark.parametrize("told", [{}, {"memory_clock_rate": 1}, {"memory_clock_rate": 0, "memory_bus_width": 1}])
def test_peak_bandwidth_is_absent_where_the_device_does_not_tell_both_factors(told: dict[str, int]) -> None:
    assert device.peak_bandwidth(SimpleNamespace(**told)) is None


def test_what_a_gpus_allocator_holds_unused_counts_as_free(gpu: MakeGpu) -> None:
    cuda = FakeCuda()
    cuda.memory = SimpleNamespace(free=1000, total=9000, reserved=700, allocated=300)
    assert gpu(cuda).free_bytes() == 1000 + 700 - 300


def test_a_gpu_is_released_synchronized_and_selected_through_its_module(gpu: MakeGpu) -> None:
    cuda = FakeCuda(count=2)
    there = gpu(cuda, 1)
    there.synchronize()
    there.release()
    assert cuda.log == ["set_device 1", "synchronize", "empty_cache"]
    assert there.torch_device == torch.device("cuda", 1)


def test_a_gpus_readings_and_driver_come_from_its_monitor_and_are_absent_without_one(gpu: MakeGpu) -> None:
    watched = gpu(FakeCuda(), monitor=nvml.Monitor(FakeNvml(temperature=55, bits=0x4), "GPU-1"))
    reading = watched.reading()
    assert reading is not None
    assert (reading.temperature_c, reading.throttle_reasons) == (55, ("sw_power_cap",))
    assert device.environment(watched).driver == "575.57.08"
    blind = gpu(FakeCuda())
    assert (blind.reading(), device.environment(blind).driver) == (None, None)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("wanted", [None, "cuda", "cuda:0"])
def test_the_first_gpu_is_taken_where_there_is_one(monkeypatch: pytest.MonkeyPatch, wanted: str | None) -> None:
    opened: list[str] = []
    monkeypatch.setattr(nvml, "open_monitor", opened.append)
    assert device.detect(wanted, FakeCuda(count=2)).torch_device == torch.device("cuda", 0)
    assert opened == ["GPU-0-1-2"]


def test_the_cpu_is_taken_without_a_gpu_and_where_it_is_asked_for() -> None:
    assert isinstance(device.detect(None, FakeCuda(count=0)), device.CpuDevice)
    assert isinstance(device.detect("cpu", FakeCuda(count=1)), device.CpuDevice)


def test_asking_for_a_gpu_that_is_not_there_names_what_is() -> None:
    with pytest.raises(UsageError, match="--device cuda:7") as raised:
        device.detect("cuda:7", FakeCuda(count=2))
    assert raised.value.hint == "available: cpu, cuda:0, cuda:1"
    assert raised.value.exit_code == 2
    with pytest.raises(UsageError) as raised:
        device.detect("cuda", FakeCuda(count=0))
    assert raised.value.hint == "available: cpu"


def test_the_cpu_says_its_threads_and_that_it_has_no_fused_rmsnorm() -> None:
    there: device.Device = device.CpuDevice()
    assert there.info.threads == torch.get_num_threads()
    assert f"{torch.get_num_threads()} thread" in there.info.name
    assert there.info.fused_rmsnorm is False
    assert 0 < there.free_bytes() < there.info.memory_bytes
    assert there.reading() is None


@pytest.mark.parametrize("dtype", DType)
@pytest.mark.parametrize("parameter_dtype", [DType.FP32, DType.BF16])
def test_rmsnorm_is_never_one_kernel_on_the_processor(dtype: DType, parameter_dtype: DType) -> None:
    assert device.runs_fused_rmsnorm(torch.device("cpu"), dtype, parameter_dtype) is False


def test_a_want_of_memory_is_told_from_other_errors() -> None:
    with pytest.raises(RuntimeError) as real:
        torch.empty(2**50, dtype=torch.uint8)
    assert type(real.value) is RuntimeError, "on a CPU torch raises no class of its own"
    assert device.is_out_of_memory(real.value)
    assert device.is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory."))
    assert device.is_out_of_memory(MemoryError())
    assert not device.is_out_of_memory(RuntimeError("mixed dtype (CPU)"))
    assert not device.is_out_of_memory(ValueError("can't allocate memory"))


def test_an_error_that_wraps_a_want_of_memory_is_one_too() -> None:
    wrapped = RuntimeError("backend raised")
    wrapped.__cause__ = torch.OutOfMemoryError("CUDA out of memory.")
    inner = RuntimeError("backend raised")
    inner.inner_exception = torch.OutOfMemoryError("CUDA out of memory.")  # type: ignore[attr-defined]

    assert device.is_out_of_memory(wrapped)
    assert device.is_out_of_memory(inner)


def test_an_environment_names_no_host_no_user_and_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def uname() -> SimpleNamespace:
        return SimpleNamespace(system="Linux", node="secret-host", release="6", version="1", machine="x86_64")

    monkeypatch.setattr(platform, "uname", uname)
    for name in ("HOME", "USER", "LOGNAME", "HOSTNAME"):
        monkeypatch.setenv(name, f"/home/secret-{name}")
    found = device.environment(FakeDevice())
    assert found.platform == "Linux x86_64"
    assert "secret" not in repr(found)
    assert str(Path(torch.__file__).parent) not in repr(found)
    assert found.torch == torch.__version__
    assert "numpy" in dict(found.packages)


def test_a_flush_writes_a_buffer_and_ends_in_a_read_of_it() -> None:
    there = FakeDevice()
    there.info = replace(there.info, cache_bytes=1024)
    flush = device.make_flush(there)
    assert aten_calls(flush) == ["empty", "zero_", "max"]
    assert aten_calls(flush) == ["zero_", "max"], "the buffer is allocated once"


def test_the_flushed_buffer_has_twice_the_caches_size(monkeypatch: pytest.MonkeyPatch) -> None:
    there = FakeDevice()
    there.info = replace(there.info, cache_bytes=1024)
    made: list[torch.Tensor] = []
    empty = torch.empty

    def spy(*args: Any, **options: Any) -> torch.Tensor:
        made.append(empty(*args, **options))
        return made[-1]

    monkeypatch.setattr(torch, "empty", spy)
    device.make_flush(there)()
    assert [buffer.nbytes for buffer in made] == [2 * 1024]


def test_a_flush_of_an_unknown_cache_writes_128_mib() -> None:
    assert device.flush_bytes(FakeDevice().info) == 128 * 2**20


def test_a_device_is_found_by_its_number_and_known_by_its_uuid() -> None:
    cuda = FakeCuda(count=2)
    assert device.find("cuda:1", cuda) == device.Found(name="cuda:1", identity="0-1-2")
    assert device.find(None, cuda).name == "cuda:0"
    assert device.find("cpu", cuda) == device.Found(name="cpu", identity="cpu")
    assert device.find(None, FakeCuda(count=0)).name == "cpu"
    del cuda.properties.uuid
    assert device.find("cuda:1", cuda).identity == "cuda:1", "the best that is left"


def test_finding_a_gpu_makes_no_context_on_it() -> None:
    """Who waits for another run must not be a program on the GPU meanwhile."""
    cuda = FakeCuda()
    device.find("cuda", cuda)
    assert cuda.log == []


def test_other_programs_on_a_gpu_are_what_its_monitor_says_and_on_a_cpu_nobody_counts_them(gpu: MakeGpu) -> None:
    monitor = nvml.Monitor(FakeNvml(pids=(1, 2, 3)), "GPU-1", own=lambda: (2,))
    assert gpu(FakeCuda(), monitor=monitor).other_programs() == 2
    assert gpu(FakeCuda()).other_programs() is None
    assert device.CpuDevice().other_programs() is None


def test_a_gpu_that_can_be_waited_for_works_and_after_an_error_that_stays_it_does_not(
    gpu: MakeGpu,
) -> None:
    cuda = FakeCuda()
    there = gpu(cuda)
    assert there.works()
    cuda.broken = True
    assert not there.works()
