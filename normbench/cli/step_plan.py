"""From what was asked of ``step`` to plans: of the steps, of the norms alone, and the command that says it all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import sqrt

from normbench.cli.heading import command_line
from normbench.cli.plan import Request, number, plan_for, words_of
from normbench.errors import UsageError
from normbench.implementations import Catalog, default_names
from normbench.records import (
    LEAST_PLACEMENTS,
    PRESETS,
    Brought,
    Corpus,
    DeviceInfo,
    DType,
    Mode,
    ModelShape,
    Operation,
    Optimizer,
    Plan,
    Precision,
    StepCell,
    StepPlan,
    TrainingPlan,
)

_BYTES = 256
_TINY_S = {"cpu": 120.0, "cuda": 30.0}
"""Time budget of the whole steps of the tiny model; of others by the root of how much more theirs compute."""
_MOST_S = 1800.0
_QUICK_SHARE = 1 / 6
_PLACEMENTS = 10
_TRAINED = ("nn-layernorm", "nn-rmsnorm")
_SEEDS, _EVALUATIONS, _HELD_OUT_BATCHES = 3, 16, 32
_QUICK_STEPS, _QUICK_EVALUATIONS, _QUICK_HELD_OUT_BATCHES = 40, 2, 8
_LEAST_APART = 5
"""Steps between two evaluations: closer together they would take longer than the steps."""
_WARM_UP = 40
_OF_WARMING_UP = 4
"""No more than this part of all steps goes into warming up."""


@dataclass(frozen=True, kw_only=True)
class StepRequest:
    """What the command line says; None or empty where it is silent."""

    preset: str | None = None
    widths: tuple[int, ...] = ()
    layers: int | None = None
    heads: int | None = None
    batch: int | None = None
    context: int | None = None
    dtypes: tuple[DType, ...] = ()
    autocasts: tuple[DType | None, ...] = ()
    optimizer: Optimizer | None = None
    untied: bool = False
    compile_model: bool = False
    implementations: tuple[str, ...] = ()
    brought: tuple[Brought, ...] = ()
    baseline: str | None = None
    eps: float | None = None
    seed: int | None = None
    placements: int | None = None
    target: float | None = None
    max_seconds: float | None = None
    total_seconds: float | None = None
    train: int | None = None
    seeds: int | None = None
    quick: bool = False


def step_plan(request: StepRequest, device: DeviceInfo, catalog: Catalog, corpora: Sequence[Corpus] = ()) -> StepPlan:
    """The plan that answers a request on a device.

    Args:
        request: What was asked for.
        device: Decides the defaults: on a CPU the tiny model in float32, on a GPU the medium one under autocast.
        catalog: Every implementation there is, the floor first.
        corpora: What models are trained on, where they are.

    Raises:
        UsageError: No plan can be like that.
    """
    try:
        return (
            _training_plan(request, device, catalog, corpora)
            if request.train
            else _timing_plan(request, device, catalog)
        )
    except ValueError as error:
        raise UsageError(str(error), hint="see normbench step --help") from error


def norm_plan(plan: StepPlan, device: DeviceInfo, catalog: Catalog) -> Plan:
    """The sweep of the norms alone, in the shapes that they have in the models of a plan."""
    shape = plan.cells[0].shape
    asked = Request(
        widths=tuple(dict.fromkeys(cell.shape.width for cell in plan.cells)),
        rows=(shape.rows,),
        dtypes=tuple(dict.fromkeys(cell.dtype for cell in plan.cells)),
        autocasts=tuple(dict.fromkeys(cell.autocast for cell in plan.cells)),
        modes=(Mode.FORWARD_BACKWARD,),
        implementations=plan.implementations,
        brought=plan.brought,
        baseline=plan.baseline,
        eps=plan.eps,
        seed=plan.seed,
        max_seconds=3.0 if plan.quick else None,
        processes=1 if plan.quick else None,
    )
    return plan_for(asked, device, catalog.of(Operation.NORM).names)


def _timing_plan(request: StepRequest, device: DeviceInfo, catalog: Catalog) -> StepPlan:
    cells = tuple(_cells(request, device))
    return StepPlan(
        cells=cells,
        implementations=_implementations(
            request, catalog, default_names([one.name for one in catalog.norms], device)
        ),
        brought=request.brought,
        precision=_precision(request, device, cells),
        baseline=request.baseline or StepPlan.baseline,
        eps=request.eps or StepPlan.eps,
        seed=request.seed or StepPlan.seed,
        quick=request.quick,
    )


def _training_plan(request: StepRequest, device: DeviceInfo, catalog: Catalog, corpora: Sequence[Corpus]) -> StepPlan:
    first, *others = _cells(request, device)
    if others:
        raise UsageError(
            "--train takes one model in one format",
            hint="name one width, dtype and autocast, without --compile-model",
        )
    asked, seeds = request.train or 1, request.seeds or _SEEDS
    steps = min(asked, _QUICK_STEPS) if request.quick else asked
    evaluations = _QUICK_EVALUATIONS if request.quick else _EVALUATIONS
    begin = request.seed or 0
    training = TrainingPlan(
        shape=replace(first.shape, vocabulary=_BYTES),
        dtype=first.dtype,
        autocast=first.autocast,
        steps=steps,
        seeds=tuple(range(begin, begin + seeds)),
        evaluate_every=min(steps, max(_LEAST_APART, steps // evaluations)),
        held_out_batches=_QUICK_HELD_OUT_BATCHES if request.quick else _HELD_OUT_BATCHES,
        warm_up=min(_WARM_UP, max(1, steps // _OF_WARMING_UP)),
        corpora=tuple(corpora),
    )
    return StepPlan(
        implementations=_implementations(request, catalog, _TRAINED),
        brought=request.brought,
        training=training,
        baseline=request.baseline or StepPlan.baseline,
        eps=request.eps or StepPlan.eps,
        seed=request.seed or StepPlan.seed,
        quick=request.quick,
    )


def _implementations(request: StepRequest, catalog: Catalog, default: Sequence[str]) -> tuple[str, ...]:
    wanted = {*(request.implementations or default), request.baseline or StepPlan.baseline}
    return tuple(one.name for one in catalog.norms if one.name in wanted)


def _cells(request: StepRequest, device: DeviceInfo) -> Iterator[StepCell]:
    """Every model in every format, the eager one before the compiled one."""
    on_cpu = device.kind == "cpu"
    shape = PRESETS[request.preset or ("tiny" if on_cpu else "medium")]
    reduced = DType.BF16 if device.native_bf16 else DType.FP16
    by_default = None if on_cpu or request.dtypes else reduced
    axes = product(
        request.dtypes or (DType.FP32,),
        request.autocasts or (by_default,),
        request.widths or (shape.width,),
        (False, True) if request.compile_model else (False,),
    )
    for dtype, autocast, width, compiled in axes:
        yield StepCell(
            shape=_shape(request, replace(shape, heads=_heads(request, shape, width), width=width)),
            dtype=dtype,
            autocast=autocast,
            compiled=compiled,
            optimizer=request.optimizer or Optimizer.ADAMW,
        )


def _heads(request: StepRequest, preset: ModelShape, width: int) -> int:
    heads = request.heads or preset.heads
    if width % heads:
        raise UsageError(
            f"--widths, --heads: {width} can't be shared by {heads} heads", hint="name a multiple, or other --heads"
        )
    return heads


def _shape(request: StepRequest, shape: ModelShape) -> ModelShape:
    return replace(
        shape,
        layers=request.layers or shape.layers,
        batch=request.batch or shape.batch,
        context=request.context or shape.context,
        tied=not request.untied,
    )


def _precision(request: StepRequest, device: DeviceInfo, cells: Sequence[StepCell]) -> Precision:
    seconds = request.max_seconds or _budget(device, cells) * (_QUICK_SHARE if request.quick else 1.0)
    return Precision(
        placements=request.placements or (LEAST_PLACEMENTS if request.quick else _PLACEMENTS),
        target=request.target or Precision.target,
        max_seconds=seconds,
        total_seconds=request.total_seconds,
    )


def _budget(device: DeviceInfo, cells: Sequence[StepCell]) -> float:
    """By what a step of the largest computes: a longer one is disturbed less, and needs fewer of them."""
    largest = max(cell.shape.operations for cell in cells)
    times = sqrt(largest / PRESETS["tiny"].operations) if device.kind == "cpu" else 1.0
    return min(_MOST_S, round(_TINY_S[device.kind] * max(1.0, times)))


def step_command(plan: StepPlan, device: str) -> tuple[str, ...]:
    """The command that repeats a plan, every default spelled out, and no path in it."""
    options = _training_options(plan.training) if plan.training else _timing_options(plan)
    options |= {
        "--impls": words_of(plan.implementations, plan.brought),
        "--baseline": (plan.baseline,),
        "--eps": (number(plan.eps),),
        "--seed": (plan.seed,),
    }
    if plan.quick:
        options["--quick"] = ()
    return command_line("step", device, options)


def _timing_options(plan: StepPlan) -> dict[str, tuple[object, ...]]:
    cells, precision = plan.cells, plan.precision
    found: dict[str, tuple[object, ...]] = {
        "--widths": tuple(dict.fromkeys(cell.shape.width for cell in cells)),
        **_model_options(cells[0].shape),
        "--dtypes": tuple(dict.fromkeys(cell.dtype for cell in cells)),
        "--autocasts": tuple(dict.fromkeys(cell.autocast or "off" for cell in cells)),
        "--optimizer": (cells[0].optimizer,),
        "--placements": (precision.placements,),
        "--target": (number(precision.target),),
        "--max-seconds": (number(precision.max_seconds),),
    }
    if any(cell.compiled for cell in cells):
        found["--compile-model"] = ()
    if precision.total_seconds is not None:
        found["--total-seconds"] = (number(precision.total_seconds),)
    return found


def _training_options(training: TrainingPlan) -> dict[str, tuple[object, ...]]:
    named = [corpus.name for corpus in training.corpora if corpus.is_file]
    return {
        "--train": (training.steps,),
        "--seeds": (len(training.seeds),),
        **({"--text": tuple(named)} if named else {}),
        "--widths": (training.shape.width,),
        **_model_options(training.shape),
        "--dtypes": (training.dtype,),
        "--autocasts": (training.autocast or "off",),
    }


def _model_options(shape: ModelShape) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {
        "--layers": (shape.layers,),
        "--heads": (shape.heads,),
        "--batch": (shape.batch,),
        "--context": (shape.context,),
    }
    return found if shape.tied else {**found, "--untied": ()}
