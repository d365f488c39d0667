"""Writes the reports of a run of steps into a folder, and prints it."""

from __future__ import annotations

from pathlib import Path

from normbench.cli.output import emit, json_text, note, results
from normbench.cli.rendering import written
from normbench.records import StepRun


def report(folder: Path, run: StepRun, target: Path, *, as_json: bool, quiet: bool) -> None:
    """Write verdict.md, the plots and report.html, and print the run.

    Args:
        folder: The run's own folder.
        run: What it holds.
        target: The folder that is written to.
        as_json: Print it for programs.
        quiet: Do not say where it was written.
    """
    from normbench.reporters import steps_data, steps_markdown, steps_page, steps_table
    from normbench.reporters.plots import steps as plots
    from normbench.storage import write_text

    write_text(target / "verdict.md", steps_markdown.render(run))
    pictures = list(written(plots.draw(run), target))
    write_text(target / "report.html", steps_page.render(run, pictures))
    if as_json:
        emit(json_text({"folder": folder.resolve().name, **steps_data.as_dictionary(run)}))
    else:
        with results() as out:
            steps_table.show(run, out)
    note(f"written: {target}/ (read verdict.md first)", quiet=quiet)
