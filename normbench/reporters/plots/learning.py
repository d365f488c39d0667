"""Held-out curves of training: a thin line for each seed, the mean over them, and the seeds' noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean, stdev

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from normbench import units
from normbench.records import Status, StepRun, TrainingPlan
from normbench.reporters import colours, steps_learning
from normbench.reporters.plots import axes as axis_of
from normbench.reporters.plots import labels, step_panels
from normbench.reporters.plots.figure import fit, panels
from normbench.reporters.plots.labels import End
from normbench.reporters.plots.styles import MUTED, Style
from normbench.reporters.statements import clipped

Curve = Mapping[int, float]
"""Held-out bits per byte, or a difference of them, by step."""

Curves = Mapping[str, Mapping[int, Curve]]
"""By implementation and seed."""


def make(figure: Figure, run: StepRun) -> None:
    """Draw held-out bits per byte over the steps."""
    found = _curves(run)
    (axis,) = panels(figure, 1)
    every = (bits for seeds in found.values() for curve in seeds.values() for bits in curve.values())
    values = [bits for bits in every if bits > 0] or [1.0]  # a logarithm has no place for 0
    axis_of.limit_values(axis, values, values, 0)
    axis_of.scale_values(axis, lambda value, digits: units.significant(value, max(digits, 2)))
    axis.set_ylabel("held-out bits per byte")
    baseline = found.get(run.header.plan.baseline, {})
    _band(axis, baseline, lambda curves: mean(curves))
    _finish(figure, axis, run, found, "Held-out bits per byte while training")


def make_difference(figure: Figure, run: StepRun) -> None:
    """Draw how far each candidate is from the baseline of the same seed, and how far the seeds are apart."""
    found, name = _curves(run), run.header.plan.baseline
    baseline = found.get(name, {})
    differences = {
        candidate: {seed: _less(curve, baseline[seed]) for seed, curve in seeds.items() if seed in baseline}
        for candidate, seeds in found.items()
        if candidate != name
    }
    (axis,) = panels(figure, 1)
    axis.axhline(0, color=MUTED, lw=0.8)
    _band(axis, baseline, lambda _curves: 0.0)
    axis.yaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
    axis.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _position: units.bits(value, signed=True) if value else "0")
    )
    axis.set_ylabel(f"bits per byte less {clipped(name)}'s")
    _finish(figure, axis, run, differences, f"Held-out bits per byte less those of {clipped(name)}, seed by seed")


def _curves(run: StepRun) -> Curves:
    """The curves that have points, in the plan's order."""
    found: dict[str, dict[int, Curve]] = {name: {} for name in run.header.plan.implementations}
    for curve in run.curves:
        if curve.points and curve.implementation in found:
            found[curve.implementation][curve.seed] = {p.step: p.bits_per_byte for p in curve.points}
    return found


def _less(curve: Curve, other: Curve) -> Curve:
    return {step: bits - other[step] for step, bits in curve.items() if step in other}


def _band(axis: Axes, seeds: Mapping[int, Curve], around: Callable[[Sequence[float]], float]) -> None:
    """Shade the standard deviation of the baseline's seeds at each step, around their mean or around 0."""
    by_step = {step: values for step, values in _by_step(seeds).items() if len(values) > 1}
    if by_step:
        middle = [around(values) for values in by_step.values()]
        noise = [stdev(values) for values in by_step.values()]
        lows, highs = ([m + side * n for m, n in zip(middle, noise, strict=True)] for side in (-1, 1))
        axis.fill_between(list(by_step), lows, highs, color=colours.FLOOR.hex, alpha=0.25, lw=0)


def _by_step(seeds: Mapping[int, Curve]) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for curve in seeds.values():
        for step, value in curve.items():
            found.setdefault(step, []).append(value)
    return dict(sorted(found.items()))


def _mean(seeds: Mapping[int, Curve]) -> Curve:
    """The mean over the seeds, as far as all of them got."""
    return {step: mean(values) for step, values in _by_step(seeds).items() if len(values) == len(seeds)}


def _finish(figure: Figure, axis: Axes, run: StepRun, found: Curves, heading: str) -> None:
    """The lines of every implementation, their names and the titles."""
    training = run.header.plan.training
    assert training is not None
    style = step_panels.styles_of(run)
    for name, seeds in found.items():
        _lines(axis, name, seeds, style[name])
    axis_of.grid(axis)
    axis.set_xlim(0, training.steps)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    step_panels.label(axis, "training step", _missing(run, training))
    axis.set_ylim(axis.get_ylim())
    ends = [_end(name, seeds, style[name], training.steps) for name, seeds in found.items()]
    right = labels.room(axis, ends)
    several = len(training.seeds) > 1
    noise = " - shaded: the standard deviation of the baseline's seeds" if several else ""
    lines = ": thin; their mean: thick" if several else ""
    notes = f"{steps_learning.described(training)}{lines} - {clipped(run.header.device.name)}{noise}"
    fit(figure, [axis], heading, notes, right)
    labels.place(axis, ends)


def _lines(axis: Axes, name: str, seeds: Mapping[int, Curve], look: Style) -> None:
    for curve in seeds.values():
        axis.plot(list(curve), list(curve.values()), color=look.colour, lw=0.6, alpha=0.6)
    middle = _mean(seeds)
    axis.plot(list(middle), list(middle.values()), color=look.colour, lw=1.8, ls=look.dashes, label=name)


def _end(name: str, seeds: Mapping[int, Curve], look: Style, steps: int) -> End:
    middle = _mean(seeds)
    last = max(middle, default=None)
    return End(
        name=clipped(name) + ("" if last == steps else " (no end)"),
        style=look,
        y=None if last is None else middle[last],
        x=last,
    )


def _missing(run: StepRun, training: TrainingPlan) -> str:
    """Who has no end, and why."""
    failed = [
        f"{clipped(c.implementation)}, seed {c.seed} ({c.status})" for c in run.curves if c.status is not Status.OK
    ]
    waiting = [f"{units.count(len(run.untrained), 'run')} not at step {training.steps}"] if run.untrained else []
    said = "; ".join([*failed, *waiting])
    return f"without an end: {said}" if said else ""
