"""From a diagnosis to advice: what will disturb measuring here, and what to do about each."""

from __future__ import annotations

from collections.abc import Iterator

from normbench import stats, units
from normbench.records import Advice, Conditions, Diagnosis, NoiseFloor, Precision

_LEAST_SHARE = 0.6
_SAMPLE_S = 200e-6
_OVERHEAD_SHARE = 0.01


def advise(diagnosis: Diagnosis) -> tuple[Advice, ...]:
    """Everything that is not as it should be, the gravest first."""
    return (
        *_of_other_runs(diagnosis.conditions),
        *_of_processor(diagnosis),
        *_of_gpu(diagnosis.conditions),
        *_of_abilities(diagnosis),
        *_of_timers(diagnosis),
        *_of_bandwidth(diagnosis),
        *_of_noise(diagnosis),
    )


def _of_other_runs(now: Conditions) -> Iterator[Advice]:
    if now.other_runs:
        yield Advice(
            problem=f"{units.others(now.other_runs, 'run')} of normbench measured on this device meanwhile",
            remedy="wait until that has ended, and examine again: what both measured is wrong",
        )


def _of_processor(diagnosis: Diagnosis) -> Iterator[Advice]:
    now, threads = diagnosis.conditions, diagnosis.device.threads
    if stats.is_busy(now.other_cores, now.cores or 1):
        yield Advice(
            problem=f"other programs keep {now.other_cores:.1f} of {now.cores or '?'} cores busy",
            remedy="stop them; what they do to a kernel that waits for all its threads is not averaged out",
        )
    if diagnosis.device.kind != "cpu":
        return
    if now.governor not in (None, "performance"):
        yield Advice(
            problem=f"the processor's clock follows the governor {now.governor}",
            remedy="sudo cpupower frequency-set --governor performance",
        )
    if threads is not None and now.cores is not None and threads > now.cores:
        yield Advice(
            problem=f"torch uses {threads} threads on {now.cores} cores",
            remedy=f"set OMP_NUM_THREADS={now.cores} or less",
        )
    if now.virtual:
        yield Advice(
            problem="this is a virtual machine: others may share its cores, cache and memory unseen",
            remedy="repeat what matters, and keep --processes at 5 or more; a machine of your own is better",
        )


def _of_gpu(now: Conditions) -> Iterator[Advice]:
    if now.other_processes:
        yield Advice(problem=f"{now.other_processes} other processes compute on this GPU", remedy="stop them")
    if now.throttle_reasons:
        yield Advice(
            problem=f"the GPU runs throttled now: {', '.join(now.throttle_reasons)}",
            remedy="let it cool down, or raise its power cap",
        )
    if now.power_limit_w and now.default_power_limit_w and now.power_limit_w < now.default_power_limit_w:
        yield Advice(
            problem=f"its power cap is {now.power_limit_w:.0f} W, by default {now.default_power_limit_w:.0f} W",
            remedy=f"say so beside the results, or: sudo nvidia-smi --power-limit {now.default_power_limit_w:.0f}",
        )
    if now.mig:
        yield Advice(
            problem="the GPU is cut into instances (MIG): this is a part of one, and others share its memory",
            remedy="results hold for this instance alone",
        )
    if now.persistence is False:
        yield Advice(
            problem="persistence mode is off: the driver unloads between programs and clocks start low",
            remedy="sudo nvidia-smi --persistence-mode=1",
        )


def _of_abilities(diagnosis: Diagnosis) -> Iterator[Advice]:
    if not diagnosis.compiling.works:
        yield Advice(problem=f"torch.compile does not work: {diagnosis.compiling.detail}", remedy="see there")
    if not diagnosis.device.native_bf16:
        yield Advice(problem="this GPU emulates bfloat16", remedy="measure fp16 and fp32")
    if not any(choice.fused for choice in diagnosis.rmsnorm):
        yield Advice(
            problem="nn.RMSNorm is a chain of ops here",
            remedy="its times say nothing about devices that have a kernel for it",
        )


def _of_timers(diagnosis: Diagnosis) -> Iterator[Advice]:
    for timer in diagnosis.timers:
        coarse = max(timer.resolution_s, timer.overhead_s)
        if timer.clock == "wall" and coarse > _OVERHEAD_SHARE * _SAMPLE_S:
            yield Advice(
                problem=f"the clock is coarse: {units.duration(coarse)}, over 1 % of the shortest sample",
                remedy="results of calls below a microsecond are uncertain by that",
            )


def _of_bandwidth(diagnosis: Diagnosis) -> Iterator[Advice]:
    found = diagnosis.bandwidth
    if found is None or found.computed_bytes_per_s is None:
        return
    share = found.measured_bytes_per_s / found.computed_bytes_per_s
    if share < _LEAST_SHARE:
        yield Advice(
            problem=f"copying reaches {units.percent(share)} of the bandwidth computed from the device's properties",
            remedy="75 to 90 % is usual: look for other work on it, lowered clocks, or wrong properties (MIG)",
        )


def _of_noise(diagnosis: Diagnosis) -> Iterator[Advice]:
    margin = Precision.margin
    for noise in diagnosis.noise:
        where = f"{noise.cell.size} {noise.cell.dtype}"
        if noise.is_biased:
            yield Advice(problem=f"at {where} {_against(noise)} the interval misses 1", remedy="measure again")
        if noise.least_difference > margin:
            yield Advice(
                problem=f"at {where} {_against(noise)} differences below {units.percent(noise.least_difference)} "
                "cannot be told apart",
                remedy="a quieter machine, more --max-seconds, or another cell",
            )


def _against(noise: NoiseFloor) -> str:
    return "against a fresh copy" if noise.fresh else "against itself"
