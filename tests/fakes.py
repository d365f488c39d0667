"""Stand-ins for what measuring depends on: a clock, a device, tasks."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from normbench.clock import Call, Task, Timed
from normbench.implementations import Implementation, by_name
from normbench.measure import Batching, Measurer, Progress
from normbench.records import Cache, CaseResult, Cell, CellRecords, DeviceInfo, Plan, Precision, Reading
from normbench.sweep import Instruments, Sweep
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
        return Timed(seconds=seconds, clock=self.name)


@dataclass
class FakeDevice:
    """The CPU, posing as whatever ``info`` says, with as much memory as ``free`` says."""

    info: DeviceInfo = field(
        default_factory=lambda: DeviceInfo(kind="cpu", name="Fake", slug="fake", memory_bytes=2**34)
    )
    free: int = 2**33
    released: int = 0
    torch_device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def synchronize(self) -> None:
        """Nothing is ever pending."""

    def free_bytes(self) -> int:
        return self.free

    def release(self) -> None:
        self.released += 1

    def reading(self) -> Reading | None:
        return None


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


def measurer(clock: FakeClock, *, max_seconds: float = 1e6, placements: int = 10, **options: Any) -> Measurer:
    """Measures ``NAMES`` on the clock's own time."""
    fields: dict[str, Any] = {
        "wall": None,
        "precision": Precision(placements=placements, max_seconds=max_seconds),
        "cache": Cache.WARM,
        "batching": Batching(),
        "seed": 7,
        "baseline": "base",
        "floor": "floor",
        "now": clock.timer,
    }
    return Measurer(clock=clock, **{**fields, **options})


def anywhere(implementation: Implementation) -> Implementation:
    """The same, whatever compilers this machine lacks."""
    return replace(implementation, unsupported=lambda *_: None)


class Watcher:
    """An observer that remembers what it is told."""

    def __init__(self) -> None:
        self.log: list[object] = []
        self.progress: list[Progress] = []

    def cell_started(self, cell: Cell, index: int, count: int) -> None:
        self.log.append((cell, index, count))

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

    def run(self, done: Collection[Cell] = ()) -> list[CellRecords]:
        sweep = Sweep(
            plan=self.plan,
            implementations=tuple(self.implementations),
            device=self.device,
            instruments=Instruments(clock=self.clock, wall=self.wall, batching=self.batching),
            observer=self.watcher,
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
