"""The command: runs the parts within its time, judges what they left, packs it, and prints the table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normbench import cli
from normbench.cli import axes, options
from normbench.errors import FailedCheckError, IncompleteError, UsageError
from normbench.gpu_acceptance import packages, parts
from normbench.interruption import put_back, take_over

if TYPE_CHECKING:
    from normbench.gpu_acceptance.parts import Part
    from normbench.gpu_acceptance.running import Ending
    from normbench.gpu_acceptance.summary import Summary

_MINUTES = 8.0
_LAST_S = 15.0
"""For judging and packing."""

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(
    epilog="""\b
Examples:
  python -m normbench.gpu_acceptance
  python -m normbench.gpu_acceptance --device cuda:1 --out acceptance --minutes 12
"""
)
def acceptance(
    out: Annotated[Path | None, typer.Option(help="A new folder. [reports/<UTC>-gpu-acceptance]")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:N. [the GPU if there is one]")] = None,
    minutes: Annotated[float, typer.Option(help="Time for all of it.")] = _MINUTES,
    as_json: axes.AsJson = False,
    quiet: axes.Quiet = False,
) -> None:
    """Run all that only a GPU can show: its tests, a doctor, sweeps, profiles, a step; and say what holds.

    Without a GPU the same is rehearsed on the CPU, as small as can be, and every line about a GPU says so.
    Exit codes: 0 every line holds, 1 one fails, 3 one is not shown or there is no GPU.
    """
    allowed_s = 60 * options.above_zero("--minutes", minutes)
    if allowed_s < 60:
        raise UsageError(
            "--minutes: at least 1, of which reports and packing take half", hint=f"{_MINUTES:g} unless told"
        )
    began = time.monotonic()
    if lacking := packages.lacking():
        raise IncompleteError(f"not installed: {', '.join(lacking)}", hint=f"pip install {' '.join(lacking)}")
    from normbench.cli.heading import now_utc
    from normbench.gpu_acceptance import schedule

    name, folder = _found(device), _new_folder(out)
    created_utc, asked = now_utc(), parts.REHEARSED if name == "cpu" else parts.ON_A_GPU
    endings = schedule.in_turn(asked, folder, name, began + allowed_s - _LAST_S, quiet=quiet)
    with _undisturbed():
        summary = _judged(asked, endings, folder, created_utc, began, allowed_s, on_gpu=name != "cpu")
        try:
            _write(summary, folder)
        finally:  # a full disk takes nothing from who reads here
            _tell(summary, as_json=as_json)
    _finish(summary, folder, quiet=quiet)


def main() -> None:
    """Run it; every expected end has its exit code."""
    cli.main(app)


def _found(device: str | None) -> str:
    """The device's name, asked for in a process of its own.

    Here, where the driver may list whoever has asked for a GPU's properties, it would stand beside each part as
    another program that uses the GPU.
    """
    from normbench.device import find

    with ProcessPoolExecutor(1, get_context("spawn")) as apart:
        return apart.submit(find, device).result().name


def _new_folder(out: Path | None) -> Path:
    from normbench.cli.beginning import refuse_existing
    from normbench.storage import make_folder, new_path

    refuse_existing(out)
    folder = (out or new_path("gpu-acceptance")).absolute()
    make_folder(folder)
    return folder


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A context in which no signal ends the program: judging and packing take a moment, and keep everything."""
    before = take_over(lambda _number, _frame: None)
    try:
        yield
    finally:
        put_back(before)


def _judged(
    asked: Sequence[Part],
    endings: tuple[Ending, ...],
    folder: Path,
    created_utc: str,
    began: float,
    allowed_s: float,
    *,
    on_gpu: bool,
) -> Summary:
    """Read what the parts left, pack it, and judge it."""
    from normbench.gpu_acceptance import packing
    from normbench.gpu_acceptance.criteria import CRITERIA
    from normbench.gpu_acceptance.evidence import gathered
    from normbench.gpu_acceptance.lines import judged
    from normbench.gpu_acceptance.summary import Summary

    evidence = gathered(asked, folder, endings, on_gpu=on_gpu)
    problems = packing.pack(asked, folder)
    evidence = replace(evidence, left=packing.left(folder, problems))
    return Summary(
        created_utc=created_utc,
        seconds=time.monotonic() - began,
        allowed_s=allowed_s,
        diagnosis=evidence.diagnosis,
        sweeps=evidence.sweeps,
        lines=judged(CRITERIA, evidence),
        endings=endings,
        missed=packages.missed(),
    )


def _write(summary: Summary, folder: Path) -> None:
    from normbench.cli.output import json_text
    from normbench.gpu_acceptance.summary import as_dictionary, markdown
    from normbench.storage import write_text

    write_text(folder / "summary.md", markdown(summary))
    write_text(folder / "summary.json", json_text(as_dictionary(summary)))


def _tell(summary: Summary, *, as_json: bool) -> None:
    from normbench.cli.output import emit, json_text, results
    from normbench.gpu_acceptance.summary import as_dictionary, show

    if as_json:
        emit(json_text(as_dictionary(summary)))
        return
    with results() as out:
        show(summary, out)


def _finish(summary: Summary, folder: Path, *, quiet: bool) -> None:
    from normbench.cli.output import note
    from normbench.gpu_acceptance.lines import Outcome

    note(f"written: {folder}/ (read summary.md first)", quiet=quiet)
    if any(ending.is_interrupted for ending in summary.endings):
        raise KeyboardInterrupt
    if summary.that(Outcome.FAILS):
        raise FailedCheckError(f"{summary.conclusion}", hint="the table says what was asked, and what was found")
    if summary.that(Outcome.NOT_SHOWN) or summary.that(Outcome.NO_GPU):
        raise IncompleteError(f"{summary.conclusion}", hint="what is not shown is not proved: exit code 3")
