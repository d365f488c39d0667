"""What a right result is: values in float64, how far from them a correct implementation may be, sums over rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch

from normbench.records import DType


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

    The sums are None where the formula has no such parameter or no gradient was asked for; h, the new residual, where
    nothing is added. dx is the gradient of the residual as well.
    """

    y: Expected
    dx: Expected | None = None
    h: Expected | None = None
    gain_sums: Sums | None = None
    bias_sums: Sums | None = None

    @property
    def outputs(self) -> Mapping[str, Expected]:
        """What belongs to single rows, by the names of results."""
        dresidual = self.dx if self.h is not None else None
        named = {"y": self.y, "h": self.h, "dx": self.dx, "dresidual": dresidual}
        return {name: expected for name, expected in named.items() if expected is not None}
