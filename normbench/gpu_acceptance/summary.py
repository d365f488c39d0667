"""The table of lines, on a terminal, as markdown and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from normbench import bounds, units, verdict
from normbench.gpu_acceptance.lines import Line, Outcome
from normbench.gpu_acceptance.running import Ending
from normbench.records import Diagnosis, Run
from normbench.reporters import headline, method, sheet
from normbench.reporters.markdown import templates
from normbench.reporters.sheet import Sheet
from normbench.reporters.terminal import say

_STYLES = {
    Outcome.HOLDS: "green",
    Outcome.FAILS: "bold red",
    Outcome.NOT_SHOWN: "red",
    Outcome.NO_GPU: "yellow",
    Outcome.NOT_PERMITTED: "yellow",
}


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the command has to say in the end.

    Args:
        created_utc: When it began.
        seconds: What it took.
        allowed_s: What it may take.
        diagnosis: On what it ran; None where the doctor did not end.
        sweeps: The sweeps, by the name of the part.
        lines: What was asked and found.
        endings: How the parts ended.
        missed: Packages that are not here, and what was skipped for it.
    """

    created_utc: str
    seconds: float
    allowed_s: float
    diagnosis: Diagnosis | None
    sweeps: Mapping[str, Run]
    lines: tuple[Line, ...]
    endings: tuple[Ending, ...]
    missed: Mapping[str, str]

    def that(self, outcome: Outcome) -> int:
        """How many lines came out so."""
        return sum(line.outcome is outcome for line in self.lines)

    @property
    def conclusion(self) -> str:
        """One sentence that says it all."""
        without = self.that(Outcome.NO_GPU)
        holds = f"{self.that(Outcome.HOLDS)} of {units.count(len(self.lines), 'line')} hold"
        if without:
            holds = f"No GPU, and nothing about one is shown here: {holds}, {without} need one"
        others = (Outcome.FAILS, Outcome.NOT_SHOWN, Outcome.NOT_PERMITTED)
        return ", ".join((holds, *(f"{self.that(one)} {one}" for one in others if self.that(one))))

    @property
    def uses(self) -> list[tuple[str, str]]:
        """What each sweep recommends."""
        return [(name, _use(run)) for name, run in self.sweeps.items()]

    @property
    def machine(self) -> list[tuple[str, str]]:
        """Device and software, as name and value."""
        found = self.diagnosis
        return [] if found is None else method.machine(found.device, found.environment)


def _use(run: Run) -> str:
    return headline.headline(run, verdict.of_run(run), bounds.flags(run)).use


def show(summary: Summary, out: Console) -> None:
    """Print it, the table last but for the sentence that sums it up."""
    for name, use in summary.uses:
        say(out, f"{name}: {use}.")
    out.print()
    sheet.show(_parts(summary.endings), out)
    for name, what in summary.missed.items():
        say(out, f"not installed: {name}; skipped: {what}", "dim")
    out.print()
    sheet.show(_lines(summary.lines), out)
    say(out, f"{summary.conclusion}.", "bold")


def markdown(summary: Summary) -> str:
    """The same for a pull request."""
    return templates().get_template("acceptance.md.j2").render(summary=summary, time_left=units.time_left)


def as_dictionary(summary: Summary) -> dict[str, object]:
    """The same for a program."""
    return {
        "created_utc": summary.created_utc,
        "seconds": summary.seconds,
        "allowed_s": summary.allowed_s,
        "machine": dict(summary.machine),
        "lines": [vars(line) for line in summary.lines],
        "parts": [vars(ending) for ending in summary.endings],
        "not_installed": dict(summary.missed),
        "conclusion": summary.conclusion,
    }


def _parts(endings: Sequence[Ending]) -> Sheet:
    rows = [
        (ending.name, "" if ending.code is None else units.time_left(ending.seconds), ending.why or "done")
        for ending in endings
    ]
    return Sheet(title="Parts", heads=("part", "took", "ended"), rows=rows, wrapped=frozenset({2}))


def _lines(lines: Sequence[Line]) -> Sheet:
    rows = [
        (line.what, line.asked, Text(str(line.outcome), style=_STYLES[line.outcome]), line.figure) for line in lines
    ]
    return Sheet(title="Acceptance", heads=("", "asked", "", "found"), rows=rows, wrapped=frozenset({0, 1, 3}))
