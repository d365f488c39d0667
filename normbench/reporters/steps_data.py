"""A run of steps as plain data, for programs: numbers as numbers, None for what is absent."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from normbench import prediction, quality
from normbench.prediction import Prediction
from normbench.quality import Quality
from normbench.records import (
    STEP_KEY,
    Estimate,
    Part,
    StepCell,
    StepComparison,
    StepHeader,
    StepNoise,
    StepResult,
    StepRun,
    TrainingCurve,
)
from normbench.reporters import steps, steps_gap

Values = dict[str, Any]

_HEADER = TypeAdapter(StepHeader)
_CURVE = TypeAdapter(TrainingCurve)


def as_dictionary(run: StepRun) -> Values:
    """Everything that the table and the markdown are made from."""
    header: Values = _HEADER.dump_python(run.header, mode="json")
    return {
        "complete": run.is_complete,
        **header,
        "headline": steps.headline(run),
        "results": [_result(run, result) for result in run.results],
        "comparisons": [_comparison(comparison) for comparison in run.comparisons],
        "noise": [_noise(noise) for noise in run.noise],
        "predictions": [_prediction(run, found) for found in prediction.of_run(run)],
        "curves": [_CURVE.dump_python(curve, mode="json") for curve in run.curves],
        "quality": [_quality(found) for found in quality.of_run(run)] if run.header.plan.training else [],
        "missing": [_cell(cell) for cell in run.missing],
        "untrained": [{"seed": seed, "implementation": name} for seed, name in run.untrained],
        "spent": vars(run.spent),
    }


def _cell(cell: StepCell) -> Values:
    """The cell's fields, those of its model among them, side by side."""
    fields = {**vars(cell.shape), **vars(cell)}
    return {name: None if fields[name] is None else _plain(fields[name]) for name in STEP_KEY}


def _plain(value: object) -> object:
    """A number or a truth as it is; of names their text."""
    return str(value) if isinstance(value, str) else value


def _estimate(name: str, unit: str, found: Estimate | None) -> Values:
    """An estimate's value and the ends of its interval: ``step_s``, ``step_low_s``, ``step_high_s``."""
    low, high = (found.low, found.high) if found else (None, None)
    return {
        f"{name}{unit}": found.value if found else None,
        f"{name}_low{unit}": low,
        f"{name}_high{unit}": high,
    }


def _result(run: StepRun, result: StepResult) -> Values:
    info = run.header.info(result.implementation)
    times: Values = {}
    for part in Part:
        times |= _estimate(str(part), "_s", result.times.get(part))
    return {
        **_cell(result.cell),
        "implementation": result.implementation,
        "op": str(info.op),
        "provider": info.provider,
        "status": str(result.status),
        "reason": result.reason,
        **times,
        "tokens_per_s": result.tokens_per_s,
        "samples": result.samples,
        "placements": result.placements,
        "parameters": result.parameters,
        "norm_parameters": result.norm_parameters,
        "norms_share": steps_gap.share_of(run, result.cell, result.implementation),
        "compile_s": result.compile_s,
        "peak_memory_bytes": result.peak_memory_bytes,
        "saved_bytes": result.saved_bytes,
        "max_rel_error": result.max_rel_error,
        "flags": [str(flag) for flag in result.flags],
    }


def _comparison(comparison: StepComparison) -> Values:
    return {
        **_cell(comparison.cell),
        "baseline": comparison.baseline,
        "candidate": comparison.candidate,
        **_estimate("speedup", "", comparison.speedup),
        **_estimate("as_long", "", comparison.as_long),
        "outcome": str(comparison.outcome),
        "reason": str(comparison.reason),
    }


def _noise(noise: StepNoise) -> Values:
    return {**_cell(noise.cell), "implementation": noise.implementation, **_estimate("ratio", "", noise.ratio)}


def _prediction(run: StepRun, found: Prediction) -> Values:
    return {
        **_cell(found.cell),
        "candidate": found.candidate,
        "norms": found.norms,
        "predicted": asdict(found.predicted),
        "measured": asdict(found.measured),
        "gap_s": found.gap_s,
        "gap": str(found.gap),
        "why": steps_gap.why(run, found),
    }


def _quality(found: Quality) -> Values:
    return {**asdict(found), "outcome": str(found.outcome)}
