"""Closures, a clock and a precision in; samples out. Knows no norm.

All tasks of a cell are measured together: placements × rounds, each round every task once in random order,
so that whatever disturbs the machine disturbs all of them alike.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from normbench import stats, verdict
from normbench.clock import Clock, Task
from normbench.records import LEAST_PLACEMENTS, Cache, Precision, Reading, Sample

_LEAST_ROUNDS = 5
_MOST_ROUNDS = 51
_PATIENCE = 3.0


@dataclass(frozen=True, kw_only=True)
class Batching:
    """How many calls a sample holds: as many as last ``least_s``, up to ``most_calls``."""

    least_s: float = 200e-6
    most_calls: int = 64

    def calls(self, seconds_per_call: float) -> int:
        """Calls in a sample of a task that takes ``seconds_per_call``."""
        return max(1, min(self.most_calls, round(self.least_s / seconds_per_call)))


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where measuring a cell stands, after each placement."""

    placements: int
    rounds: int
    seconds: float
    settled: bool


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What measuring gave. A task that raised is in ``failures`` with its error and was not timed further."""

    samples: tuple[Sample, ...]
    failures: Mapping[str, Exception]


@dataclass(frozen=True, kw_only=True)
class Measurer:
    """Measures the tasks of one cell.

    Args:
        clock: Times the samples that ratios are taken of.
        wall: A second clock for what an eager loop feels, once a placement; None where ``clock`` is that.
        precision: How many placements, and when to stop.
        cache: The cache state each sample starts from.
        batching: How many calls a sample holds.
        seed: Decides the order of each round.
        baseline: The name of the task that ratios are taken against.
        floor: The name of the floor's task, which no pair is judged of.
        reading: What the device says of its clocks, asked once a round.
        now: A monotonic clock for the budget.
        on_progress: Told after each placement.
    """

    clock: Clock
    wall: Clock | None
    precision: Precision
    cache: Cache
    batching: Batching
    seed: int
    baseline: str
    floor: str
    reading: Callable[[], Reading | None] = lambda: None
    now: Callable[[], float] = time.monotonic
    on_progress: Callable[[Progress], None] = lambda _progress: None

    def measure(self, place: Callable[[], Sequence[Task]]) -> Measurement:
        """Measure until every pair is settled or the budget is spent.

        Args:
            place: Returns the tasks of a new placement, all in the same order each time.
        """
        session = _Session(self)
        began = self.now()
        tasks = place()
        rounds = self._rounds(session.pilot(tasks))
        for placement in range(self.precision.looks[-1]):
            if placement:
                # The old tasks stay alive until the new ones are there: at new addresses.
                tasks = place()
            session.measure_placement(tasks, placement, rounds)
            settled = placement + 1 in self.precision.looks and session.is_settled()
            spent = self.now() - began
            self.on_progress(Progress(placements=placement + 1, rounds=rounds, seconds=spent, settled=settled))
            if settled or self._is_over(placement + 1, spent) or not session.alive(tasks):
                break
        return Measurement(samples=tuple(session.samples), failures=session.failures)

    def _is_over(self, placements: int, spent: float) -> bool:
        """Whether to stop undecided: the budget is spent, or three of them where an interval is not in reach yet."""
        patience = 1.0 if placements >= LEAST_PLACEMENTS else _PATIENCE
        return spent >= patience * self.precision.max_seconds

    def _rounds(self, round_s: float) -> int:
        """Rounds a placement: so many that the last look falls into the budget, within bounds.

        Where even the first look would not, there are fewer rounds rather than fewer placements, since it
        is placements that an interval rests on.
        """
        budget_s, looks = self.precision.max_seconds, self.precision.looks
        wished = max(_LEAST_ROUNDS, min(_MOST_ROUNDS, int(budget_s / looks[-1] / max(round_s, 1e-9))))
        affordable = int(budget_s / looks[0] / max(round_s, 1e-9))
        return max(1, min(wished, affordable))


class _Session:
    """The state of measuring one cell: samples and failures so far, the order's generator, the batch sizes."""

    def __init__(self, measurer: Measurer) -> None:
        self._measurer = measurer
        self._order = random.Random(measurer.seed)
        self._calls: dict[str, int] = {}
        self.samples: list[Sample] = []
        self.failures: dict[str, Exception] = {}

    def alive(self, tasks: Sequence[Task]) -> list[Task]:
        """The tasks that have not failed."""
        return [task for task in tasks if task.name not in self.failures]

    def pilot(self, tasks: Sequence[Task]) -> float:
        """Find each task's batch size, and return the seconds a round takes. Its times are no samples."""
        clock, cache, now = self._measurer.clock, self._measurer.cache, self._measurer.now
        for task in tasks:
            with self._contained(task):
                once = min(clock.time(task, calls=1, cache=cache).seconds for _ in range(2))
                self._calls[task.name] = self._measurer.batching.calls(once)
        began = now()
        for task in self.alive(tasks):
            with self._contained(task):
                clock.time(task, calls=self._calls[task.name], cache=cache)
        return now() - began

    def measure_placement(self, tasks: Sequence[Task], placement: int, rounds: int) -> None:
        """Warm every task in its new buffers, then time the rounds."""
        with _no_garbage_collection():
            for task in self.alive(tasks):
                with self._contained(task):
                    task.run()
            for round_ in range(rounds):
                self._measure_round(self._measurer.clock, tasks, placement, round_)
                gc.collect(0)  # between the rounds, or reference cycles would pile up for a whole placement
            if self._measurer.wall is not None:
                self._measure_round(self._measurer.wall, tasks, placement, rounds)

    def _measure_round(self, clock: Clock, tasks: Sequence[Task], placement: int, round_: int) -> None:
        alive = self.alive(tasks)
        self._order.shuffle(alive)
        reading = self._measurer.reading()
        for position, task in enumerate(alive):
            with self._contained(task):
                calls = self._calls[task.name]
                timed = clock.time(task, calls=calls, cache=self._measurer.cache)
                self.samples.append(
                    Sample(
                        implementation=task.name,
                        process=0,
                        placement=placement,
                        round=round_,
                        position=position,
                        calls=calls,
                        seconds=timed.seconds,
                        clock=timed.clock,
                        reading=reading,
                    )
                )

    def is_settled(self) -> bool:
        """Whether every candidate's interval is narrow enough; without a baseline nothing more would settle."""
        wall = self._measurer.wall
        by_name: dict[str, list[Sample]] = {}
        for sample in stats.without_clock(self.samples, wall.name if wall else None):
            by_name.setdefault(sample.implementation, []).append(sample)
        apart = (self._measurer.baseline, self._measurer.floor, *self.failures)
        baseline = by_name.get(self._measurer.baseline)
        if baseline is None or self._measurer.baseline in self.failures:
            return True
        candidates = [samples for name, samples in by_name.items() if name not in apart]
        return verdict.is_settled(baseline, candidates, self._measurer.precision)

    @contextmanager
    def _contained(self, task: Task) -> Iterator[None]:
        """An error of a task is that task's own: it is kept, and the others go on."""
        try:
            yield
        except Exception as error:  # whatever an implementation raises is its result
            # Without the frames it went through, which would keep the placement's buffers alive.
            self.failures[task.name] = error.with_traceback(None)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
