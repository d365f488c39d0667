"""``cells.csv``: what a cell leaves besides results, in a row that counts once its results are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import isfinite

from pydantic import TypeAdapter

from normbench.records import Cell, CellRecords, NoiseFloor, Spent
from normbench.storage.columns import CELL, Row, as_row, cell, cell_values

SPENT: dict[str, str] = {
    "timed_s": "seconds inside timed calls",
    "warming_s": "untimed calls that put the cache into its state, or touch new buffers first",
    "preparing_s": "the fresh forwards that each call of a backward has outside the clock",
    "flushing_s": "emptying the cache before cold samples",
    "holding_s": "on a GPU everything else in the queue: the spin, fresh forwards, flushes, waiting",
    "placing_s": "allocating and filling placements",
    "checking_s": "building implementations and comparing their results with the reference",
    "compiling_s": "torch.compile",
    "starting_s": "starting worker processes; of the first cell",
    "profiling_s": "profiling",
    "elapsed_s": "all of it; what the others leave goes into choosing orders, reading clocks, judging, writing",
}
"""The columns of where time went."""

CELLS: dict[str, str] = {
    **CELL,
    **SPENT,
    "noise_implementation": "who competed with itself: the baseline, in the first cell of each dtype; else empty",
    "noise_ratio": "what was found where the truth is 1",
    "noise_low": "lower end of its interval",
    "noise_high": "upper end of its interval",
    "noise_fresh": "`true` where the second one had buffers of its own",
}


@dataclass(frozen=True, kw_only=True)
class CellFindings:
    """Where a cell's time went, and the A/A test that ran along, if one did."""

    cell: Cell
    spent: Spent
    noise: NoiseFloor | None = None

    def __post_init__(self) -> None:
        if not all(isfinite(getattr(self.spent, field.name)) for field in fields(Spent)):
            raise ValueError("a cell takes some finite time")


_FINDINGS = TypeAdapter(CellFindings)


def row(records: CellRecords) -> Row:
    """The row of one cell."""
    noise = records.noise
    return as_row(
        {
            **cell_values(records.cell),
            **{name: getattr(records.spent, name) for name in SPENT},
            "noise_implementation": noise.implementation if noise else None,
            "noise_ratio": noise.ratio.value if noise else None,
            "noise_low": noise.ratio.low if noise else None,
            "noise_high": noise.ratio.high if noise else None,
            "noise_fresh": noise.fresh if noise else None,
        }
    )


def findings(row: Mapping[str, str]) -> CellFindings:
    """What a row says; pydantic's ValidationError where a field is not what it should be."""
    where = cell(row)
    noise = {
        "cell": where,
        "implementation": row["noise_implementation"],
        "ratio": {"value": row["noise_ratio"], "low": row["noise_low"] or None, "high": row["noise_high"] or None},
        "fresh": row["noise_fresh"],
    }
    return _FINDINGS.validate_python(
        {
            "cell": where,
            "spent": {name: row[name] for name in SPENT},
            "noise": noise if row["noise_implementation"] else None,
        }
    )
