"""What a plan of steps will take: the models, their memory, the time. Printed by ``--dry-run``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from normbench import traffic, units
from normbench.cli import estimate
from normbench.implementations import Catalog
from normbench.records import DeviceInfo, ModelShape, Op, Plan, StepCell, StepPlan, StepRun, TrainingPlan

if TYPE_CHECKING:
    from normbench.device import Device

_CHECK_S = 1.0
_COMPILE_S = {False: 2.0, True: 10.0}
_FIRST_COMPILE_S = 12.0
_PARTS = 1.5
"""Of a cell's budget: the whole steps, and half of it more for their parts."""
_OPERATIONS_PER_S = {"cpu": 1.5e11, "cuda": 5e13}
"""That small models reach, roughly: only to have some time left to show at first."""


_RUN_S, _LEAST_STEP_S = 2.0, 0.01
"""Checking the norms of a run before and after, and what a step takes however small the model is."""


def cell_seconds(plan: StepPlan, cell: StepCell, compiled: int) -> float:
    """What a cell takes where it does not settle early, in seconds.

    Args:
        plan: What is asked for.
        cell: The cell.
        compiled: How many of the implementations are compiled.
    """
    count = len(plan.implementations)
    compiling = (count + 1 if cell.compiled else compiled) * _COMPILE_S[cell.compiled]
    return count * 2 * _CHECK_S + compiling + _PARTS * plan.budget(cell).max_seconds


def training_seconds(training: TrainingPlan, variants: int, device: DeviceInfo) -> float:
    """A rough guess of what training takes; the first steps correct it."""
    step_s = training.shape.operations / _OPERATIONS_PER_S[device.kind]
    evaluations = len(training.evaluations()) * training.held_out_batches / 3
    return variants * len(training.seeds) * (_RUN_S + (training.steps + evaluations) * max(step_s, _LEAST_STEP_S))


def show(plan: StepPlan, norms: Plan | None, device: Device, catalog: Catalog, *, as_json: bool) -> None:
    """Print models, memory and time; measure nothing."""
    from normbench.cli.output import emit, json_text, results
    from normbench.limits import usable
    from normbench.reporters.terminal import say

    free = device.free_bytes()
    needs = {cell: traffic.step_bytes(cell, len(plan.implementations) + 1) for cell in plan.cells}
    seconds = _seconds(
        plan, [cell for cell, need in needs.items() if need <= usable(free)], norms, device.info, catalog
    )
    models = [cell.shape for cell in plan.cells] or ([plan.training.shape] if plan.training else [])
    if as_json:
        listed = [{**vars(shape), "parameters": shape.parameters(Op.LAYERNORM)} for shape in models]
        emit(json_text({"models": listed, "implementations": list(plan.implementations), "seconds": seconds}))
        return
    with results() as out:
        for cell in plan.cells:
            beyond = ", more than there is: out_of_memory" if needs[cell] > usable(free) else ""
            say(out, f"{cell}: {_size(cell.shape)}, {units.size(needs[cell])}{beyond}")
        if plan.training is not None:
            training = plan.training
            runs = units.count(len(training.seeds) * len(plan.implementations), "run")
            say(out, f"{training.steps} steps × {runs} of a model of {_size(training.shape)}")
            for corpus in training.corpora:
                held = units.size(corpus.held_out_bytes)
                say(out, f"{corpus.name}: {units.size(corpus.train_bytes)} to train on, {held} held out")
        say(out, f"{units.count(len(plan.implementations), 'variant')}: {', '.join(plan.implementations)}")
        say(out, f"memory: {units.size(free)} available")
        say(out, f"time: about {units.time_left(seconds)} on {device.info.name}")


def show_left(run: StepRun, *, as_json: bool) -> None:
    """Print what a run lacks; measure nothing."""
    from normbench.cli.output import emit, json_text, results
    from normbench.reporters.terminal import say

    models = [str(cell) for cell in run.missing]
    runs = [{"seed": seed, "implementation": name} for seed, name in run.untrained]
    if as_json:
        emit(json_text({"missing": models, "untrained": runs}))
        return
    with results() as out:
        for model in models:
            say(out, f"to be measured: {model}")
        for one in runs:
            say(out, f"to be trained: {one['implementation']}, seed {one['seed']}")
        count = units.count(len(models) + len(runs), "piece")
        say(out, f"{count} of work left on {run.header.device.name}" if models or runs else "nothing is left to do")


def _seconds(
    plan: StepPlan, fitting: Sequence[StepCell], norms: Plan | None, device: DeviceInfo, catalog: Catalog
) -> float:
    if plan.training is not None:
        return training_seconds(plan.training, len(plan.implementations), device)
    compiled = estimate.compiled(plan.implementations, catalog)
    found = sum(cell_seconds(plan, cell, compiled) for cell in fitting)
    if norms is not None:
        found += len(list(norms.cells())) * estimate.cell_seconds(norms, catalog) + _FIRST_COMPILE_S
    return min(found, plan.precision.total_seconds or found)


def _size(shape: ModelShape) -> str:
    return f"{shape.parameters(Op.LAYERNORM):,} parameters, {units.count(shape.norms, 'norm')}"
