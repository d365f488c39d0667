"""``normbench report``: make verdict.md and the plots again from a run folder, without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normbench.cli import axes

if TYPE_CHECKING:
    from normbench.records import Run
    from normbench.storage import RunFolder

EXAMPLES = """\b
Examples:
  normbench report reports/20260101T120000Z-my-gpu
"""


def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")], as_json: axes.AsJson = False
) -> None:
    """Render verdict.md and the plots of a run folder again, and print the summary."""
    from normbench.cli.output import emit, results
    from normbench.reporters.console import show
    from normbench.storage import RunFolder, read_header

    opened = RunFolder(folder, read_header(folder))
    run = opened.load()
    write_reports(opened, run)
    if as_json:
        emit(as_json_text(folder, run))
        return
    with results() as out:
        show(run, out)


def as_json_text(folder: Path, run: Run) -> str:
    """A run as a program reads it."""
    from normbench.storage import as_dictionary, profiles_of

    found = {"folder": folder.name, "complete": run.is_complete, **as_dictionary(run), **profiles_of(run)}
    return json.dumps(found, indent=1) + "\n"


def write_reports(folder: RunFolder, run: Run) -> None:
    """Write verdict.md first, then the plots: a picture that fails must not cost the text."""
    from normbench.reporters import markdown

    folder.write_text("verdict.md", markdown.render(run))
    from normbench.reporters import plots

    for name, data in plots.draw(run):
        folder.write_bytes(f"plots/{name}", data)
