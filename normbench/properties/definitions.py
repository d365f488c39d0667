"""Which formula it is: what is divided by, where eps stands, how large it is unless told, when both norms are one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from normbench.implementations import Setting
from normbench.inputs import Operands
from normbench.properties import values
from normbench.properties.judging import Found, agreement, compared, not_applicable, truth
from normbench.properties.subject import Subject, cell_of
from normbench.records import Mark, Mode, Op, Output

_HALF_WAY = 0.5
_OTHER = {Op.LAYERNORM: Op.RMSNORM, Op.RMSNORM: Op.LAYERNORM}


def equal_at_zero_mean(subject: Subject) -> Iterator[Found]:
    """Y of rows of mean 0, without a bias, against the other norm's formula, as exact as its own allows."""
    operands = values.operands(subject, "balanced", values.balanced)
    operands = values.without_bias(operands).of(subject.op)
    own, other = truth(subject, operands), truth(subject, operands, op=_OTHER[subject.op])
    fine, coarse = (replace(part[Output.Y], value=other.fine[Output.Y].value) for part in (own.fine, own.coarse))
    y = subject.call(operands)[Output.Y]
    yield compared(Output.Y, y, fine, coarse, y.dtype)


def population_variance(subject: Subject) -> Iterator[Found]:
    """Y against the formula that divides by N, where that of N - 1 would be told from it."""
    operands = values.plain(values.operands(subject, "variance", values.normal)).of(subject.op)
    right = truth(subject, operands)
    expected, coarse = right.fine[Output.Y], right.coarse[Output.Y]
    other = expected.value * _factor_of_sample_variance(subject, operands)
    if not bool(((other - expected.value).abs() > 2 * expected.tolerance).any()):
        yield not_applicable("N and N - 1 can't be told apart at this width and in this format")
        return
    y = subject.call(operands)[Output.Y]
    found = compared(Output.Y, y, expected, coarse, y.dtype)
    if found.coarse and _share(y.double() - expected.value, other - expected.value) > _HALF_WAY:
        yield replace(found, mark=Mark.FAIL, coarse=False, reason="the squares are divided by N - 1")
    else:
        yield found


def _share(found: torch.Tensor, whole: torch.Tensor) -> float:
    """How much of the way to another result there is in an error: its projection, in which roundings cancel."""
    return float((found * whole).sum() / whole.square().sum())


def _factor_of_sample_variance(subject: Subject, operands: Operands) -> torch.Tensor:
    """What y is multiplied by where the squares are divided by N - 1."""
    x, width = operands.x.double(), subject.spot.width
    centred = x - x.mean(-1, keepdim=True) if subject.op.centres else x
    square = centred.square().mean(-1, keepdim=True)
    return ((square + subject.eps) / (square * width / max(width - 1, 1) + subject.eps)).sqrt()


def default_eps(subject: Subject) -> Iterator[Found]:
    """What the provider adds where nobody says how much."""
    unset = subject.implementation.unset
    if unset is None:
        yield not_applicable("it is always told its eps")
        return
    operands = values.operands(subject, "default eps", values.thousandths).of(subject.op)
    bind = unset.build(Setting(cell=cell_of(subject.spot, Mode.FORWARD_BACKWARD), eps=subject.eps))
    yield from agreement(subject.call(operands, bind), truth(subject, operands, eps=unset.eps), subject.spot)
