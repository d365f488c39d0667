"""Brings each implementation of a cell to the start: built, compiled, and checked. Who fails gets its record."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace

import torch

from normbench import compilation, correctness, modes
from normbench.clock import Task
from normbench.device import Device, is_out_of_memory
from normbench.implementations import Bind, Implementation, Setting
from normbench.inputs import Operands, Placer, draw_probes
from normbench.records import Accuracy, Case, CaseResult, Cell, DType, Flag, Mode, Status

_REASON_LENGTH = 300
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOMES = re.compile(r"[/\\](?:home|Users)[/\\][^/\\\s'\":;,]+")
_TEMPORARY = re.compile(r"torchinductor_\w+")
_FOLDERS = re.compile(r"(?:[/\\][^/\\\s'\":;,]+)+[/\\]|~[/\\](?:[^/\\\s'\":;,]+[/\\])+")
"""The folders of an absolute path, up to its last part."""


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """An implementation whose result was found right in this cell."""

    implementation: Implementation
    bind: Bind
    accuracy: Accuracy
    compile_s: float | None
    flags: tuple[Flag, ...]

    def task(self, cell: Cell, operands: Operands) -> Task:
        """Its task in one placement."""
        forward = self.bind(operands.gain, operands.bias)
        implementation = self.implementation
        return modes.task(implementation.name, cell, forward, operands, fresh_copies=implementation.mutates)


def admit(implementation: Implementation, setting: Setting, values: Operands, device: Device) -> Entrant | CaseResult:
    """Build, call and check an implementation with the cell's values and with a probe.

    Returns:
        The entrant where everything is right, else the case's final record.
    """
    case = Case(cell=setting.cell, implementation=implementation.name)
    reason = implementation.unsupported(setting, device.info)
    if reason is not None:
        return CaseResult(case=case, status=Status.UNSUPPORTED, reason=reason)
    try:
        return _admit(implementation, setting, values, device, case)
    except Exception as error:  # whatever an implementation raises is its result
        return failure(case, error)


def failure(case: Case, error: BaseException, *, compile_s: float | None = None) -> CaseResult:
    """The record of a case that raised ``error``."""
    status = Status.OUT_OF_MEMORY if is_out_of_memory(error) else Status.FAILED
    return CaseResult(case=case, status=status, reason=describe(error), compile_s=compile_s)


def describe(error: BaseException) -> str:
    """An error in one line, of each path only its last part: reports are public.

    Where the first line ends in a colon, as torch's do when it wraps another's error, the next is its cause.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    text = _FOLDERS.sub("…/", _HOMES.sub("~", _CONTROL.sub(" ", text)))
    return _TEMPORARY.sub("torchinductor", text)[:_REASON_LENGTH]


def _admit(
    implementation: Implementation, setting: Setting, values: Operands, device: Device, case: Case
) -> Entrant | CaseResult:
    bind = implementation.build(setting)
    operands = _operands(implementation, setting.cell, values)
    task = modes.task(implementation.name, setting.cell, bind(operands.gain, operands.bias), operands)
    compile_s = None
    if implementation.compiled:
        compile_s, graphs = _compile(task, device)
        if graphs < 1:
            reason = "no graph was compiled: torch.compile fell back to eager"
            return CaseResult(case=case, status=Status.FAILED, reason=reason)
    finding = _check(implementation, setting, bind, values, probe=False)
    hard = (_check(implementation, setting, bind, probe, probe=True).problem for probe in draw_probes(values))
    problem = finding.problem or next((f"on hard rows, {problem}" for problem in hard if problem), None)
    if problem is not None:
        return CaseResult(
            case=case, status=Status.INCORRECT, reason=problem, accuracy=finding.accuracy, compile_s=compile_s
        )
    return Entrant(
        implementation=implementation,
        bind=bind,
        accuracy=finding.accuracy,
        compile_s=compile_s,
        flags=_flags(implementation, setting, device, finding),
    )


def _compile(task: Task, device: Device) -> tuple[float, int]:
    """Seconds of the first call, with nothing to be found in any cache, and the graphs it built."""
    before = compilation.graph_count()
    with compilation.empty_cache():
        began = time.perf_counter()
        task.run()
        device.synchronize()
        seconds = time.perf_counter() - began
    return seconds, compilation.graph_count() - before


def _check(
    implementation: Implementation, setting: Setting, bind: Bind, values: Operands, *, probe: bool
) -> correctness.Finding:
    """Run the very task that will be timed, in buffers of its own, and compare."""
    operands = _operands(implementation, setting.cell, values)
    forward = bind(operands.gain, operands.bias)
    task = modes.task(implementation.name, setting.cell, forward, operands)
    results = dict(zip(modes.output_names(setting.cell.mode, operands), modes.outputs(task.run()), strict=True))
    y = results["y"] if "y" in results else modes.output_of(setting.cell, forward, operands)
    if setting.cell.mode is not Mode.INFERENCE and not y.requires_grad:
        return correctness.refusal("y does not require grad: no gradient could flow back, as it must in training")
    exact = values.of(implementation.op)
    finding = correctness.check(results, implementation.op, setting.cell, exact, setting.eps, probe=probe)
    finding = replace(finding, accuracy=replace(finding.accuracy, out_dtype=correctness.dtype_of(y)))
    written = None if implementation.mutates else _written(operands, exact)
    return finding if written is None else replace(finding, problem=f"wrote into {written} without declaring it")


def _written(operands: Operands, exact: Operands) -> str | None:
    """The name of an input that no longer holds its values: what is timed later would be other work."""
    for name in ("x", "dy", "gain", "bias"):
        before, after = getattr(exact, name), getattr(operands, name)
        if before is not None and not torch.equal(before, after.detach()):
            return name
    return None


def _operands(implementation: Implementation, cell: Cell, values: Operands) -> Operands:
    placer = Placer(values, (implementation.op,), gradients=cell.mode is not Mode.INFERENCE, shared=False, seed=0)
    return placer.place().operands[0]


def _flags(
    implementation: Implementation, setting: Setting, device: Device, finding: correctness.Finding
) -> tuple[Flag, ...]:
    cell = setting.cell
    emulated = DType.BF16 in (cell.dtype, cell.parameter_dtype) and not device.info.native_bf16
    own = {
        Flag.COARSE_SUMS: finding.coarse_sums,
        Flag.IN_PLACE: implementation.mutates,
        Flag.EMULATED_DTYPE: emulated,
    }
    return (*implementation.observe(setting, device.torch_device), *(f for f, there in own.items() if there))
