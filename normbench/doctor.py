"""Examines the device: what runs here, what the clocks can show, and how far identical things differ."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from normbench import compilation, modes, stats, traffic, units
from normbench.clock import CudaEventClock, Task
from normbench.device import CudaDevice, Device, environment, runs_fused_rmsnorm, torch_dtype
from normbench.failures import describe
from normbench.implementations import Bind, Implementation, Setting, by_name
from normbench.inputs import Operands, Placement, Placer, draw
from normbench.instruments import Instruments
from normbench.measure import Measurer
from normbench.other_load import other_cores
from normbench.profiling import counters
from normbench.profiling.quiet import profiler_lines_kept_back
from normbench.records import (
    Ability,
    Cache,
    Cell,
    Conditions,
    CopyBandwidth,
    Diagnosis,
    DType,
    KernelChoice,
    Mode,
    NoiseFloor,
    Op,
    Precision,
    TimerCheck,
)
from normbench.rounds import Rounds, Sampling

BASELINE, FLOOR = by_name("nn-layernorm"), by_name("copy")

_CELLS = {
    "cpu": ((64, 256, DType.FP32), (4096, 256, DType.FP32), (1024, 4096, DType.FP32)),
    "cuda": ((4096, 256, DType.FP32), (4096, 4096, DType.FP32), (16384, 8192, DType.FP32)),
}
"""A small, a middle and a large cell: rows, width and dtype."""

_BEYOND_CACHE = 8
_COPY_WIDTH = 4096
_COPIES = 15
_LOAD_S = 1.0
_READS = 1000


def examine(
    device: Device, tools: Instruments, *, seconds: float, told: Callable[[str], None] = lambda _what: None
) -> Diagnosis:
    """Find out everything.

    Args:
        device: What is examined.
        tools: What times on it.
        seconds: For the A/A test of each cell.
        told: What is being done.
    """
    told("looking at the device")
    conditions = _conditions(device)
    rmsnorm = tuple(_kernel_choice(device, *dtypes) for dtypes in _dtypes(device))
    told("compiling")
    compiling = _try_compiling(device)
    told("copying")
    bandwidth = _copy_bandwidth(device, tools)
    noise: list[NoiseFloor] = []
    for cell in _cells(device):
        told(f"{BASELINE.name} against itself: {cell}")
        noise += noise_floors(device, tools, cell, seconds=seconds)
    return Diagnosis(
        device=device.info,
        environment=environment(device),
        conditions=conditions,
        rmsnorm=rmsnorm,
        compiling=compiling,
        counters=counters.ability(device.info.kind),
        timers=_timers(tools),
        bandwidth=bandwidth,
        noise=tuple(noise),
    )


def _conditions(device: Device) -> Conditions:
    busy = other_cores(_LOAD_S)
    return replace(device.conditions(), other_cores=busy)


def _dtypes(device: Device) -> Iterator[tuple[DType, DType]]:
    """Dtypes of x and of the gain; the last pair is what autocast and mixed precision lead to."""
    half = DType.BF16 if device.info.native_bf16 else DType.FP16
    yield from ((DType.FP32, DType.FP32), (half, half), (half, DType.FP32))


def _kernel_choice(device: Device, dtype: DType, parameter_dtype: DType) -> KernelChoice:
    x = torch.ones(64, 256, device=device.torch_device, dtype=torch_dtype(dtype))
    gain = torch.ones(256, device=device.torch_device, dtype=torch_dtype(parameter_dtype))

    def call() -> object:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            return F.rms_norm(x, (256,), gain, 1e-6)

    fused = runs_fused_rmsnorm(device.torch_device, dtype, parameter_dtype)
    return KernelChoice(
        dtype=str(dtype),
        parameter_dtype=str(parameter_dtype),
        fused=fused,
        ops=tuple(_dispatched(call)),
        kernels=tuple(_kernels(device, call)),
        why=_why(device, fused=fused, alike=dtype is parameter_dtype),
    )


def _why(device: Device, *, fused: bool, alike: bool) -> str:
    if device.info.kind == "cpu":
        return "torch has no fused RMSNorm for a CPU"
    if not alike:
        return "the fused kernel wants x and gain of one dtype"
    if not fused:
        return f"torch {torch.__version__} has no fused RMSNorm for this device"
    dsls = environment(device).native_dsls
    return f"torch's fused kernel, which {units.join(dsls)} may have replaced" if dsls else "torch's own fused kernel"


def _dispatched(call: Callable[[], object]) -> list[str]:
    """The names of the ops that torch dispatches and that do something: no views."""
    seen: list[str] = []

    class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            del types
            if not func.is_view:
                seen.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    with Recorder():  # type: ignore[no-untyped-call]
        call()
    return seen


def _kernels(device: Device, call: Callable[[], object]) -> list[str]:
    """The names of the kernels that a GPU ran; none where its profiler shows none, or on a CPU."""
    if not isinstance(device, CudaDevice):
        return []
    call()
    device.synchronize()
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profiler_lines_kept_back(), profile(activities=activities) as recorded:
        call()
        device.synchronize()
    return [event.name for event in recorded.events() if str(event.device_type).endswith("CUDA")]


def _try_compiling(device: Device) -> Ability:
    missing = compilation.missing_compiler(device.info.kind)
    if missing:
        return Ability(works=False, detail=missing)
    began = time.perf_counter()
    try:
        compilation.warm_up.__wrapped__(str(device.torch_device))
    except Exception as error:  # whatever the compiler raises is the answer
        return Ability(works=False, detail=describe(error))
    return Ability(
        works=True, detail=f"the first compile of a process takes {units.duration(time.perf_counter() - began)}"
    )


def _timers(tools: Instruments) -> tuple[TimerCheck, ...]:
    reads = [time.perf_counter() for _ in range(_READS)]
    steps = [later - earlier for earlier, later in pairwise(reads)]
    seen = min((step for step in steps if step > 0), default=time.get_clock_info("perf_counter").resolution)
    wall = TimerCheck(clock="wall", resolution_s=seen, overhead_s=median(steps))
    if not isinstance(tools.clock, CudaEventClock):
        return (wall,)
    pairs = sorted(tools.clock.empty_pair() for _ in range(50))
    steps = [later - earlier for earlier, later in pairwise(pairs)]
    resolution = min((step for step in steps if step > 1e-10), default=pairs[0])
    events = TimerCheck(clock=tools.clock.name, resolution_s=resolution, overhead_s=pairs[0])
    return (wall, events)


def _copy_bandwidth(device: Device, tools: Instruments) -> CopyBandwidth | None:
    """The floor, with so much to move that no cache holds it; None where memory is short."""
    wanted = _BEYOND_CACHE * (device.info.cache_bytes or 2**25)
    rows = -(-wanted // (2 * 4 * _COPY_WIDTH))
    cell = _cell(rows, _COPY_WIDTH, DType.FP32, device)
    if traffic.cell_bytes(cell, 1) > device.free_bytes() // 2:
        return None
    values = draw(cell, 0, device.torch_device)
    placement = Placer(values, (Op.COPY,), gradients=True, shared=False, seed=0).place()
    (task,) = _tasks(FLOOR, cell, placement)
    task.run()
    seconds = median(tools.clock.time(task, calls=1, cache=cell.cache).seconds for _ in range(_COPIES))
    moved = traffic.floor_bytes(Op.COPY, cell)
    return CopyBandwidth(
        bytes_moved=moved,
        measured_bytes_per_s=moved / seconds,
        computed_bytes_per_s=device.info.peak_bytes_per_s,
    )


def _cells(device: Device) -> list[Cell]:
    cells = [_cell(rows, width, dtype, device) for rows, width, dtype in _CELLS[device.info.kind]]
    return [cell for cell in cells if traffic.cell_bytes(cell, 2) <= device.free_bytes() // 2]


def _cell(rows: int, width: int, dtype: DType, device: Device) -> Cell:
    cache = Cache.WARM if device.info.kind == "cpu" else Cache.COLD
    return Cell(mode=Mode.FORWARD, rows=rows, width=width, dtype=dtype, parameter_dtype=dtype, cache=cache)


def noise_floors(device: Device, tools: Instruments, cell: Cell, *, seconds: float) -> list[NoiseFloor]:
    """The baseline against itself in the same buffers, and against a copy in buffers of its own.

    Two tests one after the other: three tasks in a round would use the first one's buffers twice as often as the
    copy's, and leave them in the cache.
    """
    values = draw(cell, 0, device.torch_device)
    found = [_noise_floor(device, tools, cell, values, seconds / 2, fresh=fresh) for fresh in (False, True)]
    device.release()
    return [floor for floor in found if floor is not None]


def _noise_floor(
    device: Device, tools: Instruments, cell: Cell, values: Operands, seconds: float, *, fresh: bool
) -> NoiseFloor | None:
    sampling = Sampling(clock=tools.clock, cache=cell.cache, batching=tools.batching, reading=device.reading)
    measurer = Measurer(precision=Precision(max_seconds=seconds, target=1e-3), baseline=BASELINE.name, floor="")
    place = _placing_twins(cell, values, str(device.torch_device), fresh=fresh)
    rounds = Rounds(sampling, place, baseline=BASELINE.name, seed=0)
    samples = measurer.measure([rounds], (BASELINE.name, _TWIN)).samples
    ratio = stats.ratio_between(samples, BASELINE.name, _TWIN)
    if ratio is None or ratio.low is None:
        return None
    return NoiseFloor(cell=cell, implementation=BASELINE.name, ratio=ratio, fresh=fresh)


_TWIN = f"{BASELINE.name} again"


def _placing_twins(cell: Cell, values: Operands, device: str, *, fresh: bool) -> Callable[[], Sequence[Task]]:
    placer = Placer(values, (BASELINE.op,) * (1 + fresh), gradients=True, shared=False, seed=0)
    current: list[Placement] = []

    def place() -> list[Task]:
        placement = placer.place()
        current[:] = [placement]
        tasks = _tasks(BASELINE, cell, placement, device)
        pair = [tasks[0], replace(tasks[-1], name=_TWIN)]
        return pair if placement.turns[0] == 0 else pair[::-1]

    return place


def _tasks(implementation: Implementation, cell: Cell, placement: Placement, device: str = "cpu") -> list[Task]:
    bind: Bind = implementation.build(Setting(cell=cell, eps=1e-6, device=device))
    made = {
        turn: modes.task(implementation.name, cell, bind(operands.gain, operands.bias), operands)
        for turn in placement.turns
        for operands in [placement.operands[turn]]
    }
    return [made[turn] for turn in range(len(placement.turns))]
