"""Sweeps and tasks on the GPU, in this process, by its own clocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from normbench.clock import Task
from normbench.device import CudaDevice
from normbench.implementations import Implementation, by_name
from normbench.inputs import draw
from normbench.instruments import instruments
from normbench.local_bench import LocalBench
from normbench.records import CellRecords
from normbench.sweeping import Sweep
from tests.fakes import Watcher, plan_of
from tests.helpers import cell_for, make_task, place


def swept(
    gpu: CudaDevice, implementations: Sequence[Implementation], *, graphs: bool = False, **options: Any
) -> CellRecords:
    """The records of a cell."""
    plan = plan_of(implementations, **options)
    tools = instruments(gpu, graphs=graphs)
    sweep = Sweep(
        plan=plan,
        implementations=tuple(implementations),
        device=gpu,
        benches=[LocalBench(plan=plan, implementations=implementations, device=gpu, tools=tools)],
        observer=Watcher(),
        beside=tools.names_beside,
    )
    (records,) = sweep.run()
    return records


def task_of(gpu: CudaDevice, name: str, **cell: Any) -> Task:
    """A built-in implementation's task in buffers of its own."""
    implementation = by_name(name)
    at = cell_for(implementation, **cell)
    return make_task(implementation, at, place(implementation, at, draw(at, 0, gpu.torch_device)))
