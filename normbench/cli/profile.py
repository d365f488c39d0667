"""``normbench profile``: where the bytes go, kernel by kernel, and how far that explains the time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from normbench.cli import axes
from normbench.cli.beginning import start
from normbench.cli.neighbours import Sharing
from normbench.cli.plan_command import saving_of
from normbench.cli.request import request_for
from normbench.errors import UsageError

EXAMPLES = """\b
Examples:
  normbench profile
  normbench profile --widths 256 4096 --dtype bf16 --impls eager-rmsnorm nn-rmsnorm
  normbench profile --widths 256 4096 --save-plan profile.toml --dry-run
  normbench profile --plan profile.toml --dtype bf16
  normbench profile --serve
  normbench profile --serve --run reports/20260101T120000Z-my-gpu
"""

_WIDTHS, _ROWS, _SECONDS = (256,), (2048,), 3.0


def profile(
    ctx: typer.Context,
    widths: Annotated[
        list[str],
        typer.Option("--widths", "--width", metavar="N...", help="Widths: numbers and ranges 256:8192:x2. [256]"),
    ] = [],  # noqa: B006 - Typer copies it
    rows: Annotated[
        list[str], typer.Option("--rows", metavar="N...", help="Rows of x: numbers and ranges. [2048]")
    ] = [],  # noqa: B006 - Typer copies it
    dtypes: axes.Dtypes = [],  # noqa: B006 - Typer copies it
    param_dtypes: axes.ParamDtypes = [],  # noqa: B006 - Typer copies it
    autocasts: axes.Autocasts = [],  # noqa: B006 - Typer copies it
    impls: axes.Impls = [],  # noqa: B006 - Typer copies it
    modes: axes.Modes = [],  # noqa: B006 - Typer copies it
    caches: axes.Caches = [],  # noqa: B006 - Typer copies it
    baseline: axes.Baseline = None,
    eps: axes.Eps = None,
    compile_mode: axes.CompileMode = None,
    counters: Annotated[
        bool, typer.Option("--counters/--no-counters", help="Read hardware counters, where that works. [yes]")
    ] = True,
    device: axes.DeviceName = None,
    max_seconds: Annotated[float | None, typer.Option(help="Time budget of a cell's timing. [3]")] = None,
    case_timeout: axes.CaseTimeout = None,
    no_isolate: axes.NoIsolate = None,
    share_device: axes.ShareDevice = False,
    wait: axes.Wait = False,
    seed: axes.Seed = None,
    plan: axes.PlanFile = None,
    save_plan: axes.SavePlan = None,
    out: axes.Out = None,
    dry_run: axes.DryRun = False,
    as_json: axes.AsJson = False,
    quiet: axes.Quiet = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Then show the traces in TensorBoard, until Ctrl-C.")
    ] = False,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="With --serve: show the traces of this run folder, and profile nothing."),
    ] = None,
) -> None:
    """Count bytes, kernels and memory of every implementation, and time it beside: by default at 2048x256.

    The run folder is that of a sweep, with traffic.csv, kernels.csv and traces beside. Each count is a pass of
    its own; times are taken before, in one process, three seconds a cell unless told.
    """
    del plan  # it has been read: see PlanCommand
    if run is not None and not serve:
        raise UsageError("--run shows what is there, and needs --serve", hint="add it, or leave --run out to profile")
    if run is None:
        sharing = Sharing(what="profile", share=share_device, wait=wait)
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
            case_timeout=case_timeout,
            no_isolate=no_isolate,
            profile=True,
            counters=counters,
        )
        request = replace(
            request,
            widths=request.widths or _WIDTHS,
            rows=request.rows or _ROWS,
            max_seconds=request.max_seconds or _SECONDS,
            processes=1,
        )
        saving = saving_of(ctx, save_plan, device)
        run = start(request, device, out, sharing, saving=saving, dry_run=dry_run, as_json=as_json, quiet=quiet)
    if serve and run is not None:
        from normbench.cli.serving import serve_traces

        serve_traces(run)
