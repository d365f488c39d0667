"""Brings each implementation of a cell to the start: built, compiled, and checked. Who fails gets its record."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from normbench import compilation, correctness, modes
from normbench.calls import Subject
from normbench.clock import Task
from normbench.compilation import Graph
from normbench.device import Device
from normbench.failures import RAISED, Failure, failure
from normbench.implementations import Bind, Implementation, Setting
from normbench.inputs import Operands, Placer, cell_seed, draw_probes
from normbench.inspection import Inspection
from normbench.records import Accuracy, Case, CaseResult, Cell, DType, Flag, Mode, Status
from normbench.torch_state import TorchState
from normbench.watch import changed_settings


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
class Built:
    """An implementation that was built for a cell, and the dtypes of what its forward returns there: y, and h."""

    implementation: Implementation
    setting: Setting
    bind: Bind
    dtypes: tuple[torch.dtype, ...]

    def subject(self, operands: Operands, exact: Operands, device: Device) -> Subject:
        """Its task in one placement, and what that is held against."""
        setting, implementation = self.setting, self.implementation
        handed = modes.as_handed(operands, self.dtypes)
        return Subject(
            op=implementation.op,
            cell=setting.cell,
            eps=setting.eps,
            task=self.task(setting.cell, handed),
            operands=handed,
            exact=exact.of(implementation.op),
            device=device,
            reuses_output=implementation.reuses_output(setting),
        )

    def task(self, cell: Cell, operands: Operands) -> Task:
        """Its task in one placement."""
        forward = self.bind(operands.gain, operands.bias)
        implementation = self.implementation
        return modes.task(
            implementation.name, cell, forward, operands, fresh_copies=implementation.writes_in(cell.mode)
        )


@dataclass(frozen=True, kw_only=True)
class Entrant(Built):
    """An implementation whose result was found right in this cell."""

    admission: Admission

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
        thorough: Check everything it returns, on hard rows too; else some rows of it.
        compiling: Told the seconds that compiling, or loading what was compiled, took.

    Returns:
        The entrant where everything is right, else the case's final record.
    """
    case = Case(cell=setting.cell, implementation=implementation.name)
    reason = implementation.unsupported(setting, device.info)
    if reason is not None:
        return CaseResult(case=case, status=Status.UNSUPPORTED, reason=reason)
    candidate = _Candidate(implementation=implementation, setting=setting, values=values, device=device)
    state = TorchState.now()
    try:
        found = candidate.admitted(graph, thorough=thorough, compiling=compiling)
    except RAISED as error:  # whatever an implementation raises is its result
        found = failed(case, failure(error))
    changes = state.restore()
    if changes is None or (isinstance(found, CaseResult) and found.status is not Status.INCORRECT):
        return found
    return failed(case, changed_settings(changes))  # what else was wrong may come of that


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


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """An implementation on its way to an entrant."""

    implementation: Implementation
    setting: Setting
    values: Operands
    device: Device

    def admitted(
        self, graph: Graph | None, *, thorough: bool, compiling: Callable[[float], None]
    ) -> Entrant | CaseResult:
        """Built, compiled and judged; see ``admit``."""
        bind, compile_s = self.implementation.build(self.setting), None
        if self.implementation.compiled:
            seconds, graphs = compile_first_call(
                self.implementation, self.setting, bind, self.values, self.device, graph.folder if graph else None
            )
            compiling(seconds)
            compile_s = graph.seconds if graph else seconds
            if graphs < 1:
                reason = "no graph was compiled: torch.compile fell back to eager"
                return failed(self._case, Failure(status=Status.FAILED, reason=reason))
        return self._judged(bind, compile_s, thorough=thorough)

    @property
    def _case(self) -> Case:
        return Case(cell=self.setting.cell, implementation=self.implementation.name)

    def _judged(self, bind: Bind, compile_s: float | None, *, thorough: bool) -> Entrant | CaseResult:
        cell, implementation = self.setting.cell, self.implementation
        operands = operands_for(implementation, cell, self.values)
        returned, names = self._returned(bind, operands), modes.forward_names(operands)
        if len(returned) != len(names):
            why = Failure(status=Status.INCORRECT, reason=modes.wrong_count(len(returned), names))
            return failed(self._case, why, compile_s=compile_s)
        dtypes = tuple(tensor.dtype for tensor in returned)
        built = Built(implementation=implementation, setting=self.setting, bind=bind, dtypes=dtypes)
        cut_off = [name for name, tensor in zip(names, returned, strict=True) if not tensor.requires_grad]
        if cell.mode is not Mode.INFERENCE and cut_off:
            finding = correctness.refusal(
                f"{cut_off[0]} does not require grad: no gradient could flow back, as it must in training"
            )
        else:
            finding = self._inspected(built, operands, thorough=thorough)
        accuracy = replace(finding.accuracy, out_dtype=correctness.dtype_of(returned[0]))
        if finding.problem is not None:
            why = Failure(status=Status.INCORRECT, reason=finding.problem)
            return replace(failed(self._case, why, compile_s=compile_s), accuracy=accuracy)
        flags = _flags(implementation, self.setting, self.device, finding)
        admission = Admission(accuracy=accuracy, compile_s=compile_s, flags=flags)
        return Entrant(**vars(built), admission=admission)

    def _returned(self, bind: Bind, operands: Operands) -> tuple[torch.Tensor, ...]:
        own = modes.copied(operands) if self.implementation.writes_in(self.setting.cell.mode) else operands
        return modes.output_of(self.setting.cell, bind(own.gain, own.bias), own)

    def _inspected(self, built: Built, operands: Operands, *, thorough: bool) -> correctness.Finding:
        """What there is to say about the very task that will be timed, in buffers of its own."""
        subject = built.subject(operands, self.values, self.device)
        inspection = Inspection(subject, cell_seed(0, self.setting.cell, f"rows {self.implementation.name}"))
        try:
            finding = inspection.first(whole=thorough)
            hard = self._problem_on_hard_rows(built.bind) if thorough and finding.problem is None else None
            problem = finding.problem or hard or inspection.again(few=True, unchanged=thorough)
        finally:
            written = inspection.close()
        if written is not None:  # whatever else was found may come of that
            problem = f"wrote into {written} without declaring it"
        return replace(finding, problem=problem)

    def _problem_on_hard_rows(self, bind: Bind) -> str | None:
        cell, op = self.setting.cell, self.implementation.op
        is_exact = {cell.dtype, cell.parameter_dtype, cell.autocast} <= {DType.FP32, None}
        for probe in draw_probes(self.values, offset=is_exact):
            operands = operands_for(self.implementation, cell, probe)
            task = modes.task(self.implementation.name, cell, bind(operands.gain, operands.bias), operands)
            names = modes.output_names(cell.mode, operands)
            results = dict(zip(names, modes.outputs(task.run()), strict=True))
            finding = correctness.check(results, op, cell, probe.of(op), self.setting.eps, probe=True)
            if finding.problem is not None:
                return f"on hard rows, {finding.problem}"
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
        Flag.IN_PLACE: implementation.writes_in(cell.mode),
        Flag.REUSED_OUTPUT: implementation.reuses_output(setting),
        Flag.EMULATED_DTYPE: emulated,
    }
    return (*implementation.observe(setting, device.torch_device), *(f for f, there in own.items() if there))
