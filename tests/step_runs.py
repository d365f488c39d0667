"""Builders of small synthetic runs of steps and of training, none of which needs torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from normbench import verdict
from normbench.records import (
    PRESETS,
    Cache,
    Corpus,
    DType,
    Estimate,
    Flag,
    Mode,
    ModelShape,
    Op,
    Outcome,
    Part,
    Reason,
    Run,
    Status,
    StepCell,
    StepComparison,
    StepHeader,
    StepNoise,
    StepPlan,
    StepResult,
    StepRun,
    TrainingCurve,
    TrainingPlan,
    TrainingPoint,
)
from tests.runs import around, make_device, make_environment, make_info, make_plan, make_run

NAMES = (
    "eager-layernorm",
    "eager-rmsnorm",
    "nn-layernorm",
    "nn-rmsnorm",
    "compile-layernorm",
    "compile-rmsnorm",
)
"""The implementations of a run of steps, unless told."""

BASELINE = "nn-layernorm"

Ratios = Mapping[str, float | Status]
"""Per implementation the time of its step ÷ the baseline's, or the status it ended with."""

RATIOS: Ratios = {
    "eager-layernorm": 1.12,
    "eager-rmsnorm": 1.087,
    "nn-layernorm": 1.0,
    "nn-rmsnorm": 1.002,
    "compile-layernorm": 1.015,
    "compile-rmsnorm": 0.94,
}
"""Two are longer, one makes no difference, one is undecided, one shorter."""

_PARTS = {Part.FORWARD: 0.3, Part.BACKWARD: 0.55, Part.OPTIMIZER: 0.12}


def make_cell(width: int = 256, **changes: Any) -> StepCell:
    """The tiny model in float32, of another width where told."""
    shape = changes.pop("shape", replace(PRESETS["tiny"], width=width))
    return StepCell(**{"shape": shape, "dtype": DType.FP32, **changes})


CELLS = tuple(make_cell(width, compiled=compiled) for compiled in (False, True) for width in (256, 512))
"""Eager and compiled, at two widths each."""


def make_step_plan(**changes: Any) -> StepPlan:
    """One eager cell, six implementations."""
    return StepPlan(**{"cells": (make_cell(),), "implementations": NAMES, **changes})


def make_step_header(plan: StepPlan | None = None, **changes: Any) -> StepHeader:
    """The header of a run of steps on some CPU."""
    plan = plan or make_step_plan()
    fields: dict[str, Any] = {
        "created_utc": "2026-01-02T03:04:05Z",
        "command": ("normbench", "step", "--device", "cpu", "--widths", "256", "--impls", *plan.implementations),
        "plan": plan,
        "device": make_device(),
        "environment": make_environment(),
        "implementations": tuple(make_info(name) for name in plan.implementations),
    }
    return StepHeader(**{**fields, **changes})


def baseline_time(cell: StepCell) -> float:
    """Seconds of the baseline's step: longer the wider the model, shorter where it is compiled."""
    return 0.1 * (cell.shape.width / 256) ** 1.5 * (0.7 if cell.compiled else 1.0)


def make_step_result(cell: StepCell, name: str, ratio: float | Status, **changes: Any) -> StepResult:
    """A variant whose step took ``ratio`` times the baseline's, or that ended with that status."""
    op = make_info(name).op
    fields: dict[str, Any] = {
        "cell": cell,
        "implementation": name,
        "parameters": cell.shape.parameters(op),
        "norm_parameters": cell.shape.norm_parameters(op),
    }
    if isinstance(ratio, Status):
        fields |= {"status": ratio, "reason": "because"}
    else:
        step = ratio * baseline_time(cell)
        times = {part: around(share * step) for part, share in _PARTS.items()}
        fields |= {
            "status": Status.OK,
            "times": {Part.STEP: around(step), **times},
            "samples": 40,
            "placements": 10,
            "compile_s": 3.0 if cell.compiled or name.startswith("compile") else None,
            "peak_memory_bytes": 50 * 2**20,
            "saved_bytes": (40 if op is Op.LAYERNORM else 42) * 2**20,
            "max_rel_error": 2e-7,
        }
    return StepResult(**{**fields, **changes})


def make_step_comparison(
    cell: StepCell, name: str, ratios: Ratios, plan: StepPlan, spread: float = 0.007
) -> StepComparison:
    """A candidate against the baseline, with the outcome that its interval allows."""
    mine, base = ratios.get(name, Status.NOT_RUN), ratios.get(plan.baseline, Status.NOT_RUN)
    speedup, outcome, reason = None, Outcome.UNDECIDED, Reason.NO_CANDIDATE
    if isinstance(base, Status):
        reason = Reason.NO_BASELINE
    elif not isinstance(mine, Status):
        speedup = around(base / mine, spread)
        outcome, reason = verdict.judge(speedup, plan.precision.margin)
    return StepComparison(
        cell=cell, baseline=plan.baseline, candidate=name, speedup=speedup, outcome=outcome, reason=reason
    )


def make_step_run(
    plan: StepPlan | None = None,
    ratios: Ratios | Callable[[StepCell], Ratios] = RATIOS,
    cells: Iterable[StepCell] | None = None,
    alone: Run | None = None,
    spread: float = 0.007,
    **changes: Any,
) -> StepRun:
    """A run of steps in which variants took ``ratios`` of the baseline's time; ``cells`` are those it got to."""
    plan = plan or make_step_plan()
    done = tuple(plan.cells if cells is None else cells)
    of_cell = {cell: ratios(cell) if callable(ratios) else ratios for cell in done}
    return StepRun(
        header=make_step_header(plan, **changes),
        results=tuple(
            make_step_result(cell, name, of_cell[cell].get(name, Status.NOT_RUN))
            for cell in done
            for name in plan.implementations
        ),
        comparisons=tuple(
            make_step_comparison(cell, name, of_cell[cell], plan, spread)
            for cell in done
            for name in plan.implementations
            if name != plan.baseline
        ),
        noise=tuple(
            StepNoise(cell=cell, implementation=plan.baseline, ratio=Estimate(value=1.0004, low=0.997, high=1.0038))
            for cell in done
            if not isinstance(of_cell[cell].get(plan.baseline, Status.NOT_RUN), Status)
        ),
        alone=alone,
    )


def make_alone(plan: StepPlan, factors: Mapping[str, float] | None = None) -> Run:
    """The norms of a plan's cells by themselves: the baseline's take a tenth of its eager step together.

    Args:
        plan: Of the steps.
        factors: The time of each implementation's norm ÷ the baseline's.
    """
    factors = factors or {"eager-layernorm": 2.2, "eager-rmsnorm": 1.87, "nn-rmsnorm": 1.02, "compile-rmsnorm": 0.7}
    shapes = list(dict.fromkeys(cell.shape for cell in plan.cells))
    own = make_plan(
        widths=tuple(sorted({shape.width for shape in shapes})),
        rows=(shapes[0].rows,),
        modes=(Mode.FORWARD_BACKWARD,),
        caches=(Cache.WARM,),
        implementations=("copy", *plan.implementations),
    )
    by_width = {shape.width: baseline_time(make_cell(shape=shape)) * 0.1 / shape.norms for shape in shapes}
    return make_run(
        own,
        lambda cell: {
            name: by_width[cell.width] * (0.2 if name == "copy" else factors.get(name, 1.0))
            for name in own.implementations
        },
    )


def complete_run() -> StepRun:
    """Six implementations, two widths, eager and compiled, the norms alone; the answer changes with the width."""

    def ratios(cell: StepCell) -> Ratios:
        narrow = {"compile-rmsnorm": 0.94} if cell.shape.width == 256 else {"compile-rmsnorm": 1.001}
        return {**RATIOS, **narrow} if not cell.compiled else {**RATIOS, "eager-rmsnorm": 1.003, **narrow}

    plan = make_step_plan(cells=CELLS)
    command = ("normbench", "step", "--device", "cpu", "--widths", "256", "512", "--compile-model")
    run = make_step_run(plan, ratios, alone=make_alone(plan), command=command)
    flags = {"eager-rmsnorm": (Flag.DRIFTED,), "nn-rmsnorm": (Flag.COMPOSITE, Flag.FEW_SAMPLES)}
    return replace(run, results=tuple(replace(r, flags=flags.get(r.implementation, ())) for r in run.results))


def failed_run() -> StepRun:
    """One gives wrong results, one does not run here, one ran out of memory; the cell is complete."""
    statuses = {
        "eager-layernorm": Status.OUT_OF_MEMORY,
        "nn-rmsnorm": Status.INCORRECT,
        "compile-rmsnorm": Status.UNSUPPORTED,
    }
    return make_step_run(ratios={**RATIOS, **statuses})


def empty_run() -> StepRun:
    """Interrupted before its first cell was over."""
    return make_step_run(make_step_plan(cells=CELLS), cells=())


def make_training_plan(**changes: Any) -> TrainingPlan:
    """400 steps from three seeds on two corpora."""
    fields: dict[str, Any] = {
        "shape": ModelShape(width=256, layers=4, heads=8, vocabulary=256),
        "dtype": DType.FP32,
        "steps": 400,
        "seeds": (0, 1, 2),
        "evaluate_every": 50,
        "held_out_batches": 16,
        "corpora": (
            Corpus(name="code", train_bytes=9 * 2**20, held_out_bytes=2**20, digest="00" * 32),
            Corpus(name="prose", train_bytes=600 * 2**10, held_out_bytes=70 * 2**10, digest="11" * 32),
        ),
    }
    return TrainingPlan(**{**fields, **changes})


def make_curve(
    name: str, seed: int, end: float, training: TrainingPlan, until: int | None = None, **changes: Any
) -> TrainingCurve:
    """A curve that falls from 8 bits per byte to ``end``, up to step ``until``."""
    points, middle = [], (len(training.corpora) - 1) / 2
    for step in training.evaluations():
        if until is not None and step > until:
            break
        bits = end + (8.0 - end) * (1 - step / training.steps) ** 4
        points.append(
            TrainingPoint(
                step=step,
                train_bits_per_byte=bits - 0.02 if step else None,
                bits_per_byte=bits,
                by_corpus=tuple(
                    bits + 0.2 * (place - middle) / max(1, 2 * middle) for place in range(len(training.corpora))
                ),
            )
        )
    return TrainingCurve(implementation=name, seed=seed, points=tuple(points), **changes)


ENDS: Mapping[str, tuple[float, ...]] = {
    "nn-layernorm": (2.10, 2.14, 2.18),
    "nn-rmsnorm": (2.1013, 2.141, 2.1815),
    "eager-rmsnorm": (2.30, 2.345, 2.38),
}
"""Held-out bits per byte after the last step by seed: one is as good as the baseline, one worse."""


def training_run(ends: Mapping[str, tuple[float, ...]] = ENDS, **changes: Any) -> StepRun:
    """Training that is complete."""
    training = make_training_plan(**changes)
    names = tuple(name for name in NAMES if name in ends)
    plan = make_step_plan(cells=(), implementations=names, training=training)
    command = ("normbench", "step", "--device", "cpu", "--train", "400", "--seeds", "3")
    curves = tuple(
        make_curve(name, seed, end, training)
        for seed, place in zip(training.seeds, range(len(training.seeds)), strict=True)
        for name in names
        for end in ends[name][place : place + 1]
    )
    return StepRun(header=make_step_header(plan, command=command), curves=curves)
