"""Clocks: what turns calls into seconds. Wall time, and the device's own time by CUDA events."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol, TypeAlias

from normbench.records import Cache, Spent

Call: TypeAlias = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a clock times.

    Args:
        name: Whose task it is.
        prepare: Returns the call to time; what it does itself stays outside the clock. A backward's fresh
            forward belongs here.
        repeatable: Whether one prepared call may be made again, so that a batch needs one preparation.
        context: Entered around a sample, outside the clock: no_grad, autocast.
    """

    name: str
    prepare: Callable[[], Call]
    repeatable: bool
    context: Callable[[], AbstractContextManager[Any]] = nullcontext

    def run(self) -> object:
        """Prepare and call once; the result is returned."""
        with self.context():
            return self.prepare()()


@dataclass(frozen=True, kw_only=True)
class Timed:
    """Seconds that some calls took together, the clock that says so, and what taking the sample cost in all."""

    seconds: float
    clock: str
    spent: Spent = field(default_factory=Spent)


class NotTimed(Exception):  # noqa: N818 - no error: this clock can't time that task
    """A clock has no time for a task that runs all the same, such as a graph that can't be captured."""


class Clock(Protocol):
    """Times calls of a task after having put the cache into the state asked for."""

    name: str

    def time(self, task: Task, *, calls: int, cache: Cache) -> Timed:
        """Seconds of ``calls`` calls.

        Each result is dropped before the next call and the last one after the clock, since the lifetime of
        an output decides whether the allocator hands out the same memory again.
        """


class WallClock:
    """Time as the caller feels it, up to the moment the device is done.

    Args:
        flush: Empties the last-level cache; called before each call of a cold sample.
        synchronize: Waits for the device.
        now: The timer, in seconds.
    """

    name = "wall"

    def __init__(
        self, *, flush: Call, synchronize: Call = lambda: None, now: Callable[[], float] = time.perf_counter
    ) -> None:
        self._flush = flush
        self._synchronize = synchronize
        self._now = now

    def time(self, task: Task, *, calls: int, cache: Cache) -> Timed:
        """See ``Clock.time``."""
        began = self._now()
        with task.context():
            if cache is Cache.WARM:
                task.prepare()()
            spent = Spent(warming_s=self._now() - began)
            if task.repeatable and cache is Cache.WARM:
                timed = self._batch(task.prepare(), calls)
            else:
                timed = sum((self._single(task, cache) for _ in range(calls)), Spent())
        return Timed(seconds=timed.timed_s, clock=self.name, spent=spent + timed)

    def _batch(self, call: Call, calls: int) -> Spent:
        result = None
        self._synchronize()
        start = self._now()
        for _ in range(calls):
            result = None
            result = call()
        self._synchronize()
        seconds = self._now() - start
        del result
        return Spent(timed_s=seconds)

    def _single(self, task: Task, cache: Cache) -> Spent:
        began = self._now()
        call = task.prepare()
        prepared = self._now()
        if cache is Cache.COLD:
            self._flush()
        self._synchronize()
        start = self._now()
        result = call()
        self._synchronize()
        end = self._now()
        del result
        return Spent(preparing_s=prepared - began, flushing_s=start - prepared, timed_s=end - start)


class CudaEventClock:
    """The device's own time: no launch gap and no host time is in it.

    The stream is held by a spin kernel until everything is queued, so that the device never waits for the
    host between the two events of a call. Order of the queue: spin, then for each call its preparation, the
    flush (cold), start event, the call, end event.

    Args:
        cuda: ``torch.cuda``, or a stand-in that records calls.
        flush: Queues a write of twice the last-level cache that ends in a read.
        spin_cycles: Length of the first spin; doubled when queueing took longer than it.
        attempts: How often a longer spin is tried before the sample is taken as it is and says so.
        now: The host's timer, for what taking a sample cost.
    """

    name = "cuda-event"
    unheld_name = "cuda-event-unheld"

    def __init__(
        self,
        cuda: ModuleType | Any,
        *,
        flush: Call,
        spin_cycles: int = 1_000_000,
        attempts: int = 8,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._cuda = cuda
        self._flush = flush
        self._cycles = spin_cycles
        self._attempts = attempts
        self._now = now
        self._empty_s = min(self.empty_pair() for _ in range(10))

    def time(self, task: Task, *, calls: int, cache: Cache) -> Timed:
        """See ``Clock.time``. The cost of an empty pair of events is subtracted for each call."""
        began = self._now()
        with task.context():
            if cache is Cache.WARM:
                task.prepare()()
            cycles = self._cycles
            for _ in range(self._attempts):
                seconds, held = self._hold(task, calls, cache, cycles)
                if held:
                    self._cycles = cycles
                    break
                cycles *= 2
            # A call that waits for the device itself outlasts any spin: the next sample's stays as it was.
        # What the queue held cannot be told apart from outside: the spin, forwards and flushes are all in it.
        spent = Spent(timed_s=seconds, holding_s=max(0.0, self._now() - began - seconds))
        return Timed(seconds=seconds, clock=self.name if held else self.unheld_name, spent=spent)

    def _hold(self, task: Task, calls: int, cache: Cache, cycles: int) -> tuple[float, bool]:
        """Seconds of the calls, and whether the spin outlasted the queueing."""
        self._cuda.synchronize()
        self._cuda._sleep(cycles)
        pairs = [self._queue(task, cache) for _ in range(calls)]
        held = not pairs[0][0].query()
        self._cuda.synchronize()
        milliseconds = sum(start.elapsed_time(end) for start, end in pairs)
        return max(milliseconds * 1e-3 - calls * self._empty_s, 1e-9), held

    def _queue(self, task: Task, cache: Cache) -> tuple[Any, Any]:
        start, end = self._event(), self._event()
        call = task.prepare()
        if cache is Cache.COLD:
            self._flush()
        start.record()
        result = call()
        end.record()
        del result
        return start, end

    def empty_pair(self) -> float:
        """Seconds between two events with nothing between them: what a pair costs."""
        self._cuda._sleep(self._cycles)
        start, end = self._event(), self._event()
        start.record()
        end.record()
        self._cuda.synchronize()
        return float(start.elapsed_time(end)) * 1e-3

    def _event(self) -> Any:
        return self._cuda.Event(enable_timing=True)


class CudaGraphClock:
    """Wall time of replaying a captured CUDA graph: what is left of a call when nothing has to be launched.

    The call is captured anew for each sample, in a stream of its own, after a few calls there: allocations and
    lazy initialisation must be over before. What can't be captured is not timed.

    Args:
        cuda: ``torch.cuda``, or a stand-in that records calls.
        now: The timer, in seconds.
    """

    name = "cuda-graph"

    def __init__(self, cuda: ModuleType | Any, now: Callable[[], float] = time.perf_counter) -> None:
        self._cuda = cuda
        self._now = now

    def time(self, task: Task, *, calls: int, cache: Cache) -> Timed:
        """See ``Clock.time``; replays follow each other, so that they find the cache warm.

        Raises:
            NotTimed: The call has to be prepared afresh each time, or its capture failed.
        """
        del cache
        if not task.repeatable:
            raise NotTimed
        began = self._now()
        with task.context():
            graph = self._captured(task.prepare())
        graph.replay()
        self._cuda.synchronize()
        start = self._now()
        for _ in range(calls):
            graph.replay()
        self._cuda.synchronize()
        seconds = self._now() - start
        return Timed(seconds=seconds, clock=self.name, spent=Spent(timed_s=seconds, warming_s=start - began))

    def _captured(self, call: Call) -> Any:
        graph, stream = self._cuda.CUDAGraph(), self._cuda.Stream()
        stream.wait_stream(self._cuda.current_stream())
        try:
            with self._cuda.stream(stream):
                for _ in range(3):
                    call()
            self._cuda.current_stream().wait_stream(stream)
            with self._cuda.graph(graph):
                call()
        except RuntimeError as error:  # whatever CUDA forbids while a stream is captured
            self._cuda.synchronize()
            raise NotTimed from error
        return graph
