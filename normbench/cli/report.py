"""``normbench report``: a run's reports again from its folder, or those of several runs in one, without torch."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from normbench.cli import axes, gating
from normbench.cli.examining import Style
from normbench.cli.rendering import write_merged, write_reports
from normbench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from normbench.records import Run
    from normbench.run_gate import RunGate

EXAMPLES = """\b
Examples:
  normbench report reports/20260101T120000Z-my-gpu
  normbench report reports/*-my-gpu reports/*-other-gpu --out both
"""


_MOST_RUNS = 12


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="One run folder, or several to merge.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="A new folder for the reports; by default the run's own, for several reports/<UTC time>-merged.",
        ),
    ] = None,
    pictures: Annotated[
        int | None,
        typer.Option(
            "--pictures",
            min=0,
            help="How many pictures to draw, the most informative first; by default what takes about five seconds.",
            show_default=False,
        ),
    ] = None,
    as_json: axes.AsJson = False,
    quiet: axes.Quiet = False,
) -> None:
    """Make verdict.md, report.html and the plots of a run again; of several runs one report, a column each.

    Of the folder of a check its check.md; of steps and training their verdict.md, report.html and plots.
    """
    from normbench.storage import holds_check, holds_steps, load

    if len({os.path.realpath(folder) for folder in folders}) < len(folders):
        raise UsageError("RUN: a folder is named twice", hint="name each once")
    if len(folders) > _MOST_RUNS:
        raise UsageError(f"RUN: {len(folders)} folders", hint=f"allowed: up to {_MOST_RUNS}, a column each")
    if _is_alone(folders, holds_check, "a check, and only runs"):
        _check(folders[0], out, pictures, as_json=as_json, quiet=quiet)
        return
    if _is_alone(folders, holds_steps, "steps, and only sweeps"):
        _steps(folders[0], out, pictures, as_json=as_json, quiet=quiet)
        return
    runs = [load(folder) for folder in folders]
    if len(runs) > 1:
        _several(folders, runs, out, pictures, as_json=as_json, quiet=quiet)
    else:
        _one(folders[0], runs[0], out, pictures, as_json=as_json, quiet=quiet)


def _is_alone(folders: Sequence[Path], holds: Callable[[Path], bool], what: str) -> bool:
    """Whether it is a folder of another kind than a run's, which is reported by itself.

    Raises:
        UsageError: There are others beside it.
    """
    found = [folder for folder in folders if holds(folder)]
    if found and len(folders) > 1:
        raise UsageError(f"RUN: {found[0]} is the folder of {what} are merged", hint="report it by itself")
    return bool(found)


def _check(folder: Path, out: Path | None, pictures: int | None, *, as_json: bool, quiet: bool) -> None:
    from normbench.cli import examining
    from normbench.storage import load_check, make_folder

    if pictures is not None:
        raise UsageError("--pictures: a check has none", hint="leave it out")
    run = load_check(folder)
    if out is not None:
        make_folder(out)
    examining.report(folder, run, out or folder, Style.JSON if as_json else Style.TABLE, quiet=quiet)


def _steps(folder: Path, out: Path | None, pictures: int | None, *, as_json: bool, quiet: bool) -> None:
    from normbench.cli import step_rendering
    from normbench.cli.output import note
    from normbench.cli.step_work import to_go_on
    from normbench.storage import load_steps, make_folder

    if pictures is not None:
        raise UsageError("--pictures: steps have four at most, all of which are drawn", hint="leave it out")
    run = load_steps(folder)
    if out is not None:
        make_folder(out)
    step_rendering.report(folder, run, out or folder, as_json=as_json, quiet=quiet)
    if not run.is_complete:
        note(f"incomplete; go on with: {to_go_on(folder, run.header)}", quiet=quiet)


def _one(folder: Path, run: Run, out: Path | None, pictures: int | None, *, as_json: bool, quiet: bool) -> None:
    from normbench.cli.output import emit, note, results
    from normbench.reporters.console import show
    from normbench.storage import make_folder

    if out is not None:
        make_folder(out)
    gate = gating.judged(folder, run)
    write_reports(folder, run, out or folder, pictures, gate=gate, quiet=quiet)
    if as_json:
        emit(as_json_text(folder, run, gate))
        return
    with results() as console:
        show(run, console, gate)
    if not run.is_complete:
        note(f"incomplete; go on with: normbench sweep --resume {folder}", quiet=quiet)


def _several(
    folders: Sequence[Path],
    runs: Sequence[Run],
    out: Path | None,
    pictures: int | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from normbench import merging
    from normbench.cli.output import emit, json_text, note, results
    from normbench.reporters import merged
    from normbench.reporters.console import show_merged
    from normbench.storage import make_folder, new_path

    apart = merging.differences(runs)
    if apart:
        raise UsageError(
            f"these runs can't be compared: {'; '.join(apart)}",
            hint="measure again with the same options, or report each by itself",
        )
    target = out or new_path("merged")
    make_folder(target)
    document = merged.of_runs(runs)
    write_merged(folders, runs, document, target, pictures, quiet=quiet)
    if as_json:
        of_each = zip(document.labels, folders, runs, strict=True)
        found = [{"label": label, **_as_dictionary(folder, run, None)} for label, folder, run in of_each]
        emit(json_text({"folder": str(target), "runs": found}))
        return
    with results() as console:
        show_merged(document, console)
    note(f"written: {target}/ (read verdict.md first)", quiet=quiet)


def as_json_text(folder: Path, run: Run, gate: RunGate | None = None) -> str:
    """A run as a program reads it."""
    from normbench.cli.output import json_text

    return json_text(_as_dictionary(folder, run, gate))


def _as_dictionary(folder: Path, run: Run, gate: RunGate | None) -> dict[str, Any]:
    from normbench.reporters.gate import as_dictionary as of_gate
    from normbench.storage import as_dictionary, profiles_of

    progress = {
        "complete": run.is_complete,
        "missing": [vars(cell) for cell in run.missing],
        "resumed": [vars(resumption) for resumption in run.header.resumed],
    }
    brought = {"brought": [asdict(info) for info in run.header.implementations if info.source is not None]}
    found = {"gate": None if gate is None else of_gate(gate), **brought}
    return {"folder": folder.resolve().name, **progress, **found, **as_dictionary(run), **profiles_of(run)}
