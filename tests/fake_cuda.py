"""Stand-ins for ``torch.cuda`` and ``pynvml``: what is asked of a GPU, without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any


class FakeEvent:
    """A CUDA event: its moment is when the device gets to it."""

    def __init__(self, cuda: FakeCuda) -> None:
        self._cuda = cuda
        self.moment = float("nan")

    def record(self) -> None:
        cuda = self._cuda
        cuda.log.append("record")
        cost = cuda.hiccups.pop(0) if cuda.hiccups else cuda.event_s
        cuda.device_s = max(cuda.device_s, cuda.host_s) + cost
        self.moment = cuda.device_s

    def query(self) -> bool:
        self._cuda.log.append("query")
        return self.moment <= self._cuda.host_s

    def elapsed_time(self, end: FakeEvent) -> float:
        return (end.moment - self.moment) * 1e3


class FakeStream:
    """One of two streams, which wait for each other."""

    def __init__(self, cuda: FakeCuda, name: str) -> None:
        self._cuda = cuda
        self.name = name

    def wait_stream(self, other: FakeStream) -> None:
        self._cuda.log.append(f"{self.name} waits for {other.name}")


class FakeGraph:
    """A captured graph: replaying it takes the device as long as what was captured."""

    def __init__(self, cuda: FakeCuda) -> None:
        self._cuda = cuda
        self.device_s = float("nan")

    def replay(self) -> None:
        self._cuda.launch("replay", device_s=self.device_s)


class FakeCuda:
    """``torch.cuda`` with one stream: a host that queues, a device that works in order, and a log of both.

    ``event_s`` is what recording an event costs the device; ``hiccups`` are the costs of the first ones instead.
    """

    hz = 2.0**30

    def __init__(self, *, count: int = 1, event_s: float = 0.0, hiccups: tuple[float, ...] = ()) -> None:
        self.log: list[str] = []
        self.host_s = 0.0
        self.device_s = 0.0
        self.event_s = event_s
        self.hiccups = list(hiccups)
        self.count = count
        self.capturing = self.broken = False
        self.native_bf16 = True
        self.memory = SimpleNamespace(free=0, total=0, reserved=0, allocated=0)
        self.properties = SimpleNamespace(
            name="NVIDIA Fake 9000", total_memory=2**34, L2_cache_size=50 * 2**20, major=9, minor=0, uuid="0-1-2"
        )

    @property
    def sleeps(self) -> list[int]:
        """The cycles of each spin so far."""
        return [int(entry.split()[1]) for entry in self.log if entry.startswith("sleep")]

    def launch(self, name: str, *, device_s: float = 0.0, host_s: float = 0.0) -> None:
        """Queue a kernel: the host takes ``host_s`` to do it, the device ``device_s`` to run it."""
        self.log.append(name)
        self.host_s += host_s
        self.device_s = max(self.device_s, self.host_s) + device_s

    def _sleep(self, cycles: int) -> None:
        self.launch(f"sleep {cycles}", device_s=cycles / self.hz)

    def synchronize(self) -> None:
        if self.capturing:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        if self.broken:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        self.log.append("synchronize")
        self.host_s = max(self.host_s, self.device_s)

    def Stream(self) -> FakeStream:  # noqa: N802 - torch's name
        return FakeStream(self, "side")

    def current_stream(self) -> FakeStream:
        return FakeStream(self, "main")

    @contextmanager
    def stream(self, stream: FakeStream) -> Iterator[None]:
        self.log.append(f"on {stream.name}")
        yield
        self.log.append("back")

    def CUDAGraph(self) -> FakeGraph:  # noqa: N802 - torch's name
        return FakeGraph(self)

    @contextmanager
    def graph(self, graph: FakeGraph) -> Iterator[None]:
        """What is queued in the context is not run but kept; a synchronisation in it is an error, as on a GPU."""
        self.log.append("capture")
        before, self.capturing = self.device_s, True
        try:
            yield
        finally:
            self.capturing = False
        graph.device_s, self.device_s = self.device_s - before, before
        self.log.append("captured")

    def Event(self, *, enable_timing: bool = False) -> FakeEvent:  # noqa: N802 - torch's name
        assert enable_timing, "an event without timing has no time"
        return FakeEvent(self)

    def is_available(self) -> bool:
        return self.count > 0

    def device_count(self) -> int:
        return self.count

    def set_device(self, index: int) -> None:
        self.log.append(f"set_device {index}")

    def get_device_properties(self, _index: int) -> SimpleNamespace:
        return self.properties

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        return including_emulation or self.native_bf16

    def mem_get_info(self) -> tuple[int, int]:
        return self.memory.free, self.memory.total

    def memory_reserved(self) -> int:
        return int(self.memory.reserved)

    def memory_allocated(self) -> int:
        return int(self.memory.allocated)

    def empty_cache(self) -> None:
        self.log.append("empty_cache")


class FakeNvml:
    """``pynvml`` with one GPU. A value that is an exception is raised instead of told."""

    NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 0, 1, 2, 0
    nvmlClocksEventReasonGpuIdle = 0x1  # noqa: N815 - NVML's names
    nvmlClocksEventReasonApplicationsClocksSetting = 0x2  # noqa: N815
    nvmlClocksEventReasonSwPowerCap = 0x4  # noqa: N815
    nvmlClocksThrottleReasonHwSlowdown = 0x8  # noqa: N815
    nvmlClocksEventReasonSwThermalSlowdown = 0x20  # noqa: N815
    nvmlClocksThrottleReasonHwThermalSlowdown = 0x40  # noqa: N815
    nvmlClocksThrottleReasonHwPowerBrakeSlowdown = 0x80  # noqa: N815

    class NVMLError(Exception):
        """What every refusal raises."""

    def __init__(
        self,
        *,
        uuid: str = "GPU-1",
        clock: Any = 1980,
        temperature: Any = 41,
        bits: Any = 0,
        power: Any = 120_000,
        mig: Any = (0, 0),
        pids: Any = (),
        mps_pids: Any = (),
    ) -> None:
        self._uuid = uuid
        self._answers = {
            "clock": clock,
            "temperature": temperature,
            "bits": bits,
            "power": power,
            "mig": mig,
            "pids": pids,
            "mps_pids": mps_pids,
        }

    def _tell(self, what: str) -> Any:
        answer = self._answers[what]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def nvmlInit(self) -> None:  # noqa: N802
        if self._uuid == "":
            raise self.NVMLError("Driver Not Loaded")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        if uuid != self._uuid:
            raise self.NVMLError("Not Found")
        return f"handle of {uuid}"

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:  # noqa: N802
        assert handle == f"handle of {self._uuid}"
        return int(self._tell("clock")) if kind == self.NVML_CLOCK_SM else 3201

    def nvmlDeviceGetMaxClockInfo(self, _handle: str, kind: int) -> int:  # noqa: N802
        return 1980 if kind == self.NVML_CLOCK_SM else -1

    def nvmlDeviceGetEccMode(self, _handle: str) -> tuple[int, int]:  # noqa: N802
        return (1, 0)

    def nvmlDeviceGetMigMode(self, _handle: str) -> tuple[int, int]:  # noqa: N802
        found: tuple[int, int] = self._tell("mig")
        return found

    def nvmlDeviceGetPersistenceMode(self, _handle: str) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetComputeRunningProcesses(self, _handle: str) -> list[SimpleNamespace]:  # noqa: N802
        return [SimpleNamespace(pid=pid) for pid in self._tell("pids")]

    def nvmlDeviceGetMPSComputeRunningProcesses(self, _handle: str) -> list[SimpleNamespace]:  # noqa: N802
        return [SimpleNamespace(pid=pid) for pid in self._tell("mps_pids")]

    def nvmlDeviceGetPowerUsage(self, _handle: str) -> int:  # noqa: N802
        return int(self._tell("power"))

    def nvmlDeviceGetPowerManagementLimit(self, _handle: str) -> int:  # noqa: N802
        return 500_000

    def nvmlDeviceGetPowerManagementDefaultLimit(self, _handle: str) -> int:  # noqa: N802
        return 700_000

    def nvmlDeviceGetTemperature(self, _handle: str, _sensor: int) -> int:  # noqa: N802
        return int(self._tell("temperature"))

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _handle: str) -> int:  # noqa: N802
        return int(self._tell("bits"))

    def nvmlSystemGetDriverVersion(self) -> bytes:  # noqa: N802
        return b"575.57.08"
