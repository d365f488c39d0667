"""A step's time ÷ that with the baseline's norms over the width: a panel for each kind of model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normbench import units
from normbench.records import Estimate, StepCell, StepRun
from normbench.reporters import colours, steps_widths
from normbench.reporters.plots import axes as axis_of
from normbench.reporters.plots import labels, step_panels
from normbench.reporters.plots.figure import fit, panels
from normbench.reporters.plots.labels import End
from normbench.reporters.plots.styles import MUTED, Style
from normbench.reporters.statements import clipped

_BESIDE = 0.025
"""By what share of its width points lie beside each other, so that their bars do not cover each other."""

_SHOWN = 1.6
"""No more of an interval than this factor decides what is shown: a bar may leave the picture."""

Found = Mapping[str, Mapping[StepCell, Estimate]]


def make(figure: Figure, run: StepRun) -> None:
    """Draw the ratios of all cells."""
    every = [cells for cells in steps_widths.groups(run.results_by_cell) if any(_ratios(run, cells).values())]
    groups = every[: step_panels.MOST_PANELS]
    found = [_ratios(run, cells) for cells in groups]
    axes, style = panels(figure, len(groups)), step_panels.styles_of(run)
    margin = run.header.plan.precision.margin
    drawn = [ratio for of_panel in found for of_name in of_panel.values() for ratio in of_name.values()]
    lows = [max(ratio.low or ratio.value, ratio.value / _SHOWN) for ratio in drawn]
    highs = [min(ratio.high or ratio.value, ratio.value * _SHOWN) for ratio in drawn]
    axis_of.limit_values(axes[0], [*lows, 1 / (1 + margin)], [*highs, 1 + margin], 0)
    axis_of.scale_values(axes[0], lambda value, _digits: units.as_long(value))
    for axis, cells, of_panel in zip(axes, groups, found, strict=True):
        _draw(axis, cells, of_panel, style)
        axis.axhspan(1 / (1 + margin), 1 + margin, color=colours.FLOOR.hex, alpha=0.25, lw=0)
        axis.axhline(1, color=MUTED, lw=0.8)
        step_panels.label(axis, f"width ({step_panels.kind(cells[0])})", step_panels.missing(run, cells))
    baseline = clipped(run.header.plan.baseline)
    axes[0].set_ylabel(f"step time ÷ that with {baseline}")
    ends = _ends(run, groups[-1], found, style)
    right = labels.room(axes[-1], ends)
    left_out = step_panels.left_out(sum(map(len, every[len(groups) :])))
    notes = f"{step_panels.subtitle(run, groups[0])} - shaded: within {units.percent(margin)}{left_out}"
    fit(figure, axes, f"Step time ÷ that with {baseline}: above 1 is slower", notes, right)
    labels.place(axes[-1], ends)


def _ratios(run: StepRun, cells: Sequence[StepCell]) -> Found:
    """The ratios of each candidate by cell."""
    found: dict[str, dict[StepCell, Estimate]] = {info.name: {} for info in step_panels.candidates(run)}
    for cell in cells:
        for name, comparison in run.comparisons_by_cell.get(cell, {}).items():
            if comparison.as_long is not None:
                found[name][cell] = comparison.as_long
    return found


def _draw(axis: Axes, cells: Sequence[StepCell], found: Found, style: Mapping[str, Style]) -> None:
    widths = list(dict.fromkeys(cell.shape.width for cell in cells))
    beside = _step(widths) * len(found) / 2
    axis_of.scale_widths(axis, widths, beside)
    axis_of.grid(axis)
    for name, of_name in found.items():
        if of_name:
            points, look = list(of_name.items()), style[name]
            axis.errorbar(
                [_x(cell, name, found, widths) for cell, _ratio in points],
                [ratio.value for _cell, ratio in points],
                yerr=[
                    [ratio.value - (ratio.low or ratio.value) for _cell, ratio in points],
                    [(ratio.high or ratio.value) - ratio.value for _cell, ratio in points],
                ],
                label=name,
                capsize=2.5,
                lw=1.4,
                ms=5,
                color=look.colour,
                marker=look.marker,
                ls=look.dashes,
            )


def _step(widths: Sequence[int]) -> float:
    """How far apart, as a share of their width, neighbours stand: closer where widths are close."""
    closest = min((other / one - 1 for one, other in pairwise(widths)), default=1.0)
    return min(_BESIDE, _BESIDE * closest)


def _x(cell: StepCell, name: str, found: Found, widths: Sequence[int]) -> float:
    """Where a candidate's point stands: beside its width."""
    middle = (len(found) - 1) / 2
    return cell.shape.width * (1 + _step(widths) * (list(found).index(name) - middle))


def _ends(run: StepRun, last: Sequence[StepCell], found: Sequence[Found], style: Mapping[str, Style]) -> list[End]:
    """The end of each line in the last panel; one that is not there is named too."""
    widths = list(dict.fromkeys(cell.shape.width for cell in last))
    ends = []
    for name in (info.name for info in step_panels.candidates(run)):
        having = [of_panel[name] for of_panel in found if of_panel[name]]
        cell, ratio = list(having[-1].items())[-1] if having else (None, None)
        here = bool(found[-1][name])
        ends.append(
            End(
                name=clipped(name) + ("" if here else " (not here)" if having else " (no time)"),
                style=style[name],
                y=ratio.value if ratio else None,
                x=_x(cell, name, found[-1], widths) if cell and here else None,
            )
        )
    return ends
