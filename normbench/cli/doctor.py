"""``normbench doctor``: is this a good place to measure, and how small a difference can it show?"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from normbench.cli import options

EXAMPLES = """\b
Examples:
  normbench doctor
  normbench doctor --device cuda --json
"""

_SECONDS = 3.0


def doctor(
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:N. [the GPU if there is one]")] = None,
    max_seconds: Annotated[float, typer.Option(help="Time for the A/A test of each of three cells.")] = _SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Examine device and software: what runs here, what disturbs, and which differences cannot be told apart.

    Takes half a minute. Each warning says what to do.
    """
    seconds = options.above_zero("--max-seconds", max_seconds)
    from normbench.advice import advise
    from normbench.bench import instruments
    from normbench.cli.output import emit, results
    from normbench.device import detect, fix_threads
    from normbench.doctor import examine
    from normbench.reporters.console import console
    from normbench.reporters.diagnosis import show
    from normbench.storage import diagnosis_as_dictionary

    found = detect(device)
    fix_threads(found.info.threads)
    err = console(sys.stderr)
    with err.status("") as status:
        told = (lambda _what: None) if quiet else status.update if err.is_terminal else lambda what: err.print(what)
        diagnosis = examine(found, instruments(found), seconds=seconds, told=told)
    advice = advise(diagnosis)
    if as_json:
        emit(json.dumps(diagnosis_as_dictionary(diagnosis, advice), indent=1) + "\n")
        return
    with results() as out:
        show(diagnosis, advice, out)
