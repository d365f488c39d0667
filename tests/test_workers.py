"""A worker is a bench in a fresh process: it measures as this one does, and its end is noticed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from normbench import workers
from normbench.answering import Spec
from normbench.bench import BenchError, BenchLost, Job
from normbench.entrants import Admission
from normbench.failures import Failure
from normbench.records import CaseResult, Plan, Precision, Status
from normbench.rounds import Pace
from normbench.turns import Turn
from normbench.workers import Worker, WorkerError, crew
from tests.fakes import Timer
from tests.helpers import make_plan

NAMES = ("copy", "nn-layernorm", "eager-rmsnorm")
PLAN: Plan = make_plan(implementations=NAMES, precision=Precision(placements=5, max_seconds=0.1))
(CELL,) = PLAN.cells()
SPEC = Spec(plan=PLAN, device="cpu", threads=1)
PACE = Pace(share_s=0.01, most_s=0.1)


@pytest.fixture(scope="module")
def pair() -> Iterator[list[Worker]]:
    with crew(SPEC, 2) as workers:
        yield workers


def test_workers_prepare_side_by_side_and_measure_what_they_are_asked_for(pair: list[Worker]) -> None:
    pending = [worker.prepare(Job(cell=CELL, thorough=number == 0)) for number, worker in enumerate(pair)]
    for answer in pending:
        admissions = answer().admissions
        assert list(admissions) == list(NAMES)
        assert all(isinstance(admission, Admission) for admission in admissions.values())
    for number, worker in enumerate(pair):
        placed = worker.measure(3, PACE, NAMES[:2])
        assert {s.implementation for s in placed.samples} == set(NAMES[:2])
        assert {(s.process, s.placement) for s in placed.samples} == {(number, 3)}
        assert placed.spent.timed_s > 0
        assert worker.audit(NAMES[:2]) == {}
        worker.finish()


def test_each_worker_is_a_process_of_its_own_with_threads_as_told(pair: list[Worker]) -> None:
    pids = {worker.pid for worker in pair}
    assert len(pids) == 2
    assert os.getpid() not in pids


def test_the_baseline_competes_with_itself_under_another_name_if_asked(pair: list[Worker]) -> None:
    prepared = pair[0].prepare(Job(cell=CELL, twin="twin"))()
    assert list(prepared.admissions) == [*NAMES, "twin"]
    placed = pair[0].measure(0, PACE, (*NAMES, "twin"))
    assert {s.implementation for s in placed.samples} == {*NAMES, "twin"}
    pair[0].finish()


def test_what_raises_in_a_worker_raises_where_it_was_asked_for_and_the_worker_goes_on(pair: list[Worker]) -> None:
    huge = replace(CELL, width=2**50)
    with pytest.raises(BenchError) as raised:
        pair[0].prepare(Job(cell=huge))()
    assert raised.value.why.status is Status.OUT_OF_MEMORY
    assert pair[0].prepare(Job(cell=CELL))().admissions
    pair[0].finish()


def test_a_graph_that_a_worker_compiled_is_loaded_by_another(tmp_path: Path) -> None:
    names = ("nn-layernorm", "compile-rmsnorm")
    plan = make_plan(implementations=("copy", *names), precision=PLAN.precision)
    with crew(replace(SPEC, plan=plan), 2) as (one, other):
        ((graph,),) = (one.compile([(_case(plan), tmp_path / "graph")])(),)
        if graph is None:
            pytest.skip("no compiler here")
        assert any((tmp_path / "graph").iterdir())
        prepared = other.prepare(Job(cell=CELL, graphs={"compile-rmsnorm": graph}))()
        admission = prepared.admissions["compile-rmsnorm"]
        assert not isinstance(admission, CaseResult), admission.reason
        assert admission.compile_s == graph.seconds, "as it was with nothing to be found, not as it was loaded"
        before = sorted((tmp_path / "graph").rglob("*.so"))
        assert sorted((tmp_path / "graph").rglob("*.so")) == before


def _case(plan: Plan):  # type: ignore[no-untyped-def]
    from normbench.records import Case

    return Case(cell=next(plan.cells()), implementation="compile-rmsnorm")


def test_a_worker_that_is_killed_is_noticed_and_another_one_goes_on() -> None:
    with crew(SPEC, 1) as (worker,):
        before = worker.pid
        assert before is not None
        os.kill(before, signal.SIGKILL)
        with pytest.raises(BenchLost) as raised:
            worker.prepare(Job(cell=CELL))()
        assert raised.value.culprit is None
        assert raised.value.why == Failure(status=Status.FAILED, reason="its process was ended by SIGKILL (killed)")
        assert worker.pid is None
        assert worker.prepare(Job(cell=CELL))().admissions
        assert worker.pid != before


def test_ctrl_c_is_for_the_parent_to_judge() -> None:
    with crew(SPEC, 1) as (worker,):
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGINT)
        assert os.getsid(worker.pid) != os.getsid(0), "the terminal's does not even reach it"
        assert worker.prepare(Job(cell=CELL))().admissions


def test_a_worker_whose_answer_nobody_waits_for_is_ended_and_another_one_goes_on() -> None:
    with crew(SPEC, 1) as (worker,):
        worker.prepare(Job(cell=CELL))
        worker.finish()
        assert worker.pid is None
        assert worker.prepare(Job(cell=CELL))().admissions


class Stopped:
    """A process that is stopped together with this one for ten seconds while it is waited for, and then answers."""

    def __init__(self) -> None:
        self.timer = Timer()
        self.connection = self
        self.turns = self
        self._asked: list[float] = []

    @property
    def current(self) -> Turn:
        return Turn(name="nn-layernorm", seconds=self.timer())

    def poll(self, wait_s: float) -> bool:
        self._asked.append(wait_s)
        if wait_s > 0:
            self.timer.advance(wait_s + 10.0)
        return len(self._asked) > 4


def test_a_stop_of_everything_is_nobodys_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = Stopped()
    monkeypatch.setattr(workers.time, "monotonic", stopped.timer)
    worker = object.__new__(Worker)
    worker._spec = replace(SPEC, plan=replace(PLAN, case_timeout_s=4.0))
    worker._wait(stopped, None)  # type: ignore[arg-type]
    assert stopped.timer() == 14.0


def test_a_worker_ends_with_its_parent_even_where_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import time\n"
        "from normbench.workers import Worker\n"
        "from tests.test_workers import SPEC\n"
        "if __name__ == '__main__':\n"
        "    worker = Worker(SPEC)\n"
        "    worker.ready()\n"
        "    print(worker.pid, flush=True)\n"
        "    time.sleep(60)\n",
        encoding="utf-8",
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        worker = psutil.Process(int(parent.stdout.readline()))
        assert worker.is_running()
        parent.kill()
    worker.wait(timeout=20)
    assert not worker.is_running()


def test_a_worker_that_cannot_start_says_why() -> None:
    with (
        pytest.raises(WorkerError, match=r"could not start.*no such device"),
        crew(replace(SPEC, device="cuda:99"), 1),
    ):
        pass


def test_no_process_is_left_behind_even_where_one_is_busy() -> None:
    with crew(SPEC, 2) as workers:
        processes = [psutil.Process(worker.pid) for worker in workers]
        workers[0].prepare(Job(cell=CELL))
    assert not any(process.is_running() for process in processes)
