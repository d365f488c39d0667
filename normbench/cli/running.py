"""Runs a plan into a folder, cell by cell, and reports whatever the end is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
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
from normbench.implementations import NAMES, chosen
from normbench.records import Plan, Run, RunHeader, Status

if TYPE_CHECKING:
    from normbench.cli.interrupts import Stopping
    from normbench.cli.saving import Saving
    from normbench.device import Device
    from normbench.reporters.terminal import PlainConsole
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
    saving: Saving | None = None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> Path | None:
    """Make a plan of a request and run it into a new folder, or print what it will take; the folder, if any."""
    refuse_existing(out)
    if saving is not None:
        saving.refuse(dry_run=dry_run)
    if dry_run:
        device, plan = planned(request, device_name)
        if saving is not None:
            saving.write(plan, quiet=quiet)
        if saving is None or not saving.is_stdout:
            estimate.show(plan, list(plan.cells()), device, as_json=as_json)
        return None

    def ready() -> tuple[Device, Plan]:
        device, plan = planned(request, device_name)
        if saving is not None:
            saving.write(plan, quiet=quiet)
        return device, plan

    with begun(ready, device_name, out, sharing) as (folder, device, neighbours):
        run_into(folder, device, neighbours, as_json=as_json, quiet=quiet)
    return folder.path


@contextmanager
def begun(
    ready: Callable[[], tuple[Device, Plan]], device_name: str | None, out: Path | None, sharing: Sharing
) -> Iterator[tuple[RunFolder, Device, Neighbours]]:
    """A context in which a new run holds its device and its folder, and nothing is measured yet.

    Args:
        ready: The device and the plan, asked for once the device is held.
        device_name: Which that is.
        out: The new folder; by default one in ``reports``.
        sharing: What is done where another run holds the device.

    Raises:
        BusyError: Another run holds it.
        UsageError: The folder exists, or can't be written.
    """
    from normbench.device import find
    from normbench.storage import RunFolder, new_path

    with claimed(find(device_name), sharing) as neighbours:
        device, plan = ready()
        folder = RunFolder.create(out or new_path(device.info.slug), header_of(plan, device))
        with written_alone(folder.path):
            yield folder, device, neighbours


def planned(request: Request, device_name: str | None) -> tuple[Device, Plan]:
    """The device, and the plan that answers a request there.

    Raises:
        UsageError: There is no such device, or no plan can be like that.
    """
    from normbench.device import detect

    device = detect(device_name)
    plan = plan_for(request, device.info, NAMES)
    refuse_graphs(plan, device)
    return device, plan


def refuse_graphs(plan: Plan, device: Device) -> None:
    """A UsageError where CUDA graphs are asked for and there are none."""
    if plan.graphs and device.info.kind == "cpu":
        raise UsageError("--graphs: a CPU has no CUDA graphs", hint="leave it out, or name a GPU with --device")


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


def import_needed() -> None:
    """Import what a run takes, before it is asked to stop."""
    for module in _NEEDED:
        import_module(module)


def run_into(folder: RunFolder, device: Device, neighbours: Neighbours, *, as_json: bool, quiet: bool) -> None:
    """Measure what is missing, write it cell by cell, and report whatever the end is."""
    from normbench.cli.interrupts import Interrupts, tell_of_the_end

    import_needed()
    with Interrupts() as interrupts:
        try:
            run, failure = completed(folder, device, neighbours, interrupts, quiet=quiet)
            _report(folder, run, as_json=as_json, quiet=quiet)
        except KeyboardInterrupt:
            tell_of_the_end(f"go on with: normbench sweep --resume {folder.path}")
            raise
    if failure is not None:
        raise failure
    _finish(folder, run, interrupted=interrupts.is_asked_for)


def completed(
    folder: RunFolder,
    device: Device,
    neighbours: Neighbours,
    interrupts: Stopping,
    *,
    shown: PlainConsole | None = None,
    quiet: bool,
) -> tuple[Run, NormbenchError | None]:
    """Measure as far as it goes: the run, and what ended it early, if anything did.

    Args:
        folder: The run's folder, to which what is missing is added.
        device: Where.
        neighbours: Who else is there.
        interrupts: What is done when somebody wants it to end.
        shown: Where progress is shown; stderr unless told.
        quiet: No progress.
    """
    failure = measured(folder, device, neighbours, interrupts, shown=shown, quiet=quiet)
    run = folder.load()
    if run.is_complete:
        folder.compress_samples()  # before anything is printed: whoever reads that may have gone
    return run, failure


def measured(
    folder: RunFolder,
    device: Device,
    neighbours: Neighbours,
    interrupts: Stopping,
    *,
    shown: PlainConsole | None = None,
    quiet: bool,
) -> NormbenchError | None:
    """Measure as far as it goes; what ended it, where that leaves something to report."""
    measure = partial(_measure, folder, device, neighbours, interrupts, shown=shown, quiet=quiet)
    failure = interrupts.as_far_as_it_goes(measure)
    if interrupts.is_asked_for:
        _write_not_run(folder, interrupts)
    return failure


def _measure(
    folder: RunFolder,
    device: Device,
    neighbours: Neighbours,
    interrupts: Stopping,
    *,
    shown: PlainConsole | None,
    quiet: bool,
) -> None:
    from normbench.cli.measuring import prepared
    from normbench.cli.progress import SweepProgress
    from normbench.reporters.console import console

    plan, done = folder.header.plan, folder.done()
    cells = len(list(plan.cells())) - len(done)
    if not cells:
        return
    neighbours.look_around(device)
    note(f"measuring into {folder.path}/", quiet=quiet or shown is not None)
    cell_s = estimate.cell_seconds(plan)
    with (
        SweepProgress(shown or console(sys.stderr), cells=cells, cell_s=cell_s, quiet=quiet) as progress,
        prepared(plan, device, progress, interrupts, cells=cells) as work,
    ):
        for records in work.run(done):
            with interrupts.put_off():
                folder.write(neighbours.marked(records, device))
            progress.cell_done(records)


def _write_not_run(folder: RunFolder, interrupts: Stopping) -> None:
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
