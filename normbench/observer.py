"""Who is told how a sweep gets on."""

from __future__ import annotations

from typing import Protocol

from normbench.measure import Progress
from normbench.records import Cell


class Observer(Protocol):
    """Is told how a sweep gets on."""

    def starting(self, what: str) -> None:
        """Something is done before the first cell."""

    def cell_started(self, cell: Cell, index: int, count: int) -> None:
        """The ``index``-th of ``count`` cells begins."""

    def preparing(self, name: str) -> None:
        """Something is being built, compiled and checked."""

    def measured(self, progress: Progress) -> None:
        """A placement of the current cell is done."""
