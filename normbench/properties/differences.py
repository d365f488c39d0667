"""Gradients against differences of the float64 formula: nobody's derivation stands between the two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import torch

from normbench import correctness, reference
from normbench.expected import Expected
from normbench.inputs import Operands
from normbench.properties import values
from normbench.properties.judging import Found, Truths, compared, not_applicable, truth
from normbench.properties.subject import Subject
from normbench.records import Output

_WIDEST = 64
_STEP = 1e-5
"""In x of the row's root, since that is the scale on which y bends; in the parameters of 1, where y is straight."""
_OF_DIFFERENCES = 1e-7
"""Of the terms: the third derivative times step², and a loss's rounding in float64 over the step, are below 1e-8."""


def finite_differences(subject: Subject) -> Iterator[Found]:
    """Every gradient, element by element."""
    if subject.spot.width > _WIDEST:
        yield not_applicable(f"asked up to width {_WIDEST}: it takes two forwards an element")
        return
    operands = values.operands(subject, "differences", values.normal).of(subject.op)
    right, results = truth(subject, operands), subject.call(operands)
    slopes = _slopes(subject, operands)
    for output, slope in slopes.items():
        fine, coarse = (_at(slope, part, output) for part in (right.fine, right.coarse))
        yield compared(output, results[output], fine, coarse, results[output].dtype)


def _at(slope: torch.Tensor, part: Truths, output: Output) -> Expected:
    expected = part[output]
    return replace(expected, value=slope, tolerance=expected.tolerance + _OF_DIFFERENCES * expected.scale)


def _slopes(subject: Subject, operands: Operands) -> Mapping[Output, torch.Tensor]:
    """Central differences of the loss Σ y·dy; rows are independent, so that each has its own for dx."""
    wide = replace(
        operands,
        x=operands.x.detach().double(),
        gain=None if operands.gain is None else operands.gain.double(),
        bias=None if operands.bias is None else operands.bias.double(),
    )
    size = 1 / reference.reciprocal_root(subject.op, wide.x, subject.eps)
    found = {Output.DX: _columns(subject, lambda step: replace(wide, x=wide.x + step * size)).t() / size}
    if wide.gain is not None:
        gain = wide.gain
        found[Output.DGAIN] = _columns(subject, lambda step: replace(wide, gain=gain + step)).sum(1)
    if wide.bias is not None:
        bias = wide.bias
        found[Output.DBIAS] = _columns(subject, lambda step: replace(wide, bias=bias + step)).sum(1)
    return found


def _columns(subject: Subject, moved: Callable[[torch.Tensor], Operands]) -> torch.Tensor:
    """The slope of each row's loss along each column: (width, rows)."""
    step = _STEP * torch.eye(subject.spot.width, dtype=torch.float64, device=subject.device)
    up_down = ((_losses(subject, moved(s)), _losses(subject, moved(-s))) for s in step)
    return torch.stack([(up - down) / (2 * _STEP) for up, down in up_down])


def _losses(subject: Subject, operands: Operands) -> torch.Tensor:
    """Σ y·dy of each row, in float64."""
    assert operands.dy is not None
    coarsest = correctness.coarsest_of(subject.spot)
    y = reference.rows(subject.op, replace(operands, dy=None), subject.eps, coarsest).y.value
    return (y * operands.dy.double()).sum(-1)
