"""What the stand-in for ``torch.cuda`` takes for granted, each as a question to it and to ``torch.cuda`` alike.

Each question gives what it found, and in ``problem`` what of the assumption does not hold there, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from normbench.clock import CudaEventClock, Task
from normbench.records import Cache

SPIN = 1_000_000
"""Cycles."""
LEAST_SPIN_S, MOST_SPIN_S = 0.2e-3, 5e-3
OFF_THE_DOUBLE = 0.2
SMALL_CALLS = 10
RESOLUTION_S = 1e-6
FLUSHED_ALIKE = 0.1

_INTERVALS = 64
_REPEATS = 15
_TRIES = 5
_SAME_S = 1e-11
"""Closer together, two times differ by rounding alone."""


class Recording:
    """``torch.cuda`` or a stand-in, with a log of what it is asked, in the words of ``FakeCuda``."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self.log: list[str] = []

    def _sleep(self, cycles: int) -> None:
        self.log.append(f"sleep {cycles}")
        self._cuda._sleep(cycles)

    def synchronize(self) -> None:
        self.log.append("synchronize")
        self._cuda.synchronize()

    def Event(self, *, enable_timing: bool) -> _RecordedEvent:  # noqa: N802 - torch's name
        return _RecordedEvent(self._cuda.Event(enable_timing=enable_timing), self.log)


class _RecordedEvent:
    def __init__(self, event: Any, log: list[str]) -> None:
        self._event = event
        self._log = log

    def record(self) -> None:
        self._log.append("record")
        self._event.record()

    def query(self) -> bool:
        self._log.append("query")
        return bool(self._event.query())

    def elapsed_time(self, end: _RecordedEvent) -> float:
        return float(self._event.elapsed_time(end._event))


def asked_in_a_hold(cuda: Any, launch: Callable[[str], object]) -> list[str]:
    """What the event clock asks of ``cuda``, and of a task and a flush that ``launch`` by name, in its last hold.

    Args:
        cuda: Has a ``log``.
        launch: Queues something and puts its name there.
    """

    def prepare() -> Callable[[], object]:
        launch("prepare")
        return lambda: launch("call")

    clock = CudaEventClock(cuda, flush=lambda: launch("flush"))
    clock.time(Task(name="it", prepare=prepare, repeatable=False), calls=2, cache=Cache.COLD)
    log = [entry.split()[0] for entry in cuda.log]
    last = len(log) - 1 - log[::-1].index("sleep")
    return log[last - 1 :]


@dataclass(frozen=True, kw_only=True)
class Passing:
    """Whether an event behind a spin has passed: as soon as it is queued, and once the device was waited for."""

    early: bool
    late: bool

    @property
    def problem(self) -> str | None:
        if self.early:
            return "an event has passed before the spin ahead of it"
        return None if self.late else "an event has not passed once everything is done"


def passing(cuda: Any) -> Passing:
    """See ``Passing``."""
    cuda.synchronize()
    cuda._sleep(SPIN)
    event = _recorded(cuda)
    early = event.query()
    cuda.synchronize()
    return Passing(early=early, late=event.query())


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """Of the times between events.

    Args:
        step_s: The smallest difference between two; None where all are the same.
        least_s: The smallest time.
        missing_s: The time between the first and the last event, without the sum of those between neighbours.
    """

    step_s: float | None
    least_s: float
    missing_s: float

    @property
    def problem(self) -> str | None:
        if self.least_s < 0:
            return "time runs backwards between two events"
        if self.step_s is None or self.step_s > RESOLUTION_S:
            return "times between events are too coarse"
        return "the parts are not the whole" if abs(self.missing_s) > RESOLUTION_S else None


def resolution(cuda: Any) -> Resolution:
    """Of events with ever longer spins between them."""
    cuda.synchronize()
    cuda._sleep(SPIN)
    events = [_recorded(cuda)]
    for number in range(_INTERVALS):
        cuda._sleep(1000 + 37 * number)
        events.append(_recorded(cuda))
    cuda.synchronize()
    times = [_between(start, end) for start, end in pairwise(events)]
    steps = [later - earlier for earlier, later in pairwise(sorted(times))]
    return Resolution(
        step_s=min((step for step in steps if step > _SAME_S), default=None),
        least_s=min(times),
        missing_s=_between(events[0], events[-1]) - sum(times),
    )


@dataclass(frozen=True, kw_only=True)
class Spin:
    """How long ``SPIN`` cycles and twice as many last, and whether they outlast the queueing of some small calls."""

    once_s: float
    twice_s: float
    outlasts: bool

    @property
    def problem(self) -> str | None:
        if not LEAST_SPIN_S <= self.once_s <= MOST_SPIN_S:
            return "a spin is too short or too long"
        if abs(self.twice_s / self.once_s / 2 - 1) > OFF_THE_DOUBLE:
            return "twice the cycles do not last twice as long"
        return None if self.outlasts else "a spin is over before a few calls are queued"


def spin(cuda: Any, call: Callable[[], object]) -> Spin:
    """See ``Spin``; ``call`` queues something small."""
    call()  # what runs for the first time may wait for the device
    times = [(_spun(cuda, SPIN), _spun(cuda, 2 * SPIN)) for _ in range(_REPEATS)]
    outlasts = any(_outlasts(cuda, call) for _ in range(_TRIES))
    once, twice = zip(*times, strict=True)
    return Spin(once_s=median(once), twice_s=median(twice), outlasts=outlasts)


def _outlasts(cuda: Any, call: Callable[[], object]) -> bool:
    """Whether a spin lasts longer than queueing takes; a host that pauses may miss it once."""
    cuda._sleep(SPIN)
    over = _recorded(cuda)
    for _ in range(SMALL_CALLS):
        call()
    outlasts = not over.query()
    cuda.synchronize()
    return outlasts


@dataclass(frozen=True, kw_only=True)
class Eviction:
    """Seconds to read what fits into the cache: when it is there, after a flush, and after one of twice as much."""

    warm_s: float
    flushed_s: float
    twice_s: float

    @property
    def problem(self) -> str | None:
        if self.flushed_s <= self.warm_s:
            return "a flush leaves in the cache what was there"
        return "a flush leaves a part of it" if self.twice_s > (1 + FLUSHED_ALIKE) * self.flushed_s else None


def eviction(
    cuda: Any, *, read: Callable[[], object], flush: Callable[[], object], twice: Callable[[], object]
) -> Eviction:
    """See ``Eviction``; the three queue their work and alternate."""

    def timed(between: Callable[[], object]) -> float:
        cuda.synchronize()
        cuda._sleep(SPIN)
        read()
        between()
        start = _recorded(cuda)
        read()
        end = _recorded(cuda)
        cuda.synchronize()
        return _between(start, end)

    times = [[timed(between) for between in (lambda: None, flush, twice)] for _ in range(1 + _REPEATS)]
    warm, flushed, more = map(median, zip(*times[1:], strict=True))
    return Eviction(warm_s=warm, flushed_s=flushed, twice_s=more)


def _spun(cuda: Any, cycles: int) -> float:
    start = _recorded(cuda)
    cuda._sleep(cycles)
    end = _recorded(cuda)
    cuda.synchronize()
    return _between(start, end)


def _recorded(cuda: Any) -> Any:
    event = cuda.Event(enable_timing=True)
    event.record()
    return event


def _between(start: Any, end: Any) -> float:
    return float(start.elapsed_time(end)) * 1e-3
