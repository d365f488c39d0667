"""Clock, temperature and throttle reasons of a GPU, through NVML where there is NVML."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from normbench.records import Reading

_REASONS = {
    "sw_power_cap": "nvmlClocksEventReasonSwPowerCap",
    "hw_slowdown": "nvmlClocksThrottleReasonHwSlowdown",
    "sw_thermal_slowdown": "nvmlClocksEventReasonSwThermalSlowdown",
    "hw_thermal_slowdown": "nvmlClocksThrottleReasonHwThermalSlowdown",
    "hw_power_brake": "nvmlClocksThrottleReasonHwPowerBrakeSlowdown",
}
"""Reasons that slow a kernel down, with the name of their bit in NVML. Idle and set clocks are none."""


class Monitor:
    """Reads one GPU.

    Args:
        library: The ``pynvml`` module, or a stand-in.
        uuid: The GPU's UUID, since NVML's order ignores CUDA_VISIBLE_DEVICES.
    """

    def __init__(self, library: ModuleType | Any, uuid: str) -> None:
        self._nvml = library
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
