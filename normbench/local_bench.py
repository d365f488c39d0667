"""The bench of one process: the device, what times on it, and the cell that is being measured."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from normbench import compilation
from normbench.audit import audit, shared_writes
from normbench.bench import BenchLost, Job, Pending, Prepared
from normbench.compilation import Graph
from normbench.device import Device
from normbench.entrants import Entrant, admit, compile_first_call, operands_for
from normbench.errors import NormbenchError
from normbench.failures import RAISED, Failure
from normbench.implementations import Implementation, Setting
from normbench.inputs import Operands, Placer, cell_seed, draw
from normbench.instruments import Instruments
from normbench.places import Places
from normbench.profiling.case import Profiled, profile_case
from normbench.records import Cache, Case, CaseResult, Cell, Mode, Plan, Status
from normbench.rounds import Batching, Pace, Placed, Rounds, Sampling
from normbench.turns import TakeTurn
from normbench.watch import Watch


class LocalBench:
    """The bench of this process.

    Args:
        plan: What is asked for.
        implementations: In the order of the records; baseline and floor among them.
        device: Where.
        tools: What times.
        process: The number of this process, which stands in the samples.
        preparing: Told who is being prepared.
        turn: Entered while an implementation's code runs.
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
        turn: TakeTurn = lambda _name: nullcontext(),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._implementations = tuple(implementations)
        self._device = device
        self._tools = tools
        self._process = process
        self._preparing = preparing
        self._turn = turn
        self._now = now
        self._job: Job | None = None
        self._entrants: Sequence[Entrant] = ()
        self._places: Places | None = None
        self._rounds: Rounds | None = None
        self._is_lost = False

    def prepare(self, job: Job) -> Pending[Prepared]:
        """See ``Bench.prepare``."""
        return partial(self._prepare, job)

    def measure(self, placement: int, pace: Pace, names: Collection[str]) -> Placed:
        """See ``Bench.measure``."""
        assert self._rounds is not None, "a cell is prepared first"
        assert self._places is not None
        placed = self._rounds.measure(placement, pace, names)
        for name, why in placed.failures.items():  # the first is the one: those after it found the device broken
            self._refuse_broken_device(name, why)
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
            with self._turn(name):
                why = audit(placed[name], compiled=implementation.compiled, seed=seed, thorough=thorough)
            why = watch() or why  # what else is wrong may come of changed settings
            if why is not None:
                self._refuse_broken_device(name, why)
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
                with self._turn(entrant.implementation.name):
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
            with self._turn(case.implementation):
                bind = implementation.build(setting)
                folder.mkdir()
                seconds, _graphs = compile_first_call(implementation, setting, bind, values, self._device, folder)
        except RAISED:  # it will be tried again, and its error recorded, when its cell is prepared
            return None
        return Graph(folder=folder, seconds=seconds)

    def _prepare(self, job: Job) -> Prepared:
        if self._is_lost:
            raise NormbenchError(
                "the device works no longer in this process", hint="go on with --resume; without --no-isolate"
            )
        compilation.reset()
        values, compiling = self._values(job.cell), list[float]()
        taking_part = self._loaded(i for i in self._implementations if i.name not in job.without)
        admitted = {i.name: self._admit(i, job, values, compiling.append) for i in taking_part}
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

    def _loaded(self, implementations: Iterable[Implementation]) -> list[Implementation]:
        """The same, everybody's code imported before anybody's is built: two that can't be together both say so."""
        loaded = []
        for implementation in implementations:
            with self._turn(implementation.name):
                loaded.append(implementation.loaded())
        return loaded

    def _admit(
        self, implementation: Implementation, job: Job, values: Operands, compiling: Callable[[float], None]
    ) -> Entrant | CaseResult:
        self._preparing(implementation.name)
        graph = job.graphs.get(implementation.name)
        with self._turn(implementation.name):
            admitted = admit(
                implementation,
                replace(self._setting(job.cell), precompiled=graph is not None),
                values,
                self._device,
                graph=graph,
                thorough=job.thorough,
                compiling=compiling,
            )
        if isinstance(admitted, CaseResult) and admitted.status is Status.FAILED:
            why = Failure(status=admitted.status, reason=admitted.reason or "")
            self._refuse_broken_device(implementation.name, why)
        return admitted

    def _refuse_broken_device(self, name: str, why: Failure) -> None:
        """After an error of CUDA that stays, every later call in the process fails, whoever's it is."""
        if not self._device.works():
            self._is_lost = True
            raise BenchLost(name, why)

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
            turn=self._turn,
            watch=watch,
            now=self._now,
        )
        seed = cell_seed(self._plan.seed, cell, f"order {self._process}")
        self._places = Places(placer, entrants, values, self._device, watch, self._turn)
        return Rounds(sampling, self._places, baseline=self._plan.baseline, seed=seed, process=self._process)

    def _setting(self, cell: Cell) -> Setting:
        device, plan = str(self._device.torch_device), self._plan
        return Setting(cell=cell, eps=plan.eps, compile_mode=plan.compile_mode, device=device)

    def _values(self, cell: Cell) -> Operands:
        return draw(cell, self._plan.seed, self._device.torch_device)
