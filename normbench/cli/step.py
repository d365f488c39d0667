"""``normbench step``: the same question inside a training step, and whether the model learns as well."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from normbench.cli import axes, bringing, options, request
from normbench.cli.neighbours import Sharing
from normbench.cli.step_plan import StepRequest
from normbench.cli.stepping import resume as go_on
from normbench.cli.stepping import start
from normbench.errors import UsageError
from normbench.implementations import catalog
from normbench.records import MOST_SEEDS, PRESETS, Optimizer

EXAMPLES = """\b
Examples:
  normbench step
  normbench step --quick --impls eager-rmsnorm
  normbench step --widths 256 512 1024 --compile-model
  normbench step --preset medium --dtype fp32 --autocast bf16
  normbench step --train 400 --seeds 3
  normbench step --train 400 --text corpus.txt --impls nn-rmsnorm compile-rmsnorm
  normbench step --resume reports/20260101T120000Z-my-gpu
"""

_MODEL = "Model"
_TRAINING = "Training"
_MOST = 10**6


def step(
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(PRESETS),
            help="Sizes: tiny is 256 wide with 4 layers, small 512, 6, medium 1024, 8. [CPU: tiny; GPU: medium]",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    widths: Annotated[
        list[str],
        typer.Option(
            "--widths",
            "--width",
            metavar="N...",
            help="Widths of model and norms: numbers and ranges 256:1024:x2. [the preset's]",
            rich_help_panel=_MODEL,
        ),
    ] = [],  # noqa: B006 - Typer copies it
    layers: Annotated[int | None, typer.Option(help="Blocks, of two norms each.", rich_help_panel=_MODEL)] = None,
    heads: Annotated[
        int | None, typer.Option(help="Of attention; they share the width.", rich_help_panel=_MODEL)
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Sequences of a step. [8]", rich_help_panel=_MODEL)] = None,
    context: Annotated[int | None, typer.Option(help="Tokens of a sequence. [256]", rich_help_panel=_MODEL)] = None,
    untied: Annotated[
        bool, typer.Option("--untied", help="A head of its own, not the embedding.", rich_help_panel=_MODEL)
    ] = False,
    optimizer: Annotated[
        str | None, typer.Option(metavar=options.metavar(Optimizer), help="[adamw]", rich_help_panel=_MODEL)
    ] = None,
    dtypes: Annotated[
        list[str],
        typer.Option(
            "--dtypes",
            "--dtype",
            metavar="DTYPE...",
            help="Of all parameters: fp32, bf16, fp16. [fp32]",
            rich_help_panel=_MODEL,
        ),
    ] = [],  # noqa: B006 - Typer copies it
    autocasts: Annotated[
        list[str],
        typer.Option(
            "--autocasts",
            "--autocast",
            metavar="off|bf16|fp16...",
            help="Run the forward under autocast. [CPU: off; GPU: bf16 unless --dtype is there]",
            rich_help_panel=_MODEL,
        ),
    ] = [],  # noqa: B006 - Typer copies it
    compile_model: Annotated[
        bool,
        typer.Option("--compile-model", help="Measure the model compiled as a whole too.", rich_help_panel=_MODEL),
    ] = False,
    impls: Annotated[
        list[str],
        typer.Option(
            "--impls",
            "--impl",
            metavar="NAME...",
            help="Implementations of the norms; see `list`. [all; with --train: nn-rmsnorm]",
        ),
    ] = [],  # noqa: B006 - Typer copies it
    baseline: axes.Baseline = None,
    eps: axes.Eps = None,
    train: Annotated[
        int | None,
        typer.Option(
            metavar="STEPS", help="Train every variant on bytes, so many steps, instead.", rich_help_panel=_TRAINING
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="With --train: runs of each variant. [3]", rich_help_panel=_TRAINING)
    ] = None,
    text: Annotated[
        list[str],
        typer.Option(
            "--text",
            metavar="FILE...",
            help="With --train: what to train on. [Python's own source, and its manual's topics]",
            rich_help_panel=_TRAINING,
        ),
    ] = [],  # noqa: B006 - Typer copies it
    device: axes.DeviceName = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="An answer in about two minutes: less time, at most 40 training steps.")
    ] = False,
    placements: axes.Placements = None,
    target: Annotated[
        str | None,
        typer.Option(help="Stop a cell when every ratio is known this well. [1%]", rich_help_panel=axes.MEASURING),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            help="Time budget of the largest model's whole steps; half more goes to their parts. [by the model]",
            rich_help_panel=axes.MEASURING,
        ),
    ] = None,
    total_seconds: Annotated[
        float | None,
        typer.Option(
            help="Time budget of everything, shared among the cells. [none]", rich_help_panel=axes.MEASURING
        ),
    ] = None,
    share_device: axes.ShareDevice = False,
    wait: axes.Wait = False,
    seed: Annotated[int | None, typer.Option(help="Of weights, tokens, order and padding. [0]")] = None,
    out: axes.Out = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Go on with this folder: measure or train what is missing", rich_help_panel=axes.OUTPUT),
    ] = None,
    dry_run: axes.DryRun = False,
    as_json: axes.AsJson = False,
    quiet: axes.Quiet = False,
) -> None:
    """Time the training step of a small model with every norm in it, and say what swapping them does to it.

    Ratios of whole steps, of forward, backward and optimizer; tokens a second, memory, the norms' share, and what
    the norms alone would have said. With --train instead: does the model learn as well?
    """
    sharing = Sharing(what="step", share=share_device, wait=wait)
    there = catalog().names
    named = bringing.impls("--impls", impls, there[1:])
    asked = StepRequest(
        preset=None if preset is None else options.one_of("--preset", list(PRESETS), preset, "preset"),
        widths=options.sizes("--widths", widths),
        layers=_size("--layers", layers),
        heads=_size("--heads", heads),
        batch=_size("--batch", batch),
        context=_size("--context", context),
        dtypes=options.many("--dtypes", dtypes, options.dtype),
        autocasts=options.many("--autocasts", autocasts, request.autocast),
        optimizer=None if optimizer is None else options.choice("--optimizer", Optimizer, optimizer),
        untied=untied,
        compile_model=compile_model,
        implementations=named.names,
        brought=named.brought,
        baseline=None if baseline is None else bringing.baseline(baseline, there, named),
        eps=None if eps is None else options.above_zero("--eps", eps),
        seed=_seed(seed),
        placements=None if placements is None else request.least_placements(placements),
        target=None if target is None else options.fraction("--target", target),
        max_seconds=None if max_seconds is None else options.above_zero("--max-seconds", max_seconds),
        total_seconds=None if total_seconds is None else options.above_zero("--total-seconds", total_seconds),
        train=_size("--train", train),
        seeds=_size("--seeds", seeds, MOST_SEEDS),
        quick=quick,
    )
    if resume is None:
        _refuse_mixtures(asked, text)
    texts = tuple(Path(name) for name in text)
    if resume is not None:
        again = StepRequest(implementations=tuple(one.name for one in named.brought), brought=named.brought)
        if asked != again or out is not None or device is not None:
            raise UsageError(
                "--resume goes on as the run began",
                hint="leave the other options out; --text names its files again, --impls the code that it brought",
            )
        go_on(resume, texts, sharing, named.brought, dry_run=dry_run, as_json=as_json, quiet=quiet)
    else:
        start(asked, texts, device, out, sharing, dry_run=dry_run, as_json=as_json, quiet=quiet)


def _refuse_mixtures(asked: StepRequest, text: list[str]) -> None:
    """A UsageError where options of training stand without it, or those of timing with it."""
    if asked.train is None:
        of_training = {"--seeds": asked.seeds, "--text": text or None}
        for name in (name for name, value in of_training.items() if value is not None):
            raise UsageError(f"{name}: is of --train", hint="add --train STEPS, or leave it out")
        return
    if asked.optimizer is not None:
        raise UsageError("--optimizer: --train uses AdamW", hint="leave it out")
    if asked.compile_model:
        raise UsageError("--compile-model: --train trains the model as it is written", hint="leave it out")
    of_timing = {
        "--placements": asked.placements,
        "--target": asked.target,
        "--max-seconds": asked.max_seconds,
        "--total-seconds": asked.total_seconds,
    }
    for name in (name for name, value in of_timing.items() if value is not None):
        raise UsageError(f"{name}: is of timing, which --train does not do", hint="leave one of the two out")


def _size(option: str, value: int | None, most: int = _MOST) -> int | None:
    if value is not None and not 1 <= value <= most:
        raise UsageError(f"{option}: {value} is not possible", hint=f"allowed: 1 to {most}")
    return value


def _seed(value: int | None) -> int | None:
    if value is not None and not -(2**62) <= value <= 2**62:
        raise UsageError(f"--seed: {value} is not possible", hint="allowed: -2^62 to 2^62")
    return value
