"""A run of steps: what is asked of it, the device and software it ran on, and all that it gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, sqrt

from normbench.records.cases import ImplementationInfo
from normbench.records.plan import MOST_CASES, Precision, refuse_unmeasured
from normbench.records.results import Spent, Status
from normbench.records.run import DeviceInfo, Environment, Run
from normbench.records.sources import Brought
from normbench.records.steps import StepCell, StepComparison, StepNoise, StepResult
from normbench.records.training import TrainingCurve, TrainingPlan


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """What is asked of the steps: their time in ``cells``, or what the model learns by ``training``.

    Args:
        cells: Where steps are timed, in order.
        implementations: Of the norms; the baseline among them.
        brought: Where those of them lie that the user brings.
        baseline: What ratios are taken against.
        eps: Added inside the root of every norm.
        seed: Of weights, tokens, order and padding.
        precision: Of the whole step. ``max_seconds`` is the time budget of the largest model's; its parts get a sixth
            of it each.
        training: What is trained; None where steps are timed.
        quick: Whether less was asked for than the default, to be quick.
    """

    cells: tuple[StepCell, ...] = ()
    implementations: tuple[str, ...]
    brought: tuple[Brought, ...] = ()
    baseline: str = "nn-layernorm"
    eps: float = 1e-6
    seed: int = 0
    precision: Precision = field(default_factory=Precision)
    training: TrainingPlan | None = None
    quick: bool = False

    def __post_init__(self) -> None:
        if bool(self.cells) == (self.training is not None):
            raise ValueError("cells: steps are timed, or models trained, one of the two")
        if len(set(self.cells)) < len(self.cells) or len(set(self.implementations)) < len(self.implementations):
            raise ValueError("cells and implementations: none stands there twice")
        if self.baseline not in self.implementations:
            raise ValueError(f"implementations: the baseline {self.baseline[:40]!a} is not among them")
        refuse_unmeasured(self.brought, self.implementations)
        if not 0 < self.eps < inf or not -(2**63) <= self.seed < 2**63:
            raise ValueError("eps is above 0, and the seed has 63 bits")
        if len(self.cells) * len(self.implementations) > MOST_CASES:
            raise ValueError(f"cells: more than {MOST_CASES} results")

    def budget(self, cell: StepCell) -> Precision:
        """That of one cell: a smaller model has less time, by the root of how much less its steps compute."""
        largest = max(other.shape.operations for other in self.cells)
        share = sqrt(cell.shape.operations / largest)
        return replace(self.precision, max_seconds=self.precision.max_seconds * share)


@dataclass(frozen=True, kw_only=True)
class StepHeader:
    """What ``step.json`` holds: everything about a run of steps except its results."""

    created_utc: str
    command: tuple[str, ...]
    plan: StepPlan
    device: DeviceInfo
    environment: Environment
    implementations: tuple[ImplementationInfo, ...]

    def __post_init__(self) -> None:
        names = tuple(info.name for info in self.implementations)
        if names != self.plan.implementations:
            raise ValueError("implementations: those of the plan, in its order")

    def info(self, name: str) -> ImplementationInfo:
        """What is known of the implementation called ``name``; a KeyError where it is not in the run."""
        return {info.name: info for info in self.implementations}[name]


@dataclass(frozen=True, kw_only=True)
class StepRun:
    """A run of steps as reports see it.

    Args:
        header: What it is.
        results: Of the cells that are there as a whole, in the order in which they were measured.
        comparisons: Of those cells.
        noise: Their A/A tests.
        alone: The norms by themselves, forward and backward, in the same shapes; None where that was not measured.
        curves: What training gave, in the order in which it was done.
        spent: Where the time of the steps went.
    """

    header: StepHeader
    results: tuple[StepResult, ...] = ()
    comparisons: tuple[StepComparison, ...] = ()
    noise: tuple[StepNoise, ...] = ()
    alone: Run | None = None
    curves: tuple[TrainingCurve, ...] = ()
    spent: Spent = field(default_factory=Spent)

    @cached_property
    def results_by_cell(self) -> Mapping[StepCell, Mapping[str, StepResult]]:
        """The results of each measured cell by implementation."""
        found: dict[StepCell, dict[str, StepResult]] = {}
        for result in self.results:
            found.setdefault(result.cell, {})[result.implementation] = result
        return found

    @cached_property
    def comparisons_by_cell(self) -> Mapping[StepCell, Mapping[str, StepComparison]]:
        """The comparisons of each measured cell by candidate."""
        found: dict[StepCell, dict[str, StepComparison]] = {}
        for comparison in self.comparisons:
            found.setdefault(comparison.cell, {})[comparison.candidate] = comparison
        return found

    @cached_property
    def missing(self) -> tuple[StepCell, ...]:
        """The plan's cells that lack a final status for some implementation."""
        final = {(r.cell, r.implementation) for r in self.results if r.status.is_final}
        names = self.header.plan.implementations
        return tuple(cell for cell in self.header.plan.cells if any((cell, name) not in final for name in names))

    @cached_property
    def untrained(self) -> tuple[tuple[int, str], ...]:
        """Seed and implementation of what is still to be trained, in the order in which it is."""
        training = self.header.plan.training
        if training is None:
            return ()
        done = {(curve.seed, curve.implementation) for curve in self.curves if curve.is_final(training)}
        names = self.header.plan.implementations
        return tuple((seed, name) for seed in training.seeds for name in names if (seed, name) not in done)

    @property
    def is_complete(self) -> bool:
        """Whether everything that was asked for is there."""
        return not self.missing and not self.untrained

    @property
    def has_figures(self) -> bool:
        """Whether at least one step was timed, or one model trained."""
        return any(r.status is Status.OK for r in self.results) or any(c.status is Status.OK for c in self.curves)
