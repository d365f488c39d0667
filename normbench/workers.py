"""Benches in processes of their own: started afresh, asked through a pipe, gone when they are no longer wanted."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from normbench.bench import Bench, BenchError, Job, LocalBench, Pending, Prepared, instruments
from normbench.compilation import Graph
from normbench.device import detect, fix_threads
from normbench.errors import NormbenchError
from normbench.failures import Failure, failure
from normbench.implementations import by_name
from normbench.profiling.case import Profiled
from normbench.records import Case, Plan
from normbench.rounds import Pace, Placed

_PATIENCE_S = 5.0


class WorkerError(NormbenchError):
    """A worker process ended by itself: crashed, or killed (exit code 3)."""


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a worker is made for.

    Args:
        plan: What is asked for; its implementations are built in the worker, by their names.
        device: The device's name, as ``--device`` takes it.
        threads: Threads that torch uses on a CPU; None for as many as it likes.
        process: The worker's number.
    """

    plan: Plan
    device: str
    threads: int | None
    process: int = 0


class Worker:
    """A bench in a process of its own.

    The process is a fresh interpreter, not a fork: code layout, hash seed and memory are its own.
    """

    def __init__(self, spec: Spec) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, spec), daemon=True)
        self._process.start()
        theirs.close()  # so that the end of the process is the end of the pipe

    @property
    def pid(self) -> int:
        """The process's number in the operating system."""
        assert self._process.pid is not None
        return self._process.pid

    def ready(self) -> None:
        """Wait until it has started.

        Raises:
            WorkerError: It could not.
        """
        try:
            self._answer()
        except BenchError as error:
            raise WorkerError(
                f"a worker process could not start: {error}", hint="--processes 1 measures without workers"
            ) from error

    def prepare(self, job: Job) -> Pending[Prepared]:
        """See ``Bench.prepare``."""
        return self._ask("prepare", job)

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
        found: tuple[Profiled, ...] = self._ask("profile", tuple(names))()
        return found

    def finish(self) -> None:
        """See ``Bench.finish``."""
        self._ask("finish")()

    def compile(self, cases: Sequence[tuple[Case, Path]]) -> Pending[list[Graph | None]]:
        """See ``Bench.compile``."""
        return self._ask("compile", tuple(cases))

    def close(self) -> None:
        """End the process: at once where it is busy."""
        self._connection.close()
        self._process.terminate()
        self._process.join(_PATIENCE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _ask(self, method: str, *arguments: Any) -> Pending[Any]:
        try:
            self._connection.send((method, arguments))
        except OSError as error:
            raise self._ended() from error
        return self._answer

    def _answer(self) -> Any:
        try:
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._ended() from error
        if isinstance(answer, Failure):
            raise BenchError(answer)
        return answer

    def _ended(self) -> WorkerError:
        self._process.join(_PATIENCE_S)
        return WorkerError(
            f"a worker process ended by itself (exit code {self._process.exitcode})",
            hint="what was measured is kept: --resume the run; --processes 1 measures without workers",
        )


@contextmanager
def crew(spec: Spec, count: int) -> Iterator[list[Worker]]:
    """So many workers, started side by side; all of them are ended at the end."""
    workers: list[Worker] = []
    try:
        workers.extend(Worker(_numbered(spec, process)) for process in range(count))
        for worker in workers:
            worker.ready()
        yield workers
    finally:
        for worker in workers:
            worker.close()


def _numbered(spec: Spec, process: int) -> Spec:
    return Spec(plan=spec.plan, device=spec.device, threads=spec.threads, process=process)


def _serve(connection: Connection, spec: Spec) -> None:
    """What runs in the worker: answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides what it means
    try:
        bench: Bench = _bench(spec)
    except Exception as error:
        connection.send(failure(error))
        return
    gc.collect()
    gc.freeze()  # torch's own hundred thousands of objects, which every later collection would go through
    connection.send(None)
    while True:
        try:
            method, arguments = connection.recv()
        except EOFError:
            return
        answer = _carry_out(partial(getattr(bench, method), *arguments))
        try:
            connection.send(answer)
        except OSError:  # whoever asked has gone
            return


def _carry_out(call: partial[Any]) -> object:
    try:
        answer = call()
        return answer() if callable(answer) else answer
    except Exception as error:  # it is raised again where it was asked for
        return failure(error)


def _bench(spec: Spec) -> LocalBench:
    fix_threads(spec.threads)
    device = detect(spec.device)
    return LocalBench(
        plan=spec.plan,
        implementations=[by_name(name) for name in spec.plan.implementations],
        device=device,
        tools=instruments(device, graphs=spec.plan.graphs),
        process=spec.process,
    )
