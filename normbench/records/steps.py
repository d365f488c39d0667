"""A training step with one norm or another: where it is measured, what it took, and how two of them compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from math import inf

from normbench.records.cases import Cache, Cell, DType, Mode
from normbench.records.models import ModelShape
from normbench.records.plan import Precision
from normbench.records.profile import check_bytes
from normbench.records.results import Estimate, Flag, Outcome, Reason, Sample, Spent, Status


class Part(StrEnum):
    """What of a step is timed: all of it, or a part with the others outside the clock."""

    STEP = "step"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


@dataclass(frozen=True, kw_only=True)
class StepCell:
    """One model in one format, eager or compiled: every norm variant is measured in it.

    Args:
        shape: The model's.
        dtype: Of all parameters.
        autocast: The dtype of autocast in the forward; None where it is off.
        compiled: Whether the model as a whole went through torch.compile.
    """

    shape: ModelShape
    dtype: DType
    autocast: DType | None = None
    compiled: bool = False

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

    def __str__(self) -> str:
        shape = self.shape
        parts = [f"width {shape.width}, {shape.layers} layers, {shape.batch}×{shape.context} tokens", str(self.dtype)]
        parts += [f"autocast {self.autocast}"] if self.autocast else []
        return ", ".join([*parts, "compiled model" if self.compiled else "eager model"])


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
        if ok != (self.reason is None):
            raise ValueError("whatever did not end well has a reason, and nothing else has one")
        if ok and min(self.samples, self.placements) < 1:
            raise ValueError("a time rests on at least one sample and placement")
        if self.compile_s is not None and not 0 <= self.compile_s < inf:
            raise ValueError(f"not a time: {self.compile_s}")
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


@dataclass(frozen=True, kw_only=True)
class StepRecords:
    """Everything one step cell leaves: the unit that is written, or not, as a whole.

    ``noise`` is the baseline's step against itself, ``samples`` those of the whole step and of each part.
    """

    cell: StepCell
    results: tuple[StepResult, ...]
    comparisons: tuple[StepComparison, ...]
    samples: Mapping[Part, tuple[Sample, ...]]
    noise: Estimate | None = None
    spent: Spent = field(default_factory=Spent)


STEP_KEY: tuple[str, ...] = tuple(
    [name.name for name in fields(ModelShape)] + [name.name for name in fields(StepCell) if name.name != "shape"]
)
"""The names of a step cell's fields: the first columns of ``step.csv``."""


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """What is asked of the steps.

    Args:
        cells: Where, in order.
        implementations: Of the norms; the baseline among them.
        baseline: What ratios are taken against.
        eps: Added inside the root of every norm.
        seed: Of weights, tokens, order and padding.
        precision: Of the whole step, cell by cell; its parts get a sixth of the time each.
        parts: What is timed besides the whole step.
    """

    cells: tuple[StepCell, ...]
    implementations: tuple[str, ...]
    baseline: str = "nn-layernorm"
    eps: float = 1e-6
    seed: int = 0
    precision: Precision = field(default_factory=Precision)
    parts: tuple[Part, ...] = (Part.FORWARD, Part.BACKWARD, Part.OPTIMIZER)

    def __post_init__(self) -> None:
        if not self.cells:
            raise ValueError("cells: one at least")
        if self.baseline not in self.implementations:
            raise ValueError(f"implementations: the baseline {self.baseline[:40]!a} is not among them")
        if Part.STEP in self.parts:
            raise ValueError("parts: the whole step is always timed")
