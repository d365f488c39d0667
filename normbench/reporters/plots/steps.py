"""The pictures of a run of steps as PNG and SVG files: ratios, parts, predicted against measured, learning curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from normbench import prediction
from normbench.records import Status, StepRun


def planned(run: StepRun) -> list[str]:
    """The names of the pictures that a run has, without extension."""
    timed = any(result.status is Status.OK for result in run.results)
    names = ["step"] if any(comparison.speedup for comparison in run.comparisons) else []
    names += ["step-parts"] if timed else []
    names += ["prediction"] if any(True for _ in prediction.of_run(run)) else []
    if run.header.plan.training is not None and any(curve.points for curve in run.curves):
        names += ["training", "training-difference"]
    return names


def draw(run: StepRun) -> Iterator[tuple[str, bytes]]:
    """Each picture as ``NAME.png`` and ``NAME.svg`` with its content."""
    from normbench.reporters.plots import figure, learning, step_parts, step_prediction, step_ratios  # matplotlib

    makers: dict[str, Callable[..., None]] = {
        "step": step_ratios.make,
        "step-parts": step_parts.make,
        "prediction": step_prediction.make,
        "training": learning.make,
        "training-difference": learning.make_difference,
    }
    for name in planned(run):
        for extension, data in figure.files(partial(makers[name], run=run)):
            yield f"{name}.{extension}", data
