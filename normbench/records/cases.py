"""What is measured: a cell of the grid, a case (a cell and an implementation), and their words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from normbench.records.sources import Source


class Operation(StrEnum):
    """What a cell computes; baseline and floor belong to it."""

    NORM = "norm"


class Op(StrEnum):
    """Which formula an implementation computes."""

    COPY = "copy"
    LAYERNORM = "layernorm"
    RMSNORM = "rmsnorm"

    @property
    def has_gain(self) -> bool:
        """Whether the formula multiplies by a parameter of the width."""
        return self is not Op.COPY

    @property
    def has_bias(self) -> bool:
        """Whether the formula adds a parameter of the width."""
        return self is Op.LAYERNORM


class Mode(StrEnum):
    """Which pass is timed."""

    FORWARD = "forward"
    BACKWARD = "backward"
    INFERENCE = "inference"
    FORWARD_BACKWARD = "forward-backward"

    @property
    def differentiates(self) -> bool:
        """Whether gradients are computed inside the timed call."""
        return self in (Mode.BACKWARD, Mode.FORWARD_BACKWARD)

    @property
    def returns_output(self) -> bool:
        """Whether the timed call computes y."""
        return self is not Mode.BACKWARD


class DType(StrEnum):
    """A floating-point format, by its short name."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return 4 if self is DType.FP32 else 2

    @property
    def roundoff(self) -> float:
        """Unit roundoff u = 2^-p, p the bits of the significand (IEEE 754; bfloat16 has 8)."""
        return {DType.FP32: 2.0**-24, DType.BF16: 2.0**-8, DType.FP16: 2.0**-11}[self]

    @property
    def smallest(self) -> float:
        """The smallest positive subnormal, below which nothing is represented."""
        return {DType.FP32: 2.0**-149, DType.BF16: 2.0**-133, DType.FP16: 2.0**-24}[self]

    @property
    def torch_name(self) -> str:
        """The name of the same format in torch."""
        return {DType.FP32: "float32", DType.BF16: "bfloat16", DType.FP16: "float16"}[self]


class Cache(StrEnum):
    """What the last-level cache holds when a sample starts: nothing of the inputs, or what one call left."""

    COLD = "cold"
    WARM = "warm"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One point of the grid. Its fields, in this order, are the key of every CSV.

    ``rows`` × ``width`` is the shape of x; ``autocast`` is None where autocast is off.
    """

    operation: Operation = Operation.NORM
    mode: Mode
    rows: int
    width: int
    dtype: DType
    parameter_dtype: DType
    autocast: DType | None = None
    cache: Cache

    def __post_init__(self) -> None:
        if self.rows < 1 or self.width < 1:
            raise ValueError(f"a cell has at least one row and one column, not {self.rows} × {self.width}")

    @property
    def elements(self) -> int:
        """Elements of x."""
        return self.rows * self.width

    @property
    def key(self) -> tuple[str, ...]:
        """The fields as text, empty for an absent one: equal exactly for equal cells."""
        return tuple("" if (value := getattr(self, name)) is None else str(value) for name in CELL_KEY)

    @property
    def size(self) -> str:
        """Its rows and columns: ``512×256``."""
        return f"{self.rows}×{self.width}"

    def __str__(self) -> str:
        parts = [self.size, self.dtype, self.mode]
        if self.parameter_dtype is not self.dtype:
            parts.append(f"parameters {self.parameter_dtype}")
        if self.autocast is not None:
            parts.append(f"autocast {self.autocast}")
        return " ".join([*parts, self.cache])


CELL_KEY: tuple[str, ...] = tuple(field.name for field in fields(Cell))
"""The names of a cell's fields: the first columns of every CSV."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A cell and the name of an implementation; one case gives one record."""

    cell: Cell
    implementation: str


def is_below(path: str) -> bool:
    """Whether a relative path leads nowhere else than below the folder that it starts in."""
    return not path.startswith("/") and ".." not in path.split("/") and "\\" not in path and "\0" not in path


@dataclass(frozen=True, kw_only=True)
class ImplementationInfo:
    """What reports say of an implementation.

    Args:
        name: ``provider-op``.
        op: Its formula.
        provider: Who computes it.
        summary: One line on what it is.
        compiled: Whether it is a graph that torch.compile built (always a static one here).
        source: Where its code lies, where normbench does not bring it.
    """

    name: str
    op: Op
    provider: str
    summary: str
    compiled: bool = False
    source: Source | None = None
