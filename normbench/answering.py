"""What runs in a worker process: a bench that answers what comes through a pipe, until nobody asks any more."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from normbench.bench import Bench, BenchLost
from normbench.device import detect, fix_threads
from normbench.failures import failure
from normbench.implementations import Implementation, by_name
from normbench.instruments import instruments
from normbench.local_bench import LocalBench
from normbench.records import Plan
from normbench.turns import Turns


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a worker is made for.

    Args:
        plan: What is asked for.
        device: The device's name, as ``--device`` takes it.
        threads: Threads that torch uses on a CPU; None for as many as it likes.
        process: The worker's number.
        find: The implementation of a name, looked up in the worker: a function at the top of a module.
    """

    plan: Plan
    device: str
    threads: int | None
    process: int = 0
    find: Callable[[str], Implementation] = by_name


def serve(connection: Connection, spec: Spec, turns: Turns) -> None:
    """Make a bench, say None when it is there, and answer each method and its arguments with what it returns.

    An error is answered by its Failure; a bench that is lost by its BenchLost, which is the end.
    """
    stand_alone()
    try:
        bench: Bench = _bench(spec, turns)
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

    What is started here ends with the session, and the session with the parent: a thread waits for its end, since
    one that is killed can't say so.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.setsid()
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=follow, daemon=True).start()


def _carry_out(call: partial[Any]) -> object:
    try:
        answer = call()
        return answer() if callable(answer) else answer
    except BenchLost as lost:
        return lost
    except Exception as error:  # it is raised again where it was asked for
        return failure(error)


def _bench(spec: Spec, turns: Turns) -> LocalBench:
    fix_threads(spec.threads)
    device = detect(spec.device)
    return LocalBench(
        plan=spec.plan,
        implementations=[spec.find(name) for name in spec.plan.implementations],
        device=device,
        tools=instruments(device, graphs=spec.plan.graphs),
        process=spec.process,
        turn=turns.take,
    )
