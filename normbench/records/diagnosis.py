"""What ``doctor`` finds out: the state of the device, what works here, and how finely it can be measured."""

from __future__ import annotations

from dataclasses import dataclass

from normbench.records.results import NoiseFloor
from normbench.records.run import DeviceInfo, Environment


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What the device is set to and what else happens on it now; None for what it does not say.

    Args:
        cores: Logical cores of the processor.
        governor: The policy that sets the processor's clock.
        virtual: Whether the processor is a virtual machine's.
        other_cores: Cores that other programs keep busy now.
        sm_clock_hz: The GPU's clock now.
        max_sm_clock_hz: The highest it can be.
        memory_clock_hz: The clock of the GPU's memory now.
        temperature_c: Of the GPU.
        power_w: What it takes now.
        power_limit_w: The cap that is set.
        default_power_limit_w: The cap it came with.
        throttle_reasons: Why it runs slower now.
        persistence: Whether the driver stays loaded between programs.
        ecc: Whether its memory corrects errors.
        mig: Whether it is cut into instances.
        other_processes: Other programs that compute on it.
        other_runs: Other runs of normbench that measure on it.
    """

    cores: int | None = None
    governor: str | None = None
    virtual: bool | None = None
    other_cores: float | None = None
    sm_clock_hz: float | None = None
    max_sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    default_power_limit_w: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    persistence: bool | None = None
    ecc: bool | None = None
    mig: bool | None = None
    other_processes: int | None = None
    other_runs: int | None = None


@dataclass(frozen=True, kw_only=True)
class Ability:
    """Whether something works here, and the reason or what it took."""

    works: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class KernelChoice:
    """What one call of ``nn.RMSNorm`` runs.

    Args:
        dtype: Of x.
        parameter_dtype: Of the gain.
        fused: Whether it is one kernel.
        ops: The ops that torch dispatches, in order.
        kernels: The kernels that ran; empty where they were not seen.
        why: The reason for it.
    """

    dtype: str
    parameter_dtype: str
    fused: bool
    ops: tuple[str, ...]
    kernels: tuple[str, ...]
    why: str


@dataclass(frozen=True, kw_only=True)
class TimerCheck:
    """A clock: the smallest difference it shows, and what reading it twice takes, in seconds."""

    clock: str
    resolution_s: float
    overhead_s: float


@dataclass(frozen=True, kw_only=True)
class CopyBandwidth:
    """What the floor reaches where nothing fits into a cache.

    Args:
        bytes_moved: Read and written by one call.
        measured_bytes_per_s: By the clock.
        computed_bytes_per_s: By the device's properties; None where they do not tell.
    """

    bytes_moved: int
    measured_bytes_per_s: float
    computed_bytes_per_s: float | None


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Something that will disturb measuring, and what to do about it."""

    problem: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Everything ``doctor`` found out. Absent is None: it could not be measured here."""

    device: DeviceInfo
    environment: Environment
    conditions: Conditions
    rmsnorm: tuple[KernelChoice, ...]
    compiling: Ability
    counters: Ability
    timers: tuple[TimerCheck, ...]
    bandwidth: CopyBandwidth | None
    noise: tuple[NoiseFloor, ...]
