"""LayerNorm and RMSNorm of a few values worked out step by step, and what a shift and a scale do to each.

Plain float64: every operation rounds once, in the order of the values, as it would on paper and as the page's script
does it again, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from normbench.records import Op

MOST_VALUES = 32
"""More could neither be read nor moved."""

MOST_NUMBER = 1e50
"""The largest magnitude of any number that is given: a scaled value's square, and a gain times it, stay finite."""

_NORMS = (Op.LAYERNORM, Op.RMSNORM)
_REDUCTIONS = {Op.LAYERNORM: ("mean", "variance"), Op.RMSNORM: ("mean of squares",)}


class StepName(StrEnum):
    """The ten steps, in their order."""

    VALUES = "values"
    MEAN = "mean"
    CENTRED = "centred"
    SQUARES = "squares"
    MEAN_OF_SQUARES = "mean_of_squares"
    PLUS_EPS = "plus_eps"
    ROOT = "root"
    DIVIDED = "divided"
    TIMES_GAIN = "times_gain"
    PLUS_BIAS = "plus_bias"

    @property
    def is_of_row(self) -> bool:
        """Whether it gives one number for the row, and not one for each value."""
        return self in _OF_ROW


_OF_ROW = (StepName.MEAN, StepName.MEAN_OF_SQUARES, StepName.PLUS_EPS, StepName.ROOT)


@dataclass(frozen=True, kw_only=True)
class Example:
    """What is worked out; numbers without a unit.

    Args:
        values: One row of x, from 1 to ``MOST_VALUES`` values.
        shift: What is added to every value to see what that changes.
        scale: What every value is multiplied by to see what that changes.
        eps: What is added inside the root, from 0.
        gain: One for each value.
        bias: One for each value; RMSNorm has none.

    Raises:
        ValueError: A number is not finite or beyond ``MOST_NUMBER``, eps is negative, or the lengths differ.
    """

    values: tuple[float, ...]
    gain: tuple[float, ...]
    bias: tuple[float, ...]
    shift: float = 1.0
    scale: float = 2.0
    eps: float = 1e-6

    def __post_init__(self) -> None:
        if not 1 <= len(self.values) <= MOST_VALUES or {len(self.gain), len(self.bias)} != {len(self.values)}:
            raise ValueError(f"from 1 to {MOST_VALUES} values, each with a gain and a bias")
        numbers = (*self.values, *self.gain, *self.bias, self.shift, self.scale, self.eps)
        if not all(abs(number) <= MOST_NUMBER for number in numbers) or self.eps < 0:
            raise ValueError(f"all numbers lie within ±{MOST_NUMBER:g}, and eps is not below 0")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One of the ten steps of a norm.

    Args:
        name: Which.
        figures: One for each value, or a single one where the step is of the row; None where this norm has no such
            step. What is divided by a root of 0 is NaN or infinite.
    """

    name: StepName
    figures: tuple[float, ...] | None


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What becomes of a norm's output when its input changes.

    Args:
        after: The output then.
        largest_change: The largest difference from the output before.
        from_invariance: Of a scale, the largest difference from what an eps of 0 would leave, which is the output
            before, its normalized part turned by a negative scale. None for a shift, and for a scale of 0.
    """

    after: tuple[float, ...]
    largest_change: float
    from_invariance: float | None = None


@dataclass(frozen=True, kw_only=True)
class NormWalk:
    """One norm of an example.

    Args:
        op: Which norm.
        steps: All ten, in their order.
        shifted: What the example's shift does to the output.
        scaled: What its scale does.
        parameters: How many numbers are learned for a row of this width.
        reductions: What is summed over the row.
    """

    op: Op
    steps: tuple[Step, ...]
    shifted: Effect
    scaled: Effect
    parameters: int
    reductions: tuple[str, ...]

    @property
    def output(self) -> tuple[float, ...]:
        """The result of the last step that this norm has."""
        return _output(self.steps)


@dataclass(frozen=True, kw_only=True)
class Walkthrough:
    """Both norms of one example."""

    example: Example
    layernorm: NormWalk
    rmsnorm: NormWalk

    @property
    def norms(self) -> tuple[NormWalk, NormWalk]:
        """LayerNorm, then RMSNorm."""
        return self.layernorm, self.rmsnorm


def walk_through(example: Example) -> Walkthrough:
    """Work an example out."""
    layernorm, rmsnorm = (_walk(op, example) for op in _NORMS)
    return Walkthrough(example=example, layernorm=layernorm, rmsnorm=rmsnorm)


def _walk(op: Op, example: Example) -> NormWalk:
    steps = _steps(op, example.values, example)
    before = _output(steps)
    shifted = _output(_steps(op, [value + example.shift for value in example.values], example))
    scaled = _output(_steps(op, [value * example.scale for value in example.values], example))
    invariant = _invariant(op, steps, example)
    return NormWalk(
        op=op,
        steps=steps,
        shifted=Effect(after=shifted, largest_change=_largest_difference(before, shifted)),
        scaled=Effect(
            after=scaled,
            largest_change=_largest_difference(before, scaled),
            from_invariance=None if invariant is None else _largest_difference(invariant, scaled),
        ),
        parameters=len(example.values) * (op.has_gain + op.has_bias),
        reductions=_REDUCTIONS[op],
    )


def _steps(op: Op, values: Sequence[float], example: Example) -> tuple[Step, ...]:
    mean = _mean(values) if op.centres else None
    centred = None if mean is None else [value - mean for value in values]
    normalized = values if centred is None else centred
    squares = [value * value for value in normalized]
    mean_of_squares = _mean(squares)
    root = math.sqrt(mean_of_squares + example.eps)
    divided = [_divided(value, root) for value in normalized]
    gained = _times(divided, example.gain)
    figures = {
        StepName.VALUES: values,
        StepName.MEAN: None if mean is None else [mean],
        StepName.CENTRED: centred,
        StepName.SQUARES: squares,
        StepName.MEAN_OF_SQUARES: [mean_of_squares],
        StepName.PLUS_EPS: [mean_of_squares + example.eps],
        StepName.ROOT: [root],
        StepName.DIVIDED: divided,
        StepName.TIMES_GAIN: gained,
        StepName.PLUS_BIAS: _plus(gained, example.bias) if op.has_bias else None,
    }
    return tuple(Step(name=name, figures=None if f is None else tuple(f)) for name, f in figures.items())


def _mean(values: Sequence[float]) -> float:
    """The mean, and what it misses added: that of equal values is their value exactly, and not a rounding off it."""
    first = _sum(values) / len(values)
    return first + _sum([value - first for value in values]) / len(values)


def _sum(values: Sequence[float]) -> float:
    """From left to right; Python's own ``sum`` compensates since 3.12, which nobody's script does."""
    total = 0.0
    for value in values:
        total += value
    return total


def _divided(value: float, root: float) -> float:
    """A quotient as IEEE 754 has it, where Python raises an error."""
    if root:
        return value / root
    return math.copysign(math.inf, value) if value else math.nan


def _invariant(op: Op, steps: Sequence[Step], example: Example) -> list[float] | None:
    """The output for scaled values if eps were 0; None for a scale of 0, which leaves nothing of them."""
    if not example.scale:
        return None
    divided = next(step.figures for step in steps if step.name is StepName.DIVIDED) or ()
    gained = _times([math.copysign(1.0, example.scale) * value for value in divided], example.gain)
    return _plus(gained, example.bias) if op.has_bias else gained


def _times(values: Sequence[float], gain: Sequence[float]) -> list[float]:
    return [value * factor for value, factor in zip(values, gain, strict=True)]


def _plus(values: Sequence[float], bias: Sequence[float]) -> list[float]:
    return [value + term for value, term in zip(values, bias, strict=True)]


def _largest_difference(values: Sequence[float], others: Sequence[float]) -> float:
    differences = [abs(other - value) for value, other in zip(values, others, strict=True)]
    return math.nan if any(map(math.isnan, differences)) else max(differences)


def _output(steps: Sequence[Step]) -> tuple[float, ...]:
    return next(step.figures for step in reversed(steps) if step.figures is not None)
