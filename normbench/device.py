"""The only module that asks what device there is, and the one seam through which CUDA is reached."""

from __future__ import annotations

import platform
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import psutil
import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from normbench import __version__, native, nvml, optional, units
from normbench.errors import UsageError
from normbench.legible import said
from normbench.records import Conditions, DeviceInfo, DType, Environment, Reading

_COMPOSITE_NODES = ("MulBackward0", "ToCopyBackward0")
_FALLBACK_CACHE_BYTES = 64 * 2**20
_HOLD_CYCLES = 10_000_000


class Device(Protocol):
    """A device that cases run on."""

    info: DeviceInfo
    torch_device: torch.device

    def synchronize(self) -> None:
        """Wait until everything that was queued is done."""

    def free_bytes(self) -> int:
        """Memory that can be allocated now."""

    def release(self) -> None:
        """Give cached but unused memory back."""

    def works(self) -> bool:
        """Whether it still computes in this process; after some errors of CUDA nothing does."""

    def reading(self) -> Reading | None:
        """What the device says of its clock and temperature; None where it says nothing."""

    def conditions(self) -> Conditions:
        """What the device is set to and what else happens on it now."""

    def other_programs(self) -> int | None:
        """How many other programs compute on it now; None where that can't be told."""


class CpuDevice:
    """The processor torch runs on, with the threads torch uses."""

    def __init__(self) -> None:
        self.torch_device = torch.device("cpu")
        threads = torch.get_num_threads()
        name = _cpu_name()
        self.info = DeviceInfo(
            kind="cpu",
            name=f"{name} (CPU, {units.count(threads, 'thread')})",
            slug=_slug(f"{name} cpu"),
            memory_bytes=int(psutil.virtual_memory().total),
            threads=threads,
            cache_bytes=_last_level_cache_bytes(),
            fused_rmsnorm=runs_fused_rmsnorm(self.torch_device, DType.FP32, DType.FP32),
        )

    def synchronize(self) -> None:
        """Nothing to wait for: a CPU op is done when it returns."""

    def free_bytes(self) -> int:
        """Memory the operating system says is available."""
        return int(psutil.virtual_memory().available)

    def release(self) -> None:
        """Nothing is cached."""

    def works(self) -> bool:
        """Always: what breaks a CPU ends the process."""
        return True

    def reading(self) -> None:
        """A CPU's clock is not read."""
        return

    def conditions(self) -> Conditions:
        """The governor, and whether this is a virtual machine."""
        return Conditions(
            cores=psutil.cpu_count(),
            governor=_text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
            virtual=_is_virtual(),
        )

    def other_programs(self) -> None:
        """Every program computes on a CPU: how much they do is what matters there (``load``)."""
        return


class CudaDevice:
    """An NVIDIA GPU (or an AMD one under ROCm's torch).

    Args:
        index: The device's number.
        cuda: The ``torch.cuda`` module, or a stand-in that tests bring.
        monitor: Reads clocks and throttle reasons; None where NVML is missing.
    """

    def __init__(self, index: int, cuda: ModuleType | Any = torch.cuda, monitor: nvml.Monitor | None = None) -> None:
        self.cuda = cuda
        self.torch_device = torch.device("cuda", index)
        cuda.set_device(index)
        properties = cuda.get_device_properties(index)
        self._monitor = monitor
        self.info = DeviceInfo(
            kind="cuda",
            name=properties.name,
            slug=_slug(properties.name),
            memory_bytes=int(properties.total_memory),
            cache_bytes=int(getattr(properties, "L2_cache_size", 0)) or None,
            capability=(properties.major, properties.minor),
            peak_bytes_per_s=peak_bandwidth(properties),
            fused_rmsnorm=runs_fused_rmsnorm(self.torch_device, DType.FP32, DType.FP32),
            native_bf16=bool(cuda.is_bf16_supported(including_emulation=False)),
        )

    def synchronize(self) -> None:
        """Wait for every stream of the device."""
        self.cuda.synchronize()

    def free_bytes(self) -> int:
        """Free memory, what torch's allocator holds unused included."""
        free, _total = self.cuda.mem_get_info()
        unused = self.cuda.memory_reserved() - self.cuda.memory_allocated()
        return int(free + unused)

    def release(self) -> None:
        """Empty torch's allocator cache."""
        self.cuda.empty_cache()

    def works(self) -> bool:
        """Whether it can still be waited for: an illegal access makes that, and all else, an error for good."""
        try:
            self.cuda.synchronize()
        except RuntimeError:
            return False
        return True

    def reading(self) -> Reading | None:
        """Clock, temperature and throttle reasons."""
        return None if self._monitor is None else self._monitor.read()

    def conditions(self) -> Conditions:
        """Clocks, power, settings and other programs, where NVML tells them."""
        return Conditions(cores=psutil.cpu_count()) if self._monitor is None else self._monitor.conditions()

    def other_programs(self) -> int | None:
        """How many other programs compute on it now, where NVML tells and one's own are among those it lists."""
        return None if self._monitor is None else self._monitor.other_programs()

    def driver(self) -> str | None:
        """The driver's version, where NVML tells it."""
        return None if self._monitor is None else self._monitor.driver()


@dataclass(frozen=True, kw_only=True)
class Found:
    """A device that is there, on which nothing has been done yet.

    Args:
        name: As ``--device`` takes it: ``cpu``, ``cuda:1``.
        identity: What tells it from every other device of the machine, whichever process asks: a GPU's number is
            changed by CUDA_VISIBLE_DEVICES, its UUID is not, and an instance of a GPU (MIG) has one of its own.
    """

    name: str
    identity: str


def find(name: str | None = None, cuda: ModuleType | Any = torch.cuda) -> Found:
    """The device called ``name``; the GPU if there is one, without a name. No CUDA context is made on it.

    Raises:
        UsageError: There is no such device here.
    """
    count = cuda.device_count() if cuda.is_available() else 0
    there = ["cpu", *(f"cuda:{index}" for index in range(count))]
    wanted = ("cuda:0" if count else "cpu") if name is None else name
    wanted = "cuda:0" if wanted == "cuda" else wanted
    if wanted not in there:
        raise UsageError(
            f"--device {name or repr(name)}: there is no such device here", hint=f"available: {', '.join(there)}"
        )
    if wanted == "cpu":
        return Found(name=wanted, identity=wanted)
    uuid = str(getattr(cuda.get_device_properties(_index(wanted)), "uuid", ""))
    return Found(name=wanted, identity=uuid or wanted)


def detect(name: str | None = None, cuda: ModuleType | Any = torch.cuda) -> Device:
    """The device called ``name`` (``cpu``, ``cuda``, ``cuda:1``); the GPU if there is one, without a name.

    Raises:
        UsageError: There is no such device here.
    """
    found = find(name, cuda)
    if found.name == "cpu":
        return CpuDevice()
    index = _index(found.name)
    return CudaDevice(index, cuda, nvml.open_monitor(_uuid(cuda.get_device_properties(index))))


def _index(name: str) -> int:
    return int(name.removeprefix("cuda:"))


def fix_threads(threads: int | None) -> None:
    """Let torch use so many threads from now on, whatever else would change with the load; None changes nothing."""
    if threads is not None:
        torch.set_num_threads(threads)


def environment(device: Device) -> Environment:
    """The software in use; versions that decide which kernel runs are among the packages."""
    return Environment(
        normbench=__version__,
        python=platform.python_version(),
        torch=torch.__version__,
        platform=f"{platform.system()} {platform.machine()}",
        cuda=torch.version.cuda,
        driver=device.driver() if isinstance(device, CudaDevice) else None,
        triton=optional.distribution_version("triton"),
        packages=optional.versions(),
        native_dsls=native.languages(),
    )


def runs_fused_rmsnorm(device: torch.device, dtype: DType, parameter_dtype: DType) -> bool:
    """Whether ``F.rms_norm`` runs one kernel for these dtypes rather than a chain of ops.

    Seen in the graph node that it leaves, since the warning torch gives for it comes once a process only.
    """
    x = torch.ones(1, 64, device=device, dtype=torch_dtype(dtype), requires_grad=True)
    weight = torch.ones(64, device=device, dtype=torch_dtype(parameter_dtype))
    with warnings.catch_warnings(), torch.enable_grad():
        warnings.simplefilter("ignore")
        node = F.rms_norm(x, (64,), weight, 1e-6).grad_fn
    return node is not None and node.name() not in _COMPOSITE_NODES


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether torch raised ``error`` for want of memory: itself, or wrapped in a compiler's error.

    On a CPU that is a plain RuntimeError.
    """
    if error is None:
        return False
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    if isinstance(error, RuntimeError) and "can't allocate memory" in said(error):
        return True
    return is_out_of_memory(error.__cause__) or is_out_of_memory(getattr(error, "inner_exception", None))


def torch_dtype(dtype: DType) -> torch.dtype:
    """The torch dtype of the same format."""
    found = getattr(torch, dtype.torch_name)
    assert isinstance(found, torch.dtype)
    return found


def peak_bandwidth(properties: Any) -> float | None:
    """Bytes a second by the device's properties: 2 × memory clock (kHz) × bus width (bits) ÷ 8.

    The factor 2 is the double data rate. None where torch does not report both.
    """
    clock_khz = getattr(properties, "memory_clock_rate", 0)
    bus_bits = getattr(properties, "memory_bus_width", 0)
    return 2 * clock_khz * 1e3 * bus_bits / 8 if clock_khz and bus_bits else None


def flush_bytes(info: DeviceInfo) -> int:
    """Bytes to write so that the last-level cache holds nothing else: twice its size."""
    return 2 * (info.cache_bytes or _FALLBACK_CACHE_BYTES)


def make_flush(device: Device) -> Callable[[], None]:
    """A call that empties the last-level cache: writes twice its size, then reads it back.

    The read comes last so that no dirty line is left, whose write-back would fall into the timed call.
    The buffer is allocated at the first call, since most runs on a CPU never need it.
    """
    buffers: list[torch.Tensor] = []

    def flush() -> None:
        if not buffers:
            count = flush_bytes(device.info) // 4
            buffers.append(torch.empty(count, dtype=torch.int32, device=device.torch_device))
        buffers[0].zero_()
        buffers[0].max()

    return flush


def hold(device: Device) -> None:
    """Let a GPU wait some milliseconds before what is queued next; a CPU has no queue.

    What is put into another stream without waiting for this one then runs before its inputs are there.
    """
    if isinstance(device, CudaDevice):
        device.cuda._sleep(_HOLD_CYCLES)


def _uuid(properties: Any) -> str:
    uuid = str(getattr(properties, "uuid", ""))
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"


def _cpu_name() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", _text(Path("/proc/cpuinfo")) or "", re.MULTILINE)
    return found.group(1).strip() if found else platform.processor() or platform.machine()


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _is_virtual() -> bool | None:
    """Whether the processor says that a hypervisor runs it; None where it says nothing at all."""
    flags = re.search(r"^flags\s*:(.*)$", _text(Path("/proc/cpuinfo")) or "", re.MULTILINE)
    return None if flags is None else "hypervisor" in flags[1].split()


def _last_level_cache_bytes() -> int | None:
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    scale = {"K": 2**10, "M": 2**20, "G": 2**30}
    found = [text.strip() for path in sizes if (text := path.read_text(encoding="ascii")).strip()]
    return max((int(text[:-1]) * scale[text[-1]] for text in found if text[-1] in scale), default=None)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
