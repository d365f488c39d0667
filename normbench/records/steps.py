"""A training step with one norm or another: where it is measured, what it took, and how two of them compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from math import inf

from normbench.records.cases import Cache, Cell, DType, Mode
from normbench.records.models import ModelShape
from normbench.records.profile import check_bytes
from normbench.records.results import AgainstItself, Estimate, Flag, Outcome, Reason, Sample, Spent, Status


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
class StepNoise(AgainstItself):
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
