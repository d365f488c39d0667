"""Options that several commands take, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from normbench.cli import options
from normbench.implementations.compiled import COMPILE_MODES
from normbench.records import DType, Mode

MEASURING = "Measuring"
OUTPUT = "Output"
_DTYPES = "|".join(DType)

Widths = Annotated[
    list[str],
    typer.Option(
        "--widths",
        "--width",
        metavar="N...",
        help="Widths: numbers and ranges 256:8192:x2. [CPU: 256 1024 4096; GPU: 256:16384:x2]",
    ),
]
Rows = Annotated[
    list[str], typer.Option("--rows", metavar="N...", help="Rows of x: numbers and ranges. [CPU: 512; GPU: 4096]")
]
Dtypes = Annotated[
    list[str],
    typer.Option("--dtypes", "--dtype", metavar=f"{_DTYPES}...", help="Dtypes of x; torch's names too. [fp32 bf16]"),
]
ParamDtypes = Annotated[
    list[str],
    typer.Option(
        "--param-dtypes", "--param-dtype", metavar=f"same|{_DTYPES}...", help="Dtypes of gain and bias. [same]"
    ),
]
Autocasts = Annotated[
    list[str],
    typer.Option("--autocasts", "--autocast", metavar="off|bf16|fp16...", help="Run under autocast. [off]"),
]
Impls = Annotated[
    list[str],
    typer.Option(
        "--impls",
        "--impl",
        metavar="NAME|[NAME=]FILE.py:ATTRIBUTE...",
        help="Implementations: of `list`, or your own. Baseline and floor come along. [all of `list`]",
    ),
]
Modes = Annotated[
    list[str],
    typer.Option("--modes", "--mode", metavar=f"{options.metavar(Mode)}...", help="Passes. [forward backward]"),
]
Caches = Annotated[
    list[str],
    typer.Option("--caches", "--cache", metavar="cold|warm...", help="Cache state. [cold on a GPU, warm on a CPU]"),
]
Baseline = Annotated[
    str | None, typer.Option(help="What ratios are taken against. [what is brought as base, else nn-layernorm]")
]
Eps = Annotated[float | None, typer.Option(help="Added inside the root, the same for all. [1e-6]")]
CompileMode = Annotated[
    str | None, typer.Option(metavar="|".join(COMPILE_MODES), help="Mode of torch.compile. [default]")
]
DeviceName = Annotated[str | None, typer.Option(help="cpu, cuda or cuda:N. [the GPU if there is one]")]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        help="Time budget of a cell, compiling and checking apart. [CPU: 10; GPU: 6]", rich_help_panel=MEASURING
    ),
]
Placements = Annotated[
    int | None, typer.Option(help="The least number of placements. [10]", rich_help_panel=MEASURING)
]
CaseTimeout = Annotated[
    float | None,
    typer.Option(
        help="Seconds that one implementation may be busy without a pause before its process is ended. [300]",
        rich_help_panel=MEASURING,
    ),
]
NoIsolate = Annotated[
    bool | None,
    typer.Option(
        "--no-isolate/--isolate",
        help="Measure in this process, for debuggers: a crash ends the run.",
        rich_help_panel=MEASURING,
    ),
]
ShareDevice = Annotated[
    bool,
    typer.Option(
        "--share-device",
        help="Measure although another run of normbench is on the device, and flag the results.",
        rich_help_panel=MEASURING,
    ),
]
Wait = Annotated[
    bool,
    typer.Option(
        "--wait",
        help="Where another run of normbench is on the device, begin when it has ended.",
        rich_help_panel=MEASURING,
    ),
]
PlanFile = Annotated[
    Path | None,
    typer.Option("--plan", help="Take from this file what is not said here; see docs/plan-file.md.", metavar="FILE"),
]
SavePlan = Annotated[
    str | None,
    typer.Option(
        "--save-plan",
        metavar="FILE",
        help="Write the plan to a new file, every default spelled out; - with --dry-run: to stdout.",
        rich_help_panel=OUTPUT,
    ),
]
Seed = Annotated[int | None, typer.Option(help="Of values, order and padding. [0]")]
Out = Annotated[Path | None, typer.Option(help="A new folder. [reports/TIME-DEVICE]", rich_help_panel=OUTPUT)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print cells, memory and time; measure nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but warnings and errors.")]
