"""``normbench doctor``: is this a good place to measure, and how small a difference can it show?"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from normbench.cli import axes, options
from normbench.cli.neighbours import Sharing, claimed

if TYPE_CHECKING:
    from normbench.records import Diagnosis

EXAMPLES = """\b
Examples:
  normbench doctor
  normbench doctor --device cuda --json
"""

_SECONDS = 3.0


def doctor(
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:N. [the GPU if there is one]")] = None,
    max_seconds: Annotated[float, typer.Option(help="Time for the A/A test of each of three cells.")] = _SECONDS,
    share_device: axes.ShareDevice = False,
    wait: axes.Wait = False,
    as_json: axes.AsJson = False,
    quiet: axes.Quiet = False,
) -> None:
    """Examine device and software: what runs here, what disturbs, and which differences cannot be told apart.

    Takes half a minute. Each warning says what to do.
    """
    seconds = options.above_zero("--max-seconds", max_seconds)
    sharing = Sharing(what="doctor", share=share_device, wait=wait)
    from normbench.advice import advise
    from normbench.cli.output import emit, json_text, results
    from normbench.device import find
    from normbench.reporters.diagnosis import show
    from normbench.storage import diagnosis_as_dictionary

    with claimed(find(device), sharing) as neighbours:
        found = _examined(device, seconds, quiet=quiet)
        diagnosis = replace(found, conditions=replace(found.conditions, other_runs=neighbours.runs))
    advice = advise(diagnosis)
    if as_json:
        emit(json_text(diagnosis_as_dictionary(diagnosis, advice)))
        return
    with results() as out:
        show(diagnosis, advice, out)


def _examined(device: str | None, seconds: float, *, quiet: bool) -> Diagnosis:
    from normbench.cli.progress import telling
    from normbench.device import detect, fix_threads
    from normbench.doctor import examine
    from normbench.instruments import instruments
    from normbench.reporters.terminal import console

    found = detect(device)
    fix_threads(found.info.threads)
    with telling(console(sys.stderr), quiet=quiet) as told:
        return examine(found, instruments(found), seconds=seconds, told=told)
