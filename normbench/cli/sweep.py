"""``normbench sweep``: the main job. Parse, make a plan, run it, write the run folder, print the summary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from normbench.cli import axes
from normbench.cli.beginning import start
from normbench.cli.neighbours import Sharing
from normbench.cli.plan_command import saving_of
from normbench.cli.request import request_for
from normbench.cli.resuming import resume as go_on
from normbench.errors import UsageError

EXAMPLES = """\b
Examples:
  normbench sweep --quick
  normbench sweep --widths 256 512 4096 --dtype bf16
  normbench sweep --widths 256:16384:x2 --modes forward-backward --rows 8192
  normbench sweep --impls nn-rmsnorm compile-rmsnorm --param-dtype fp32 --dtype bf16
  normbench sweep --impls my_norms.py:FusedRMSNorm nn-rmsnorm
  normbench sweep --widths 256:4096:x2 --save-plan widths.toml --dry-run
  normbench sweep --plan widths.toml --dtype bf16
  normbench sweep --impl base=kernels/rms.py:rmsnorm@main head=kernels/rms.py:rmsnorm --fail-on slower:5%
  normbench sweep --operation add-norm --dtype bf16
  normbench sweep --resume reports/20260101T120000Z-my-gpu
  normbench sweep --resume reports/20260101T120000Z-my-gpu --widths 256 512 4096 8192 --force
"""


def sweep(
    ctx: typer.Context,
    widths: axes.Widths = [],  # noqa: B006 - Typer copies it
    rows: axes.Rows = [],  # noqa: B006 - Typer copies it
    dtypes: axes.Dtypes = [],  # noqa: B006 - Typer copies it
    param_dtypes: axes.ParamDtypes = [],  # noqa: B006 - Typer copies it
    autocasts: axes.Autocasts = [],  # noqa: B006 - Typer copies it
    operation: axes.OperationName = None,
    impls: axes.Impls = [],  # noqa: B006 - Typer copies it
    modes: axes.Modes = [],  # noqa: B006 - Typer copies it
    caches: axes.Caches = [],  # noqa: B006 - Typer copies it
    baseline: axes.BaselineOfOperation = None,
    eps: axes.Eps = None,
    compile_mode: axes.CompileMode = None,
    graphs: Annotated[
        bool | None,
        typer.Option("--graphs/--no-graphs", help="On a GPU also time captured CUDA graphs, where capture works."),
    ] = None,
    profile: Annotated[
        bool | None,
        typer.Option(
            "--profile/--no-profile", help="Also count bytes, kernels and memory of every case; see `profile`."
        ),
    ] = None,
    counters: Annotated[
        bool | None,
        typer.Option(
            "--counters/--no-counters", help="Also read hardware counters for the profile: seconds a case, on a GPU."
        ),
    ] = None,
    device: axes.DeviceName = None,
    quick: Annotated[
        bool | None, typer.Option("--quick/--no-quick", help="An answer in a minute or two: two widths, one dtype.")
    ] = None,
    placements: axes.Placements = None,
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
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="slower[:5%]",
            help="Exit with 1 where what you bring is slower than the baseline by an estimate of more than this "
            "(2% unless said), decided for all cells together, or is incorrect, failed, timed_out or out_of_memory "
            "where the baseline has a time; with 3 where that can't be told.",
        ),
    ] = None,
    case_timeout: axes.CaseTimeout = None,
    no_isolate: axes.NoIsolate = None,
    share_device: axes.ShareDevice = False,
    wait: axes.Wait = False,
    seed: axes.Seed = None,
    plan: axes.PlanFile = None,
    save_plan: axes.SavePlan = None,
    out: axes.Out = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Go on with this run folder: measure what is missing", rich_help_panel=axes.OUTPUT),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Resume on other software or with more cells, and record it.",
            rich_help_panel=axes.OUTPUT,
        ),
    ] = False,
    dry_run: axes.DryRun = False,
    as_json: axes.AsJson = False,
    quiet: axes.Quiet = False,
) -> None:
    """Time every implementation over widths, dtypes and passes, and say which to use.

    Results go to a run folder (CSV files, plots, verdict.md) and a summary to stdout; progress goes to stderr.
    """
    del plan  # it has been read: see PlanCommand
    sharing = Sharing(what="sweep", share=share_device, wait=wait)
    request = request_for(
        widths=widths,
        rows=rows,
        dtypes=dtypes,
        param_dtypes=param_dtypes,
        autocasts=autocasts,
        operation=operation,
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
        fail_on=fail_on,
        case_timeout=case_timeout,
        no_isolate=no_isolate,
        graphs=graphs,
        profile=profile,
        counters=counters,
        quick=quick,
    )
    if resume is not None:
        if out is not None:
            raise UsageError("--resume writes into the run's own folder", hint="leave --out out")
        if save_plan is not None:
            raise UsageError("--save-plan is of a new run", hint="leave it out: the run's plan is in its run.json")
        go_on(resume, request, device, sharing, force=force, dry_run=dry_run, as_json=as_json, quiet=quiet)
    else:
        if force:
            raise UsageError("--force is of --resume", hint="leave it out: a new run has nothing to go against")
        saving = saving_of(ctx, save_plan, device)
        start(request, device, out, sharing, saving=saving, dry_run=dry_run, as_json=as_json, quiet=quiet)
