"""``normbench sweep``: the main job. Parse, make a plan, run it, write the run folder, print the summary."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normbench.cli import estimate, options
from normbench.cli.plan import Request, command, plan_for
from normbench.errors import IncompleteError, UsageError
from normbench.implementations import NAMES, chosen
from normbench.implementations.compiled import COMPILE_MODES
from normbench.records import LEAST_PLACEMENTS, Cache, DType, Mode, Plan, Run, RunHeader, Status

if TYPE_CHECKING:
    from normbench.device import Device
    from normbench.storage import RunFolder

EXAMPLES = """\b
Examples:
  normbench sweep --quick
  normbench sweep --widths 256 512 4096 --dtype bf16
  normbench sweep --widths 256:16384:x2 --modes forward-backward --rows 8192
  normbench sweep --impls nn-rmsnorm compile-rmsnorm --param-dtype fp32 --dtype bf16
  normbench sweep --resume reports/20260101T120000Z-my-gpu
"""

_MEASURING = "Measuring"
_OUTPUT = "Output"
_DTYPES = "|".join(DType)
_MOST_PROCESSES = 40


def sweep(
    widths: Annotated[
        list[str],
        typer.Option(
            "--widths",
            "--width",
            metavar="N...",
            help="Widths: numbers and ranges 256:8192:x2. [CPU: 256 1024 4096; GPU: 256:16384:x2]",
        ),
    ] = [],  # noqa: B006 - Typer copies it
    rows: Annotated[
        list[str], typer.Option("--rows", metavar="N...", help="Rows of x: numbers and ranges. [CPU: 512; GPU: 4096]")
    ] = [],  # noqa: B006
    dtypes: Annotated[
        list[str],
        typer.Option(
            "--dtypes", "--dtype", metavar=f"{_DTYPES}...", help="Dtypes of x; torch's names too. [fp32 bf16]"
        ),
    ] = [],  # noqa: B006
    param_dtypes: Annotated[
        list[str],
        typer.Option(
            "--param-dtypes", "--param-dtype", metavar=f"same|{_DTYPES}...", help="Dtypes of gain and bias. [same]"
        ),
    ] = [],  # noqa: B006
    autocasts: Annotated[
        list[str],
        typer.Option("--autocasts", "--autocast", metavar="off|bf16|fp16...", help="Run under autocast. [off]"),
    ] = [],  # noqa: B006
    impls: Annotated[
        list[str],
        typer.Option(
            "--impls",
            "--impl",
            metavar="NAME...",
            help="Implementations; see `list`. Baseline and floor come along. [all]",
        ),
    ] = [],  # noqa: B006
    modes: Annotated[
        list[str],
        typer.Option("--modes", "--mode", metavar=f"{options.metavar(Mode)}...", help="Passes. [forward backward]"),
    ] = [],  # noqa: B006
    caches: Annotated[
        list[str],
        typer.Option(
            "--caches", "--cache", metavar="cold|warm...", help="Cache state. [cold on a GPU, warm on a CPU]"
        ),
    ] = [],  # noqa: B006
    baseline: Annotated[str | None, typer.Option(help="What ratios are taken against. [nn-layernorm]")] = None,
    eps: Annotated[float | None, typer.Option(help="Added inside the root, the same for all. [1e-6]")] = None,
    compile_mode: Annotated[
        str | None, typer.Option(metavar="|".join(COMPILE_MODES), help="Mode of torch.compile. [default]")
    ] = None,
    graphs: Annotated[
        bool, typer.Option("--graphs", help="On a GPU also time captured CUDA graphs, where capture works.")
    ] = False,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or cuda:N. [the GPU if there is one]")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="An answer in about a minute: two widths, one dtype.")
    ] = False,
    placements: Annotated[
        int | None, typer.Option(help="The least number of placements. [10]", rich_help_panel=_MEASURING)
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            help="Fresh processes that the placements are spread over: 1, or 5 and more. [CPU: 5; GPU, --quick: 1]",
            rich_help_panel=_MEASURING,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Stop a cell when every speedup is known this well. [1%]", rich_help_panel=_MEASURING),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            help="Time budget of a cell, compiling and checking apart. [CPU: 10; GPU: 6]", rich_help_panel=_MEASURING
        ),
    ] = None,
    total_seconds: Annotated[
        float | None,
        typer.Option(help="Time budget of the sweep, shared among its cells. [none]", rich_help_panel=_MEASURING),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of values, order and padding. [0]")] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new folder. [reports/TIME-DEVICE]", rich_help_panel=_OUTPUT)
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Go on with this run folder: measure what is missing.", rich_help_panel=_OUTPUT),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print cells, memory and time; measure nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print results and comparisons as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Time every implementation over widths, dtypes and passes, and say which to use.

    Results go to a run folder (CSV files, plots, verdict.md) and a summary to stdout; progress goes to stderr.
    """
    request = Request(
        widths=options.sizes("--widths", widths),
        rows=options.sizes("--rows", rows),
        dtypes=options.many("--dtypes", dtypes, options.dtype),
        parameter_dtypes=options.many(
            "--param-dtypes", param_dtypes, lambda o, v: options.optional_dtype(o, v, "same")
        ),
        autocasts=options.many("--autocasts", autocasts, _autocast),
        modes=options.many("--modes", modes, lambda option, value: options.choice(option, Mode, value)),
        caches=options.many("--caches", caches, lambda option, value: options.choice(option, Cache, value)),
        implementations=options.many("--impls", impls, _implementation),
        baseline=None if baseline is None else _baseline(baseline),
        eps=None if eps is None else options.above_zero("--eps", eps),
        compile_mode=None if compile_mode is None else _compile_mode(compile_mode),
        graphs=graphs,
        seed=seed,
        placements=None if placements is None else _placements(placements),
        processes=None if processes is None else _processes(processes),
        target=None if target is None else options.fraction("--target", target),
        max_seconds=None if max_seconds is None else options.above_zero("--max-seconds", max_seconds),
        total_seconds=None if total_seconds is None else options.above_zero("--total-seconds", total_seconds),
        quick=quick,
    )
    if resume is not None:
        if not request.is_silent or out is not None:
            raise UsageError(
                "--resume takes its plan from the folder", hint="leave the other options of the plan out"
            )
        _resume(resume, device, dry_run=dry_run, as_json=as_json, quiet=quiet)
    else:
        _start(request, device, out, dry_run=dry_run, as_json=as_json, quiet=quiet)


def _start(
    request: Request, device_name: str | None, out: Path | None, *, dry_run: bool, as_json: bool, quiet: bool
) -> None:
    if out is not None and _exists(out):
        raise UsageError(f"--out {out}: exists, and no run is ever overwritten", hint="name a new folder")
    from normbench.device import detect

    device = detect(device_name)
    if request.graphs and device.info.kind == "cpu":
        raise UsageError("--graphs: a CPU has no CUDA graphs", hint="leave it out, or name a GPU with --device")
    plan = plan_for(request, device.info, NAMES)
    if dry_run:
        estimate.show(plan, list(plan.cells()), device, as_json=as_json)
        return
    from normbench.storage import RunFolder

    header = _header(plan, device)
    _run(RunFolder.create(out or _new_path(device.info.slug), header), device, as_json=as_json, quiet=quiet)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long a name, or a folder that may not be looked into: making it will say so
        return False


def _resume(path: Path, device_name: str | None, *, dry_run: bool, as_json: bool, quiet: bool) -> None:
    from normbench.device import detect
    from normbench.storage import RunFolder, load, read_header

    header = read_header(path)
    device = detect(device_name or _device_of(header))
    _refuse_another_machine(header, _header(header.plan, device))
    if dry_run:
        estimate.show(header.plan, list(load(path).missing), device, as_json=as_json)
        return
    _run(RunFolder.reopen(path), device, as_json=as_json, quiet=quiet)


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


def _run(folder: RunFolder, device: Device, *, as_json: bool, quiet: bool) -> None:
    """Measure what is missing, write it cell by cell, and report whatever the end is."""
    from normbench.cli.measuring import prepared
    from normbench.cli.progress import SweepProgress
    from normbench.reporters.console import console

    plan, done = folder.header.plan, folder.done()
    cells = len(list(plan.cells())) - len(done)
    interrupted = False
    cell_s = estimate.cell_seconds(plan)
    with SweepProgress(console(sys.stderr), cells=cells, cell_s=cell_s, quiet=quiet) as progress:
        try:
            with prepared(plan, device, progress, cells=cells) as work:
                for records in work.run(done):
                    folder.write(records)
                    progress.cell_done(records)
        except KeyboardInterrupt:
            interrupted = True
            _write_not_run(folder)
    run = folder.load()
    if run.is_complete:
        folder.compress_samples()  # before anything is printed: whoever reads that may have gone
    _report(folder, run, as_json=as_json, quiet=quiet)
    _finish(folder, run, interrupted=interrupted)


def _write_not_run(folder: RunFolder) -> None:
    from normbench.conclusion import without_times

    for cell in folder.load().missing:
        folder.write(without_times(cell, folder.header.plan, Status.NOT_RUN, "interrupted before it"))


def _report(folder: RunFolder, run: Run, *, as_json: bool, quiet: bool) -> None:
    from normbench.cli.output import emit, results
    from normbench.cli.report import write_reports
    from normbench.reporters.console import show
    from normbench.storage import as_dictionary

    write_reports(folder, run)
    if as_json:
        found = {"folder": folder.path.name, "complete": run.is_complete, **as_dictionary(run)}
        emit(json.dumps(found, indent=1) + "\n")
    else:
        with results() as out:
            show(run, out)
    if not quiet:
        print(f"written: {folder.path}/ (read verdict.md first)", file=sys.stderr)


def _finish(folder: RunFolder, run: Run, *, interrupted: bool) -> None:
    from normbench.reporters import statements

    if interrupted:
        print(f"interrupted; go on with: normbench sweep --resume {folder.path}", file=sys.stderr)
        raise KeyboardInterrupt
    if not run.is_complete:
        raise IncompleteError(statements.missing(run), hint=f"normbench sweep --resume {folder.path}")
    if not run.has_times:
        raise IncompleteError(
            "nothing could be measured", hint="the reasons are in the table above and in results.csv"
        )


def _header(plan: Plan, device: Device) -> RunHeader:
    from normbench.device import environment

    return RunHeader(
        created_utc=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        command=command(plan, str(device.torch_device)),
        plan=plan,
        device=device.info,
        environment=environment(device),
        implementations=tuple(implementation.info for implementation in chosen(plan.implementations)),
    )


def _new_path(slug: str) -> Path:
    path = Path("reports") / f"{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}-{slug}"
    numbered = (path.with_name(f"{path.name}-{number}") for number in range(2, 100))
    return path if not path.exists() else next(p for p in numbered if not p.exists())


def _implementation(option: str, value: str) -> str:
    return options.one_of(option, NAMES, value, "implementation")


def _baseline(value: str) -> str:
    return options.one_of("--baseline", NAMES[1:], value, "implementation")


def _compile_mode(value: str) -> str:
    return options.one_of("--compile-mode", COMPILE_MODES, value, "mode")


def _placements(value: int) -> int:
    if value < LEAST_PLACEMENTS:
        hint = f"allowed: {LEAST_PLACEMENTS} and more, since an interval needs that many"
        raise UsageError(f"--placements: {value} is too few", hint=hint)
    return value


def _processes(value: int) -> int:
    if value != 1 and not LEAST_PLACEMENTS <= value <= _MOST_PROCESSES:
        hint = f"allowed: 1, and {LEAST_PLACEMENTS} to {_MOST_PROCESSES}, since the interval is taken over processes"
        raise UsageError(f"--processes: {value} is not possible", hint=hint)
    return value


def _autocast(option: str, value: str) -> DType | None:
    found = options.optional_dtype(option, value, "off")
    if found is DType.FP32:
        raise UsageError(f"{option}: {value!r} is no autocast dtype", hint="allowed: off, bf16, fp16")
    return found
