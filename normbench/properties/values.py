"""The values that properties need: seeded, of every kind that is hard for a norm, rounded to the spot's formats."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from normbench.device import torch_dtype
from normbench.inputs import Operands, seed_of
from normbench.properties.subject import Subject
from normbench.records import DType

_FITTING = {DType.FP16: 250.0, DType.BF16: 1e6, DType.FP32: 1e6}
"""Squares fit into the format; in the wider formats as large as activations ever are."""
_OUTLIER = {DType.FP16: 200.0, DType.BF16: 1e4, DType.FP32: 1e4}
_OFFSET = {DType.FP16: (250.0, 0.125), DType.BF16: (500.0, 2.0), DType.FP32: (1024.0, 0.3)}
"""A common offset and what is added to a few: in half precision the format's spacing there."""
_NEAR, _CLOSE = 0.25, 0.25
_FEW = 4
_CONSTANTS = (1.0, -1.0, 3.0, 0.1, -0.7, 100.0, -1e-3)
_MOST_STEPS = 100
_FP16_FROM, _FP16_TO = 256.0, 6e4
_BEYOND_FP32 = 1e25


class Draw:
    """Seeded numbers of a subject's device, the same in every process.

    Args:
        subject: Whose spot and seed.
        purpose: Values for different purposes are independent.
    """

    def __init__(self, subject: Subject, purpose: str) -> None:
        seed = seed_of(str(subject.seed), purpose, str(subject.spot))
        self._generator = torch.Generator("cpu").manual_seed(seed)  # the same values on every device

    def normal(self, *shape: int) -> torch.Tensor:
        """Standard normal, float64, on the CPU."""
        return torch.randn(shape, generator=self._generator, dtype=torch.float64)

    def uniform(self, *shape: int) -> torch.Tensor:
        """Between 0 and 1."""
        return torch.rand(shape, generator=self._generator, dtype=torch.float64)

    def signs(self, *shape: int) -> torch.Tensor:
        """1 and -1."""
        return self.uniform(*shape).sub(0.5).sign()

    def order(self, count: int) -> torch.Tensor:
        """A permutation."""
        return torch.randperm(count, generator=self._generator)


Kind = Callable[[Draw, Subject], torch.Tensor]
"""Values of x, float64, of shape (rows, width)."""


def operands(subject: Subject, purpose: str, x: torch.Tensor | Kind) -> Operands:
    """X as given, with gain around 1, bias around 0 and a normal dy of mean 1, in the spot's formats.

    A dy whose mean were 0 would hide what is common to a row or a column: an error of the mean, a sum left out.
    """
    spot, draw = subject.spot, Draw(subject, purpose)
    data, parameters = torch_dtype(spot.dtype), torch_dtype(spot.parameter_dtype)

    def placed(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return values.to(dtype).to(subject.device)

    return Operands(
        x=placed(x if isinstance(x, torch.Tensor) else x(draw, subject), data),
        dy=placed(draw.normal(spot.rows, spot.width) + 1.0, data),
        gain=placed(draw.normal(spot.width) * 0.25 + 1.0, parameters),
        bias=placed(draw.normal(spot.width) * 0.25, parameters),
    )


def with_layout(given: Operands, laid_out: Callable[[torch.Tensor], torch.Tensor]) -> Operands:
    """The same values of x and dy in another layout."""
    assert given.dy is not None
    return replace(given, x=laid_out(given.x), dy=laid_out(given.dy))


def rows_of(given: Operands, chosen: torch.Tensor) -> Operands:
    """Some of the rows."""
    assert given.dy is not None
    return replace(given, x=given.x[chosen], dy=given.dy[chosen])


def without_bias(given: Operands) -> Operands:
    """The same with a bias of 0."""
    assert given.bias is not None
    return replace(given, bias=torch.zeros_like(given.bias))


def plain(given: Operands) -> Operands:
    """The same with gain 1 and bias 0."""
    assert given.gain is not None
    return replace(without_bias(given), gain=torch.ones_like(given.gain))


def normal(draw: Draw, subject: Subject) -> torch.Tensor:
    """Standard normal and 0.5, so that a LayerNorm that forgets the mean is seen; no row is near 0."""
    x = draw.normal(subject.spot.rows, subject.spot.width) + 0.5
    near = x.square().mean(-1, keepdim=True).sqrt() < _NEAR
    return _apart(x + 2 * _NEAR * near)


def _apart(x: torch.Tensor) -> torch.Tensor:
    """The same, but where a row's few numbers lie side by side by chance: then every second one is turned.

    They would be a large common offset, which is a kind of its own; what is asked of others must not depend on it.
    """
    mean = x.mean(-1, keepdim=True)
    close = (x - mean).square().mean(-1, keepdim=True).sqrt() < _CLOSE * mean.abs()
    turned = x.clone()
    turned[:, 1::2] *= -1
    return torch.where(close, turned, x)


def large(draw: Draw, subject: Subject) -> torch.Tensor:
    """As large as their squares fit into the format."""
    return _apart(draw.uniform(subject.spot.rows, subject.spot.width) * 2 - 1) * _FITTING[subject.spot.dtype]


def tiny(draw: Draw, subject: Subject) -> torch.Tensor:
    """Of which the mean square is about eps."""
    return draw.normal(subject.spot.rows, subject.spot.width) * math.sqrt(subject.eps)


def outlier(draw: Draw, subject: Subject) -> torch.Tensor:
    """Normal values, and in each row one that is far larger."""
    x = normal(draw, subject)
    rows = torch.arange(subject.spot.rows)
    columns = (draw.uniform(subject.spot.rows) * subject.spot.width).long()
    x[rows, columns] = _OUTLIER[subject.spot.dtype] * draw.signs(subject.spot.rows)
    return x


def offset(draw: Draw, subject: Subject) -> torch.Tensor:
    """A common number of which the square is so large that a float32 loses the variance beside it."""
    rows, width = subject.spot.rows, subject.spot.width
    common, size = _OFFSET[subject.spot.dtype]
    few = max(1, min(_FEW, width // 2))
    raised = draw.uniform(rows, width).argsort(dim=-1) < few
    finer = draw.uniform(rows, width) / 2 if subject.spot.dtype is DType.FP32 else 0.0
    return common + size * (raised + finer)


def zeros(_draw: Draw, subject: Subject) -> torch.Tensor:
    """Nothing but zeros."""
    return torch.zeros(subject.spot.rows, subject.spot.width, dtype=torch.float64)


def constants(_draw: Draw, subject: Subject) -> torch.Tensor:
    """A number in each row."""
    rows = torch.arange(subject.spot.rows) % len(_CONSTANTS)
    return torch.tensor(_CONSTANTS, dtype=torch.float64)[rows].unsqueeze(1).expand(-1, subject.spot.width)


def subnormals(draw: Draw, subject: Subject) -> torch.Tensor:
    """Some times the smallest number of the format."""
    shape = (subject.spot.rows, subject.spot.width)
    steps = (draw.uniform(*shape) * _MOST_STEPS).ceil()
    return steps * draw.signs(*shape) * subject.spot.dtype.smallest


def beyond_fp16(draw: Draw, subject: Subject) -> torch.Tensor:
    """Of which float16 holds each, and no square."""
    shape = (subject.spot.rows, subject.spot.width)
    return _apart((_FP16_FROM + draw.uniform(*shape) * (_FP16_TO - _FP16_FROM)) * draw.signs(*shape))


def beyond_fp32(draw: Draw, subject: Subject) -> torch.Tensor:
    """Of which float32 holds each, and no square."""
    shape = (subject.spot.rows, subject.spot.width)
    return _apart((0.5 + draw.uniform(*shape)) * draw.signs(*shape)) * _BEYOND_FP32


def balanced(draw: Draw, subject: Subject) -> torch.Tensor:
    """Rows of which each number stands beside its negative, and a zero where their count is odd: mean 0 exactly."""
    rows, width = subject.spot.rows, subject.spot.width
    half = draw.normal(rows, width // 2)
    return torch.cat([half, -half, torch.zeros(rows, width % 2, dtype=torch.float64)], dim=1)


def dyadic(draw: Draw, subject: Subject) -> torch.Tensor:
    """Eighths from -2 to 2 but 0: so few bits that sums with small whole numbers are exact in every format."""
    shape = (subject.spot.rows, subject.spot.width)
    return _apart((draw.uniform(*shape) * 16).floor().add(1) * draw.signs(*shape) / 8)


def alternating(subject: Subject, size: float) -> torch.Tensor:
    """Rows of size and -size in turn, a zero last where their count is odd: their mean is 0, but of a single one."""
    rows, width = subject.spot.rows, subject.spot.width
    row = torch.ones(width, dtype=torch.float64)
    row[1::2] = -1.0
    if width > 1:
        row[width - width % 2 :] = 0.0
    return (row * size).expand(rows, width)


def below_eps(_draw: Draw, subject: Subject) -> torch.Tensor:
    """A tenth of eps's root, in turn positive and negative."""
    return alternating(subject, 0.1 * math.sqrt(subject.eps))


def far_below_eps(draw: Draw, subject: Subject) -> torch.Tensor:
    """Of which the mean square is a thousandth of eps."""
    return draw.normal(subject.spot.rows, subject.spot.width) * math.sqrt(subject.eps) * 2.0**-5


def thousandths(_draw: Draw, subject: Subject) -> torch.Tensor:
    """0.001 and -0.001 in turn, whose squares are as large as eps usually is."""
    return alternating(subject, 1e-3)
