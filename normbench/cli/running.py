"""Runs a plan into a folder, cell by cell, and reports whatever the end is."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from normbench.cli import estimate
from normbench.cli.plan import Request, command, plan_for
from normbench.errors import IncompleteError, UsageError
from normbench.implementations import NAMES, chosen
from normbench.records import Plan, Run, RunHeader, Status

if TYPE_CHECKING:
    from normbench.device import Device
    from normbench.storage import RunFolder


def start(
    request: Request, device_name: str | None, out: Path | None, *, dry_run: bool, as_json: bool, quiet: bool
) -> Path | None:
    """Make a plan of a request and run it into a new folder, or print what it will take; the folder, if any."""
    if out is not None and _exists(out):
        raise UsageError(f"--out {out}: exists, and no run is ever overwritten", hint="name a new folder")
    from normbench.device import detect

    device = detect(device_name)
    if request.graphs and device.info.kind == "cpu":
        raise UsageError("--graphs: a CPU has no CUDA graphs", hint="leave it out, or name a GPU with --device")
    plan = plan_for(request, device.info, NAMES)
    if dry_run:
        estimate.show(plan, list(plan.cells()), device, as_json=as_json)
        return None
    from normbench.storage import RunFolder, new_path

    folder = RunFolder.create(out or new_path(device.info.slug), header_of(plan, device))
    run_into(folder, device, as_json=as_json, quiet=quiet)
    return folder.path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long a name, or a folder that may not be looked into: making it will say so
        return False


def run_into(folder: RunFolder, device: Device, *, as_json: bool, quiet: bool) -> None:
    """Measure what is missing, write it cell by cell, and report whatever the end is."""
    from normbench.cli.measuring import prepared
    from normbench.cli.progress import SweepProgress
    from normbench.reporters.console import console

    plan, done = folder.header.plan, folder.done()
    cells = len(list(plan.cells())) - len(done)
    interrupted = False
    cell_s = estimate.cell_seconds(plan)
    with SweepProgress(console(sys.stderr), cells=cells, cell_s=cell_s, quiet=quiet) as progress:
        try:
            with terminated_as_interrupted(), prepared(plan, device, progress, cells=cells) as work:
                for records in work.run(done):
                    folder.write(records)
                    progress.cell_done(records)
        except KeyboardInterrupt:
            interrupted = True
            _write_not_run(folder)
    run = folder.load()
    if run.is_complete:
        folder.compress_samples()  # before anything is printed: whoever reads that may have gone
    _report(folder, run, as_json=as_json, quiet=quiet)
    _finish(folder, run, interrupted=interrupted)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """A context in which SIGTERM ends the work as Ctrl-C does: workers go, and what was measured is reported."""

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _write_not_run(folder: RunFolder) -> None:
    from normbench.conclusion import without_times

    for cell in folder.load().missing:
        folder.write(without_times(cell, folder.header.plan, Status.NOT_RUN, "interrupted before it"))


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
    if not quiet:
        print(f"written: {folder.path}/ (read verdict.md first)", file=sys.stderr)


def _finish(folder: RunFolder, run: Run, *, interrupted: bool) -> None:
    from normbench.reporters import statements

    if interrupted:
        print(f"interrupted; go on with: normbench sweep --resume {folder.path}", file=sys.stderr)
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
        created_utc=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        command=command(plan, str(device.torch_device)),
        plan=plan,
        device=device.info,
        environment=environment(device),
        implementations=tuple(implementation.info for implementation in chosen(plan.implementations)),
    )
