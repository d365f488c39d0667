"""Which sizes are not attempted, since the same implementation ran out of memory or time at a smaller one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from normbench.failures import Failure
from normbench.records import Case, CaseResult, Cell, Status

_GROWS = (Status.OUT_OF_MEMORY, Status.TIMED_OUT)
"""What does not get better with more rows or columns."""


class Limits:
    """Remembers where an implementation ran out of memory or time."""

    def __init__(self) -> None:
        self._met: dict[Case, Status] = {}

    def learn(self, results: Iterable[CaseResult]) -> None:
        """Take in what became of cases that were attempted."""
        self._met |= {result.case: result.status for result in results if result.status in _GROWS}

    def beyond(self, cell: Cell, names: Collection[str]) -> dict[str, Failure]:
        """Who is not attempted in this cell, and why."""
        return {
            case.implementation: Failure(status=status, reason=f"not attempted: {status} at {case.cell.size} already")
            for case, status in self._met.items()
            if case.implementation in names and _is_larger(cell, case.cell)
        }


def _is_larger(cell: Cell, than: Cell) -> bool:
    """Whether a cell is the other one with more rows or columns, and fewer of neither; its cache is no matter."""
    alike = ("operation", "mode", "dtype", "parameter_dtype", "autocast")
    if any(getattr(cell, name) != getattr(than, name) for name in alike):
        return False
    grown = cell.rows >= than.rows and cell.width >= than.width
    return grown and (cell.rows, cell.width) != (than.rows, than.width)
