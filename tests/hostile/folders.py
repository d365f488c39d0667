"""Good folders, as files in memory, that mutations begin with: runs of each kind, and a check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from normbench.records import CountedTraffic, DType, Estimate, Mode, NoiseFloor, Status
from normbench.storage import RunFolder
from tests.checked import ALLOWED, make_check_run, write_check
from tests.runs import TIMES, Times, make_device, make_header, make_plan, make_records, profiled_run, write_run

Files = Mapping[str, bytes]
"""The files of a folder by their names."""

FAILED: Times = {**TIMES, "eager-rmsnorm": Status.FAILED, "nn-rmsnorm": Status.OUT_OF_MEMORY}


def files_of(path: Path) -> Files:
    """What lies in a folder."""
    return {file.name: file.read_bytes() for file in sorted(path.iterdir()) if file.is_file()}


def good_folders(scratch: Path) -> dict[str, Files]:
    """Folders of each kind, by name; ``scratch`` is where they are made."""
    plan = make_plan(widths=(64, 128), modes=(Mode.FORWARD, Mode.BACKWARD), autocasts=(None, DType.BF16))
    write_run(scratch / "whole", plan)
    write_run(scratch / "failed", make_plan(widths=(64, 128)), FAILED, reason='TypeError: a "b", c; <d> | `e` …')
    write_run(scratch / "packed", make_plan(widths=(64, 128))).compress_samples()
    torn = write_run(scratch / "torn", make_plan(widths=(64, 128, 256))).path / "results.csv"
    torn.write_bytes(torn.read_bytes()[:-250])
    _write_profiled(scratch / "profiled")
    write_check(scratch / "checked", make_check_run(allowed=ALLOWED))
    return {name: files_of(scratch / name) for name in ("whole", "failed", "packed", "torn", "profiled", "checked")}


def _write_profiled(path: Path) -> None:
    run = profiled_run()
    plan = run.header.plan
    header = make_header(
        plan,
        device=make_device(kind="cuda", capability=(9, 0), peak_bytes_per_s=3e12, threads=None, cache_bytes=2**20),
    )
    cell = next(plan.cells())
    counted = CountedTraffic(dram_read_bytes=10, dram_written_bytes=0, l2_bytes=None)
    records = make_records(cell, plan=plan)
    noise = NoiseFloor(cell=cell, implementation=plan.baseline, ratio=Estimate(value=1.0, low=0.99, high=1.01))
    RunFolder.create(path, header).write(
        replace(
            records,
            samples=tuple(replace(sample, clock="cuda-event") for sample in records.samples),
            profiles=(replace(run.profiles[0], counted=counted, trace="x/y.json.gz"), *run.profiles[1:]),
            noise=noise,
        )
    )
