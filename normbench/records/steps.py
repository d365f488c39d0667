"""A training step with one norm or another: where it is measured, what it took, and how two of them compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from math import inf, sqrt

from normbench.records.cases import Cache, Cell, DType, ImplementationInfo, Mode
from normbench.records.models import ModelShape
from normbench.records.plan import MOST_CASES, Precision
from normbench.records.profile import check_bytes
from normbench.records.results import Estimate, Flag, Outcome, Reason, Sample, Spent, Status
from normbench.records.run import DeviceInfo, Environment, Run
from normbench.records.training import TrainingCurve, TrainingPlan


class Part(StrEnum):
    """What of a step is timed: all of it, or a part with the others outside the clock."""

    STEP = "step"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


class Optimizer(StrEnum):
    """What updates the parameters at the end of a step."""

    ADAMW = "adamw"
    SGD = "sgd"


@dataclass(frozen=True, kw_only=True)
class StepCell:
    """One model in one format, eager or compiled: every norm variant is measured in it.

    Args:
        shape: The model's.
        dtype: Of all parameters.
        autocast: The dtype of autocast in the forward; None where it is off.
        compiled: Whether the model as a whole went through torch.compile.
        optimizer: What updates the parameters.
    """

    shape: ModelShape
    dtype: DType
    autocast: DType | None = None
    compiled: bool = False
    optimizer: Optimizer = Optimizer.ADAMW

    @property
    def norm_cell(self) -> Cell:
        """The cell of one of its norms alone, forward and backward together, as the sweep measures it.

        Under autocast the stream that a norm reads has autocast's dtype or float32, by the op before it; here it is
        taken for the parameters' own, as the stream of a pre-norm model is.
        """
        return Cell(
            mode=Mode.FORWARD_BACKWARD,
            rows=self.shape.rows,
            width=self.shape.width,
            dtype=self.dtype,
            parameter_dtype=self.dtype,
            autocast=self.autocast,
            cache=Cache.WARM,
        )

    @property
    def key(self) -> tuple[str, ...]:
        """The fields as text, empty for an absent one: equal exactly for equal cells."""
        values = {**vars(self.shape), **vars(self)}
        return tuple(_text(values[name]) for name in STEP_KEY)

    def __str__(self) -> str:
        shape = self.shape
        layers = "1 layer" if shape.layers == 1 else f"{shape.layers} layers"
        parts = [f"width {shape.width}, {layers}, {shape.batch}×{shape.context} tokens", str(self.dtype)]
        parts += [f"autocast {self.autocast}"] if self.autocast else []
        return ", ".join([*parts, "compiled model" if self.compiled else "eager model"])


def _text(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """One variant's record in a step cell. Times exist exactly where its norms were checked and are right.

    Args:
        cell: Where.
        implementation: Of its norms.
        status: How it ended.
        reason: Why not well; None where it did.
        times: Seconds of one call of each part; the whole step is always there.
        samples: That the step's time rests on.
        placements: That the step's time rests on.
        parameters: Of the whole model.
        norm_parameters: Of its norms.
        compile_s: Of the first step, where the model or the norm is compiled, with empty caches.
        peak_memory_bytes: The most allocated in a step above what the model and its optimizer keep.
        saved_bytes: Kept by the forward for the backward.
        max_rel_error: The largest error of any norm in the model against float64, as in ``Accuracy``.
        flags: What is odd about it.
    """

    cell: StepCell
    implementation: str
    status: Status
    reason: str | None = None
    times: Mapping[Part, Estimate] = field(default_factory=dict)
    samples: int = 0
    placements: int = 0
    parameters: int
    norm_parameters: int
    compile_s: float | None = None
    peak_memory_bytes: int | None = None
    saved_bytes: int | None = None
    max_rel_error: float | None = None
    flags: tuple[Flag, ...] = ()

    def __post_init__(self) -> None:
        ok = self.status is Status.OK
        if ok != (Part.STEP in self.times):
            raise ValueError(f"a time belongs to status ok and to no other, not to {self.status}")
        if ok != (self.reason is None) or self.reason == "":
            raise ValueError("whatever did not end well has a reason, and nothing else has one")
        if ok and min(self.samples, self.placements) < 1:
            raise ValueError("a time rests on at least one sample and placement")
        if self.compile_s is not None and not 0 <= self.compile_s < inf:
            raise ValueError(f"not a time: {self.compile_s}")
        if ok and self.max_rel_error is not None and not 0 <= self.max_rel_error < inf:
            raise ValueError(f"what is off by {self.max_rel_error} is never right")
        check_bytes((self.parameters, self.norm_parameters, self.peak_memory_bytes, self.saved_bytes))

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens of a step ÷ its time."""
        step = self.times.get(Part.STEP)
        return None if step is None else self.cell.shape.rows / step.value


@dataclass(frozen=True, kw_only=True)
class StepComparison:
    """A variant's whole step against the baseline's. ``speedup`` is baseline time ÷ candidate time."""

    cell: StepCell
    baseline: str
    candidate: str
    speedup: Estimate | None
    outcome: Outcome
    reason: Reason

    def __post_init__(self) -> None:
        has_interval = self.speedup is not None and self.speedup.low is not None
        if not has_interval and self.outcome is not Outcome.UNDECIDED:
            raise ValueError("nothing is decided without an interval")
        if self.baseline == self.candidate:
            raise ValueError("nothing is compared with itself")

    @property
    def as_long(self) -> Estimate | None:
        """The candidate's time ÷ the baseline's: above 1 the step takes longer."""
        if self.speedup is None:
            return None
        low, high = self.speedup.low, self.speedup.high
        ends = (None, None) if low is None or high is None else (1 / high, 1 / low)
        return Estimate(value=1 / self.speedup.value, low=ends[0], high=ends[1])


@dataclass(frozen=True, kw_only=True)
class StepNoise:
    """The baseline's step against itself, in two models: the truth is a ratio of 1.

    Args:
        cell: Where.
        implementation: The baseline.
        ratio: What was found.
    """

    cell: StepCell
    implementation: str
    ratio: Estimate


@dataclass(frozen=True, kw_only=True)
class StepRecords:
    """Everything one step cell leaves: the unit that is written, or not, as a whole.

    Args:
        cell: Where.
        results: Of every implementation.
        comparisons: With the baseline.
        samples: Those of the whole step and of each part.
        noise: The A/A test; None where the baseline has no time.
        spent: Where time went.
    """

    cell: StepCell
    results: tuple[StepResult, ...]
    comparisons: tuple[StepComparison, ...]
    samples: Mapping[Part, tuple[Sample, ...]]
    noise: StepNoise | None = None
    spent: Spent = field(default_factory=Spent)


STEP_KEY: tuple[str, ...] = tuple(
    [name.name for name in fields(ModelShape)] + [name.name for name in fields(StepCell) if name.name != "shape"]
)
"""The names of a step cell's fields: the first columns of ``step.csv``."""


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """What is asked of the steps: their time in ``cells``, or what the model learns by ``training``.

    Args:
        cells: Where steps are timed, in order.
        implementations: Of the norms; the baseline among them.
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
