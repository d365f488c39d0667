"""How long ``normbench report`` takes for a run of ten thousand results, and how much memory.

    python -m benchmarks.rendering

Two runs are made up and written as a sweep writes them: one of many sets of cells (120 pictures, of which twelve are
drawn), one of many widths (full pictures, of which four are drawn). The command renders each in a process of its own.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from normbench import swaps, verdict
from normbench.implementations import NAMES, chosen
from normbench.records import (
    Accuracy,
    Cache,
    Case,
    CaseResult,
    Cell,
    CellRecords,
    DeviceInfo,
    DType,
    Environment,
    Mode,
    Plan,
    RunHeader,
    Sample,
    Status,
    Timing,
)
from normbench.stats import of_implementation, time_estimate
from normbench.storage import RunFolder

_TIMES_FLOOR = {"copy": 1.0, "nn-layernorm": 2.0, "compile-layernorm": 2.1, "compile-rmsnorm": 1.7}
_SHAPES = {
    "120 pictures": {"widths": tuple(64 * 2**i for i in range(12)), "rows": tuple(range(32, 42))},
    "119 widths": {"widths": tuple(range(64, 64 * 120, 64)), "rows": (32,)},
}
_PLACEMENTS, _ROUNDS = 10, 10


def main() -> None:
    """Make the runs, render them, and print a table."""
    print("| run | results | samples | seconds | MB |\n|---|---:|---:|---:|---:|")
    for name, shape in _SHAPES.items():
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / "run"
            results = _write(folder, _plan(shape))
            seconds, megabytes = _render(folder)
            print(f"| {name} | {results} | {results * _PLACEMENTS * _ROUNDS} | {seconds:.1f} | {megabytes:.0f} |")


def _plan(shape: Mapping[str, tuple[int, ...]]) -> Plan:
    return Plan(
        widths=shape["widths"],
        rows=shape["rows"],
        dtypes=tuple(DType),
        modes=tuple(Mode),
        caches=(Cache.WARM,),
        implementations=tuple(NAMES),
    )


def _write(path: Path, plan: Plan) -> int:
    """Write a run folder of made-up times; how many results it has."""
    header = RunHeader(
        created_utc="2026-01-02T03:04:05Z",
        command=("normbench", "sweep"),
        plan=plan,
        device=DeviceInfo(kind="cpu", name="made up", slug="made-up", memory_bytes=2**33, threads=2),
        environment=Environment(normbench="0", python="3.11", torch="2.13", platform="Linux"),
        implementations=tuple(implementation.info for implementation in chosen(plan.implementations)),
    )
    folder, rng, count = RunFolder.create(path, header), random.Random(0), 0
    for cell in plan.cells():
        records = _records(cell, header, rng)
        folder.write(records)
        count += len(records.results)
    folder.compress_samples()
    return count


def _records(cell: Cell, header: RunHeader, rng: random.Random) -> CellRecords:
    plan, samples = header.plan, tuple(_samples(cell, header.plan, rng))
    results = [_result(Case(cell=cell, implementation=name), samples) for name in plan.implementations]
    return CellRecords(
        cell=cell,
        results=tuple(results),
        comparisons=verdict.compare_all(results, samples, plan),
        samples=samples,
        swaps=swaps.compare_swaps(results, samples, header.implementations, plan.precision.margin),
    )


def _samples(cell: Cell, plan: Plan, rng: random.Random) -> Iterator[Sample]:
    floor_s = 1e-9 * cell.elements
    for placement in range(_PLACEMENTS):
        for round_ in range(_ROUNDS):
            for position, name in enumerate(plan.implementations):
                seconds = floor_s * _TIMES_FLOOR.get(name, 4.0) * rng.lognormvariate(0, 0.03)
                yield Sample(
                    implementation=name,
                    process=0,
                    placement=placement,
                    round=round_,
                    position=position,
                    calls=1,
                    seconds=seconds,
                    clock="wall",
                )


def _result(case: Case, samples: tuple[Sample, ...]) -> CaseResult:
    own = of_implementation(samples, case.implementation)
    time_s = time_estimate(own)
    assert time_s is not None
    return CaseResult(
        case=case,
        status=Status.OK,
        timing=Timing(time_s=time_s, wall_s=time_s.value, floor_ratio=None, samples=len(own), placements=_PLACEMENTS),
        accuracy=Accuracy(max_abs_error=1e-7, max_rel_error=1e-7, out_dtype=case.cell.dtype),
    )


def _render(folder: Path) -> tuple[float, float]:
    """Seconds and peak megabytes of ``normbench report`` in a process of its own."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "normbench", "report", folder], check=True, capture_output=True)
    seconds = time.perf_counter() - began
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000


if __name__ == "__main__":
    main()
