"""A run of steps as plain data, for programs: numbers as numbers, None for what is absent."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from normbench import prediction, quality
from normbench.prediction import Prediction
from normbench.quality import Quality
from normbench.records import (
    StepComparison,
    StepHeader,
    StepNoise,
    StepResult,
    StepRun,
    TrainingCurve,
)
from normbench.reporters import steps, steps_gap
from normbench.storage.columns import estimate_values
from normbench.storage.step_columns import cell_values, comparison_values, result_values

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
        "missing": [cell_values(cell) for cell in run.missing],
        "untrained": [{"seed": seed, "implementation": name} for seed, name in run.untrained],
        "spent": vars(run.spent) if run.results else None,
    }


def _result(run: StepRun, result: StepResult) -> Values:
    info = run.header.info(result.implementation)
    return {
        **result_values(result),
        "op": info.op,
        "provider": info.provider,
        "norms_share": steps_gap.share_of(run, result.cell, result.implementation),
        "flags": list(result.flags),
    }


def _comparison(comparison: StepComparison) -> Values:
    as_long = estimate_values(comparison.as_long, "as_long", "as_long_low", "as_long_high")
    return {**comparison_values(comparison), **as_long}


def _noise(noise: StepNoise) -> Values:
    ratio = estimate_values(noise.ratio, "ratio", "ratio_low", "ratio_high")
    return {**cell_values(noise.cell), "implementation": noise.implementation, **ratio}


def _prediction(run: StepRun, found: Prediction) -> Values:
    return {
        **cell_values(found.cell),
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
