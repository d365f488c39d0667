"""Benches in processes of their own: started once, asked through a pipe, and anew where one was lost."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from normbench.answering import Spec, serve
from normbench.bench import BenchError, BenchLost, Job, Pending, Prepared
from normbench.compilation import Graph
from normbench.endings import Ending, timed_out
from normbench.errors import NormbenchError
from normbench.failures import Failure
from normbench.profiling.case import Profiled
from normbench.records import Case
from normbench.rounds import Pace, Placed
from normbench.turns import Turns

_PATIENCE_S = 5.0
_GLANCE_S = 0.2
_LATE_S = 2.0
_MAIN = threading.Lock()
"""Of who puts something in the place of the program's main module."""
_OWN_S = 300.0
"""How long a worker may be busy with what is no implementation's: starting, drawing values."""


class WorkerError(NormbenchError):
    """A worker process can't be started (exit code 3)."""


class Worker:
    """A bench in a process of its own.

    The process is a fresh interpreter, not a fork: code layout, hash seed and memory are its own. It is kept from
    cell to cell, since starting it takes seconds. One that crashes, is killed, loses its device or is busy with one
    implementation for longer than a case may take is gone: BenchLost names the culprit, and the next ``prepare`` or
    ``compile`` starts another process.

    Args:
        spec: What it is made for.
        preparing: Told who is being prepared.
    """

    def __init__(self, spec: Spec, preparing: Callable[[str], None] | None = None) -> None:
        self._spec = spec
        self._preparing = preparing
        self._process: _Process | None = _started(spec)

    @property
    def pid(self) -> int | None:
        """The process's number in the operating system; None where it is gone."""
        return None if self._process is None else self._process.pid

    def ready(self) -> None:
        """Wait until it has started, again where it was gone.

        Raises:
            WorkerError: It could not.
        """
        if self._process is None:
            self._process = _started(self._spec)
        if self._process.is_ready:
            return
        try:
            self._answer(self._process, None)
        except (BenchError, BenchLost) as error:
            raise _cannot_start(error.why.reason) from error
        self._process.is_ready = True

    def prepare(self, job: Job) -> Pending[Prepared]:
        """See ``Bench.prepare``."""
        self.ready()
        return self._ask("prepare", job, told=self._preparing)

    def measure(self, placement: int, pace: Pace, names: Collection[str]) -> Placed:
        """See ``Bench.measure``."""
        placed: Placed = self._ask("measure", placement, pace, tuple(names))()
        return placed

    def audit(self, names: Collection[str]) -> Mapping[str, Failure]:
        """See ``Bench.audit``."""
        found: Mapping[str, Failure] = self._ask("audit", tuple(names))()
        return found

    def profile(self, names: Collection[str]) -> tuple[Profiled, ...]:
        """See ``Bench.profile``."""
        found: tuple[Profiled, ...] = self._ask("profile", tuple(names), told=self._preparing)()
        return found

    def finish(self) -> None:
        """See ``Bench.finish``. A worker that is still busy, for nobody who waits, is ended."""
        if self._process is None or self._process.owes or not self._process.is_ready:
            self.close()
            return
        with suppress(BenchError, BenchLost):
            self._ask("finish")()

    def compile(self, cases: Sequence[tuple[Case, Path]]) -> Pending[list[Graph | None]]:
        """See ``Bench.compile``."""
        self.ready()
        return self._ask("compile", tuple(cases))

    def close(self) -> None:
        """End the process, and what it has started, at once."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _ask(self, method: str, *arguments: Any, told: Callable[[str], None] | None = None) -> Pending[Any]:
        process = self._process
        assert process is not None, "a cell is prepared first"
        process.turns.pause()  # the time without a pause begins now
        process.owes = True
        try:
            process.connection.send((method, arguments))
        except OSError as error:
            raise self._lost(process) from error
        return partial(self._answer, process, told)

    def _answer(self, process: _Process, told: Callable[[str], None] | None) -> Any:
        try:
            self._wait(process, told)
            answer = process.connection.recv()
        except (EOFError, OSError) as error:
            raise self._lost(process) from error
        process.owes = False
        if isinstance(answer, BenchLost):
            self.close()
            raise answer
        if isinstance(answer, Failure):
            raise BenchError(answer)
        return answer

    def _wait(self, process: _Process, told: Callable[[str], None] | None) -> None:
        """Wait for an answer while nobody is busy for too long.

        While times are taken this wakes up once in the time that a case may take, so that it disturbs nobody. Where
        it wakes up much later than it should, everything was stopped for so long, and nobody was busy.
        """
        limit_s, named, stopped_s = self._spec.plan.case_timeout_s, None, 0.0
        while not process.connection.poll(0):
            turn = process.turns.current
            allowed_s = limit_s if turn.name else max(_OWN_S, limit_s or 0.0)
            left_s = None if allowed_s is None else allowed_s + stopped_s - turn.seconds
            if left_s is not None and left_s < 0:
                self.close()
                raise BenchLost(turn.name, timed_out(allowed_s or 0.0))
            if told and turn.name not in (None, named):
                named = turn.name
                told(turn.name or "")
            wait_s = min((s for s in (left_s, limit_s, _GLANCE_S if told else None) if s is not None), default=None)
            began = time.monotonic()
            process.connection.poll(wait_s)
            late_s = time.monotonic() - began - (wait_s or 0.0)
            stopped_s += late_s if wait_s is not None and late_s > _LATE_S else 0.0

    def _lost(self, process: _Process) -> BenchLost:
        """Of a process that is gone: whose turn it was, and what the operating system says."""
        lost = BenchLost(process.turns.current.name, process.explain())
        self.close()
        return lost


def _started(spec: Spec) -> _Process:
    try:
        return _Process(spec)
    except OSError as error:  # too many files or processes, or no memory for one
        raise _cannot_start(str(error)) from error


def _cannot_start(why: str) -> WorkerError:
    return WorkerError(
        f"a worker process could not start: {why}",
        hint="what was measured is kept; --no-isolate measures without workers",
    )


class _Process:
    """One process of a worker, from its start to its end."""

    def __init__(self, spec: Spec) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.turns, self._ending = Turns(), Ending()
        self.is_ready = self.owes = False
        self._process = context.Process(target=serve, args=(theirs, spec, self.turns), daemon=True)
        with _without_interrupts(), _without_main():
            self._process.start()
        theirs.close()  # so that the end of the process is the end of the pipe

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def explain(self) -> Failure:
        """Why it is gone; waits for its end."""
        self._process.join(_PATIENCE_S)
        return self._ending.explain(self._process.exitcode)

    def kill(self) -> None:
        self.connection.close()
        pid = self._process.pid
        if self.is_ready and pid is not None:  # by now it leads a session of its own
            with suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        self._process.kill()
        self._process.join(_PATIENCE_S)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """What is started inside never sees Ctrl-C, not even while it is importing; here it comes later."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """What is started inside does not import the program again, which would start it again where it is a bare script.

    Multiprocessing does that for what is defined there; a worker needs nothing of it.
    """
    with _MAIN:
        main = sys.modules.get("__main__")
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            if main is None:
                del sys.modules["__main__"]
            else:
                sys.modules["__main__"] = main


@contextmanager
def crew(spec: Spec, count: int, preparing: Callable[[str], None] | None = None) -> Iterator[list[Worker]]:
    """So many workers, started side by side; all of them are ended at the end."""
    workers: list[Worker] = []
    try:
        workers.extend(Worker(replace(spec, process=process), preparing) for process in range(count))
        for worker in workers:
            worker.ready()
        yield workers
    finally:
        for worker in workers:
            worker.close()
