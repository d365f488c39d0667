"""``normbench compare``: what changed between two runs, and an exit code for a gate, without torch."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normbench.cli import axes, options
from normbench.errors import IncompleteError, RegressionError, UsageError

if TYPE_CHECKING:
    from normbench.changes import Changes, Side
    from normbench.gate import Gate
    from normbench.records import Run
    from normbench.reporters.changes import Report

EXAMPLES = """\b
Examples:
  normbench compare reports/before reports/after
  normbench compare before after --fail-on slower:5%
  normbench compare before after --relative --format markdown >> "$GITHUB_STEP_SUMMARY"
"""


class Format(StrEnum):
    """How the changes are printed."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


def compare(
    base: Annotated[Path, typer.Argument(metavar="BASE", help="The run folder that is compared with.")],
    head: Annotated[Path, typer.Argument(metavar="HEAD", help="The run folder that is compared.")],
    relative: Annotated[
        bool, typer.Option("--relative", help="Compare each time ÷ its own run's baseline: cancels the machine.")
    ] = False,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="slower[:5%]",
            help="Exit with 1 where a case is slower by an estimate of more than this (BASE's margin unless said), "
            "decided for all cases together, or had a time in BASE and is incorrect, failed, timed_out or "
            "out_of_memory in HEAD.",
        ),
    ] = None,
    style: Annotated[
        str | None, typer.Option("--format", metavar=options.metavar(Format), help="How to print. [table]")
    ] = None,
    as_json: axes.AsJson = False,
) -> None:
    """Compare two runs: for each case HEAD's speedup over BASE with its interval, and what is in one alone.

    Separate runs share no rounds: what the machine did in one of them alone is in every ratio. The floor, whose code
    is the same in both, shows how much that was.

    Exit codes: 0; 1 with --fail-on where something got worse; 2 bad usage; 3 where no case has a time in both runs,
    with --fail-on also where none has an interval, or where a file can't be read.
    """
    printed = _format(style, as_json=as_json)
    threshold = None if fail_on is None else options.slower_than("--fail-on", fail_on)
    from normbench import gate
    from normbench.reporters.changes import Report

    found, sides = compared(base, head, relative=relative)
    judged = (
        None if fail_on is None else gate.examine(found, *sides, found.margin if threshold is None else threshold)
    )
    _print(Report(found=found, gate=judged, base=_name(base), head=_name(head)), printed)
    _end(found, judged)


def compared(base: Path, head: Path, *, relative: bool) -> tuple[Changes, tuple[Side, Side]]:
    """What changed between the runs in two folders, and what was compared.

    Raises:
        UsageError: One is no folder of a sweep.
        IncompleteError: Their times are not comparable.
    """
    from normbench import changes
    from normbench.storage import load

    _refuse_checks(base, head)
    runs = load(base), load(head)
    _refuse_unlike_clocks(*runs)
    if relative:
        _refuse_unlike_baselines(*runs)
    sides = _side(base, runs[0], relative=relative), _side(head, runs[1], relative=relative)
    return changes.between(*sides, relative=relative), sides


def _format(style: str | None, *, as_json: bool) -> Format:
    chosen = None if style is None else options.choice("--format", Format, style)
    if as_json and chosen not in (None, Format.JSON):
        raise UsageError(f"--json and --format {chosen} ask for different things", hint="leave one of them out")
    return Format.JSON if as_json else chosen or Format.TABLE


def _side(folder: Path, run: Run, *, relative: bool) -> Side:
    from normbench.changes import Side
    from normbench.storage.samples import logarithms

    return Side(run=run, logs=logarithms(folder, run, relative=relative))


def _refuse_checks(*folders: Path) -> None:
    from normbench.storage import holds_check, holds_steps

    for word, folder in zip(("BASE", "HEAD"), folders, strict=True):
        if holds_steps(folder):
            raise UsageError(
                f"{word}: {folder} is the folder of steps, which are compared within a run alone",
                hint=f"normbench report {folder}",
            )
        if holds_check(folder):
            raise UsageError(
                f"{word}: {folder} is the folder of a check, and holds no times", hint=f"normbench report {folder}"
            )


def _refuse_unlike_clocks(base: Run, head: Run) -> None:
    one, other = base.header.device.kind, head.header.device.kind
    if one != other:
        raise IncompleteError(
            f"BASE is of a {one}, HEAD of a {other}: their times are of different clocks, so nothing can be compared",
            hint="normbench report BASE HEAD shows them side by side",
        )


def _refuse_unlike_baselines(base: Run, head: Run) -> None:
    one, other = base.header.plan.baseline, head.header.plan.baseline
    if one != other:
        raise IncompleteError(
            f"--relative: the baseline is {one} in BASE and {other} in HEAD, so nothing can be compared",
            hint="leave --relative out, or measure both with the same --baseline",
        )


def _name(folder: Path) -> str:
    """The folder's own name: where it lies is nobody's business."""
    return folder.resolve().name


def _print(report: Report, printed: Format) -> None:
    from normbench.cli.output import emit, json_text, results

    if printed is Format.JSON:
        from normbench.reporters.changes_data import as_dictionary

        emit(json_text(as_dictionary(report)))
    elif printed is Format.MARKDOWN:
        from normbench.reporters.changes_markdown import render

        emit(render(report))
    else:
        from normbench.reporters.changes_table import show

        with results() as out:
            show(report, out)


def _end(found: Changes, judged: Gate | None) -> None:
    """End with the exit code that the findings ask for: a regression counts more than what can't be compared."""
    if judged is not None and judged.fails:
        from normbench.reporters.changes_notes import regression_message

        raise RegressionError(regression_message(judged), hint=_hint(found))
    if not any(change.speedup for change in found.changes):
        raise IncompleteError(
            "nothing to compare: no case has a time in both runs, or none that can be set against the other",
            hint="measure both with the same options",
        )
    if judged is not None and not found.head.is_complete:
        from normbench.reporters.statements import missing

        raise IncompleteError(
            f"--fail-on: HEAD is incomplete, {missing(found.head)}: what is there passed",
            hint="go on with it: normbench sweep --resume HEAD",
        )
    if judged is not None and not judged.judged:
        raise IncompleteError(
            "--fail-on: no case has an interval in both runs, so that nothing can be judged",
            hint="give the runs more time: an interval takes five placements",
        )


def _hint(found: Changes) -> str | None:
    from normbench.reporters.changes_notes import floor_note

    floor = floor_note(found)
    return f"{floor[:1].lower()}{floor[1:]}" if floor else None
