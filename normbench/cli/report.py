"""``normbench report``: make verdict.md and the plots again from a run folder, without torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from normbench.records import Run
    from normbench.storage import RunFolder

EXAMPLES = """\b
Examples:
  normbench report reports/20260101T120000Z-my-gpu
"""


def report(folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]) -> None:
    """Render verdict.md and the plots of a run folder again, and print the summary."""
    from normbench.cli.output import results
    from normbench.reporters.console import show
    from normbench.storage import RunFolder, read_header

    opened = RunFolder(folder, read_header(folder))
    run = opened.load()
    write_reports(opened, run)
    with results() as out:
        show(run, out)


def write_reports(folder: RunFolder, run: Run) -> None:
    """Write verdict.md first, then the plots: a picture that fails must not cost the text."""
    from normbench.reporters import markdown

    folder.write_text("verdict.md", markdown.render(run))
    from normbench.reporters import plots, traffic_plots

    for draw in (plots.draw, traffic_plots.draw):
        for name, data in draw(run):
            folder.write_bytes(f"plots/{name}", data)
