"""The command: runs the parts within its time, judges what they left, packs it, and prints the table."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normbench import cli
from normbench.cli import axes, options
from normbench.errors import FailedCheckError, IncompleteError, UsageError
from normbench.gpu_acceptance import packages, parts

if TYPE_CHECKING:
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
    began = time.monotonic()
    if lacking := packages.lacking():
        raise IncompleteError(f"not installed: {', '.join(lacking)}", hint=f"pip install {' '.join(lacking)}")
    name, folder = _found(device), _new_folder(out)
    summary = _made(folder, name, allowed_s, began, quiet=quiet)
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
    from normbench.storage import make_folder, new_path

    if out is not None and out.exists():
        raise UsageError(f"--out {out}: exists, and nothing is ever overwritten", hint="name a new folder")
    folder = (out or new_path("gpu-acceptance")).absolute()
    make_folder(folder)
    return folder


def _made(folder: Path, device: str, allowed_s: float, began: float, *, quiet: bool) -> Summary:
    """Run, judge, pack and write."""
    from normbench.cli.heading import now_utc
    from normbench.cli.output import json_text
    from normbench.gpu_acceptance import packing
    from normbench.gpu_acceptance.criteria import CRITERIA
    from normbench.gpu_acceptance.evidence import gathered
    from normbench.gpu_acceptance.lines import judged
    from normbench.gpu_acceptance.schedule import in_turn
    from normbench.gpu_acceptance.summary import Summary, as_dictionary, markdown
    from normbench.storage import write_text

    created_utc, on_gpu = now_utc(), device != "cpu"
    asked = parts.ON_A_GPU if on_gpu else parts.REHEARSED
    endings = in_turn(asked, folder, device, began + allowed_s - _LAST_S, quiet=quiet)
    evidence = gathered(asked, folder, endings, on_gpu=on_gpu)
    packing.pack(asked, folder)
    evidence = replace(evidence, left=packing.left(folder))
    summary = Summary(
        created_utc=created_utc,
        seconds=time.monotonic() - began,
        allowed_s=allowed_s,
        diagnosis=evidence.diagnosis,
        sweeps=evidence.sweeps,
        lines=judged(CRITERIA, evidence),
        endings=endings,
        missed=packages.missed(),
    )
    write_text(folder / "summary.md", markdown(summary))
    write_text(folder / "summary.json", json_text(as_dictionary(summary)))
    return summary


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
