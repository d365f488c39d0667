"""``normbench sweep``: the main job. Parse, make a plan, run it, write the run folder, print the summary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normbench.cli import axes, estimate
from normbench.cli.neighbours import Sharing, claimed
from normbench.cli.request import request_for
from normbench.cli.running import header_of, run_into, start, written_alone
from normbench.errors import UsageError
from normbench.records import RunHeader

if TYPE_CHECKING:
    from normbench.device import Device

EXAMPLES = """\b
Examples:
  normbench sweep --quick
  normbench sweep --widths 256 512 4096 --dtype bf16
  normbench sweep --widths 256:16384:x2 --modes forward-backward --rows 8192
  normbench sweep --impls nn-rmsnorm compile-rmsnorm --param-dtype fp32 --dtype bf16
  normbench sweep --resume reports/20260101T120000Z-my-gpu
"""


def sweep(
    widths: axes.Widths = [],  # noqa: B006 - Typer copies it
    rows: axes.Rows = [],  # noqa: B006 - Typer copies it
    dtypes: axes.Dtypes = [],  # noqa: B006 - Typer copies it
    param_dtypes: axes.ParamDtypes = [],  # noqa: B006 - Typer copies it
    autocasts: axes.Autocasts = [],  # noqa: B006 - Typer copies it
    impls: axes.Impls = [],  # noqa: B006 - Typer copies it
    modes: axes.Modes = [],  # noqa: B006 - Typer copies it
    caches: axes.Caches = [],  # noqa: B006 - Typer copies it
    baseline: axes.Baseline = None,
    eps: axes.Eps = None,
    compile_mode: axes.CompileMode = None,
    graphs: Annotated[
        bool, typer.Option("--graphs", help="On a GPU also time captured CUDA graphs, where capture works.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Also count bytes, kernels and memory of every case; see `profile`.")
    ] = False,
    counters: Annotated[
        bool,
        typer.Option("--counters", help="Also read hardware counters for the profile: seconds a case, on a GPU."),
    ] = False,
    device: axes.DeviceName = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="An answer in about a minute: two widths, one dtype.")
    ] = False,
    placements: Annotated[
        int | None, typer.Option(help="The least number of placements. [10]", rich_help_panel=axes.MEASURING)
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            help="Fresh processes that the placements are spread over: 1, or 5 and more. [CPU: 5; GPU, --quick: 1]",
            rich_help_panel=axes.MEASURING,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Stop a cell when every speedup is known this well. [1%]", rich_help_panel=axes.MEASURING),
    ] = None,
    max_seconds: axes.MaxSeconds = None,
    total_seconds: Annotated[
        float | None,
        typer.Option(help="Time budget of the sweep, shared among its cells. [none]", rich_help_panel=axes.MEASURING),
    ] = None,
    case_timeout: axes.CaseTimeout = None,
    no_isolate: axes.NoIsolate = False,
    share_device: axes.ShareDevice = False,
    wait: axes.Wait = False,
    seed: axes.Seed = None,
    out: axes.Out = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Go on with this run folder: measure what is missing.", rich_help_panel=axes.OUTPUT),
    ] = None,
    dry_run: axes.DryRun = False,
    as_json: axes.AsJson = False,
    quiet: axes.Quiet = False,
) -> None:
    """Time every implementation over widths, dtypes and passes, and say which to use.

    Results go to a run folder (CSV files, plots, verdict.md) and a summary to stdout; progress goes to stderr.
    """
    sharing = Sharing(what="sweep", share=share_device, wait=wait)
    request = request_for(
        widths=widths,
        rows=rows,
        dtypes=dtypes,
        param_dtypes=param_dtypes,
        autocasts=autocasts,
        impls=impls,
        modes=modes,
        caches=caches,
        baseline=baseline,
        eps=eps,
        compile_mode=compile_mode,
        seed=seed,
        max_seconds=max_seconds,
        placements=placements,
        processes=processes,
        target=target,
        total_seconds=total_seconds,
        case_timeout=case_timeout,
        no_isolate=no_isolate,
        graphs=graphs,
        profile=profile,
        counters=counters,
        quick=quick,
    )
    if resume is not None:
        if not request.is_silent or out is not None:
            raise UsageError(
                "--resume takes its plan from the folder", hint="leave the other options of the plan out"
            )
        _resume(resume, device, sharing, dry_run=dry_run, as_json=as_json, quiet=quiet)
    else:
        start(request, device, out, sharing, dry_run=dry_run, as_json=as_json, quiet=quiet)


def _resume(
    path: Path, device_name: str | None, sharing: Sharing, *, dry_run: bool, as_json: bool, quiet: bool
) -> None:
    from normbench.storage import RunFolder, load, read_header

    if dry_run:
        header, device = _examined(path, device_name)
        estimate.show(header.plan, list(load(path).missing), device, as_json=as_json)
        return
    from normbench.device import find

    wanted = find(device_name or _device_of(read_header(path)))
    with claimed(wanted, sharing) as neighbours, written_alone(path):
        _header, device = _examined(path, device_name)
        run_into(RunFolder.reopen(path), device, neighbours, as_json=as_json, quiet=quiet)


def _examined(path: Path, device_name: str | None) -> tuple[RunHeader, Device]:
    """What the folder says of its run, and the device to go on with, on which nothing has changed."""
    from normbench.device import detect
    from normbench.storage import read_header

    header = read_header(path)
    device = detect(device_name or _device_of(header))
    _refuse_another_machine(header, header_of(header.plan, device))
    return header, device


def _device_of(header: RunHeader) -> str | None:
    """The device that the run's command names."""
    words = header.command
    at = words.index("--device") + 1 if "--device" in words else len(words)
    return words[at] if at < len(words) else None


def _refuse_another_machine(old: RunHeader, new: RunHeader) -> None:
    """Times of another device or other software can't be put beside the ones that are there."""
    pairs = {
        "device": (old.device, new.device),
        "environment": (old.environment, new.environment),
    }
    for what, (before, now) in pairs.items():
        for name, value in vars(before).items():
            if value != getattr(now, name):
                raise UsageError(
                    f"--resume: the {what} has changed: {name} was {value}, is {getattr(now, name)}",
                    hint="start a new run",
                )
