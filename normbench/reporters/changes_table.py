"""What changed between two runs, on the terminal: a table for each kind of cell, the answer last."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from normbench import verdict
from normbench.changes import Change, Changes
from normbench.records import Cell, Flag, Outcome
from normbench.reporters import changes as words
from normbench.reporters import changes_notes, statements
from normbench.reporters.console import titled_table
from normbench.reporters.differences import differences

_STYLES = {Outcome.FASTER: "green", Outcome.SLOWER: "red", Outcome.SAME: "", Outcome.UNDECIDED: "yellow"}
_MARKS = {
    Flag.BUSY_MACHINE: "b",
    Flag.SHARED_DEVICE: "s",
    Flag.THROTTLED: "t",
    Flag.DRIFTED: "d",
    Flag.LAUNCH_BOUND: "l",
    Flag.NEAR_CACHE_SIZE: "c",
}
"""One letter each, for a column that fits beside the others into 80."""


def show(report: words.Report, out: Console) -> None:
    """Print what changed; the answer comes last, where the reader looks first."""
    found = report.found
    every = [*found.floor, *found.changes]
    for cells in verdict.group_cells(dict.fromkeys(change.case.cell for change in every)):
        out.print(_table(found, cells, every))
    for line in words.doubt_lines(found):
        out.print(Text(f"{_MARKS[Flag(line.split()[0])]}: {line}", style="dim"))
    for line in words.reason_lines(found):
        out.print(Text(line, style="dim"))
    for line in words.only_lines(found):
        out.print(Text(line))
    for what, where, why in words.lopsided_lines(found.lopsided, found.base.header.plan):
        out.print(Text(f"{what}, {where}: {why}", style="magenta"))
    for difference in differences(found.base.header, found.head.header):
        out.print(Text(f"warning: the runs differ in {difference}", style="yellow"))
    for note in changes_notes.notes(report):
        out.print(Text(f"{note}.", style="dim"))
    out.print()
    out.print(Text(f"{changes_notes.headline(report)}.", style="bold"))
    mean = changes_notes.means_note(found.means)
    if mean:
        out.print(f"{mean}.")
    if report.gate:
        out.print(Text(f"{changes_notes.gate_note(report.gate)}.", style="red" if report.gate.fails else ""))


def _table(found: Changes, cells: Sequence[Cell], every: Sequence[Change]) -> Table:
    """A line for each case of cells that differ in their width alone."""
    what = f"time ÷ {found.base.header.plan.baseline}'s" if found.relative else "time"
    title = f"{statements.describe_group(cells[0])}: {what}, speedup of HEAD"
    table = titled_table(title, padding=(0, 1, 0, 0))
    for name in ("width", "implementation", "BASE", "HEAD", "speedup", "outcome", ""):
        table.add_column(name, overflow="fold", justify="right" if name in ("width", "BASE", "HEAD") else "left")
    floor = found.base.header.plan.floor
    for cell in cells:
        for change in (change for change in every if change.case.cell == cell):
            is_floor = change in found.floor
            outcome = Text("floor") if is_floor else Text(change.outcome, style=_STYLES[change.outcome])
            table.add_row(
                str(cell.width),
                Text(floor if is_floor else change.case.implementation),
                words.value(found, change.before),
                words.value(found, change.after),
                Text(words.estimate(change.speedup)),
                outcome,
                "".join(m for flag, m in _MARKS.items() if flag in (*change.base_flags, *change.head_flags)),
            )
    return table
