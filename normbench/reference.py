"""The truth in float64, and how far from it a correct implementation may be.

Notation: h = (x - mean)·r for LayerNorm and x·r for RMSNorm, r = 1 ÷ sqrt(v + eps), v the biased variance or
the mean square; y = h·gain + bias; g = dy·gain.

A tolerance is the rounding that a correct implementation commits, by the standard model of floating-point
arithmetic (Higham, Accuracy and Stability of Numerical Algorithms, 2002, ch. 2-4), times a small factor:

- each product, quotient or sum stored in a format of unit roundoff u is off by at most u of its size, so an
  element is judged against the sizes of the terms it is summed up from, not against itself: terms that
  cancel leave their errors behind;
- a statistic over n values in float32 is off by up to ``accumulation(n)``·2^-24 (blocked or tree summation,
  whose error grows with the root of the block count). An error of r is a fraction of each h, and LayerNorm's
  r inherits the mean's; the mean's own error is passed on to every centred value, which makes it r·mean|x| of
  those roundoffs in h, however small h is;
- what underflows where h or a product is stored is lost, up to half of the smallest positive number each;
- a mean square or a mean that underflows is lost, too, which is the more the smaller they are: of r a fraction of
  r²·(the smallest positive number), and of h r·(that number). Running means, as Welford's, underflow at each of n
  steps, which walk 1 + √n of float32's;
- who keeps a statistic in half precision rounds it four times: 4u, and half precision's smallest number there;
- sums over rows of rounded products err like a random walk, by u times the root of the sum of squares; and
  kernels do add the rows one after the other in float32, which adds a roundoff of the partial sum, whose
  size is at most about that root plus the total, at each row: 2^-24 times the root of the row count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch

from normbench.inputs import Operands
from normbench.records import DType, Op

_ROUNDINGS_FORWARD = 4.0
_ROUNDINGS_BACKWARD = 6.0
_ROUNDINGS_KEPT = 4.0
_ROUNDINGS_SUM = 8.0
_WALK = 1.5
_FEW_COLUMNS = 8
_MANY_COLUMNS = 32
_U32 = DType.FP32.roundoff


class Rounding(Protocol):
    """How a format rounds; every ``DType`` is one."""

    @property
    def roundoff(self) -> float:
        """Unit roundoff."""

    @property
    def smallest(self) -> float:
        """The smallest positive number."""


@dataclass(frozen=True, kw_only=True)
class Coarsest:
    """Several formats at once: the largest roundoff of one, the largest underflow of maybe another."""

    roundoff: float
    smallest: float

    @classmethod
    def of(cls, dtypes: Iterable[DType]) -> Coarsest:
        """The coarsest that an implementation may do which uses all of these."""
        used = list(dtypes)
        return cls(roundoff=max(d.roundoff for d in used), smallest=max(d.smallest for d in used))


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The right value in float64, and the largest error of a correct implementation, element by element."""

    value: torch.Tensor
    tolerance: torch.Tensor
    scale: torch.Tensor


@dataclass(frozen=True, kw_only=True)
class Sums:
    """A parameter's gradient in the making: sums over rows, each a vector of the width.

    Args:
        total: Of the terms.
        squares: Of the terms' squares.
        uncentred: Of the squares that the terms would have without centring x: a kernel may add dy·r·x and
            subtract dy·r·mean apart, and the errors are those of the larger numbers.
        errors: Of the squares of the errors that the terms inherit from their row's statistic.
        sizes: Of the absolute values that the terms would have without centring x: no partial sum is larger.
    """

    total: torch.Tensor
    squares: torch.Tensor
    uncentred: torch.Tensor
    errors: torch.Tensor
    sizes: torch.Tensor

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            total=self.total + other.total,
            squares=self.squares + other.squares,
            uncentred=self.uncentred + other.uncentred,
            errors=self.errors + other.errors,
            sizes=self.sizes + other.sizes,
        )


@dataclass(frozen=True, kw_only=True)
class Rows:
    """What some rows give: y and dx of these rows, and their part of the sums over rows.

    The sums are None where the formula has no such parameter or no gradient was asked for.
    """

    y: Expected
    dx: Expected | None = None
    gain_sums: Sums | None = None
    bias_sums: Sums | None = None


def accumulation(count: int) -> float:
    """Roundoffs that a float32 sum over ``count`` values may be off by, as a multiple of 2^-24."""
    return 8.0 * (1.0 + math.sqrt(count / 64))


def rows(op: Op, operands: Operands, eps: float, coarsest: Rounding, statistic_format: Rounding = DType.FP32) -> Rows:
    """What ``op`` gives for the rows in ``operands``.

    Args:
        op: The formula.
        operands: x, and dy where gradients are wanted, of shape (rows, width); parameters of shape (width,).
        eps: Added inside the root.
        coarsest: The coarsest format that an implementation may round to on its way.
        statistic_format: The format in which the mean square, and the mean, may be kept.
    """
    x = operands.x.detach().double()
    dy = None if operands.dy is None else operands.dy.double()
    if op is Op.COPY:
        return _copy_rows(x, dy, coarsest)
    return _norm_rows(op, x, dy, operands, eps, coarsest, statistic_format)


def parameter_gradient(
    sums: Sums, row_count: int, coarsest: Rounding, accumulator: Rounding, *, independent: bool = True
) -> Expected:
    """A parameter's gradient, from the sums of all rows: a vector of the width.

    Args:
        sums: Over all rows.
        row_count: How many rows that is.
        coarsest: The coarsest format that an implementation may round terms and result to.
        accumulator: The format in which partial sums are kept.
        independent: Whether the rows' terms are independent of each other, so that partial sums are no larger than
            a random walk's. In a model's backward they are not: they may grow all the way and cancel at the end.
            Nor do roundoffs walk where a format is so coarse that a sum gets stuck: a term below half a roundoff of
            what is summed up already is lost, and so are all that follow. The bound of any order of summation is
            then the only one: a roundoff of the sizes at each row, and no more than the sizes themselves.
    """
    spread = sums.squares.sqrt()
    partial = sums.uncentred.sqrt() + sums.total.abs() if independent else sums.sizes
    walk = _WALK * (1.0 + math.sqrt(row_count)) * accumulator.roundoff
    if not independent and accumulator.roundoff > _U32:
        walk = min(1.0, max(walk, row_count * accumulator.roundoff))
    tolerance = (
        _ROUNDINGS_SUM * coarsest.roundoff * spread
        + _ROUNDINGS_FORWARD * coarsest.roundoff * sums.total.abs()
        + walk * partial
        + sums.errors.sqrt()
        + coarsest.smallest
    )
    return Expected(value=sums.total, tolerance=tolerance, scale=spread + sums.total.abs())


def systematic_tolerance(row_count: int, width: int, coarsest: Rounding) -> float:
    """How far a whole result may be scaled by one common factor.

    Rounding errors of single elements are independent and cancel in the projection of the error on the
    result; what stays is the error of each row's statistic, independent between rows, and second-order
    bias. A wrong divisor in the variance (a factor sqrt(n ÷ (n - 1)) in y) is far above it, even where
    every single element passes in a coarse format.

    Anything goes below eight columns: a few rows of tiny spread outweigh all others there, and rows of one or
    two columns all round alike, so nothing cancels. A wrong divisor is 7 % or more, which single elements show.
    """
    if width < _FEW_COLUMNS:
        return math.inf
    by_row = (6.0 * coarsest.roundoff + accumulation(width) * _U32) / math.sqrt(row_count)
    return by_row + 8.0 * coarsest.roundoff**2 + 4.0 * _U32


def gradient_factor_tolerance(row_count: int, width: int, coarsest: Rounding) -> float:
    """How far a whole parameter gradient may be scaled by one common factor.

    The columns' summation errors are independent and cancel with the root of the width. Above half the
    value it is wrong whatever the arithmetic: a gradient that was never written, say.
    """
    tolerance = systematic_tolerance(row_count, width, coarsest) + 8.0 * coarsest.roundoff * math.sqrt(
        row_count / width
    )
    return min(0.5, tolerance) if width >= _MANY_COLUMNS else tolerance


def _copy_rows(x: torch.Tensor, dy: torch.Tensor | None, coarsest: Rounding) -> Rows:
    exact = Expected(value=x, tolerance=torch.zeros_like(x), scale=x.abs())
    if dy is None:
        return Rows(y=exact)
    size = x.abs() + dy.abs()
    return Rows(y=exact, dx=Expected(value=x + dy, tolerance=coarsest.roundoff * size, scale=size))


def _norm_rows(
    op: Op,
    x: torch.Tensor,
    dy: torch.Tensor | None,
    operands: Operands,
    eps: float,
    coarsest: Rounding,
    statistic_format: Rounding,
) -> Rows:
    centred, root = _centred(op, x), reciprocal_root(op, x, eps)
    h = centred * root
    gain = torch.ones_like(x[0]) if operands.gain is None else operands.gain.detach().double()
    bias = torch.zeros_like(x[0]) if operands.bias is None else operands.bias.detach().double()
    statistic = _statistic(op, x, root, statistic_format)
    of_h = statistic.of_root * h.abs() + statistic.of_mean
    size = (h * gain).abs() + bias.abs()
    tolerance = (
        _ROUNDINGS_FORWARD * coarsest.roundoff * size + of_h * gain.abs() + (1.0 + gain.abs()) * coarsest.smallest
    )
    y = Expected(value=h * gain + bias, tolerance=tolerance, scale=size + gain.abs())
    if dy is None:
        return Rows(y=y)
    of_terms = dy.abs() * of_h + (1.0 + dy.abs()) * coarsest.smallest
    return Rows(
        y=y,
        dx=_input_gradient(op, h, dy * gain, root, statistic.of_root + statistic.of_mean, coarsest),
        gain_sums=_sums(dy * h, dy * root * x, of_terms) if op.has_gain else None,
        bias_sums=_sums(dy, dy, torch.zeros_like(dy[:1])) if op.has_bias else None,
    )


def _centred(op: Op, x: torch.Tensor) -> torch.Tensor:
    return x - x.mean(-1, keepdim=True) if op is Op.LAYERNORM else x


def reciprocal_root(op: Op, x: torch.Tensor, eps: float) -> torch.Tensor:
    """R of each row, of shape (rows, 1).

    Args:
        op: The formula.
        x: Of shape (rows, width), in float64.
        eps: Added inside the root.
    """
    return (_centred(op, x).square().mean(-1, keepdim=True) + eps).rsqrt()


@dataclass(frozen=True, kw_only=True)
class _Statistic:
    """How far off a row's statistics may be: r as a fraction of it, and the mean in units of 1 ÷ r."""

    of_root: torch.Tensor
    of_mean: torch.Tensor


def _statistic(op: Op, x: torch.Tensor, root: torch.Tensor, kept_in: Rounding) -> _Statistic:
    """Both for statistics that are summed up in float32 and kept in a format, per row."""
    rounding, underflow = accumulation(x.shape[-1]) * _U32, (1.0 + math.sqrt(x.shape[-1])) * DType.FP32.smallest
    if kept_in is not DType.FP32:  # whose own rounding is the summation's
        rounding, underflow = rounding + _ROUNDINGS_KEPT * kept_in.roundoff, underflow + kept_in.smallest
    mean_size = root * x.abs().mean(-1, keepdim=True) if op is Op.LAYERNORM else torch.zeros_like(root)
    return _Statistic(
        of_root=(rounding + root.square() * underflow) * (1.0 + mean_size),
        of_mean=rounding * mean_size + (root * underflow if op is Op.LAYERNORM else 0.0),
    )


def _sums(terms: torch.Tensor, uncentred: torch.Tensor, errors: torch.Tensor) -> Sums:
    return Sums(
        total=terms.sum(0),
        squares=terms.square().sum(0),
        uncentred=uncentred.square().sum(0),
        errors=errors.square().sum(0),
        sizes=uncentred.abs().sum(0),
    )


def _input_gradient(
    op: Op, h: torch.Tensor, g: torch.Tensor, root: torch.Tensor, statistic: torch.Tensor, coarsest: Rounding
) -> Expected:
    """Dx = r·(g - mean(g) - h·mean(g·h)), without the mean(g) for RMSNorm."""
    along = (g * h).mean(-1, keepdim=True)
    value = g - h * along
    size = g.abs() + h.abs() * (g * h).abs().mean(-1, keepdim=True)
    if op is Op.LAYERNORM:
        value = value - g.mean(-1, keepdim=True)
        size = size + g.abs().mean(-1, keepdim=True)
    size = root * size
    # An underflow of g in a coarse format grows with r, which is large where the row is tiny.
    underflow = (1.0 + root) * coarsest.smallest
    tolerance = (_ROUNDINGS_BACKWARD * coarsest.roundoff + statistic) * size + underflow
    return Expected(value=root * value, tolerance=tolerance, scale=size)
