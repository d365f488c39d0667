"""Runs a plan into a folder, cell by cell, and reports whatever the end is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from normbench.cli import estimate
from normbench.cli.heading import now_utc
from normbench.cli.neighbours import Neighbours, Sharing, claimed, warn
from normbench.cli.output import note
from normbench.cli.plan import Request, command, plan_for
from normbench.errors import IncompleteError, NormbenchError, UsageError
from normbench.implementations import chosen, names_of
from normbench.records import Operation, Plan, Run, RunHeader, Status

if TYPE_CHECKING:
    from normbench.cli.interrupts import Interrupts
    from normbench.device import Device
    from normbench.storage import RunFolder


_NEEDED = (
    "normbench.cli.measuring",
    "normbench.cli.progress",
    "normbench.cli.rendering",
    "normbench.cli.report",
    "normbench.reporters.html",
    "normbench.reporters.plots.lines",
    "normbench.reporters.plots.roofline",
    "normbench.reporters.plots.traffic",
    "normbench.storage.samples",
)
"""Imported before an interrupt may be an exception, which many libraries do not survive while they are imported."""


def start(
    request: Request,
    device_name: str | None,
    out: Path | None,
    sharing: Sharing,
    *,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> Path | None:
    """Make a plan of a request and run it into a new folder, or print what it will take; the folder, if any."""
    refuse_existing(out)
    if dry_run:
        device, plan = _planned(request, device_name)
        estimate.show(plan, list(plan.cells()), device, as_json=as_json)
        return None
    from normbench.device import find
    from normbench.storage import RunFolder, new_path

    with claimed(find(device_name), sharing) as neighbours:
        device, plan = _planned(request, device_name)
        folder = RunFolder.create(out or new_path(device.info.slug), header_of(plan, device))
        with written_alone(folder.path):
            run_into(folder, device, neighbours, as_json=as_json, quiet=quiet)
    return folder.path


def _planned(request: Request, device_name: str | None) -> tuple[Device, Plan]:
    from normbench.device import detect

    device = detect(device_name)
    if request.graphs and device.info.kind == "cpu":
        raise UsageError("--graphs: a CPU has no CUDA graphs", hint="leave it out, or name a GPU with --device")
    return device, plan_for(request, device.info, names_of(request.operation or Operation.NORM))


def refuse_existing(out: Path | None) -> None:
    """A UsageError where something is where a new folder is to go."""
    try:
        exists = out is not None and out.exists()
    except OSError:  # too long a name, or a folder that may not be looked into: making it will say so
        return
    if exists:
        raise UsageError(f"--out {out}: exists, and no run is ever overwritten", hint="name a new folder")


@contextmanager
def written_alone(path: Path) -> Iterator[None]:
    """A context in which no other run writes the folder.

    Raises:
        BusyError: One does.
    """
    from normbench.storage import only_writer

    with only_writer(path) as is_sure:
        if not is_sure:
            warn(f"{path}: can't be locked where it is: a second --resume of it would go unnoticed")
        yield


def run_into(folder: RunFolder, device: Device, neighbours: Neighbours, *, as_json: bool, quiet: bool) -> None:
    """Measure what is missing, write it cell by cell, and report whatever the end is."""
    from normbench.cli.interrupts import Interrupts, tell_of_the_end

    for module in _NEEDED:
        import_module(module)
    with Interrupts() as interrupts:
        try:
            failure = measured(folder, device, neighbours, interrupts, quiet=quiet)
            run = folder.load()
            if run.is_complete:
                folder.compress_samples()  # before anything is printed: whoever reads that may have gone
            _report(folder, run, as_json=as_json, quiet=quiet)
        except KeyboardInterrupt:
            tell_of_the_end(f"go on with: normbench sweep --resume {folder.path}")
            raise
    if failure is not None:
        raise failure
    _finish(folder, run, interrupted=interrupts.is_asked_for)


def measured(
    folder: RunFolder, device: Device, neighbours: Neighbours, interrupts: Interrupts, *, quiet: bool
) -> NormbenchError | None:
    """Measure as far as it goes; what ended it, where that leaves something to report."""
    measure = partial(_measure, folder, device, neighbours, interrupts, quiet=quiet)
    failure = interrupts.as_far_as_it_goes(measure)
    if interrupts.is_asked_for:
        _write_not_run(folder, interrupts)
    return failure


def _measure(
    folder: RunFolder, device: Device, neighbours: Neighbours, interrupts: Interrupts, *, quiet: bool
) -> None:
    from normbench.cli.measuring import prepared
    from normbench.cli.progress import SweepProgress
    from normbench.reporters.console import console

    plan, done = folder.header.plan, folder.done()
    cells = len(list(plan.cells())) - len(done)
    if not cells:
        return
    neighbours.look_around(device)
    note(f"measuring into {folder.path}/", quiet=quiet)
    cell_s = estimate.cell_seconds(plan)
    with (
        SweepProgress(console(sys.stderr), cells=cells, cell_s=cell_s, quiet=quiet) as progress,
        prepared(plan, device, progress, interrupts, cells=cells) as work,
    ):
        for records in work.run(done):
            with interrupts.put_off():
                folder.write(neighbours.marked(records, device))
            progress.cell_done(records)


def _write_not_run(folder: RunFolder, interrupts: Interrupts) -> None:
    """Say of the cells that were not begun why they have no rows."""
    from normbench.conclusion import without_times

    there = {result.case.cell for result in folder.load().results}
    for cell in folder.header.plan.cells():
        if cell not in there:
            with interrupts.put_off():
                folder.write(
                    without_times(cell, folder.header.plan, Status.NOT_RUN, "interrupted before it was measured")
                )


def _report(folder: RunFolder, run: Run, *, as_json: bool, quiet: bool) -> None:
    from normbench.cli.output import emit, results
    from normbench.cli.rendering import write_reports
    from normbench.cli.report import as_json_text
    from normbench.reporters.console import show

    write_reports(folder.path, run, folder.path, quiet=quiet)
    if as_json:
        emit(as_json_text(folder.path, run))
    else:
        with results() as out:
            show(run, out)
    note(f"written: {folder.path}/ (read verdict.md first)", quiet=quiet)


def _finish(folder: RunFolder, run: Run, *, interrupted: bool) -> None:
    from normbench.reporters import statements

    if interrupted:
        note(f"interrupted; go on with: normbench sweep --resume {folder.path}")
        raise KeyboardInterrupt
    if not run.is_complete:
        raise IncompleteError(statements.missing(run), hint=f"normbench sweep --resume {folder.path}")
    if not run.has_times:
        raise IncompleteError(
            "nothing could be measured", hint="the reasons are in the table above and in results.csv"
        )


def header_of(plan: Plan, device: Device) -> RunHeader:
    """What ``run.json`` holds of a run of this plan on this device."""
    from normbench.device import environment

    return RunHeader(
        created_utc=now_utc(),
        command=command(plan, str(device.torch_device)),
        plan=plan,
        device=device.info,
        environment=environment(device),
        implementations=tuple(implementation.info for implementation in chosen(plan.implementations)),
    )
