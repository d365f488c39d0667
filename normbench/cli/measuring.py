"""What a sweep is made of on this machine: benches in this process or in workers, and whether to compile ahead."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from normbench import units
from normbench.ahead import Ahead, is_faster
from normbench.answering import Spec
from normbench.bench import Bench
from normbench.device import Device, fix_threads
from normbench.implementations import Catalog, Implementation
from normbench.instruments import instruments, names_beside
from normbench.interruption import Interruption
from normbench.local_bench import LocalBench
from normbench.observer import Observer
from normbench.other_load import OtherLoad, own_seconds
from normbench.records import Plan, Spent
from normbench.sweeping import Sweep
from normbench.workers import Worker, crew

_CONTEXT_BYTES = 2 * 2**30


@contextmanager
def prepared(
    plan: Plan, device: Device, catalog: Catalog, observer: Observer, interruption: Interruption, *, cells: int
) -> Iterator[Sweep]:
    """A sweep that is ready to run ``cells`` cells; worker processes end with the context."""
    began = time.monotonic()
    fix_threads(device.info.threads)
    implementations = catalog.chosen(plan.implementations)
    spec = Spec(plan=plan, device=str(device.torch_device), threads=device.info.threads, located=catalog.located)
    compiled = [implementation.name for implementation in implementations if implementation.compiled]
    cores = _compilers_at_once(device)
    with (
        _benches(spec, device, implementations, observer) as benches,
        tempfile.TemporaryDirectory(prefix="normbench-") as folder,
    ):
        workers = [bench for bench in benches if isinstance(bench, Worker)]
        started_s = time.monotonic() - began
        several = workers if len(workers) > 1 else ()
        open_crew = _compilers(spec, several)
        is_ahead = compiled and (several or is_faster(cells * len(compiled), cores))
        yield Sweep(
            plan=plan,
            implementations=implementations,
            device=device,
            benches=benches,
            observer=observer,
            beside=names_beside(device.info.kind, graphs=plan.graphs),
            ahead=Ahead(Path(folder), compiled, open_crew, cores) if is_ahead else None,
            spent=Spent(starting_s=started_s, elapsed_s=started_s),
            load=lambda: OtherLoad(own=lambda: own_seconds(worker.pid for worker in workers)),
            interruption=interruption,
        )


def _benches(
    spec: Spec, device: Device, implementations: Sequence[Implementation], observer: Observer
) -> AbstractContextManager[Sequence[Bench]]:
    if spec.plan.isolate:
        count = spec.plan.precision.processes
        observer.starting(f"starting {units.count(count, 'process')}")
        return crew(spec, count, observer.preparing if count == 1 else None)
    bench = LocalBench(
        plan=spec.plan,
        implementations=implementations,
        device=device,
        tools=instruments(device, graphs=spec.plan.graphs),
        preparing=observer.preparing,
    )
    return nullcontext([bench])


def _compilers_at_once(device: Device) -> int:
    """As many as there are cores; on a GPU no more than it has memory for, since each takes a context there."""
    cores = os.cpu_count() or 1
    return cores if device.info.kind == "cpu" else max(1, min(cores, device.free_bytes() // _CONTEXT_BYTES))


def _compilers(spec: Spec, workers: Sequence[Bench]) -> Callable[[int], AbstractContextManager[Sequence[Bench]]]:
    """Opens benches to compile on: those that are there, or processes for just that."""
    if workers:
        return lambda count: nullcontext(workers[:count])
    return lambda count: crew(spec, count)
