"""A norm's way into a step cell: its model built, its norms checked in it, compiled where asked for."""

from __future__ import annotations

import time
from dataclasses import dataclass

from normbench import compilation
from normbench.decoder import Decoder
from normbench.device import Device, torch_dtype
from normbench.failures import RAISED, Failure, failure
from normbench.implementations import Implementation, Setting
from normbench.records import Flag, Status, StepCell, StepResult
from normbench.steps.checks import check_compiled, check_norms
from normbench.steps.variants import Batch, Variant
from normbench.torch_state import TorchState
from normbench.watch import changed_settings


@dataclass(frozen=True, kw_only=True)
class Entered:
    """A variant that may be timed, and what is known of it before it is.

    Args:
        variant: The model whose steps are timed.
        implementation: Of its norms.
        max_rel_error: The largest of any norm.
        compile_s: Of the first step; None where nothing was compiled.
        flags: What is odd.
    """

    variant: Variant
    implementation: Implementation
    max_rel_error: float
    compile_s: float | None
    flags: tuple[Flag, ...]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What all variants of a step cell have in common.

    Args:
        cell: Where.
        batch: What they are trained on.
        eps: Added inside the root.
        seed: Of the weights.
        device: Where.
    """

    cell: StepCell
    batch: Batch
    eps: float
    seed: int
    device: Device

    def enter(self, implementation: Implementation) -> Entered | StepResult:
        """The variant of an implementation; its final record where it can't be measured."""
        reason = implementation.unsupported(self._setting, self.device.info)
        if reason is not None:
            return self.refused(implementation, Failure(status=Status.UNSUPPORTED, reason=reason))
        state = TorchState.now()
        try:
            found: Entered | StepResult = self._entered(implementation)
        except RAISED as error:
            found = self.refused(implementation, failure(error))
        changes = state.restore()
        if changes is None or (isinstance(found, StepResult) and found.status is not Status.INCORRECT):
            return found
        return self.refused(implementation, changed_settings(changes))  # what else was wrong may come of that

    def refused(self, implementation: Implementation, why: Failure) -> StepResult:
        """The record of a variant that has no time."""
        return refused(self.cell, implementation, why)

    def model(self, implementation: Implementation) -> Decoder:
        """A model with the implementation's norms: the weights of the others are the same for all."""
        bind = implementation.build(self._setting)
        model = Decoder(self.cell.shape, implementation.op, bind, seed=self.seed)
        model.to(self.device.torch_device, torch_dtype(self.cell.dtype))
        for norm in model.norms():
            norm.bound()
        return model

    @property
    def _setting(self) -> Setting:
        return Setting(cell=self.cell.norm_cell, eps=self.eps, device=str(self.device.torch_device))

    def _entered(self, implementation: Implementation) -> Entered | StepResult:
        variant = Variant(implementation.name, self.cell, self.model(implementation), self.batch)
        compile_s = self._compiled(variant, implementation)
        finding = check_norms(variant, implementation, self.cell, self.eps)
        problem = finding.problem
        if problem is None and self.cell.compiled:
            problem = check_compiled(variant, implementation.op, self.batch, self.eps)
        if problem is not None:
            return self.refused(implementation, Failure(status=Status.INCORRECT, reason=problem))
        alone = implementation.observe(self._setting, self.device.torch_device)
        # A compiler makes its own kernels, of a chain and of what torch would have replaced.
        eager = (Flag.COMPOSITE, Flag.VENDORED_QUACK)
        flags = [flag for flag in alone if not (self.cell.compiled and flag in eager)]
        return Entered(
            variant=variant,
            implementation=implementation,
            max_rel_error=finding.accuracy.max_rel_error,
            compile_s=compile_s,
            flags=(*flags, *((Flag.COARSE_SUMS,) if finding.coarse_sums else ())),
        )

    def _compiled(self, variant: Variant, implementation: Implementation) -> float | None:
        """Seconds of a first step that compiles something, with empty caches."""
        if not (self.cell.compiled or implementation.compiled):
            return None
        compilation.warm_up(str(self.device.torch_device))
        with compilation.empty_cache():
            began = time.perf_counter()
            variant.step()
            self.device.synchronize()
            return time.perf_counter() - began


def refused(cell: StepCell, implementation: Implementation, why: Failure) -> StepResult:
    """The record of a variant that has no time."""
    return StepResult(
        cell=cell,
        implementation=implementation.name,
        status=why.status,
        reason=why.reason,
        parameters=cell.shape.parameters(implementation.op),
        norm_parameters=cell.shape.norm_parameters(implementation.op),
    )
