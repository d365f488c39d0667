"""The summary on the terminal: the answer, then a table for each dtype and mode."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from normbench import bounds, units, verdict
from normbench.records import CaseResult, Cell, Outcome, Run, Status
from normbench.reporters import completeness, headline, statements, traffic, trust
from normbench.reporters.merged import Merged

_STYLES = {Outcome.FASTER: "green", Outcome.SLOWER: "red", Outcome.SAME: "", Outcome.UNDECIDED: "yellow"}
_UNLIMITED = 10_000
"""Columns where nobody looks at a terminal: nothing is wrapped or cut."""


def console(file: TextIO | None = None, into: TextIO | None = None) -> Console:
    """A console that never reads markup out of data, and that cuts nothing where there is no terminal.

    Args:
        file: Where the text is shown, which decides its width and its colours.
        into: Where it is written, if that is not the same.
    """
    target = file or sys.stdout
    shown = Console(
        file=target,
        width=None if target.isatty() else _UNLIMITED,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=not target.isatty(),
    )
    if into is not None:
        shown.file = into
    return shown


def titled_table(title: str, **changes: Any) -> Table:
    """A table as all of them look: a bold title at its left, a line below its head."""
    looks = {"title_justify": "left", "title_style": "bold", "box": box.SIMPLE_HEAD, "pad_edge": False}
    return Table(title=title, **{**looks, **changes})


def show(run: Run, out: Console) -> None:
    """Print the summary of a run."""
    of_run = verdict.of_run(run)
    flags = bounds.flags(run)
    said = headline.headline(run, of_run, flags)
    for group in of_run.groups:
        out.print(_table(run, group))
    for profiled in traffic.tables(run, flags):
        out.print(_profile_table(profiled))
        for line in profiled.sentences:
            out.print(f"{line}.")
        for line in profiled.missing:
            out.print(Text(line, style="magenta"))
        out.print()
    for what, where, why in statements.unmeasured(run):
        out.print(f"{what} {where}: {why}")
    notes = [*statements.device_notes(run), *statements.advice_notes(run, of_run), *trust.noise_notes(run)]
    notes += [note for note in (trust.limits_note(run, flags), trust.throttled_note(run)) if note]
    notes += [*statements.flag_notes(flags), *completeness.notes(run)]
    for note in notes:
        out.print(Text(note, style="dim"))
    out.print()
    out.print(Text(f"{said.use}.", style="bold"))
    for line in said.rest:
        out.print(f"{line}.")


def show_merged(document: Merged, out: Console) -> None:
    """Print the summary of several runs: a column for each."""
    table = titled_table("What to use")
    for head in ("dtype and mode", "rows", "cache", "widths", *document.labels, ""):
        table.add_column(Text(head), overflow="fold")
    for line in document.uses:
        fields = (line.what, str(line.rows), line.cache, line.widths, *line.uses, "differs" if line.differs else "")
        table.add_row(*map(Text, fields), style="yellow" if line.differs else None)
    out.print(table)
    for note in document.notes:
        out.print(Text(note, style="dim"))
    out.print()
    out.print(Text(f"{document.headline}.", style="bold"))


def _table(run: Run, group: verdict.Group) -> Table:
    """Implementations down, widths across: time, and speedup with its outcome."""
    baseline = run.header.plan.baseline
    table = titled_table(f"{statements.describe_group(group.first)}: time, speedup over {baseline}")
    table.add_column("width", overflow="fold")
    for cell in group.cells:
        table.add_column(str(cell.width), overflow="fold")
    for info in run.header.implementations:
        table.add_row(Text(info.name), *(_entry(run, cell, info.name) for cell in group.cells))
    return table


def _profile_table(profiled: traffic.CellTable) -> Table:
    """Where the bytes of a cell go."""
    table = titled_table(f"{profiled.title}: where the bytes go")
    for column in (
        "",
        "op bytes",
        "× floor",
        "launches",
        "saved",
        "peak",
        "bytes ÷ base",
        "time ÷ base",
        "explained",
    ):
        table.add_column(column, overflow="fold", justify="right" if column else "left")
    for line in profiled.lines:
        table.add_row(*(Text(value) for value in vars(line).values()))
    return table


def _entry(run: Run, cell: Cell, name: str) -> Text:
    result = next((r for r in run.results_by_cell.get(cell, ()) if r.case.implementation == name), None)
    if result is None or result.timing is None:
        return Text(_status(result), style="magenta")
    time = units.duration(result.timing.time_s.value)
    if name in (run.header.plan.floor, run.header.plan.baseline):
        return Text(f"{time}  {'floor' if name == run.header.plan.floor else 'baseline'}")
    comparison = run.comparison(cell, name)
    if comparison is None or comparison.speedup is None:
        return Text(f"{time}  {Outcome.UNDECIDED}", style=_STYLES[Outcome.UNDECIDED])
    return Text(f"{time}  {comparison.speedup.value:.2f} {comparison.outcome}", style=_STYLES[comparison.outcome])


def _status(result: CaseResult | None) -> str:
    return str(Status.NOT_RUN if result is None else result.status)
