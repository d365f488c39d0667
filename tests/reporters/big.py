"""Runs so large that a report of them has to leave something out."""

from __future__ import annotations

from collections.abc import Callable

from normbench.records import Cell, DType, Mode, Plan, Run
from tests.runs import Times, make_plan, make_run

LABEL = "own|of|mine-rmsnorm"
NAMES = (
    *("copy", "eager-layernorm", "eager-rmsnorm", "nn-layernorm", "nn-rmsnorm", "compile-layernorm"),
    *("compile-rmsnorm", "liger-rmsnorm", "quack-rmsnorm", LABEL),
)
WIDTHS = tuple(64 * step for step in range(1, 16))


def big_plan(rows: int = 1) -> Plan:
    """Ten implementations at 15 widths, in three dtypes and two passes: 900 results for each value of ``rows``."""
    return make_plan(
        widths=WIDTHS,
        rows=tuple(32 * (1 + step) for step in range(rows)),
        dtypes=tuple(DType),
        modes=(Mode.FORWARD, Mode.BACKWARD),
        implementations=NAMES,
    )


def big_times(cell: Cell) -> Times:
    """Times of which the winner changes with the width and everybody's speedup with everything."""
    scale = 1e-9 * cell.width * cell.rows / 64
    order = 1 + WIDTHS.index(cell.width) / 10 + list(DType).index(cell.dtype) / 7
    times = {name: scale * (5 + 3 * ((7 * place + order * 3) % 5)) for place, name in enumerate(NAMES)}
    return {**times, "copy": scale}


def big_run(rows: int = 1, times: Callable[[Cell], Times] = big_times) -> Run:
    """A run of :func:`big_plan`."""
    return make_run(big_plan(rows), times)
