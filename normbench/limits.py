"""What is not attempted: more than there is memory for, or larger than where somebody ran out of memory or time."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from normbench import units
from normbench.failures import Failure
from normbench.records import Case, CaseResult, Cell, Status

_GROWS = (Status.OUT_OF_MEMORY, Status.TIMED_OUT)
"""What does not get better with more rows or columns."""


_MEMORY_SHARE = 0.9
"""Of the free memory that is used: what is needed is an estimate."""


def usable(free: int) -> int:
    """How many bytes may be used where so many are free."""
    return int(_MEMORY_SHARE * free)


def beyond_memory(need: int, available: int) -> Failure | None:
    """Why something that needs so many bytes is not attempted; None where so many may be used."""
    if need <= available:
        return None
    reason = f"estimated {units.size(need)}, available {units.size(available)}: not attempted"
    return Failure(status=Status.OUT_OF_MEMORY, reason=reason)


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
