"""One process's share of measuring a cell: places its tasks anew and times them in rounds. Knows no norm.

All tasks are timed in each round, once and in random order, so that whatever disturbs the machine disturbs
all of them alike.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from normbench.clock import Clock, NotTimed, Task, Timed
from normbench.failures import RAISED, Failure, failure
from normbench.records import Cache, Reading, Sample, Spent
from normbench.turns import TakeTurn

_LEAST_ROUNDS = 9
_MOST_ROUNDS = 51
_PILOT_CALLS = 3
_ALIKE = 2.0


@dataclass(frozen=True, kw_only=True)
class Batching:
    """How many calls a sample holds: as many as last ``least_s``, up to ``most_calls``."""

    least_s: float = 200e-6
    most_calls: int = 64

    def calls(self, seconds_per_call: float) -> int:
        """Calls in a sample of a task that takes ``seconds_per_call``."""
        return max(1, min(self.most_calls, round(self.least_s / seconds_per_call)))

    def sizes(self, seconds: Mapping[str, float], baseline: str) -> dict[str, int]:
        """Calls in a sample of each task, from seconds of one call.

        Those that are about as fast as the baseline get as many calls as it: the first call of a batch takes a
        little longer than the others, and would weigh more in a smaller one.
        """
        sizes = {name: self.calls(once) for name, once in seconds.items()}
        about = seconds.get(baseline, 0.0)
        alike = [n for n, once in seconds.items() if about / _ALIKE <= once <= about * _ALIKE]
        return sizes | dict.fromkeys(alike, sizes.get(baseline, 1))


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How long a placement's rounds go on.

    Args:
        share_s: A placement's share of the budget if all of them are to fit. It is used, for up to 51 rounds;
            where 9 rounds take longer, there are 9, and fewer placements.
        most_s: Its share if only the least number of placements is to fit. Beyond it there are fewer rounds
            than 9 rather than fewer placements, since it is placements that an interval rests on.
    """

    share_s: float
    most_s: float

    def is_enough(self, rounds: int, seconds: float) -> bool:
        """Whether a placement of so many rounds, which took so long, is complete: one more would be too much."""
        with_one_more = seconds * (rounds + 1) / rounds
        if with_one_more > self.most_s or rounds >= _MOST_ROUNDS:
            return True
        return rounds >= _LEAST_ROUNDS and with_one_more > self.share_s


@dataclass(frozen=True, kw_only=True)
class Placed:
    """What one placement gave. A task that raised is in ``failures`` and was not timed further."""

    samples: tuple[Sample, ...]
    failures: Mapping[str, Failure]
    spent: Spent

    @property
    def rounds(self) -> int:
        """Rounds of the clock that ratios are taken by."""
        return 1 + max((sample.round for sample in self.samples), default=-1)


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How samples are taken.

    Args:
        clock: Times the samples that ratios are taken of.
        beside: Other clocks, each once a placement: what an eager loop feels, where ``clock`` is not that.
        cache: The cache state each sample starts from.
        batching: How many calls a sample holds.
        reading: What the device says of its clocks, asked once a round.
        turn: Entered while a task runs.
        watch: Asked after each turn of a task, outside the clock, for a reason why it may have no time.
        now: A monotonic clock.
    """

    clock: Clock
    beside: tuple[Clock, ...] = ()
    cache: Cache
    batching: Batching
    reading: Callable[[], Reading | None] = lambda: None
    turn: TakeTurn = lambda _name: nullcontext()
    watch: Callable[[], Failure | None] = lambda: None
    now: Callable[[], float] = time.monotonic


class Rounds:
    """Measures placements of the tasks that ``place`` makes.

    Args:
        sampling: How samples are taken.
        place: Returns the tasks of a new placement, best in another order each time: they are warmed in it.
        baseline: Whose batch size those get that are about as fast.
        seed: Decides the order of each round.
        process: Stands in the samples.
    """

    def __init__(
        self,
        sampling: Sampling,
        place: Callable[[], Sequence[Task]],
        *,
        baseline: str,
        seed: int,
        process: int = 0,
    ) -> None:
        self._sampling = sampling
        self._place = place
        self._baseline = baseline
        self._process = process
        self._order = random.Random(seed)
        self._calls: dict[str, int] = {}
        self._tasks: Sequence[Task] = ()
        self._samples: list[Sample] = []
        self._failures: dict[str, Failure] = {}
        self._spent = Spent()

    def measure(self, placement: int, pace: Pace, names: Collection[str]) -> Placed:
        """Place all tasks anew and time those that are named.

        The first call finds each task's batch size.
        """
        now = self._sampling.now
        self._samples, self._failures, self._spent = [], {}, Spent()
        began = now()
        # The old tasks stay alive until the new ones are there: at new addresses.
        tasks = self._tasks = self._place()
        self._spent += Spent(placing_s=now() - began)
        alive = [task for task in tasks if task.name in names]
        if not self._calls:
            self._pilot(alive)
        with _no_garbage_collection():
            self._warm(alive)
            self._measure_rounds(alive, placement, pace, began)
        return Placed(samples=tuple(self._samples), failures=self._failures, spent=self._spent)

    def _alive(self, tasks: Sequence[Task]) -> list[Task]:
        return [task for task in tasks if task.name not in self._failures]

    def _pilot(self, tasks: Sequence[Task]) -> None:
        """Find each task's batch size, unless there is but one; these times are no samples."""
        if self._sampling.batching.most_calls == 1:
            self._calls = dict.fromkeys((task.name for task in tasks), 1)
            return
        once: dict[str, float] = {}
        for task in tasks:
            with self._contained(task):
                once[task.name] = min(self._time(self._sampling.clock, task, 1).seconds for _ in range(_PILOT_CALLS))
        self._calls = self._sampling.batching.sizes(once, self._baseline)

    def _warm(self, tasks: Sequence[Task]) -> None:
        began = self._sampling.now()
        for task in self._alive(tasks):
            with self._contained(task):
                task.run()
        self._spent += Spent(warming_s=self._sampling.now() - began)

    def _measure_rounds(self, tasks: Sequence[Task], placement: int, pace: Pace, began: float) -> None:
        rounds = 0
        while not rounds or not pace.is_enough(rounds, self._sampling.now() - began):
            self._measure_round(self._sampling.clock, tasks, placement, rounds)
            gc.collect(0)  # between the rounds, or reference cycles would pile up for a whole placement
            rounds += 1
        for number, clock in enumerate(self._sampling.beside):
            self._measure_round(clock, tasks, placement, rounds + number)

    def _measure_round(self, clock: Clock, tasks: Sequence[Task], placement: int, round_: int) -> None:
        alive = self._alive(tasks)
        self._order.shuffle(alive)
        reading = self._sampling.reading()
        for position, task in enumerate(alive):
            with self._contained(task):
                calls = self._calls[task.name]
                timed = self._time(clock, task, calls)
                self._samples.append(
                    Sample(
                        implementation=task.name,
                        process=self._process,
                        placement=placement,
                        round=round_,
                        position=position,
                        calls=calls,
                        seconds=timed.seconds,
                        clock=timed.clock,
                        reading=reading,
                    )
                )

    def _time(self, clock: Clock, task: Task, calls: int) -> Timed:
        timed = clock.time(task, calls=calls, cache=self._sampling.cache)
        self._spent += timed.spent
        return timed

    @contextmanager
    def _contained(self, task: Task) -> Iterator[None]:
        """An error of a task is that task's own, and the others go on."""
        try:
            with self._sampling.turn(task.name):
                yield
        except NotTimed:
            pass  # this clock has no time for it, the others may
        except RAISED as error:  # whatever an implementation raises is its result
            self._failures[task.name] = failure(error)
            error.__traceback__ = None  # whoever keeps the error must not keep the placement's buffers by it
        odd = self._sampling.watch()
        if odd is not None:
            self._failures.setdefault(task.name, odd)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
