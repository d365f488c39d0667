"""How steps were measured and on what, in sentences and rows."""

from __future__ import annotations

from normbench import stats, units
from normbench.records import Optimizer, StepRun
from normbench.reporters import steps_learning

_OPTIMIZERS = {Optimizer.ADAMW: "AdamW", Optimizer.SGD: "SGD"}


def sentences(run: StepRun) -> list[str]:
    """How it was measured, or trained."""
    training = run.header.plan.training
    return steps_learning.notes(training) if training is not None else _timing(run)


def _timing(run: StepRun) -> list[str]:
    plan = run.header.plan
    precision = plan.precision
    target, margin = units.percent(precision.target), units.percent(precision.margin)
    optimizers = units.join(list(dict.fromkeys(_OPTIMIZERS[cell.optimizer] for cell in plan.cells)))
    return [
        "A pre-norm decoder of plain torch in which the norms alone differ: the same other weights (seed "
        f"{plan.seed}), the same tokens, eps {units.plain(plan.eps)} for all.",
        f"A step is the forward with its loss, the backward, gradient clipping and the update by {optimizers}: wall "
        "time until the device is done. Its parts are timed apart, each with what comes before it outside the clock, "
        "for a sixth of the time each; they need not add up to the step.",
        f"All variants of a cell together, as in a sweep: {_placements(run)} (weights and optimizer laid out anew; "
        f"{precision.placements} to {precision.looks[-1]} are asked for), in each of them rounds that time every "
        "variant once in random order. A ratio is the median over a placement's rounds, then the geometric mean over "
        f"the middle half of the placements, its interval Student's t ({units.percent(stats.CONFIDENCE)} quantile "
        "for a nominal 95 %).",
        f"Measuring stops when every ratio is known to ±{target}, or after {precision.max_seconds:g} s a cell.",
        f"slower and faster: the interval excludes 1 and the difference exceeds {margin}; same: the interval lies "
        f"within {margin}.",
        "Before anything was timed, every norm's output and gradients inside the model were compared with a float64 "
        "reference, and a compiled model's gradients with those in float64; a wrong one has no time.",
        "Peak: the most allocated in a step above what the model and its optimizer keep. Saved: what the forward "
        "keeps for the backward. Norms' share: the time of one norm by itself, forward and backward, × the norms ÷ "
        "the step's.",
    ]


def _placements(run: StepRun) -> str:
    """How many placements the times rest on, as it was."""
    counts = sorted(result.placements for result in run.results if result.placements)
    if not counts:
        return "no placement"
    return f"{counts[0]} to {counts[-1]} placements" if counts[0] != counts[-1] else f"{counts[0]} placements"
