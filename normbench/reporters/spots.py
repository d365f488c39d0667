"""Words for the spots and outputs of some checks, in as few places as say it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from normbench import units
from normbench.records import Check, DType, Output, Spot
from normbench.reporters import statements

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)

EVERYWHERE = "everywhere"
"""Where everything that was asked is meant."""


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """A spot without its width; ``rows`` are None where they follow from the width."""

    dtype: DType
    parameter_dtype: DType
    autocast: DType | None
    rows: int | None

    @property
    def formats(self) -> str:
        parts = [str(self.dtype)]
        if self.parameter_dtype is not self.dtype:
            parts.append(f"with {self.parameter_dtype} parameters")
        if self.autocast is not None:
            parts.append(f"under autocast {self.autocast}")
        return " ".join(parts)


def places(found: Iterable[Check], asked: Sequence[Check]) -> list[str]:
    """Where some checks lie: ``fp16, all widths: y and dx``, ``fp32 at width 3: dx``.

    Args:
        found: Which.
        asked: All that were asked alike, those among them: what is all of it need not be spelled out.
    """
    found = list(found)
    if {(c.spot, c.output) for c in asked} <= {(c.spot, c.output) for c in found}:
        return [EVERYWHERE]
    has_rows = _rows_matter(check.spot for check in asked)
    widths = _gathered((_kind(check.spot, has_rows=has_rows), check.spot.width) for check in asked)
    outputs = _gathered((_kind(check.spot, has_rows=has_rows), check.output) for check in asked)
    by_output = _gathered(((_kind(check.spot, has_rows=has_rows), check.output), check.spot.width) for check in found)
    by_widths = _gathered(((kind, frozenset(at)), output) for (kind, output), at in by_output.items())
    alike = _gathered(
        ((_at(kind, at, widths[kind]), _of(of, outputs[kind])), kind) for (kind, at), of in by_widths.items()
    )
    return [f"{units.join([kind.formats for kind in kinds])}{where}{what}" for (where, what), kinds in alike.items()]


def formats(spot: Spot) -> str:
    """The formats of what goes in: ``bf16 with fp32 parameters``, ``fp32 under autocast bf16``."""
    return _kind(spot, has_rows=False).formats


def _rows_matter(spots: Iterable[Spot]) -> bool:
    """Whether there are spots that differ in their rows alone."""
    rows = _gathered(((_kind(spot, has_rows=False), spot.width), spot.rows) for spot in spots)
    return any(len(of_one) > 1 for of_one in rows.values())


def _kind(spot: Spot, *, has_rows: bool) -> _Kind:
    return _Kind(
        dtype=spot.dtype,
        parameter_dtype=spot.parameter_dtype,
        autocast=spot.autocast,
        rows=spot.rows if has_rows else None,
    )


def _at(kind: _Kind, widths: Iterable[int], every: Sequence[int]) -> str:
    rows = "" if kind.rows is None else f", {units.count(kind.rows, 'row')}"
    at = sorted(widths)
    if len(at) == len(every):
        return f"{', all widths' if len(every) > 1 else ''}{rows}"
    return f" at {statements.at(at)}{rows}"


def _of(outputs: Iterable[Output | None], every: Sequence[Output | None]) -> str:
    named = [output for output in Output if output in outputs]
    is_whole = set(every) <= {*named, None}
    return "" if is_whole or not named else f": {units.join(named)}"


def _gathered(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key, each once, in the order in which they came."""
    gathered: dict[K, dict[V, None]] = {}
    for key, value in pairs:
        gathered.setdefault(key, {})[value] = None
    return {key: list(values) for key, values in gathered.items()}
