"""What norms alone predict of a step against what was measured, as shares of the baseline's step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from normbench import prediction, units
from normbench.prediction import Difference, Prediction
from normbench.records import Part, StepCell, StepRun
from normbench.reporters.plots import axes as axis_of
from normbench.reporters.plots import step_panels
from normbench.reporters.plots.figure import DPI, columns_of, fit, panels, renderer
from normbench.reporters.plots.styles import MUTED, Style
from normbench.reporters.statements import clipped

_APART = 0.14


def make(figure: Figure, run: StepRun) -> None:
    """Draw every cell of which there is a prediction."""
    by_cell: dict[StepCell, list[Prediction]] = {}
    for found in prediction.of_run(run):
        by_cell.setdefault(found.cell, []).append(found)
    cells = list(by_cell)[: step_panels.MOST_PANELS]
    axes, style = panels(figure, len(cells)), step_panels.styles_of(run)
    for axis, cell in zip(axes, cells, strict=True):
        _draw(axis, by_cell[cell], _step(run, cell), style)
        step_panels.label(axis, step_panels.title(cell), step_panels.missing(run, [cell]))
    axes[0].yaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10]))
    axes[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _position: _percent(value)))
    baseline = clipped(run.header.plan.baseline)
    axes[0].set_ylabel(f"difference ÷ the step with {baseline}")
    right = _legend(figure, axes[columns_of(len(axes)) - 1])
    notes = f"above 0: the step takes longer - {step_panels.subtitle(run, cells)}"
    heading = "What the norms alone predict of a step, and what was measured"
    fit(figure, axes, heading, f"{notes}{step_panels.left_out(len(by_cell) - len(cells))}", right)


def _step(run: StepRun, cell: StepCell) -> float:
    return run.results_by_cell[cell][run.header.plan.baseline].times[Part.STEP].value


def _percent(value: float) -> str:
    return f"{'+' if value > 0 else ''}{units.percent(value)}" if abs(value) > 1e-9 else "0"


def _draw(axis: Axes, found: Sequence[Prediction], step: float, style: Mapping[str, Style]) -> None:
    axis.axhline(0, color=MUTED, lw=0.8)
    for position, each in enumerate(found):
        look = style[each.candidate]
        _bar(axis, position - _APART, each.predicted, step, look, is_filled=False)
        _bar(axis, position + _APART, each.measured, step, look, is_filled=True)
    axis.set_xlim(-0.6, len(found) - 0.4)
    names = [clipped(each.candidate) for each in found]
    axis.set_xticks(range(len(found)), names, rotation=40, ha="right", rotation_mode="anchor")
    axis_of.grid(axis)
    axis.grid(visible=False, axis="x")


def _bar(axis: Axes, x: float, found: Difference, step: float, look: Style, *, is_filled: bool) -> None:
    value = found.value_s / step
    axis.errorbar(
        x,
        value,
        yerr=[[value - found.low_s / step], [found.high_s / step - value]],
        color=look.colour,
        marker=look.marker,
        mfc=look.colour if is_filled else "none",
        ms=5.5,
        capsize=2.5,
        lw=1.4,
        ls="",
    )


def _legend(figure: Figure, axis: Axes) -> float:
    """Say what is hollow and what is filled, to the right of a panel; the width of that in inches."""
    hollow, filled = (Line2D([], [], color=MUTED, marker="o", mfc=face, ls="", ms=5.5) for face in ("none", MUTED))
    made = axis.legend(
        [hollow, filled], ["predicted", "measured"], loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False
    )
    return float(made.get_window_extent(renderer(figure)).width) / DPI + 0.2
