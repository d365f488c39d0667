"""Brings each implementation of a cell to the start: built, compiled, and checked. Who fails gets its record."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from normbench import compilation, correctness, modes
from normbench.clock import Task
from normbench.compilation import Graph
from normbench.device import Device
from normbench.failures import Failure, failure
from normbench.implementations import Bind, Implementation, Setting
from normbench.inputs import Operands, Placer, draw_probes
from normbench.records import Accuracy, Case, CaseResult, Cell, DType, Flag, Mode, Status

_SPOT_ROWS = 64


@dataclass(frozen=True, kw_only=True)
class Admission:
    """What is known of an implementation that may be timed, before it is.

    ``compile_s`` is the first call with nothing in any cache; None where nothing was compiled, or where the
    graph came from a cache.
    """

    accuracy: Accuracy
    compile_s: float | None
    flags: tuple[Flag, ...]


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """An implementation whose result was found right in this cell."""

    implementation: Implementation
    bind: Bind
    admission: Admission

    def task(self, cell: Cell, operands: Operands) -> Task:
        """Its task in one placement."""
        forward = self.bind(operands.gain, operands.bias)
        implementation = self.implementation
        return modes.task(implementation.name, cell, forward, operands, fresh_copies=implementation.mutates)

    def again(self, name: str) -> Entrant:
        """The same under another name: what an A/A test compares it with."""
        return replace(self, implementation=replace(self.implementation, name=name))


def admit(
    implementation: Implementation,
    setting: Setting,
    values: Operands,
    device: Device,
    *,
    graph: Graph | None = None,
    thorough: bool = True,
    compiling: Callable[[float], None] = lambda _seconds: None,
) -> Entrant | CaseResult:
    """Build, call and check an implementation.

    Args:
        implementation: Whose turn it is.
        setting: Where.
        values: The cell's values.
        device: What it runs on.
        graph: Where its compiled code lies, if it was compiled ahead.
        thorough: Check everything it returns, on hard rows too; else y and dx of the first rows alone.
        compiling: Told the seconds that compiling, or loading what was compiled, took.

    Returns:
        The entrant where everything is right, else the case's final record.
    """
    case = Case(cell=setting.cell, implementation=implementation.name)
    reason = implementation.unsupported(setting, device.info)
    if reason is not None:
        return CaseResult(case=case, status=Status.UNSUPPORTED, reason=reason)
    try:
        bind = implementation.build(setting)
        compile_s = None
        if implementation.compiled:
            folder = graph.folder if graph else None
            seconds, graphs = compile_first_call(implementation, setting, bind, values, device, folder)
            compiling(seconds)
            compile_s = graph.seconds if graph else seconds
            if graphs < 1:
                reason = "no graph was compiled: torch.compile fell back to eager"
                return CaseResult(case=case, status=Status.FAILED, reason=reason)
        return _judged(implementation, setting, bind, values, device, compile_s, thorough=thorough)
    except Exception as error:  # whatever an implementation raises is its result
        return failed(case, failure(error))


def failed(case: Case, why: Failure, *, compile_s: float | None = None) -> CaseResult:
    """The record of a case that has no time for this reason."""
    return CaseResult(case=case, status=why.status, reason=why.reason, compile_s=compile_s)


def compile_first_call(
    implementation: Implementation,
    setting: Setting,
    bind: Bind,
    values: Operands,
    device: Device,
    folder: Path | None = None,
) -> tuple[float, int]:
    """Seconds of the first call of an implementation that compiles, and the graphs it built.

    With nothing to be found in any cache, or with what is in ``folder`` alone.
    """
    operands = operands_for(implementation, setting.cell, values)
    task = modes.task(implementation.name, setting.cell, bind(operands.gain, operands.bias), operands)
    before = compilation.graph_count()
    with compilation.empty_cache() if folder is None else compilation.cache_in(folder):
        began = time.perf_counter()
        task.run()
        device.synchronize()
        seconds = time.perf_counter() - began
    return seconds, compilation.graph_count() - before


def _judged(
    implementation: Implementation,
    setting: Setting,
    bind: Bind,
    values: Operands,
    device: Device,
    compile_s: float | None,
    *,
    thorough: bool,
) -> Entrant | CaseResult:
    finding = _check(implementation, setting, bind, values, most_rows=None if thorough else _SPOT_ROWS)
    probes = draw_probes(values) if thorough else ()
    hard = (_check(implementation, setting, bind, probe, probe=True).problem for probe in probes)
    problem = finding.problem or next((f"on hard rows, {problem}" for problem in hard if problem), None)
    if problem is not None:
        return CaseResult(
            case=Case(cell=setting.cell, implementation=implementation.name),
            status=Status.INCORRECT,
            reason=problem,
            accuracy=finding.accuracy,
            compile_s=compile_s,
        )
    flags = _flags(implementation, setting, device, finding)
    admission = Admission(accuracy=finding.accuracy, compile_s=compile_s, flags=flags)
    return Entrant(implementation=implementation, bind=bind, admission=admission)


def _check(
    implementation: Implementation,
    setting: Setting,
    bind: Bind,
    values: Operands,
    *,
    probe: bool = False,
    most_rows: int | None = None,
) -> correctness.Finding:
    """Run the very task that will be timed, in buffers of its own, and compare: everything, or the first rows."""
    operands = operands_for(implementation, setting.cell, values)
    forward = bind(operands.gain, operands.bias)
    task = modes.task(implementation.name, setting.cell, forward, operands)
    results = dict(zip(modes.output_names(setting.cell.mode, operands), modes.outputs(task.run()), strict=True))
    y = results["y"] if "y" in results else modes.output_of(setting.cell, forward, operands)
    if setting.cell.mode is not Mode.INFERENCE and not y.requires_grad:
        return correctness.refusal("y does not require grad: no gradient could flow back, as it must in training")
    exact = values.of(implementation.op)
    if most_rows is None:
        finding = correctness.check(results, implementation.op, setting.cell, exact, setting.eps, probe=probe)
    else:
        first = {name: tensor[:most_rows] for name, tensor in results.items() if name in ("y", "dx")}
        rows = replace(exact, x=exact.x[:most_rows], dy=None if exact.dy is None else exact.dy[:most_rows])
        finding = correctness.check(first, implementation.op, setting.cell, rows, setting.eps, probe=True)
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


def operands_for(implementation: Implementation, cell: Cell, values: Operands) -> Operands:
    """Buffers of its own for one implementation, filled with the cell's values."""
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
