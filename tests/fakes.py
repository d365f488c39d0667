"""Stand-ins for what measuring depends on: a clock, a device, tasks."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from normbench.clock import Call, Task, Timed
from normbench.failures import Failure
from normbench.implementations import Implementation, by_name
from normbench.instruments import Instruments
from normbench.local_bench import LocalBench
from normbench.measure import Measurement, Measurer, Progress
from normbench.other_load import OtherLoad
from normbench.records import (
    Cache,
    CaseResult,
    Cell,
    CellRecords,
    Conditions,
    DeviceInfo,
    Part,
    Plan,
    Precision,
    Reading,
    Spent,
    StepCell,
)
from normbench.rounds import Batching, Rounds, Sampling
from normbench.sweeping import Sweep
from tests.helpers import make_plan


class Timer:
    """A clock that only moves when it is told to; called, it says the time in seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


class Output:
    """A result that says when it is gone."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    def __del__(self) -> None:
        self._log.append("drop")


class FakeClock:
    """Runs a task once and says that each of its calls took as long as ``cost`` says.

    Args:
        cost: Seconds of one call of the task of that name, or a function that is asked for them each time.
        timer: Moved on by what the calls took.
        name: Stands in the samples.
    """

    def __init__(
        self, cost: Mapping[str, float] | Callable[[str], float], timer: Timer | None = None, name: str = "fake"
    ) -> None:
        self._cost = cost if callable(cost) else cost.__getitem__
        self.timer = timer or Timer()
        self.name = name
        self.log: list[tuple[str, int, Cache]] = []

    def time(self, task: Task, *, calls: int, cache: Cache) -> Timed:
        self.log.append((task.name, calls, cache))
        task.run()
        seconds = calls * self._cost(task.name)
        self.timer.advance(seconds)
        return Timed(seconds=seconds, clock=self.name, spent=Spent(timed_s=seconds))


@dataclass
class FakeDevice:
    """The CPU, posing as whatever ``info`` says, with as much memory as ``free`` says."""

    info: DeviceInfo = field(
        default_factory=lambda: DeviceInfo(kind="cpu", name="Fake", slug="fake", memory_bytes=2**34)
    )
    free: int = 2**33
    released: int = 0
    broken: bool = False
    torch_device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    programs: list[int | None] = field(default_factory=list)
    """How many other programs compute on it, each time somebody asks; at last None."""

    def synchronize(self) -> None:
        """Nothing is ever pending."""

    def free_bytes(self) -> int:
        return self.free

    def release(self) -> None:
        self.released += 1

    def works(self) -> bool:
        return not self.broken

    def reading(self) -> Reading | None:
        return None

    def conditions(self) -> Conditions:
        return Conditions(cores=2)

    def other_programs(self) -> int | None:
        return self.programs.pop(0) if self.programs else None


def turing() -> FakeDevice:
    """A GPU of capability 7.5, which only emulates bfloat16."""
    info = DeviceInfo(
        kind="cuda", name="Tesla T4", slug="t4", memory_bytes=2**34, capability=(7, 5), native_bf16=False
    )
    return FakeDevice(info=info)


def fake_task(name: str, call: Call = lambda: None, *, repeatable: bool = True) -> Task:
    return Task(name=name, prepare=lambda: call, repeatable=repeatable)


NAMES = ("base", "floor", "cand")
TRUE_S = {"base": 1.0, "floor": 0.5, "cand": 2.0}
"""A cell of three tasks, and how long each truly takes."""


def measure(
    cost: FakeClock | Mapping[str, float] | Callable[[str], float] = TRUE_S,
    place: Callable[[], Sequence[Task]] | None = None,
    names: Sequence[str] = NAMES,
    *,
    max_seconds: float = 1e6,
    placements: int = 10,
    processes: int = 1,
    seed: int = 7,
    wall: FakeClock | None = None,
    reading: Callable[[], Reading | None] = lambda: None,
    watch: Callable[[], Failure | None] = lambda: None,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> Measurement:
    """Measure tasks by a fake clock and on its own time, in so many pretended processes."""
    clock = cost if isinstance(cost, FakeClock) else FakeClock(cost)
    sampling = Sampling(
        clock=clock,
        beside=(wall,) if wall else (),
        cache=Cache.WARM,
        batching=Batching(),
        reading=reading,
        watch=watch,
        now=clock.timer,
    )
    make = place or (lambda: [fake_task(name) for name in names])
    measurer = Measurer(
        precision=Precision(placements=placements, max_seconds=max_seconds),
        baseline="base",
        floor="floor",
        beside=(wall.name,) if wall else (),
        now=clock.timer,
        on_progress=on_progress,
    )
    benches = [
        Rounds(sampling, make, baseline="base", seed=seed + process, process=process) for process in range(processes)
    ]
    return measurer.measure(benches, names)


def anywhere(implementation: Implementation) -> Implementation:
    """The same, whatever compilers this machine lacks."""
    return replace(implementation, unsupported=lambda *_: None)


class Watcher:
    """An observer that remembers what it is told."""

    def __init__(self) -> None:
        self.log: list[object] = []
        self.progress: list[Progress] = []

    def starting(self, what: str) -> None:
        self.log.append(what)

    def cell_started(self, cell: Cell, index: int, count: int) -> None:
        self.log.append((cell, index, count))

    def step_cell_started(self, cell: StepCell, index: int, count: int) -> None:
        self.log.append((cell, index, count))

    def timing(self, part: Part) -> None:
        self.log.append(part)

    def preparing(self, name: str) -> None:
        self.log.append(name)

    def measured(self, progress: Progress) -> None:
        self.progress.append(progress)


@contextmanager
def _cheaply() -> Iterator[None]:
    """One thread, since tiny calls on several wait for busy cores, and nothing of the imports to collect."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        torch.set_num_threads(threads)


@dataclass(kw_only=True)
class FakeSweep:
    """A sweep of ``plan`` on a fake device by fake clocks, on which every call takes a millisecond unless told."""

    plan: Plan
    implementations: Sequence[Implementation]
    clock: FakeClock = field(default_factory=lambda: FakeClock(lambda _: 1e-3))
    wall: FakeClock | None = None
    device: FakeDevice = field(default_factory=FakeDevice)
    batching: Batching = field(default_factory=Batching)
    watcher: Watcher = field(default_factory=Watcher)
    load: Callable[[], OtherLoad] = OtherLoad

    def run(self, done: Collection[Cell] = ()) -> list[CellRecords]:
        tools = Instruments(clock=self.clock, beside=(self.wall,) if self.wall else (), batching=self.batching)
        bench = LocalBench(
            plan=self.plan,
            implementations=self.implementations,
            device=self.device,
            tools=tools,
            preparing=self.watcher.preparing,
            now=self.clock.timer,
        )
        sweep = Sweep(
            plan=self.plan,
            implementations=tuple(self.implementations),
            device=self.device,
            benches=[bench],
            observer=self.watcher,
            beside=tools.names_beside,
            load=self.load,
            now=self.clock.timer,
        )
        with _cheaply():
            return list(sweep.run(done))


def quickly(**changes: Any) -> Precision:
    """Five placements of five rounds, where calls take a millisecond."""
    return Precision(**{"placements": 5, "max_seconds": 0.1, **changes})


THREE = tuple(by_name(name) for name in ("copy", "nn-layernorm", "eager-rmsnorm"))


def plan_of(implementations: Sequence[Implementation], **changes: Any) -> Plan:
    names = tuple(implementation.name for implementation in implementations)
    return make_plan(**{"implementations": names, "precision": quickly(), **changes})


def fake_sweep(implementations: Sequence[Implementation] = THREE, **options: Any) -> FakeSweep:
    own_options = {name: options.pop(name) for name in list(options) if name in FakeSweep.__dataclass_fields__}
    return FakeSweep(plan=plan_of(implementations, **options), implementations=implementations, **own_options)


def row(records: CellRecords, name: str) -> CaseResult:
    return next(result for result in records.results if result.case.implementation == name)
