"""What limits a result, where only the whole run can tell: launching, the cache, or memory bandwidth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from normbench.records import Case, CaseResult, Cell, Flag, Run
from normbench.traffic import floor_bytes
from normbench.verdict import group_cells

_GROWTH = 1.2
"""Where at least twice the bytes take less than this many times as long, it is not the bytes that take the time."""

NOT_BANDWIDTH = frozenset({Flag.LAUNCH_BOUND, Flag.CACHE_RESIDENT, Flag.BELOW_FLOOR})
"""Flags that keep a result out of statements about bandwidth."""


def effective_bandwidth(run: Run, result: CaseResult) -> float | None:
    """Floor bytes ÷ time, in bytes a second; None without a time. Computed, not counted."""
    if result.timing is None:
        return None
    op = run.header.info(result.case.implementation).op
    return floor_bytes(op, result.case.cell) / result.timing.time_s.value


def flags(run: Run) -> Mapping[Case, tuple[Flag, ...]]:
    """Each result's flags: those it was recorded with, and those that follow from the run's other cells."""
    found = {result.case: dict.fromkeys(result.flags) for result in run.results}
    for case in _launch_bound(run):
        found[case][Flag.LAUNCH_BOUND] = None
    for case in _cache_resident(run):
        found[case][Flag.CACHE_RESIDENT] = None
    return {case: tuple(of_case) for case, of_case in found.items()}


def _launch_bound(run: Run) -> Iterable[Case]:
    """Those whose time hardly grows to a cell of at least twice the bytes."""
    timed = {result.case: result for result in run.results if result.timing is not None}
    for cells in group_cells(run.results_by_cell):
        for name in run.header.plan.implementations:
            row = [timed[case] for cell in cells if (case := Case(cell=cell, implementation=name)) in timed]
            for smaller, larger in pairwise(row):
                if _elements(larger) >= 2 * _elements(smaller) and _seconds(larger) < _GROWTH * _seconds(smaller):
                    yield smaller.case


def _elements(result: CaseResult) -> int:
    return result.case.cell.elements


def _seconds(result: CaseResult) -> float:
    assert result.timing is not None
    return result.timing.time_s.value


def _cache_resident(run: Run) -> Iterable[Case]:
    """Those that are faster than the floor at the largest cell of their kind, by bytes a second."""
    for bandwidth in bandwidths(run):
        for result in (result for cell in bandwidth.cells for result in run.results_by_cell[cell]):
            own = effective_bandwidth(run, result)
            if own and own > bandwidth.floor_bytes_per_s:
                yield result.case


@dataclass(frozen=True, kw_only=True)
class Bandwidth:
    """What the floor reaches at the largest cell of a kind: of the same mode, dtypes, autocast and cache state.

    Args:
        cell: The largest cell.
        cells: All cells of the kind.
        floor_bytes_per_s: The floor's effective bandwidth in it.
    """

    cell: Cell
    cells: Sequence[Cell]
    floor_bytes_per_s: float


def bandwidths(run: Run) -> list[Bandwidth]:
    """For each kind of cell what the floor reaches at the largest one."""
    kinds: dict[tuple[object, ...], list[Cell]] = {}
    for cell in run.results_by_cell:
        kind = (cell.operation, cell.mode, cell.dtype, cell.parameter_dtype, cell.autocast, cell.cache)
        kinds.setdefault(kind, []).append(cell)
    found = []
    for cells in kinds.values():
        largest = max(cells, key=lambda cell: cell.elements)
        floor = next(
            (r for r in run.results_by_cell[largest] if r.case.implementation == run.header.plan.floor), None
        )
        reached = effective_bandwidth(run, floor) if floor else None
        if reached:
            found.append(Bandwidth(cell=largest, cells=cells, floor_bytes_per_s=reached))
    return found
