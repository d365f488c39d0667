"""The parts of a step, timed apart, as a stack for each implementation, and the whole step beside them."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from normbench import units
from normbench.records import Part, StepCell, StepResult, StepRun
from normbench.reporters.plots import axes as axis_of
from normbench.reporters.plots import step_panels
from normbench.reporters.plots.figure import DPI, columns_of, fit, panels, renderer
from normbench.reporters.plots.styles import INK
from normbench.reporters.statements import clipped

_COLOURS = {Part.FORWARD: "#88CCEE", Part.BACKWARD: "#44AA99", Part.OPTIMIZER: "#DDCC77"}
"""Of Tol's muted colours, told apart by colour-blind readers too."""

_ROOM = 1.05


def make(figure: Figure, run: StepRun) -> None:
    """Draw the parts in every cell that has times."""
    every = [cell for cell in run.results_by_cell if _timed(run, cell)]
    cells = every[: step_panels.MOST_PANELS]
    axes = panels(figure, len(cells))
    most = max(max(_height(result) for result in _timed(run, cell)) for cell in cells)
    axes[0].set_ylim(0, most * _ROOM)
    for axis, cell in zip(axes, cells, strict=True):
        _stack(axis, _timed(run, cell))
        step_panels.label(axis, step_panels.title(cell), step_panels.missing(run, [cell]))
    axes[0].yaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
    axes[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _position: units.duration(value) if value else "0"))
    axes[0].set_ylabel("time of one call")
    right = _legend(figure, axes[columns_of(len(axes)) - 1])
    notes = f"{step_panels.subtitle(run, cells)}{step_panels.left_out(len(every) - len(cells))}"
    fit(figure, axes, "The parts of a step, timed apart, and the whole step", notes, right)


def _timed(run: StepRun, cell: StepCell) -> list[StepResult]:
    """The results of a cell that have a time, in the plan's order."""
    results = run.results_by_cell[cell]
    names = [name for name in run.header.plan.implementations if name in results]
    return [results[name] for name in names if Part.STEP in results[name].times]


def _height(result: StepResult) -> float:
    parts = sum(estimate.value for part, estimate in result.times.items() if part is not Part.STEP)
    step = result.times[Part.STEP]
    return max(parts, step.high or step.value)


def _stack(axis: Axes, results: list[StepResult]) -> None:
    for position, result in enumerate(results):
        bottom = 0.0
        for part, colour in _COLOURS.items():
            estimate = result.times.get(part)
            if estimate is not None:
                axis.bar(position, estimate.value, bottom=bottom, color=colour, edgecolor="#ffffff", lw=0.4)
                bottom += estimate.value
        step = result.times[Part.STEP]
        low, high = step.low or step.value, step.high or step.value
        axis.errorbar(
            position,
            step.value,
            yerr=[[step.value - low], [high - step.value]],
            color=INK,
            marker="D",
            ms=4,
            capsize=2.5,
            lw=1.2,
            ls="",
        )
    axis.set_xlim(-0.6, len(results) - 0.4)
    names = [clipped(result.implementation) for result in results]
    axis.set_xticks(range(len(results)), names, rotation=40, ha="right", rotation_mode="anchor")
    axis_of.grid(axis)
    axis.grid(visible=False, axis="x")


def _legend(figure: Figure, axis: Axes) -> float:
    """Name the parts to the right of a panel, the topmost first; the width of that in inches."""
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in reversed(_COLOURS.values())]
    whole = Line2D([], [], color=INK, marker="D", ms=4, ls="")
    names = [str(part) for part in reversed(_COLOURS)]
    made = axis.legend(
        [whole, *handles],
        ["the whole step", *names],
        loc="center left",
        bbox_to_anchor=(1.02, 0.5),
        frameon=False,
    )
    return float(made.get_window_extent(renderer(figure)).width) / DPI + 0.2
