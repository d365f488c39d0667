"""Runs a plan into a folder, cell by cell, and reports whatever the end is."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from normbench.cli import estimate, foreign, gating
from normbench.cli.output import note
from normbench.cli.site import Site
from normbench.errors import IncompleteError, NormbenchError
from normbench.records import Run, Status

if TYPE_CHECKING:
    from normbench.cli.interrupts import Stopping
    from normbench.reporters.terminal import PlainConsole
    from normbench.run_gate import RunGate
    from normbench.storage import RunFolder


_NEEDED = (
    "normbench.cli.measuring",
    "normbench.cli.progress",
    "normbench.cli.rendering",
    "normbench.cli.report",
    "normbench.reporters.gate",
    "normbench.reporters.html",
    "normbench.reporters.plots.lines",
    "normbench.reporters.plots.roofline",
    "normbench.reporters.plots.traffic",
    "normbench.storage.samples",
)
"""Imported before an interrupt may be an exception, which many libraries do not survive while they are imported."""


def import_needed() -> None:
    """Import what a run takes, before it is asked to stop."""
    for module in _NEEDED:
        import_module(module)


def run_into(folder: RunFolder, site: Site, *, as_json: bool, quiet: bool) -> None:
    """Measure what is missing, write it cell by cell, and report whatever the end is."""
    from normbench.cli.interrupts import Interrupts, tell_of_the_end

    import_needed()
    with Interrupts() as interrupts:
        try:
            run, failure = completed(folder, site, interrupts, quiet=quiet)
            gate = gating.judged(folder.path, run)
            _report(folder, run, gate, as_json=as_json, quiet=quiet)
        except KeyboardInterrupt:
            tell_of_the_end(f"go on with: normbench sweep --resume {folder.path}")
            raise
    if failure is not None:
        raise failure
    _finish(folder, run, gate, interrupted=interrupts.is_asked_for)


def completed(
    folder: RunFolder,
    site: Site,
    interrupts: Stopping,
    *,
    shown: PlainConsole | None = None,
    quiet: bool,
) -> tuple[Run, NormbenchError | None]:
    """Measure as far as it goes: the run, and what ended it early, if anything did.

    Args:
        folder: The run's folder, to which what is missing is added.
        site: What it is carried out with.
        interrupts: What is done when somebody wants it to end.
        shown: Where progress is shown; stderr unless told.
        quiet: No progress.
    """
    failure = measured(folder, site, interrupts, shown=shown, quiet=quiet)
    run = folder.load()
    if run.is_complete:
        folder.compress_samples()  # before anything is printed: whoever reads that may have gone
    return run, failure


def measured(
    folder: RunFolder,
    site: Site,
    interrupts: Stopping,
    *,
    shown: PlainConsole | None = None,
    quiet: bool,
) -> NormbenchError | None:
    """Measure as far as it goes; what ended it, where that leaves something to report."""
    measure = partial(_measure, folder, site, interrupts, shown=shown, quiet=quiet)
    failure = interrupts.as_far_as_it_goes(measure)
    if interrupts.is_asked_for:
        _write_not_run(folder, interrupts)
    return failure


def _measure(
    folder: RunFolder,
    site: Site,
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
    site.neighbours.look_around(site.device)
    note(f"measuring into {folder.path}/", quiet=quiet or shown is not None)
    cell_s = estimate.cell_seconds(plan, site.catalog)
    with (
        SweepProgress(shown or console(sys.stderr), cells=cells, cell_s=cell_s, quiet=quiet) as progress,
        nullcontext() if plan.isolate else foreign.alone("sweep"),
        prepared(plan, site.device, site.catalog, progress, interrupts, cells=cells) as work,
    ):
        for records in work.run(done):
            with interrupts.put_off():
                folder.write(site.neighbours.marked(records, site.device))
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


def _report(folder: RunFolder, run: Run, gate: RunGate | None, *, as_json: bool, quiet: bool) -> None:
    from normbench.cli.output import emit, results
    from normbench.cli.rendering import write_reports
    from normbench.cli.report import as_json_text
    from normbench.reporters.console import show

    write_reports(folder.path, run, folder.path, gate=gate, quiet=quiet)
    if as_json:
        emit(as_json_text(folder.path, run, gate))
    else:
        with results() as out:
            show(run, out, gate)
    note(f"written: {folder.path}/ (read verdict.md first)", quiet=quiet)


def _finish(folder: RunFolder, run: Run, gate: RunGate | None, *, interrupted: bool) -> None:
    from normbench.reporters import statements

    if interrupted:
        note(f"interrupted; go on with: normbench sweep --resume {folder.path}")
        raise KeyboardInterrupt
    gating.refuse_regression(gate)
    if not run.is_complete:
        raise IncompleteError(statements.missing(run), hint=f"normbench sweep --resume {folder.path}")
    if not run.has_times:
        raise IncompleteError(
            "nothing could be measured", hint="the reasons are in the table above and in results.csv"
        )
    gating.refuse_unjudged(gate, folder.path)
