"""Writes the reports of a run, or of several, into a folder: the text first, then what a picture may fail in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from normbench.records import Case, Run

if TYPE_CHECKING:
    from normbench.reporters.entries import Source
    from normbench.reporters.merged import Merged
    from normbench.spread import Spread

_MOST_OF_EACH = 3
"""Pictures of each of several runs: the page shows them below one another."""


def write_reports(folder: Path, run: Run, target: Path) -> None:
    """Write verdict.md, then the plots, then report.html.

    Args:
        folder: The run's own folder, where its samples are.
        run: What it holds.
        target: The folder that is written to.
    """
    from normbench.reporters import document, markdown
    from normbench.storage import write_bytes, write_text

    shown = document.of_run(run)
    write_text(target / "verdict.md", markdown.render_document(shown))
    from normbench.reporters import html, plots
    from normbench.reporters.entries import Source

    pictures: list[tuple[str, str]] = []
    for name, data in plots.draw(run):
        write_bytes(target / "plots" / name, data)
        if name.endswith(".svg"):
            stem = name.removesuffix(".svg")
            pictures.append((stem, plots.inline_svg(data, prefix=f"p{len(pictures)}")))
    source = Source(run=run, spreads=_spreads(folder, run))
    write_text(target / "report.html", html.render(shown, [source], pictures))


def write_merged(folders: Sequence[Path], runs: Sequence[Run], document: Merged, target: Path) -> None:
    """Write verdict.md and report.html of several runs."""
    from normbench.reporters import html, markdown
    from normbench.reporters.entries import Source
    from normbench.storage import write_text

    write_text(target / "verdict.md", markdown.render_document(document))
    sources = [
        Source(run=run, label=label, spreads=_spreads(folder, run))
        for folder, run, label in zip(folders, runs, document.labels, strict=True)
    ]
    write_text(target / "report.html", html.render(document, sources, _pictures(sources)))


def _pictures(sources: Sequence[Source]) -> Iterator[tuple[str, str]]:
    from normbench.reporters import plots

    for index, source in enumerate(sources):
        for number, (name, data) in enumerate(plots.draw(source.run, most=_MOST_OF_EACH)):
            if name.endswith(".svg"):
                yield f"{source.label}: {name.removesuffix('.svg')}", plots.inline_svg(data, f"p{index}-{number}")


def _spreads(folder: Path, run: Run) -> Mapping[Case, Spread]:
    """How the samples of a run spread; of nobody where its samples are not there."""
    from normbench.storage import samples

    if not samples.exist(folder):
        return {}
    cases = [result.case for result in run.results if result.timing is not None]
    clock = samples.primary_clock(run.header.device.kind)
    return samples.spreads(samples.chunks(folder, cases, clock=clock), cases)
