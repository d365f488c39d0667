"""What a norm does when its input changes: nothing, the same, or as much as in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import torch

from normbench.expected import Expected
from normbench.properties import values
from normbench.properties.judging import Found, Truth, Truths, compared, not_applicable, overflowed, truth, within
from normbench.properties.subject import Subject
from normbench.properties.values import Kind
from normbench.records import Op, Output

_SHIFT, _SCALE = 4.0, 16.0

_ONLY_OF = {
    Op.LAYERNORM: "RMSNorm takes no mean off",
    Op.RMSNORM: "LayerNorm takes the mean off",
}
"""Why a property of the one is not asked of the other."""


@dataclass(frozen=True, kw_only=True)
class Law:
    """x is changed, and a weighted sum of the results before and after is what it is in float64.

    Where the law says "nothing changes", the weights are -1 and 1 and the sum is 0, but for what eps changes.

    Args:
        kind: Draws x, in float64; few enough bits that ``change`` is exact.
        change: Of x.
        weights: Of the result before and of that after.
        only: The formula that it is a law of; both where None.
        moves: Whether the law is that something does change: then it must be more than is allowed.
    """

    kind: Kind
    change: Callable[[torch.Tensor], torch.Tensor]
    weights: Mapping[Output, tuple[float, float]]
    only: Op | None = None
    moves: bool = False

    def __call__(self, subject: Subject) -> Iterator[Found]:
        """What is found of y and dx."""
        if self.only not in (None, subject.op):
            yield not_applicable(_ONLY_OF[self.only])
            return
        before = values.operands(subject, self.kind.__name__, self.kind).of(subject.op)
        after = replace(before, x=self.change(before.x))
        results = [subject.call(operands) for operands in (before, after)]
        rights = [truth(subject, operands) for operands in (before, after)]
        for output, weights in self.weights.items():
            stored_in = results[0][output].dtype
            one, other = (
                overflowed(result[output], right.fine[output], stored_in)
                for result, right in zip(results, rights, strict=True)
            )
            actual = weights[0] * one + weights[1] * other
            fine, coarse = (_summed(output, weights, parts, stored_in) for parts in _tiers(rights))
            if self.moves and not bool((fine.value.abs() > 2 * fine.tolerance).any()):
                yield not_applicable(
                    "the change is too small to be told from rounding at this width and in this format"
                )
            else:
                yield compared(output, actual, fine, coarse, stored_in)


def _tiers(rights: list[Truth]) -> tuple[list[Truths], list[Truths]]:
    return [right.fine for right in rights], [right.coarse for right in rights]


def _summed(output: Output, weights: tuple[float, float], parts: list[Truths], stored_in: torch.dtype) -> Expected:
    """The same sum of what is right, off by no more than both of its terms may be."""
    (one, other), (first, second) = (within(part[output], stored_in) for part in parts), weights
    return Expected(
        value=first * one.value + second * other.value,
        tolerance=abs(first) * one.tolerance + abs(second) * other.tolerance,
        scale=torch.maximum(abs(first) * one.scale, abs(second) * other.scale),
    )


UNCHANGED = {Output.Y: (-1.0, 1.0), Output.DX: (-1.0, 1.0)}

SHIFT_INVARIANCE = Law(kind=values.dyadic, change=lambda x: x + _SHIFT, weights=UNCHANGED, only=Op.LAYERNORM)
SHIFT_DEPENDENCE = Law(
    kind=values.dyadic, change=lambda x: x + _SHIFT, weights={Output.Y: (-1.0, 1.0)}, only=Op.RMSNORM, moves=True
)
SCALE_INVARIANCE = Law(
    kind=values.normal, change=lambda x: x * _SCALE, weights={Output.Y: (-1.0, 1.0), Output.DX: (-1.0, _SCALE)}
)
SIGN_FLIP = Law(kind=values.normal, change=torch.neg, weights={Output.Y: (1.0, 1.0), Output.DX: (-1.0, 1.0)})
EPS_RULES = Law(
    kind=values.far_below_eps, change=lambda x: x * 2, weights={Output.Y: (-2.0, 1.0), Output.DX: (-1.0, 1.0)}
)


@dataclass(frozen=True, kw_only=True)
class MeanOfRows:
    """The mean of each row of y, with gain 1 and bias 0: 0 in LayerNorm, and what it is in float64 in RMSNorm.

    Args:
        only: The formula that is asked.
    """

    only: Op

    def __call__(self, subject: Subject) -> Iterator[Found]:
        """What is found of y."""
        if subject.op is not self.only:
            yield not_applicable(_ONLY_OF[self.only])
            return
        operands = values.plain(values.operands(subject, "mean of rows", values.normal)).of(subject.op)
        right, y = truth(subject, operands), subject.call(operands)[Output.Y]
        fine, coarse = (_row_means(part[Output.Y]) for part in (right.fine, right.coarse))
        yield compared(Output.Y, y.double().mean(-1), fine, coarse, y.dtype)


def _row_means(expected: Expected) -> Expected:
    return Expected(
        value=expected.value.mean(-1), tolerance=expected.tolerance.mean(-1), scale=expected.scale.mean(-1)
    )
