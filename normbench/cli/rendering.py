"""Writes the reports of a run, or of several, into a folder: the text first, then what a picture may fail in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from normbench.cli.output import note
from normbench.errors import StorageError
from normbench.records import Case, Run

if TYPE_CHECKING:
    from normbench.reporters.entries import Source
    from normbench.reporters.merged import Merged
    from normbench.run_gate import RunGate
    from normbench.spread import Spread

_OF_EACH = 3
"""Pictures of each of several runs unless told."""


def write_reports(
    folder: Path,
    run: Run,
    target: Path,
    most: int | None = None,
    *,
    gate: RunGate | None = None,
    quiet: bool = False,
) -> None:
    """Write verdict.md, then the plots, then report.html.

    Args:
        folder: The run's own folder, where its samples are.
        run: What it holds.
        target: The folder that is written to.
        most: How many pictures are drawn; unless told what takes about five seconds.
        gate: What the run's gate found, where it has one.
        quiet: Do not say how many that is.
    """
    from normbench.reporters import document, markdown
    from normbench.storage import write_text

    shown = document.of_run(run, gate)
    write_text(target / "verdict.md", markdown.render_document(shown))
    from normbench.reporters import html
    from normbench.reporters.entries import Source

    pictures = list(_pictures(run, target, most, quiet=quiet))
    spreads, failure = _spreads_or_failure(folder, run)
    write_text(target / "report.html", html.render(shown, [Source(run=run, spreads=spreads)], pictures))
    if failure is not None:
        raise failure


def _pictures(run: Run, target: Path, most: int | None, *, quiet: bool) -> Iterator[tuple[str, str]]:
    """Write the plots of a run, and give each as a fragment for its page."""
    from normbench.reporters import plots

    plan = plots.planned(run, most)
    if plan.left_out and most is None:
        drawn, every = len(plan.drawn), len(plan.drawn) + len(plan.left_out)
        note(f"drawing {drawn} of {every} pictures; all: normbench report RUN --pictures {every}", quiet=quiet)
    yield from written(plots.draw(run, most), target)


def written(pictures: Iterable[tuple[str, bytes]], target: Path) -> Iterator[tuple[str, str]]:
    """Write pictures below a folder, and give each that is an SVG as a fragment for its page."""
    from normbench.reporters import plots
    from normbench.storage import write_bytes

    for number, (name, data) in enumerate(pictures):
        write_bytes(target / "plots" / name, data)
        if name.endswith(".svg"):
            yield name.removesuffix(".svg"), plots.inline_svg(data, f"p{number}")


def write_merged(
    folders: Sequence[Path],
    runs: Sequence[Run],
    document: Merged,
    target: Path,
    most: int | None,
    *,
    quiet: bool = False,
) -> None:
    """Write verdict.md and report.html of several runs, with the first ``most`` pictures of each."""
    from normbench.reporters import html, markdown
    from normbench.reporters.entries import Source
    from normbench.storage import write_text

    write_text(target / "verdict.md", markdown.render_document(document))
    found = [_spreads_or_failure(folder, run) for folder, run in zip(folders, runs, strict=True)]
    sources = [
        Source(run=run, label=label, spreads=spreads)
        for run, label, (spreads, _failure) in zip(runs, document.labels, found, strict=True)
    ]
    pictures = _pictures_of_each(sources, most, quiet=quiet)
    write_text(target / "report.html", html.render(document, sources, pictures))
    for failure in (failure for _spreads, failure in found if failure is not None):
        raise failure


def _pictures_of_each(sources: Sequence[Source], most: int | None, *, quiet: bool) -> Iterator[tuple[str, str]]:
    from normbench.reporters import plots

    shown = _OF_EACH if most is None else most
    largest = max(len(plan.drawn) + len(plan.left_out) for plan in (plots.planned(s.run, shown) for s in sources))
    if most is None and largest > shown:
        note(f"drawing {shown} of up to {largest} pictures of each run; all: --pictures {largest}", quiet=quiet)
    for index, source in enumerate(sources):
        for number, (name, data) in enumerate(plots.draw(source.run, shown)):
            if name.endswith(".svg"):
                title = f"{source.label}: {name.removesuffix('.svg')}"
                yield title, plots.inline_svg(data, f"p{index}-{number}")


def _spreads_or_failure(folder: Path, run: Run) -> tuple[Mapping[Case, Spread], StorageError | None]:
    """How samples spread, or why they can't be read: the rest of a report does not need them."""
    try:
        return _spreads(folder, run), None
    except StorageError as error:
        return {}, error


def _spreads(folder: Path, run: Run) -> Mapping[Case, Spread]:
    """How the samples of a run spread; of nobody where its samples are not there."""
    from normbench.storage import samples

    if not samples.exist(folder):
        return {}
    cases = [result.case for result in run.results if result.timing is not None]
    clock = samples.primary_clock(run.header.device.kind)
    return samples.spreads(samples.chunks(folder, cases, clock=clock), cases)
