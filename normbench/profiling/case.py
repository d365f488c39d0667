"""Profiles one case: each count and each profile is a pass of its own, and one that fails costs no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

from torch._inductor import config as inductor_config

from normbench import modes
from normbench.clock import Task
from normbench.device import Device
from normbench.entrants import Entrant
from normbench.failures import RAISED, describe
from normbench.implementations import Forward, Located, Setting
from normbench.inputs import Operands
from normbench.profiling import compiled_bytes, counters, kernels, memory, one_case, op_bytes, traces
from normbench.records import Case, CaseProfile, Cell, CountedTraffic, KernelTime, Memory, OpTraffic

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Profiled:
    """A case's profile, and its trace as it is written to a file; None where there is none."""

    profile: CaseProfile
    trace: bytes | None


def profile_case(
    entrant: Entrant, setting: Setting, operands: Operands, device: Device, *, seed: int, count: bool
) -> Profiled:
    """Everything that can be found about a case whose result was found right.

    Args:
        entrant: The implementation.
        setting: The cell, and what the whole run has in common.
        operands: Of a placement of its own.
        device: Where.
        seed: Of the values, for a counter which runs the case in a program of its own.
        count: Whether to read hardware counters, where that works.
    """
    on_gpu, implementation = device.info.kind == "cuda", entrant.implementation
    with _compiling_apart(implementation.compiled, on_gpu=on_gpu):
        forward = implementation.build(setting)(operands.gain, operands.bias)
        task = modes.task(
            implementation.name,
            setting.cell,
            forward,
            operands,
            fresh_copies=implementation.writes_in(setting.cell.mode),
        )
        ops, ops_reason = _tried(lambda: _ops(task, compiled=implementation.compiled))
        found, kernels_reason = _tried(lambda: _kernels(task, ops or (), setting.cell, device))
        trace, _reason = _tried(lambda: traces.trace(task, on_gpu=on_gpu))
        used = _memory(task, setting.cell, forward, operands, device)
    case = Case(cell=setting.cell, implementation=implementation.name)
    counted, counted_reason = (
        _counted(case, implementation.located, setting, seed, device)
        if count
        else (None, "not asked for: --counters")
    )
    times, findings = found or ((), ())
    return Profiled(
        profile=CaseProfile(
            case=case,
            ops=ops or (),
            ops_reason=ops_reason,
            kernels=times,
            kernels_reason=kernels_reason,
            counted=counted,
            counted_reason=counted_reason,
            memory=used,
            findings=findings,
            trace=traces.name(implementation.name, slug(setting.cell)) if trace else None,
        ),
        trace=trace,
    )


def slug(cell: Cell) -> str:
    """A cell as part of a file's name."""
    parts = [f"{cell.rows}x{cell.width}", str(cell.dtype), str(cell.mode), str(cell.cache)]
    parts += [] if cell.parameter_dtype is cell.dtype else [f"parameters-{cell.parameter_dtype}"]
    parts += [] if cell.autocast is None else [f"autocast-{cell.autocast}"]
    return "-".join(parts)


@contextmanager
def _compiling_apart(compiled: bool, *, on_gpu: bool) -> Iterator[None]:  # noqa: FBT001 - what it is about
    """Where something is compiled: counted, and on a CPU with its kernels' names, which cost time when they run."""
    named = nullcontext() if on_gpu else inductor_config.patch({"cpp.enable_kernel_profile": True})
    with compiled_bytes.counting() if compiled else nullcontext(), named if compiled else nullcontext():
        yield


def _ops(task: Task, *, compiled: bool) -> tuple[OpTraffic, ...]:
    with task.context():
        call = task.prepare()
        found = compiled_bytes.count(call) if compiled else op_bytes.count(call)
    if not found:
        raise kernels.ProfileError("Inductor counted nothing" if compiled else "no op was dispatched")
    return found


def _kernels(
    task: Task, ops: tuple[OpTraffic, ...], cell: Cell, device: Device
) -> tuple[tuple[KernelTime, ...], tuple[str, ...]]:
    on_gpu = device.info.kind == "cuda"
    by_name = {op.name: op for op in ops}
    calls = kernels.profile_task(task, synchronize=device.synchronize, on_gpu=on_gpu, names=by_name)
    casts = cell.dtype.itemsize < 4 or cell.parameter_dtype is not cell.dtype or cell.autocast is not None
    return kernels.summed(calls, by_name), kernels.findings(calls, ops, casts_expected=casts)


def _memory(task: Task, cell: Cell, forward: Forward, operands: Operands, device: Device) -> Memory:
    saved = peak = None
    if operands.x.requires_grad:
        saved, _reason = _tried(
            lambda: memory.saved(lambda: modes.output_of(cell, forward, operands), operands.differentiable)
        )
    peak, _reason = _tried(lambda: memory.peak_and_net(task, device))
    return Memory(
        saved_bytes=saved[0] if saved else None,
        alive_bytes=saved[1] if saved else None,
        peak_bytes=peak[0] if peak else None,
        net_bytes=peak[1] if peak else None,
    )


def _counted(
    case: Case, located: Located | None, setting: Setting, seed: int, device: Device
) -> tuple[CountedTraffic | None, str | None]:
    able = counters.ability(device.info.kind)
    if not able.works or device.info.kind == "cpu":  # a CPU's controllers count the whole machine, not one case
        return None, able.detail
    words = one_case.arguments(case, located, seed=seed, setting=setting)
    return _tried(lambda: counters.NsightCompute(able=able, run=counters.run_program).count(words))


def _tried(work: Callable[[], T]) -> tuple[T | None, str | None]:
    """What ``work`` gives, or why it gives nothing."""
    try:
        return work(), None
    except (kernels.ProfileError, counters.CounterError) as error:
        return None, str(error)
    except RAISED as error:  # a profiler's error costs its own column and nothing else
        return None, describe(error)
