"""Graphs are compiled several at a time before measuring, each once and in a folder of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from normbench.ahead import Ahead, is_faster
from normbench.bench import Bench, BenchLost, Job, Pending, Prepared
from normbench.compilation import Graph
from normbench.failures import Failure
from normbench.profiling.case import Profiled
from normbench.records import Case, Status
from normbench.rounds import Pace, Placed
from normbench.workers import WorkerError
from tests.helpers import make_plan

CELLS = list(make_plan(widths=(64, 128, 256)).cells())
NAMES = ("compile-layernorm", "compile-rmsnorm")


class Compiler:
    """A bench that only compiles, and writes down when."""

    def __init__(
        self,
        number: int,
        log: list[str],
        broken: Collection[Case] = (),
        lost: Mapping[Case, BenchLost] | None = None,
    ) -> None:
        self._lost = lost or {}
        self._number = number
        self._log = log
        self._broken = broken

    def prepare(self, job: Job) -> Pending[Prepared]:
        raise NotImplementedError

    def measure(self, placement: int, pace: Pace, names: Collection[str]) -> Placed:
        raise NotImplementedError

    def finish(self) -> None:
        raise NotImplementedError

    def profile(self, names: Collection[str]) -> tuple[Profiled, ...]:
        raise NotImplementedError

    def compile(self, cases: Sequence[tuple[Case, Path]]) -> Pending[list[Graph | None]]:
        self._log.append(f"{self._number} begins")

        def answer() -> list[Graph | None]:
            self._log.append(f"{self._number} ends")
            for case, _folder in cases:
                if case in self._lost:
                    raise self._lost[case]
            return [None if case in self._broken else Graph(folder=folder, seconds=1.5) for case, folder in cases]

        return answer


def ahead(
    log: list[str],
    at_once: int = 2,
    broken: Collection[Case] = (),
    lost: Mapping[Case, BenchLost] | None = None,
) -> Ahead:
    @contextmanager
    def crew(count: int) -> Iterator[list[Bench]]:
        log.append(f"{count} come")
        yield [Compiler(number, log, broken, lost) for number in range(count)]
        log.append("they go")

    return Ahead(Path("graphs"), NAMES, crew, at_once)


def test_who_costs_a_bench_while_compiling_is_told_of_and_the_rest_is_compiled() -> None:
    log: list[str] = []
    case, why = Case(cell=CELLS[1], implementation=NAMES[0]), Failure(status=Status.FAILED, reason="crashed")
    found = ahead(log, lost={case: BenchLost(NAMES[0], why)})
    found.build(CELLS)
    assert [dict(found.lost(cell)) for cell in CELLS] == [{}, {NAMES[0]: why}, {}]
    assert [len(found.of(cell)) for cell in CELLS] == [2, 1, 2]


def test_a_bench_that_is_lost_for_nobodys_fault_blames_nobody() -> None:
    case, why = Case(cell=CELLS[1], implementation=NAMES[0]), Failure(status=Status.FAILED, reason="killed")
    found = ahead([], lost={case: BenchLost(None, why)})
    found.build(CELLS)
    assert found.lost(CELLS[1]) == {}
    assert list(found.of(CELLS[1])) == [NAMES[1]], "compiled when its cell is prepared"


def test_two_work_side_by_side_until_everything_is_compiled() -> None:
    log: list[str] = []
    ahead(log, at_once=2).build(CELLS)
    pair = ["0 begins", "1 begins", "0 ends", "1 ends"]
    assert log == ["2 come", *pair * 3, "they go"]


def test_no_more_are_started_than_there_is_to_compile() -> None:
    log: list[str] = []
    ahead(log, at_once=16).build(CELLS[:1])
    assert log[0] == "2 come"


def test_every_case_has_a_folder_of_its_own_and_its_seconds() -> None:
    graphs = ahead([])
    graphs.build(CELLS)
    found = [graph for cell in CELLS for graph in graphs.of(cell).values()]
    assert [set(graphs.of(cell)) for cell in CELLS] == [set(NAMES)] * 3
    assert len({graph.folder for graph in found}) == 6
    assert {graph.seconds for graph in found} == {1.5}


def test_what_was_tried_is_not_tried_again_whether_it_worked_or_not() -> None:
    log: list[str] = []
    broken = Case(cell=CELLS[0], implementation=NAMES[0])
    graphs = ahead(log, broken=[broken])
    graphs.build(CELLS[:1])
    assert set(graphs.of(CELLS[0])) == {NAMES[1]}
    log.clear()
    graphs.build(CELLS[:1])
    assert log == []
    graphs.build(CELLS[:2])
    assert log == ["2 come", "0 begins", "1 begins", "0 ends", "1 ends", "they go"]
    assert len({graph.folder for cell in CELLS for graph in graphs.of(cell).values()}) == 3


def test_it_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    ahead([]).build(CELLS, lambda done, count: told.append((done, count)))
    assert told == [(0, 6), (2, 6), (4, 6)]


@pytest.mark.parametrize(
    ("graphs", "cores", "faster"),
    [(0, 16, False), (8, 2, False), (24, 2, True), (8, 16, False), (12, 16, True), (100, 1, False)],
)
def test_starting_processes_pays_where_there_is_much_to_compile_and_cores_to_do_it(
    graphs: int, cores: int, faster: bool
) -> None:
    assert is_faster(graphs, cores) is faster


def test_where_no_process_can_be_started_everything_is_compiled_when_its_turn_comes() -> None:
    @contextmanager
    def crew(_count: int) -> Iterator[list[Bench]]:
        raise WorkerError("a worker process could not start")
        yield []

    graphs = Ahead(Path("graphs"), NAMES, crew, 2)
    graphs.build(CELLS)
    assert [graphs.of(cell) for cell in CELLS] == [{}] * 3
