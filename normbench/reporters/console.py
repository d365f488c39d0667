"""The summary on the terminal: a table for each dtype and mode, then the answer."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from normbench import bounds, units, verdict
from normbench.records import CaseResult, Cell, Outcome, Run, Status
from normbench.reporters import against, brought, completeness, headline, sheet, statements, traffic, trust
from normbench.reporters import gate as gates
from normbench.reporters.merged import Merged
from normbench.reporters.sheet import Sheet
from normbench.reporters.terminal import console, say
from normbench.run_gate import RunGate

__all__ = ["console", "show", "show_merged"]

_STYLES = {Outcome.FASTER: "green", Outcome.SLOWER: "red", Outcome.SAME: "", Outcome.UNDECIDED: "yellow"}


def show(run: Run, out: Console, gate: RunGate | None = None) -> None:
    """Print the summary of a run, and what its gate found."""
    of_run = verdict.of_run(run)
    flags = bounds.flags(run)
    said = headline.headline(run, of_run, flags)
    for group in of_run.groups:
        sheet.show(_times(run, group), out)
    for profiled in traffic.tables(run, flags):
        sheet.show(_profile(profiled), out)
        for line in profiled.sentences:
            say(out, f"{line}.")
        for line in profiled.missing:
            say(out, line, "magenta")
        out.print()
    for what, where, why in statements.unmeasured(run):
        say(out, f"{what} {where}: {why}")
    notes = [
        *brought.sentences(brought.rows(run.header.implementations)),
        *against.notes(run),
        *statements.device_notes(run),
        *statements.advice_notes(run, of_run),
        *trust.noise_notes(run),
    ]
    notes += [note for note in (trust.limits_note(run, flags), trust.throttled_note(run)) if note]
    notes += [*statements.flag_notes(flags), *completeness.notes(run)]
    for note in notes:
        say(out, note, "dim")
    out.print()
    say(out, f"{said.use}.", "bold")
    for line in said.rest:
        say(out, f"{line}.")
    if gate is not None:
        for row in gates.section(gate, run.header.plan).rows:
            say(out, "  ".join((row.name, row.where, row.speedup, row.found)), "red" if gate.fails else "")
        say(out, f"{gates.sentence(gate)}.", "bold red" if gate.fails else "bold")


def show_merged(document: Merged, out: Console) -> None:
    """Print the summary of several runs: a column for each."""
    sheet.show(_uses(document), out)
    for note in document.notes:
        say(out, note, "dim")
    out.print()
    say(out, f"{document.headline}.", "bold")


def _uses(document: Merged) -> Sheet:
    heads = ("dtype and mode", "rows", "cache", "widths", *document.labels, "")
    rows = []
    for line in document.uses:
        fields = (line.what, str(line.rows), line.cache, line.widths, *line.uses, "differs" if line.differs else "")
        rows.append(tuple(Text(field, style="yellow" if line.differs else "") for field in fields))
    return Sheet(title="What to use", heads=heads, rows=rows, wrapped=frozenset(range(3, len(heads) - 1)))


def _times(run: Run, group: verdict.Group) -> Sheet:
    """Implementations down, widths across: time, and speedup with its outcome."""
    return Sheet(
        title=f"{statements.describe_group(group.first)}: time, speedup over {run.header.plan.baseline}",
        heads=("width", *(str(cell.width) for cell in group.cells)),
        rows=[
            (info.name, *(_entry(run, cell, info.name) for cell in group.cells))
            for info in run.header.implementations
        ],
        alike=True,
    )


def _profile(profiled: traffic.CellTable) -> Sheet:
    """Where the bytes of a cell go."""
    counts = ("op bytes", "× floor", "launches", "saved", "peak", "bytes ÷ base", "time ÷ base", "explained")
    return Sheet(
        title=f"{profiled.title}: where the bytes go",
        heads=("", *counts),
        rows=[tuple(vars(line).values()) for line in profiled.lines],
        right=frozenset(range(1, len(counts) + 1)),
    )


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
