"""A bench: where a cell is prepared and measured, in this process or in another one, and how one is lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from normbench.compilation import Graph
from normbench.entrants import Admission
from normbench.failures import Failure
from normbench.profiling.case import Profiled
from normbench.records import Case, CaseResult, Cell
from normbench.rounds import Pace, Placed

T = TypeVar("T")
Pending: TypeAlias = Callable[[], T]
"""An answer that is waited for when this is called, so that several processes can work at once."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A cell to prepare.

    Args:
        cell: The cell.
        shared: Use one x and one dy for all implementations, where memory is short.
        twin: The name under which the baseline competes once more, with buffers of its own: an A/A test.
        graphs: What was compiled ahead, by implementation.
        thorough: Whether results are checked as a whole and on hard rows, or a few rows of them. Once is enough:
            another process runs the same code.
        without: The implementations that are left out: they cost a bench already, or would for sure.
    """

    cell: Cell
    shared: bool = False
    twin: str | None = None
    graphs: Mapping[str, Graph] = field(default_factory=dict)
    thorough: bool = True
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Each implementation's admission or its final record, and how long compiling took."""

    admissions: Mapping[str, Admission | CaseResult]
    compiling_s: float


class BenchError(Exception):
    """What was asked of a bench in another process raised an error there."""

    def __init__(self, why: Failure) -> None:
        super().__init__(why.reason)
        self.why = why


class BenchLost(Exception):  # noqa: N818 - no fault of normbench: what an implementation did to its process
    """A bench can go on no more: its process is gone, or its device no longer works in it.

    Args:
        culprit: The implementation whose turn it was; None where it was nobody's.
        why: What that means for it.
    """

    def __init__(self, culprit: str | None, why: Failure) -> None:
        super().__init__(culprit, why)  # both, so that it can be sent from one process to another
        self.culprit = culprit
        self.why = why


class Bench(Protocol):
    """Where cells are prepared and measured: this process, or another one."""

    def prepare(self, job: Job) -> Pending[Prepared]:
        """Bring every implementation of the cell to the start: built, compiled and checked.

        A bench that was lost begins anew; a NormbenchError where it can't.
        """

    def measure(self, placement: int, pace: Pace, names: Collection[str]) -> Placed:
        """A placement of the implementations that are named; BenchLost where one of them cost the bench."""

    def audit(self, names: Collection[str]) -> Mapping[str, Failure]:
        """Whoever of those named is no longer right after it was timed here, and why; nobody where nothing was."""

    def profile(self, names: Collection[str]) -> tuple[Profiled, ...]:
        """Profile the implementations that are named, in the cell that was prepared; nothing is timed after it."""

    def finish(self) -> None:
        """Let go of the cell; never an error."""

    def compile(self, cases: Sequence[tuple[Case, Path]]) -> Pending[list[Graph | None]]:
        """Compile cases, each into its folder; None for what can't be compiled."""
