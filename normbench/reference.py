"""The truth in float64, and how far from it a correct implementation may be.

Notation: z = (x - mean)·r for LayerNorm and x·r for RMSNorm, r = 1 ÷ sqrt(v + eps), v the biased variance or
the mean square; y = z·gain + bias; g = dy·gain. Where a residual is added, h = x + residual stands in the place of x.

A tolerance is the rounding that a correct implementation commits, by the standard model of floating-point
arithmetic (Higham, Accuracy and Stability of Numerical Algorithms, 2002, ch. 2-4), times a small factor:

- each product, quotient or sum stored in a format of unit roundoff u is off by at most u of its size, so an
  element is judged against the sizes of the terms it is summed up from, not against itself: terms that
  cancel leave their errors behind;
- a statistic over n values in float32 is off by up to ``accumulation(n)``·2^-24 (blocked or tree summation,
  whose error grows with the root of the block count). An error of r is a fraction of each z, and LayerNorm's
  r inherits the mean's; the mean's own error is passed on to every centred value, which makes it r·mean|x| of
  those roundoffs in z, however small z is;
- what underflows where z or a product is stored is lost, up to half of the smallest positive number each;
- a mean square or a mean that underflows is lost, too, which is the more the smaller they are: of r a fraction of
  r²·(the smallest positive number), and of z r·(that number). Running means, as Welford's, underflow at each of n
  steps, which walk 1 + √n of float32's;
- who keeps a statistic in half precision rounds it four times: 4u, and half precision's smallest number there;
- sums over rows of rounded products err like a random walk, by u times the root of the sum of squares; and
  kernels do add the rows one after the other in float32, which adds a roundoff of the partial sum, whose
  size is at most about that root plus the total, at each row: 2^-24 times the root of the row count;
- with a residual add the norm may read the float32 sum or, as two kernels do, the sum rounded to the format of x:
  both are right, and h itself is rounded to that format either way. ``_inherited`` has what that makes of z and r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from normbench.expected import Expected, Rounding, Rows, Sums
from normbench.inputs import Operands
from normbench.records import DType, Op

_ROUNDINGS_FORWARD = 4.0
_ROUNDINGS_BACKWARD = 6.0
_ROUNDINGS_KEPT = 4.0
_ROUNDINGS_ADD = 2.0
_ROUNDINGS_SUM = 8.0
_WALK = 1.5
_FEW_COLUMNS = 8
_MANY_COLUMNS = 32
_U32 = DType.FP32.roundoff


def accumulation(count: int) -> float:
    """Roundoffs that a float32 sum over ``count`` values may be off by, as a multiple of 2^-24."""
    return 8.0 * (1.0 + math.sqrt(count / 64))


def rows(op: Op, operands: Operands, eps: float, coarsest: Rounding, statistic_format: Rounding = DType.FP32) -> Rows:
    """What ``op`` gives for the rows in ``operands``.

    Args:
        op: The formula.
        operands: x, and dy where gradients are wanted, of shape (rows, width); parameters of shape (width,).
            Where the formula adds a residual, that and dh too.
        eps: Added inside the root.
        coarsest: The coarsest format that an implementation may round to on its way.
        statistic_format: The format in which the mean square, and the mean, may be kept.
    """
    if op.adds:
        assert operands.residual is not None
        return _add_rows(op, operands, operands.residual, eps, coarsest, statistic_format)
    x = operands.x.detach().double()
    dy = None if operands.dy is None else operands.dy.double()
    if op is Op.COPY:
        return _copy_rows(x, dy, coarsest)
    return _norm_rows(op, x, dy, operands, eps, coarsest, statistic_format, 0.0)


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


def _add_copy_rows(
    x: torch.Tensor, residual: torch.Tensor, dy: torch.Tensor | None, dh: torch.Tensor | None, coarsest: Rounding
) -> Rows:
    y, h = (Expected(value=t, tolerance=torch.zeros_like(t), scale=t.abs()) for t in (x, residual))
    if dy is None or dh is None:
        return Rows(y=y, h=h)
    size = residual.abs() + (dy * dh).abs()
    tolerance = _ROUNDINGS_ADD * coarsest.roundoff * size + coarsest.smallest
    return Rows(y=y, h=h, dx=Expected(value=residual + dy * dh, tolerance=tolerance, scale=size))


def _norm_rows(
    op: Op,
    x: torch.Tensor,
    dy: torch.Tensor | None,
    operands: Operands,
    eps: float,
    coarsest: Rounding,
    statistic_format: Rounding,
    of_sum: float,
) -> Rows:
    centred, root = _centred(op, x), reciprocal_root(op, x, eps)
    z = centred * root
    gain = torch.ones_like(x[0]) if operands.gain is None else operands.gain.detach().double()
    bias = torch.zeros_like(x[0]) if operands.bias is None else operands.bias.detach().double()
    statistic = _statistic(op, x, root, statistic_format)
    inherited = _inherited(op, x, z, root, eps, of_sum) if of_sum else None
    of_z = statistic.of_root * z.abs() + statistic.of_mean + (inherited.of_z if inherited else 0.0)
    size = (z * gain).abs() + bias.abs()
    tolerance = (
        _ROUNDINGS_FORWARD * coarsest.roundoff * size + of_z * gain.abs() + (1.0 + gain.abs()) * coarsest.smallest
    )
    y = Expected(value=z * gain + bias, tolerance=tolerance, scale=size + gain.abs())
    if dy is None:
        return Rows(y=y)
    of_terms = dy.abs() * of_z + (1.0 + dy.abs()) * coarsest.smallest
    dx = _input_gradient(op, z, dy * gain, root, statistic.of_root + statistic.of_mean, coarsest)
    if inherited is not None:
        dx = replace(dx, tolerance=dx.tolerance + _of_gradient(inherited, z, dy * gain, dx.scale))
    return Rows(
        y=y,
        dx=dx,
        gain_sums=_sums(dy * z, dy * root * x, of_terms) if op.has_gain else None,
        bias_sums=_sums(dy, dy, torch.zeros_like(dy[:1])) if op.has_bias else None,
    )


def _centred(op: Op, x: torch.Tensor) -> torch.Tensor:
    return x - x.mean(-1, keepdim=True) if op.centres else x


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
    mean_size = root * x.abs().mean(-1, keepdim=True) if op.centres else torch.zeros_like(root)
    return _Statistic(
        of_root=(rounding + root.square() * underflow) * (1.0 + mean_size),
        of_mean=rounding * mean_size + (root * underflow if op.centres else 0.0),
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
    op: Op, z: torch.Tensor, g: torch.Tensor, root: torch.Tensor, statistic: torch.Tensor, coarsest: Rounding
) -> Expected:
    """Dx = r·(g - mean(g) - z·mean(g·z)), without the mean(g) for RMSNorm."""
    along = (g * z).mean(-1, keepdim=True)
    value = g - z * along
    size = g.abs() + z.abs() * (g * z).abs().mean(-1, keepdim=True)
    if op.centres:
        value = value - g.mean(-1, keepdim=True)
        size = size + g.abs().mean(-1, keepdim=True)
    size = root * size
    # An underflow of g in a coarse format grows with r, which is large where the row is tiny.
    underflow = (1.0 + root) * coarsest.smallest
    tolerance = (_ROUNDINGS_BACKWARD * coarsest.roundoff + statistic) * size + underflow
    return Expected(value=root * value, tolerance=tolerance, scale=size)


def _add_rows(
    op: Op, operands: Operands, residual: torch.Tensor, eps: float, coarsest: Rounding, statistic_format: Rounding
) -> Rows:
    """What a residual add and norm give: the norm's of the sum, the sum itself, and dh added to the gradient.

    The gradient of the norm may be rounded before dh is added, and the sum is rounded once more.
    """
    x, dy, dh = (None if t is None else t.detach().double() for t in (operands.x, operands.dy, operands.dh))
    assert x is not None
    if op.is_floor:
        return _add_copy_rows(x, residual.detach().double(), dy, dh, coarsest)
    of_sum = torch.finfo(operands.x.dtype).eps / 2
    h = x + residual.detach().double()
    new = Expected(value=h, tolerance=(of_sum + _ROUNDINGS_ADD * _U32) * h.abs(), scale=h.abs())
    found = _norm_rows(op.norm, h, dy, operands, eps, coarsest, statistic_format, of_sum)
    if found.dx is None or dh is None:
        return replace(found, h=new)
    size = found.dx.scale + dh.abs()
    tolerance = found.dx.tolerance + _ROUNDINGS_ADD * coarsest.roundoff * size
    return replace(found, h=new, dx=Expected(value=found.dx.value + dh, tolerance=tolerance, scale=size))


@dataclass(frozen=True, kw_only=True)
class _Inherited:
    """How far off z, element by element, and r, as a fraction of it, may be for what the norm read was rounded.

    ``largest_root`` is what r may be then.
    """

    of_z: torch.Tensor
    of_root: torch.Tensor
    largest_root: torch.Tensor


def _inherited(
    op: Op, h: torch.Tensor, z: torch.Tensor, root: torch.Tensor, eps: float, rounding: float
) -> _Inherited:
    """What errors e, |e| ≤ u·|h|, in the values h that a norm reads make of z and of r: bounds, to every order.

    The root of v is a norm of the (centred) values, so it changes by no more than that of e, u times the root mean
    square of h, which bounds r on both sides. And z = c·r changes by c times r's change and (e - mean(e)) times the
    new r. Nothing is taken off for errors that cancel in a mean: those of equal values are equal. Where the spread of
    a row is hardly more than what rounding changes, as in some rows of two columns, r and dx may be anything.
    """
    spread = z.square().mean(-1, keepdim=True).sqrt() / root
    change = rounding * h.square().mean(-1, keepdim=True).sqrt()
    largest = ((spread - change).clamp(min=0.0).square() + eps).rsqrt()
    smallest = ((spread + change).square() + eps).rsqrt()
    of_root = torch.maximum(largest - root, root - smallest) / root
    error = rounding * (h.abs() + (h.abs().mean(-1, keepdim=True) if op.centres else 0.0))
    return _Inherited(of_z=z.abs() * of_root + error * largest, of_root=of_root, largest_root=largest)


def _of_gradient(inherited: _Inherited, z: torch.Tensor, g: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """What that makes of dx: its size times r's change, and z's change in both places, times the new r."""
    of_z, of_along = inherited.of_z, (g * z).abs().mean(-1, keepdim=True)
    of_terms = of_z * of_along + (z.abs() + of_z) * (g.abs() * of_z).mean(-1, keepdim=True)
    return inherited.of_root * size + inherited.largest_root * of_terms
