"""Clock, temperature, throttle reasons and programs of a GPU, through NVML where there is NVML."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from types import ModuleType
from typing import Any

import psutil

from normbench.records import Conditions, Reading

_REASONS = {
    "sw_power_cap": "nvmlClocksEventReasonSwPowerCap",
    "hw_slowdown": "nvmlClocksThrottleReasonHwSlowdown",
    "sw_thermal_slowdown": "nvmlClocksEventReasonSwThermalSlowdown",
    "hw_thermal_slowdown": "nvmlClocksThrottleReasonHwThermalSlowdown",
    "hw_power_brake": "nvmlClocksThrottleReasonHwPowerBrakeSlowdown",
}
"""Reasons that slow a kernel down, with the name of their bit in NVML. Idle and set clocks are none."""

_COMPUTING = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses")
"""Who computes, and who does through the server of MPS. Not who draws: a desktop is always there and mostly idle."""

_MPS_SERVER = "nvidia-cuda-mps-server"


def own_pids() -> set[int]:
    """This process and all that it has started: workers, compilers."""
    return {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}


class Monitor:
    """Reads one GPU.

    Args:
        library: The ``pynvml`` module, or a stand-in.
        uuid: The GPU's UUID, since NVML's order ignores CUDA_VISIBLE_DEVICES.
        own: The numbers of the processes that are no others.
    """

    def __init__(self, library: ModuleType | Any, uuid: str, own: Callable[[], Iterable[int]] = own_pids) -> None:
        self._nvml = library
        self._own = own
        library.nvmlInit()
        self._handle = library.nvmlDeviceGetHandleByUUID(uuid)

    def read(self) -> Reading:
        """What the GPU says now; a value it refuses is None."""
        nvml, handle = self._nvml, self._handle
        clock_mhz = self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
        temperature = self._ask(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        bits = self._ask(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
        return Reading(
            sm_clock_hz=None if clock_mhz is None else clock_mhz * 1e6,
            temperature_c=temperature,
            throttle_reasons=self._reasons(int(bits or 0)),
        )

    def conditions(self) -> Conditions:
        """Clocks, power, settings and other programs; a value it refuses is None."""
        nvml, handle, reading = self._nvml, self._handle, self.read()
        memory_mhz = self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))
        most_mhz = self._ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM))
        ecc = self._ask(lambda: nvml.nvmlDeviceGetEccMode(handle)[0])
        mig = self._ask(lambda: nvml.nvmlDeviceGetMigMode(handle)[0])
        persistence = self._ask(lambda: nvml.nvmlDeviceGetPersistenceMode(handle))
        return Conditions(
            cores=psutil.cpu_count(),
            sm_clock_hz=reading.sm_clock_hz,
            max_sm_clock_hz=None if most_mhz is None else most_mhz * 1e6,
            memory_clock_hz=None if memory_mhz is None else memory_mhz * 1e6,
            temperature_c=reading.temperature_c,
            power_w=self._watts(lambda: nvml.nvmlDeviceGetPowerUsage(handle)),
            power_limit_w=self._watts(lambda: nvml.nvmlDeviceGetPowerManagementLimit(handle)),
            default_power_limit_w=self._watts(lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle)),
            throttle_reasons=reading.throttle_reasons,
            persistence=None if persistence is None else bool(persistence),
            ecc=None if ecc is None else bool(ecc),
            mig=None if mig is None else bool(mig),
            other_processes=self.other_programs(),
        )

    def other_programs(self) -> int | None:
        """How many other programs compute on the GPU; None where that can't be told.

        NVML numbers processes as the host does. In a container it lists numbers that mean others there, or none at
        all: where none of one's own processes, which do hold the GPU, is listed, the list is not of this world.
        """
        own = set(self._own())
        listed = self._computing()
        if listed is None:
            return None
        own |= set(self._own())  # a worker may have started, or ended, while NVML was looking
        if not own & listed:
            return None
        return sum(not _is_mps_server(pid) for pid in listed - own)

    def _computing(self) -> set[int] | None:
        """The processes that compute; None where NVML does not say."""
        found: set[int] = set()
        for name in _COMPUTING:
            question = getattr(self._nvml, name, None)
            programs = None if question is None else self._ask(partial(question, self._handle))
            if programs is None and name == _COMPUTING[0]:
                return None
            found |= {program.pid for program in programs or ()}
        return found

    def _watts(self, question: Callable[[], int]) -> float | None:
        milliwatts = self._ask(question)
        return None if milliwatts is None else milliwatts / 1e3

    def driver(self) -> str | None:
        """The driver's version."""
        version = self._ask(self._nvml.nvmlSystemGetDriverVersion)
        return version.decode() if isinstance(version, bytes) else version

    def _reasons(self, bits: int) -> tuple[str, ...]:
        return tuple(name for name, bit in _REASONS.items() if bits & int(getattr(self._nvml, bit, 0)))

    def _ask(self, question: Any) -> Any:
        try:
            return question()
        except self._nvml.NVMLError:
            return None


def _is_mps_server(pid: int) -> bool:
    """Whether a process only passes on what others compute, who are listed themselves."""
    try:
        return bool(psutil.Process(pid).name() == _MPS_SERVER)
    except psutil.Error:
        return False


def open_monitor(uuid: str) -> Monitor | None:
    """A monitor of the GPU with this UUID; None where NVML or the GPU in it is missing."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        return Monitor(pynvml, uuid)
    except pynvml.NVMLError:
        return None
