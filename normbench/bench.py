"""One process's bench: the device, what times on it, and the cell that is being measured."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from normbench import compilation
from normbench.audit import audit, shared_writes
from normbench.clock import Clock, CudaEventClock, CudaGraphClock, WallClock
from normbench.compilation import Graph
from normbench.device import CudaDevice, Device, make_flush
from normbench.entrants import Admission, Entrant, admit, compile_first_call, operands_for
from normbench.failures import Failure
from normbench.implementations import Implementation, Setting
from normbench.inputs import Operands, Placer, cell_seed, draw
from normbench.places import Places
from normbench.profiling.case import Profiled, profile_case
from normbench.records import Cache, Case, CaseResult, Cell, Mode, Plan
from normbench.rounds import Batching, Pace, Placed, Rounds, Sampling
from normbench.watch import Watch

T = TypeVar("T")
Pending: TypeAlias = Callable[[], T]
"""An answer that is waited for when this is called, so that several processes can work at once."""


@dataclass(frozen=True, kw_only=True)
class Instruments:
    """What times on a device.

    ``beside`` holds wall time where ``clock`` is not that, and what else was asked for.
    """

    clock: Clock
    batching: Batching
    beside: tuple[Clock, ...] = ()

    @property
    def names_beside(self) -> tuple[str, ...]:
        """The names of the clocks in ``beside``."""
        return tuple(clock.name for clock in self.beside)


def instruments(device: Device, *, graphs: bool = False) -> Instruments:
    """CUDA events and wall time on a GPU, and captured graphs where asked for; wall time on a CPU."""
    flush = make_flush(device)
    wall = WallClock(flush=flush, synchronize=device.synchronize)
    if isinstance(device, CudaDevice):
        clock = CudaEventClock(device.cuda, flush=flush)
        beside: tuple[Clock, ...] = (wall, CudaGraphClock(device.cuda)) if graphs else (wall,)
        return Instruments(clock=clock, beside=beside, batching=Batching(least_s=100e-6, most_calls=10))
    return Instruments(clock=wall, batching=Batching())


@dataclass(frozen=True, kw_only=True)
class Job:
    """A cell to prepare.

    Args:
        cell: The cell.
        shared: Use one x and one dy for all implementations, where memory is short.
        twin: The name under which the baseline competes once more, with buffers of its own: an A/A test.
        graphs: What was compiled ahead, by implementation.
        thorough: Whether results are checked as a whole and on hard rows, or a few rows of them. Once is enough:
            another process runs the same code.
    """

    cell: Cell
    shared: bool = False
    twin: str | None = None
    graphs: Mapping[str, Graph] = field(default_factory=dict)
    thorough: bool = True


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Each implementation's admission or its final record, and how long compiling took."""

    admissions: Mapping[str, Admission | CaseResult]
    compiling_s: float


class BenchError(Exception):
    """What was asked of a bench in another process raised an error there."""

    def __init__(self, why: Failure) -> None:
        super().__init__(why.reason)
        self.failure = why


class Bench(Protocol):
    """Where cells are prepared and measured: this process, or another one."""

    def prepare(self, job: Job) -> Pending[Prepared]:
        """Bring every implementation of the cell to the start: built, compiled and checked."""

    def measure(self, placement: int, pace: Pace, names: Collection[str]) -> Placed:
        """A placement of the implementations that are named."""

    def audit(self, names: Collection[str]) -> Mapping[str, Failure]:
        """Whoever of those named is no longer right after it was timed here, and why; nobody where nothing was."""

    def profile(self, names: Collection[str]) -> tuple[Profiled, ...]:
        """Profile the implementations that are named, in the cell that was prepared; nothing is timed after it."""

    def finish(self) -> None:
        """Let go of the cell."""

    def compile(self, cases: Sequence[tuple[Case, Path]]) -> Pending[list[Graph | None]]:
        """Compile cases, each into its folder; None for what can't be compiled."""


class LocalBench:
    """The bench of this process.

    Args:
        plan: What is asked for.
        implementations: In the order of the records; baseline and floor among them.
        device: Where.
        tools: What times.
        process: The number of this process, which stands in the samples.
        preparing: Told whose turn it is.
        now: A monotonic clock.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        implementations: Sequence[Implementation],
        device: Device,
        tools: Instruments,
        process: int = 0,
        preparing: Callable[[str], None] = lambda _name: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._implementations = tuple(implementations)
        self._device = device
        self._tools = tools
        self._process = process
        self._preparing = preparing
        self._now = now
        self._job: Job | None = None
        self._entrants: Sequence[Entrant] = ()
        self._places: Places | None = None
        self._rounds: Rounds | None = None

    def prepare(self, job: Job) -> Pending[Prepared]:
        """See ``Bench.prepare``."""
        return partial(self._prepare, job)

    def measure(self, placement: int, pace: Pace, names: Collection[str]) -> Placed:
        """See ``Bench.measure``."""
        assert self._rounds is not None, "a cell is prepared first"
        assert self._places is not None
        placed = self._rounds.measure(placement, pace, names)
        return replace(placed, failures={**self._places.failures, **placed.failures})

    def audit(self, names: Collection[str]) -> Mapping[str, Failure]:
        """See ``Bench.audit``."""
        assert self._job is not None, "a cell is prepared first"
        assert self._places is not None
        watch = Watch()
        placed = self._places.subjects
        timed = {
            i.name: i for i in (e.implementation for e in self._entrants) if i.name in placed and i.name in names
        }
        failures = shared_writes({name: placed[name] for name in timed}) if self._job.shared else {}
        for name, implementation in timed.items():
            self._preparing(f"{name} once more")
            seed = cell_seed(self._plan.seed, self._job.cell, f"audit {self._process} {name}")
            thorough = self._job.thorough
            why = audit(placed[name], compiled=implementation.compiled, seed=seed, thorough=thorough)
            why = watch() or why  # what else is wrong may come of changed settings
            if why is not None:
                failures.setdefault(name, why)
        return failures

    def profile(self, names: Collection[str]) -> tuple[Profiled, ...]:
        """See ``Bench.profile``."""
        assert self._job is not None, "a cell is prepared first"
        values, setting = self._values(self._job.cell), self._setting(self._job.cell)
        found = []
        for entrant in self._entrants:
            if entrant.implementation.name in names:
                self._preparing(f"{entrant.implementation.name} for its profile")
                operands = operands_for(entrant.implementation, setting.cell, values)
                apart = replace(setting, precompiled=True)
                found.append(
                    profile_case(
                        entrant, apart, operands, self._device, seed=self._plan.seed, count=self._plan.counters
                    )
                )
        return tuple(found)

    def finish(self) -> None:
        """See ``Bench.finish``."""
        self._rounds, self._places, self._job, self._entrants = None, None, None, ()
        gc.collect()
        self._device.release()

    def compile(self, cases: Sequence[tuple[Case, Path]]) -> Pending[list[Graph | None]]:
        """See ``Bench.compile``."""
        return lambda: [self._compile(case, folder) for case, folder in cases]

    def _compile(self, case: Case, folder: Path) -> Graph | None:
        compilation.reset()
        (implementation,) = (i for i in self._implementations if i.name == case.implementation)
        setting = self._setting(case.cell)
        if implementation.unsupported(setting, self._device.info):
            return None
        try:
            values = self._values(case.cell)
            bind = implementation.build(setting)
            folder.mkdir()
            seconds, _graphs = compile_first_call(implementation, setting, bind, values, self._device, folder)
        except Exception:  # it will be tried again, and its error recorded, when its cell is prepared
            return None
        return Graph(folder=folder, seconds=seconds)

    def _prepare(self, job: Job) -> Prepared:
        compilation.reset()
        values, compiling = self._values(job.cell), list[float]()
        admitted: dict[str, Entrant | CaseResult] = {}
        for implementation in self._implementations:
            self._preparing(implementation.name)
            graph = job.graphs.get(implementation.name)
            admitted[implementation.name] = admit(
                implementation,
                replace(self._setting(job.cell), precompiled=graph is not None),
                values,
                self._device,
                graph=graph,
                thorough=job.thorough,
                compiling=compiling.append,
            )
        baseline = admitted.get(self._plan.baseline)
        if job.twin and isinstance(baseline, Entrant):
            admitted[job.twin] = baseline.again(job.twin)
        entrants = [entrant for entrant in admitted.values() if isinstance(entrant, Entrant)]
        self._job, self._entrants = job, entrants
        self._rounds = self._begin(job, values, entrants)
        return Prepared(
            admissions={name: e.admission if isinstance(e, Entrant) else e for name, e in admitted.items()},
            compiling_s=sum(compiling),
        )

    def _begin(self, job: Job, values: Operands, entrants: Sequence[Entrant]) -> Rounds:
        cell = job.cell
        placer = Placer(
            values,
            tuple(entrant.implementation.op for entrant in entrants),
            gradients=cell.mode is not Mode.INFERENCE,
            shared=job.shared,
            seed=cell_seed(self._plan.seed, cell, f"padding {self._process}"),
        )
        watch = Watch()
        one_call = Batching(most_calls=1)  # after the first call of a batch, nothing is cold any more
        is_cold_batch = cell.cache is Cache.COLD and not self._tools.beside
        sampling = Sampling(
            clock=self._tools.clock,
            beside=self._tools.beside,
            cache=cell.cache,
            batching=one_call if is_cold_batch else self._tools.batching,
            reading=self._device.reading,
            watch=watch,
            now=self._now,
        )
        seed = cell_seed(self._plan.seed, cell, f"order {self._process}")
        self._places = Places(placer, entrants, values, self._device, watch)
        return Rounds(sampling, self._places, baseline=self._plan.baseline, seed=seed, process=self._process)

    def _setting(self, cell: Cell) -> Setting:
        device, plan = str(self._device.torch_device), self._plan
        return Setting(cell=cell, eps=plan.eps, compile_mode=plan.compile_mode, device=device)

    def _values(self, cell: Cell) -> Operands:
        return draw(cell, self._plan.seed, self._device.torch_device)
