"""Steps on the terminal: a table for each cell, predicted against measured, what was learnt, the answer last."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from normbench.records import Status, StepRun
from normbench.reporters import brought, sheet, statements, steps_document
from normbench.reporters.sheet import Sheet
from normbench.reporters.steps_document import StepDocument, StepTable
from normbench.reporters.steps_gap import GapLine
from normbench.reporters.terminal import say

_STYLES = {
    "faster": "green",
    "slower": "red",
    "undecided": "yellow",
    "learns better": "green",
    "learns worse": "red",
    "cannot tell": "yellow",
} | dict.fromkeys((str(status) for status in Status if status is not Status.OK), "magenta")


def show(run: StepRun, out: Console) -> None:
    """Print what was found; the answer comes last, where the reader looks first."""
    shown = steps_document.of_run(run)
    for table in shown.tables:
        sheet.show(_steps(table), out)
    for found in (*_gaps(shown), _learning(shown), _curves(shown)):
        if found.rows:
            sheet.show(found, out)
    for line in (*shown.explanations, *shown.shares):
        say(out, line)
    for what, where, why in shown.unmeasured:
        say(out, f"{what} {where}: {why}", "magenta")
    for line in (*brought.sentences(shown.brought), *shown.notes, *shown.parameters, *shown.trust):
        say(out, line, "dim")
    out.print()
    for line in (*shown.along, *shown.learned):
        say(out, line)
    say(out, f"{shown.headline}.", "bold")


def _steps(table: StepTable) -> Sheet:
    return Sheet(
        title=table.title,
        heads=steps_document.HEADS,
        rows=[tuple(map(_styled, vars(line).values())) for line in table.lines],
        alike=True,
        right=frozenset(steps_document.NUMBERS),
    )


def _gaps(shown: StepDocument) -> list[Sheet]:
    """A table for each cell."""
    by_cell: dict[str, list[GapLine]] = {}
    for line in shown.gaps:
        by_cell.setdefault(line.where, []).append(line)
    return [
        Sheet(
            title=f"{statements.capital(where)}: longer than {shown.baseline}, by the norms alone and as measured",
            heads=("candidate", "one norm alone", "predicted", "measured", "gap"),
            rows=[(line.candidate, line.norm, line.predicted, line.measured, line.gap) for line in lines],
            alike=True,
            right=frozenset({1, 2, 3}),
        )
        for where, lines in by_cell.items()
    ]


def _learning(shown: StepDocument) -> Sheet:
    return Sheet(
        title="Held-out bits per byte after the last step: less is better",
        heads=steps_document.LEARNING_HEADS,
        rows=[tuple(map(_styled, vars(line).values())) for line in shown.learning],
        right=frozenset(range(1, 5)),
    )


def _curves(shown: StepDocument) -> Sheet:
    heads = ("implementation", "seed", "steps", "bits per byte", *shown.corpora, "status")
    return Sheet(
        title="Every run",
        heads=heads,
        rows=[
            (line.name, str(line.seed), line.steps, line.bits, *line.corpora, _styled(line.status))
            for line in shown.curves
        ],
        names=2,
        right=frozenset(range(1, len(heads) - 1)),
    )


def _styled(text: str) -> Text:
    """A field, in the colour of the outcome or the status that it is."""
    return Text(text, style=_STYLES.get(text, ""))
