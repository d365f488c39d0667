"""A check on the terminal: the grades, what fails, what is only coarsely right, the answer last."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from normbench.grades import Card, Grade
from normbench.records import Mark, Property
from normbench.reporters import checks as words
from normbench.reporters import sheet
from normbench.reporters.sheet import Sheet
from normbench.reporters.terminal import say


def show(card: Card, out: Console) -> None:
    """Print what was found; the answer comes last, where the reader looks first."""
    sheet.show(_grades(card), out)
    for line in words.LEGEND:
        say(out, line, "dim")
    out.print()
    _failures(card, out)
    for name, where, properties in words.coarse(card, words.MOST_PLACES):
        say(out, f"{name} is right only coarsely in {properties} ({where})", "yellow")
    for note in words.notes(card):
        say(out, note, "yellow")
    say(out, f"{words.scope(card)}.", "dim")
    out.print()
    say(out, f"{words.headline(card)}.", "bold")
    say(out, f"{words.totals(card)}; {words.end(card)}.", "red" if any(g.counts for g in card.failing) else "")


def _grades(card: Card) -> Sheet:
    return Sheet(
        title="Largest error in ulp, per property and implementation",
        heads=("property", *card.names),
        rows=[_row(card, asked) for asked in card.run.header.plan.properties],
        alike=True,
        between=1,
    )


def _row(card: Card, asked: Property) -> tuple[str | Text, ...]:
    return (str(asked), *(_cell(card.by_pair.get((name, asked))) for name in card.names))


def _cell(grade: Grade | None) -> Text:
    return Text(words.cell(grade), style=_style(grade))


def _style(grade: Grade | None) -> str:
    if grade is None or grade.allowed or grade.is_coarse:
        return "yellow"
    return {Mark.PASS: "", Mark.FAIL: "red", Mark.NOT_APPLICABLE: "dim"}[grade.mark]


def _failures(card: Card, out: Console) -> None:
    for line in words.failures(card):
        allowed = " (allowed)" if line.allowed else ""
        say(out, f"{line.who} fails {line.what}{allowed}, {line.where}:", "yellow" if line.allowed else "red")
        figures = f"; {line.off}" if line.off else ""
        say(out, f"  {line.why}{figures}, at {line.spot}")
