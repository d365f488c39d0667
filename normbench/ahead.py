"""Compiles the graphs of cells before they are measured, several at a time: an on-disk cache carries them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from normbench.bench import Bench, BenchError, BenchLost, Pending
from normbench.compilation import Graph
from normbench.errors import NormbenchError
from normbench.failures import Failure
from normbench.records import Case, Cell

_START_S = 12.0
_COMPILE_S = 1.5


def is_faster(graphs: int, cores: int) -> bool:
    """Whether starting processes to compile in beats compiling one after the other in this one.

    A process takes a second or two to start, and its first compile some ten seconds more.
    """
    return graphs * _COMPILE_S > _START_S + graphs * _COMPILE_S / max(cores, 1)


class Ahead:
    """Compiled code of cells, each case in a folder of its own.

    Args:
        folder: Where; whoever made it removes it.
        names: The implementations that compile.
        crew: Opens so many benches to compile on.
        at_once: How many cases are compiled at a time.
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        crew: Callable[[int], AbstractContextManager[Sequence[Bench]]],
        at_once: int,
    ) -> None:
        self._folder = folder
        self._names = tuple(names)
        self._crew = crew
        self._at_once = at_once
        self._graphs: dict[Case, Graph] = {}
        self._tried: set[Case] = set()
        self._lost: dict[Case, Failure] = {}

    def build(self, cells: Sequence[Cell], told: Callable[[int, int], None] = lambda _done, _count: None) -> None:
        """Compile what these cells need and is not there yet.

        Where no bench can be opened, the rest is compiled when its cell is prepared.

        Args:
            cells: Whose cases.
            told: How many of how many are done.
        """
        wanted = [Case(cell=cell, implementation=name) for cell in cells for name in self._names]
        cases = [case for case in wanted if case not in self._tried]
        if not cases:
            return
        first = len(self._tried)
        self._tried.update(cases)
        placed = [(case, self._folder / f"{first + number}") for number, case in enumerate(cases)]
        with suppress(NormbenchError), self._crew(min(self._at_once, len(cases))) as benches:
            for done in range(0, len(placed), len(benches)):
                told(done, len(placed))
                batch = placed[done : done + len(benches)]
                pending = [bench.compile([one]) for bench, one in zip(benches, batch, strict=False)]
                for (case, _folder), answer in zip(batch, pending, strict=True):
                    self._take(case, answer)

    def _take(self, case: Case, answer: Pending[list[Graph | None]]) -> None:
        try:
            (graph,) = answer()
        except BenchError:  # it will be tried again, and its error recorded, when its cell is prepared
            return
        except BenchLost as lost:
            if lost.culprit is not None:
                self._lost[case] = lost.why
            return
        if graph is not None:
            self._graphs[case] = graph

    def lost(self, cell: Cell) -> Mapping[str, Failure]:
        """Why compiling cost a bench, by implementation: who would cost the next one in this cell."""
        return {case.implementation: why for case, why in self._lost.items() if case.cell == cell}

    def of(self, cell: Cell) -> Mapping[str, Graph]:
        """The graphs of a cell, by implementation."""
        return {case.implementation: graph for case, graph in self._graphs.items() if case.cell == cell}
