"""What runs in a worker process: a bench that answers what comes through a pipe, until nobody asks any more."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from normbench.bench import Bench, BenchLost
from normbench.device import detect, fix_threads
from normbench.failures import failure
from normbench.implementations import Catalog, Located, catalog
from normbench.instruments import instruments
from normbench.interruption import end_with_parent
from normbench.local_bench import LocalBench
from normbench.records import Plan
from normbench.turns import TakeTurn, Turns


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a worker is made for.

    Args:
        plan: What is asked for.
        device: The device's name, as ``--device`` takes it.
        threads: Threads that torch uses on a CPU; None for as many as it likes.
        process: The worker's number.
        located: Where the code lies that the user brings.
        catalog: What else there is, looked up in the worker: a function at the top of a module.
    """

    plan: Plan
    device: str
    threads: int | None
    process: int = 0
    located: tuple[Located, ...] = ()
    catalog: Callable[[], Catalog] = catalog


def serve(connection: Connection, spec: Spec, turns: Turns) -> None:
    """Make a bench, say None when it is there, and answer each method and its arguments with what it returns.

    An error is answered by its Failure; a bench that is lost by its BenchLost, which is the end.
    """
    stand_alone()
    try:
        bench: Bench = _bench(spec, partial(_answerable, turns, connection, os.getpid()))
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
        if isinstance(answer, BenchLost):
            return


def stand_alone() -> None:
    """Give this process a session of its own: Ctrl-C in the terminal is for the parent to judge.

    What is started here ends with the session, and the session with the parent, also where that is killed: the
    system sees to this process, and a thread to the others. What implementations print goes to stderr.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.setsid()
    with suppress(OSError):
        os.dup2(2, 1)
    parent = multiprocessing.parent_process()
    assert parent is not None
    end_with_parent(signal.SIGKILL)
    if os.getppid() != parent.pid:  # it was gone before the system was asked to watch it
        os._exit(0)

    def follow() -> None:
        parent.join()
        if os.getppid() != parent.pid:  # it seems gone as well to who has closed every file of this process
            os.killpg(0, signal.SIGKILL)

    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def _answerable(turns: Turns, connection: Connection, process: int, name: str) -> Iterator[None]:
    """A turn after which this process can still answer: the descriptor is there, and it is no copy of itself.

    Where it can't, it ends while it is known whose turn it was; a copy that an implementation has forked just ends.
    """
    with turns.take(name):
        try:
            yield
        finally:
            if os.getpid() != process:
                os._exit(0)
            try:
                os.fstat(connection.fileno())
            except OSError:
                os._exit(1)


def _carry_out(call: partial[Any]) -> object:
    try:
        answer = call()
        return answer() if callable(answer) else answer
    except BenchLost as lost:
        return lost
    except Exception as error:  # it is raised again where it was asked for
        return failure(error)


def _bench(spec: Spec, turn: TakeTurn) -> LocalBench:
    fix_threads(spec.threads)
    device, known = detect(spec.device), spec.catalog().with_brought(spec.located)
    return LocalBench(
        plan=spec.plan,
        implementations=[known.by_name(name) for name in spec.plan.implementations],
        device=device,
        tools=instruments(device, graphs=spec.plan.graphs),
        process=spec.process,
        turn=turn,
    )
