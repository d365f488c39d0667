"""What changed between two runs, on the terminal: a table for each kind of cell, the answer last."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from normbench import verdict
from normbench.changes import Change, Changes
from normbench.records import Cell, Flag, Outcome
from normbench.reporters import changes as words
from normbench.reporters import changes_notes, sheet, statements
from normbench.reporters.differences import differences
from normbench.reporters.sheet import Field, Sheet
from normbench.reporters.terminal import say

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
        sheet.show(_sheet(found, cells, every), out)
    for line in words.doubt_lines(found):
        say(out, f"{_MARKS[Flag(line.split()[0])]}: {line}", "dim")
    for line in words.reason_lines(found):
        say(out, line, "dim")
    for line in words.only_lines(found):
        say(out, line)
    for what, where, why in words.lopsided_lines(found.lopsided, found.base.header.plan):
        say(out, f"{what}, {where}: {why}", "magenta")
    for difference in differences(found.base.header, found.head.header):
        say(out, f"warning: the runs differ in {difference}", "yellow")
    for note in changes_notes.notes(report):
        say(out, f"{note}.", "dim")
    out.print()
    say(out, f"{changes_notes.headline(report)}.", "bold")
    mean = changes_notes.means_note(found.means)
    if mean:
        say(out, f"{mean}.")
    if report.gate:
        say(out, f"{changes_notes.gate_note(report.gate)}.", "red" if report.gate.fails else "")


def _sheet(found: Changes, cells: Sequence[Cell], every: Sequence[Change]) -> Sheet:
    """A line for each case of cells that differ in their width alone."""
    what = f"time ÷ {found.base.header.plan.baseline}'s" if found.relative else "time"
    return Sheet(
        title=f"{statements.describe_group(cells[0])}: {what}, speedup of HEAD",
        heads=("width", "implementation", "BASE", "HEAD", "speedup", "outcome", ""),
        rows=[_row(found, change) for cell in cells for change in every if change.case.cell == cell],
        names=2,
        right=frozenset({0, 2, 3}),
        between=1,
    )


def _row(found: Changes, change: Change) -> tuple[Field, ...]:
    is_floor = change in found.floor
    outcome = Text("floor") if is_floor else Text(change.outcome, style=_STYLES[change.outcome])
    return (
        str(change.case.cell.width),
        found.base.header.plan.floor if is_floor else change.case.implementation,
        words.value(found, change.before),
        words.value(found, change.after),
        words.estimate(change.speedup),
        outcome,
        "".join(m for flag, m in _MARKS.items() if flag in (*change.base_flags, *change.head_flags)),
    )
