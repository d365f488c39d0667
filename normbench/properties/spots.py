"""Where properties are asked: shapes and formats, so chosen that each costs a compiler one graph."""

from __future__ import annotations

from collections.abc import Sequence

from normbench.properties import QUESTIONS, Where
from normbench.records import CheckPlan, DType, Property, Spot

_ROWS, _FEW_ROWS = 33, 9
_MOST_ELEMENTS = 2**20
"""Of more, few rows are asked: every property compares dozens of tensors of this size in float64."""
_USUAL_WIDTH = 64
_MOST_SQUARE = 1024
"""A wider x is not made square: it would take gigabytes."""
_AUTOCAST = {DType.FP32: DType.BF16, DType.BF16: DType.BF16, DType.FP16: DType.FP16}
_MIXED = {DType.FP32: DType.BF16, DType.BF16: DType.FP32, DType.FP16: DType.FP32}


def spots(plan: CheckPlan, dtype: DType) -> dict[Spot, tuple[Property, ...]]:
    """The spots of a format of x, and what is asked at each; an odd number of rows unless the property says other."""
    found: dict[Spot, list[Property]] = {}
    for asked in plan.properties:
        for spot in _of(QUESTIONS[asked].where, plan.widths, dtype):
            found.setdefault(spot, []).append(asked)
    return {spot: tuple(properties) for spot, properties in found.items()}


def usual_width(widths: Sequence[int]) -> int:
    """The width for what is asked at one alone: 64, or the one given that is nearest to it."""
    return min(widths, key=lambda width: (abs(width - _USUAL_WIDTH), width))


def _of(where: Where, widths: Sequence[int], dtype: DType) -> list[Spot]:
    width = usual_width(widths)
    if where is Where.WIDTHS:
        return [_spot(width, dtype) for width in widths]
    if where is Where.NO_ROWS:
        return [_spot(width, dtype, rows=0)]
    if where is Where.ONE_ROW:
        return [_spot(width, dtype, rows=1)]
    if where is Where.SQUARE:
        return [_spot(width, dtype, rows=width if width <= _MOST_SQUARE else None)]
    if where is Where.MIXED:
        return [_spot(width, dtype, parameter_dtype=_MIXED[dtype])]
    if where is Where.AUTOCAST:
        return [_spot(width, dtype, autocast=_AUTOCAST[dtype])]
    return [_spot(width, dtype)]


def _spot(
    width: int,
    dtype: DType,
    *,
    rows: int | None = None,
    parameter_dtype: DType | None = None,
    autocast: DType | None = None,
) -> Spot:
    usual = _ROWS if _ROWS * width <= _MOST_ELEMENTS else _FEW_ROWS
    return Spot(
        rows=usual if rows is None else rows,
        width=width,
        dtype=dtype,
        parameter_dtype=parameter_dtype or dtype,
        autocast=autocast,
    )
