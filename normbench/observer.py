"""Who is told how a sweep, or a run of steps, gets on."""

from __future__ import annotations

from typing import Protocol

from normbench.measure import Progress
from normbench.records import Cell, Part, StepCell


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


class StepObserver(Protocol):
    """Is told how a run of steps gets on."""

    def step_cell_started(self, cell: StepCell, index: int, count: int) -> None:
        """The ``index``-th of ``count`` cells begins."""

    def preparing(self, name: str) -> None:
        """Something is being built, compiled and checked."""

    def timing(self, part: Part) -> None:
        """A part of the steps is timed from now on."""

    def measured(self, progress: Progress) -> None:
        """A placement of it is done."""
