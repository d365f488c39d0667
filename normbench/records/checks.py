"""What ``check`` finds: one property of one implementation, asked once, and how far off its result was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from math import isfinite, isnan

from normbench.records.cases import DType, ImplementationInfo
from normbench.records.plan import MOST_CASES, MOST_SIZE
from normbench.records.properties import Property
from normbench.records.run import DeviceInfo, Environment

LEAST_EPS, MOST_EPS = 1e-30, 1e8
"""Between them float32 holds a thousandth of eps, as it holds the squares of values beside which eps matters, and
float16 holds values whose squares are about eps."""

MOST_IMPLEMENTATIONS = 1000
"""Of a check: each is a column."""


class Mark(StrEnum):
    """Whether a property holds."""

    PASS = "pass"
    FAIL = "fail"
    NOT_APPLICABLE = "n.a."


class Output(StrEnum):
    """What a norm computes: y, and the gradients of x, gain and bias."""

    Y = "y"
    DX = "dx"
    DGAIN = "dgain"
    DBIAS = "dbias"


@dataclass(frozen=True, kw_only=True)
class Spot:
    """Where a property is asked: the shape and the formats of what goes in.

    Unlike a cell, which is timed, it may have no rows, and belongs to no mode: forward and backward are both run.

    Args:
        rows: Rows of x.
        width: Columns of x.
        dtype: Of x and dy.
        parameter_dtype: Of gain and bias.
        autocast: The dtype of autocast; None where it is off.
    """

    rows: int
    width: int
    dtype: DType
    parameter_dtype: DType
    autocast: DType | None = None

    def __post_init__(self) -> None:
        if self.rows < 0 or self.width < 1:
            raise ValueError(f"there is no x of {self.rows} × {self.width}")

    def __str__(self) -> str:
        parts = [f"{self.rows}×{self.width}", str(self.dtype)]
        if self.parameter_dtype is not self.dtype:
            parts.append(f"parameters {self.parameter_dtype}")
        if self.autocast is not None:
            parts.append(f"autocast {self.autocast}")
        return " ".join(parts)


SPOT_KEY: tuple[str, ...] = tuple(field.name for field in fields(Spot))
"""The names of a spot's fields."""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """The largest distance of an output's elements from what is right, by three measures, each the largest by itself.

    Infinite where the output is no number.

    Args:
        ulp: In units in the last place of the output's own format, at the size of the terms that the element is
            summed up from, or of what is allowed where that is more.
        relative: As a fraction of that size.
        of_allowed: As a multiple of what an implementation that keeps its statistics and sums in float32 may be off
            by: above 1 it is wrong, or right only coarsely.
    """

    ulp: float
    relative: float
    of_allowed: float

    def __post_init__(self) -> None:
        for value in (self.ulp, self.relative, self.of_allowed):
            if isnan(value) or value < 0:
                raise ValueError(f"not a distance: {value}")


@dataclass(frozen=True, kw_only=True)
class Check:
    """One property of one implementation at one spot, of one output.

    Args:
        implementation: Whose.
        property: Which.
        spot: Where.
        output: What was looked at; None where there is no result, or where the property is of the whole call.
        mark: Whether it holds.
        reason: Why not, or why it can't be asked; None where it holds, and never empty.
        gap: How far off it was; None where there is nothing to compare.
        coarse: Whether it holds only if statistics or sums may be kept in half precision, which is right by its
            arithmetic and far less exact than float32.
        out_dtype: The format of the output, where that is not x's.
    """

    implementation: str
    property: Property
    spot: Spot
    output: Output | None
    mark: Mark
    reason: str | None = None
    gap: Gap | None = None
    coarse: bool = False
    out_dtype: DType | None = None

    def __post_init__(self) -> None:
        if (self.reason is None) != (self.mark is Mark.PASS) or self.reason == "":
            raise ValueError("whoever passes has no reason to give, and everyone else has one")
        if self.coarse and self.mark is not Mark.PASS:
            raise ValueError("only what passes can pass by the coarser tolerance")
        if self.mark is Mark.PASS and self.gap is not None and self._is_beyond(self.gap):
            raise ValueError(
                f"what is off by {self.gap.ulp:g} ulp, {self.gap.of_allowed:g} times what is allowed, does not pass"
            )

    def _is_beyond(self, gap: Gap) -> bool:
        return not isfinite(gap.ulp) or (gap.of_allowed > 1 and not self.coarse)


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """A failure that is known, and counts for nothing but itself.

    Args:
        implementation: Whose; None for anyone's.
        property: Of which property.
    """

    implementation: str | None = None
    property: Property

    def covers(self, implementation: str, asked: Property) -> bool:
        """Whether this is about it."""
        return asked is self.property and self.implementation in (None, implementation)

    def __str__(self) -> str:
        return str(self.property) if self.implementation is None else f"{self.implementation}:{self.property}"


@dataclass(frozen=True, kw_only=True)
class CheckPlan:
    """What is checked.

    Args:
        properties: Which.
        dtypes: Of x.
        widths: Of x.
        eps: Added inside the root, the same for all; from ``LEAST_EPS`` to ``MOST_EPS``.
        seed: Of all values.
    """

    properties: tuple[Property, ...]
    dtypes: tuple[DType, ...]
    widths: tuple[int, ...]
    eps: float
    seed: int

    def __post_init__(self) -> None:
        for name in ("properties", "dtypes", "widths"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise ValueError(f"{name}: one or more, and none twice")
        if not 1 <= min(self.widths) <= max(self.widths) <= MOST_SIZE:
            raise ValueError(f"widths: from 1 to {MOST_SIZE}")
        if not LEAST_EPS <= self.eps <= MOST_EPS:
            raise ValueError(f"eps: from {LEAST_EPS:g} to {MOST_EPS:g}")
        if not -(2**63) <= self.seed < 2**64:
            raise ValueError("the seed has 64 bits")
        self.refuse_too_many(1)

    def refuse_too_many(self, implementations: int) -> None:
        """A ValueError where this, asked of so many implementations, is more than anyone would wait for."""
        count = implementations * len(self.properties) * len(self.dtypes) * len(self.widths)
        if count > MOST_CASES:
            raise ValueError(f"{count} questions are more than {MOST_CASES}: ask for fewer widths or properties")


@dataclass(frozen=True, kw_only=True)
class CheckHeader:
    """What a check is, before and besides what it found.

    Args:
        created_utc: When it began, ISO 8601.
        command: The command line.
        plan: What was asked for.
        implementations: Of which implementations, in the order of reports.
        device: On which device.
        environment: With which software.
        allowed: The failures that do not count.
    """

    created_utc: str
    command: tuple[str, ...]
    plan: CheckPlan
    implementations: tuple[ImplementationInfo, ...]
    device: DeviceInfo
    environment: Environment
    allowed: tuple[Allowance, ...] = ()

    def __post_init__(self) -> None:
        names = [info.name for info in self.implementations]
        if not names or len(set(names)) < len(names):
            raise ValueError("implementations: one or more, and none twice")
        if len(names) > MOST_IMPLEMENTATIONS:
            raise ValueError(f"{len(names)} implementations are more than {MOST_IMPLEMENTATIONS}")
        self.plan.refuse_too_many(len(names))


@dataclass(frozen=True, kw_only=True)
class CheckRun:
    """Everything that a report of a check is made from.

    Args:
        header: What was checked.
        checks: What was found, in the order in which it was asked.
        seconds: How long it took; None where it was ended before it could say so.
        complete: Whether everything was asked.
    """

    header: CheckHeader
    checks: Sequence[Check]
    seconds: float | None
    complete: bool = True

    def __post_init__(self) -> None:
        if self.seconds is not None and not (isfinite(self.seconds) and self.seconds >= 0):
            raise ValueError(f"no time in seconds: {self.seconds}")
