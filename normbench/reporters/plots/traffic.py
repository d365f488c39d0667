"""Bytes by op, as a profile counted them by shapes: a stack for each implementation, the floor as a line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MultipleLocator

from normbench import traffic, units
from normbench.records import CaseProfile, Cell, OpTraffic, Run
from normbench.reporters import statements
from normbench.reporters.plots.choice import Picture
from normbench.reporters.plots.figure import DPI, HEIGHT, columns_of, fit, panels, renderer, text_width, width_of
from normbench.reporters.plots.styles import INK, REST
from normbench.reporters.statements import clipped

_COLOURS = ("#332288", "#88CCEE", "#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499")
"""Tol's muted colours, told apart by colour-blind readers too."""

_MOST_PARTS = 8
_MOST_TICKS = 8
_OTHERS = "other ops"
_FLOOR = "floor: the least"
_SIZE = 8.0
_ABOVE = 0.17
_BAR = 0.6


def make(figure: Figure, run: Run, picture: Picture) -> None:
    """Draw the bytes by op of the largest of the picture's cells, for each dtype."""
    cells = _largest(picture.cells)
    by_cell = {cell: [p for p in run.profiles if p.case.cell == cell] for cell in cells}
    colours = _colours([profile for profiles in by_cell.values() for profile in profiles])
    bars = max(len(profiles) for profiles in by_cell.values())
    axes = panels(figure, len(cells), _BAR * bars)
    floors = {cell: traffic.floor_bytes(run.header.info(run.header.plan.baseline).op, cell) for cell in cells}
    widest = max(text_width(figure, _sum(p), _SIZE) for profiles in by_cell.values() for p in profiles)
    upright = widest > width_of(axes[0]) / (bars + 0.2)
    most = max(*floors.values(), *(p.op_bytes or 0 for profiles in by_cell.values() for p in profiles))
    high = _ABOVE + (widest if upright else 0)
    axes[0].set_ylim(0, most / (1 - high / HEIGHT))
    for axis, (cell, profiles) in zip(axes, by_cell.items(), strict=True):
        _stack(axis, profiles, colours)
        axis.axhline(floors[cell], color=INK, lw=1.2, ls="--")
        _sums(axis, profiles, floors[cell], upright=upright)
        what = f"{statements.describe_operation(cell)}{cell.size} {statements.describe_rest(cell)}"
        axis.set_xlabel(f"{what} ({cell.dtype})")
    _scale(axes[0])
    axes[0].set_ylabel("op bytes of one call")
    right = _legend(figure, axes[columns_of(len(axes)) - 1], colours)
    notes = f"{picture.cells[0].mode} - {clipped(run.header.device.name)}"
    fit(figure, axes, "Bytes read and written by each op, by their shapes", notes, right)


def _largest(cells: Sequence[Cell]) -> list[Cell]:
    """For each combination of dtypes the largest cell."""
    by_dtype: dict[object, list[Cell]] = {}
    for cell in cells:
        by_dtype.setdefault((cell.dtype, cell.parameter_dtype, cell.autocast), []).append(cell)
    return [max(group, key=lambda cell: cell.elements) for group in by_dtype.values()]


def _colours(profiles: Sequence[CaseProfile]) -> dict[str, str]:
    """A colour for each of the ops that move most; the rest share one."""
    sums: dict[str, int] = {}
    for profile in profiles:
        for op in profile.ops:
            sums[_part(op)] = sums.get(_part(op), 0) + op.bytes
    names = sorted(sums, key=lambda name: -sums[name])
    shown = dict(zip(names[:_MOST_PARTS], _COLOURS, strict=False))
    return shown | ({_OTHERS: REST} if len(names) > _MOST_PARTS else {})


def _part(op: OpTraffic) -> str:
    """What an op is called in the legend: generated kernels by their number alone."""
    return f"generated {op.name.partition(':')[0]}" if op.name.startswith("kernel ") else op.name


def _stack(axis: Axes, profiles: Sequence[CaseProfile], colours: Mapping[str, str]) -> None:
    for position, profile in enumerate(profiles):
        parts: dict[str, int] = {}
        for op in profile.ops:
            name = _part(op) if _part(op) in colours else _OTHERS
            parts[name] = parts.get(name, 0) + op.bytes
        bottom = 0
        for name, size in parts.items():
            axis.bar(position, size, bottom=bottom, color=colours[name], edgecolor="#ffffff", lw=0.4)
            bottom += size
    axis.set_xlim(-0.6, len(profiles) - 0.4)
    names = [clipped(profile.case.implementation) for profile in profiles]
    axis.set_xticks(range(len(profiles)), names, rotation=40, ha="right", rotation_mode="anchor")


def _sum(profile: CaseProfile) -> str:
    return units.size(profile.op_bytes) if profile.op_bytes is not None else "not counted"


def _sums(axis: Axes, profiles: Sequence[CaseProfile], floor: float, *, upright: bool) -> None:
    """The sum over each stack, and over the line of the floor where they would touch."""
    line = axis.get_ylim()[1] * _ABOVE / HEIGHT
    for position, profile in enumerate(profiles):
        top = profile.op_bytes or 0
        axis.annotate(
            *(_sum(profile), (position, floor if floor - line < top <= floor else top)),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            size=_SIZE,
            rotation=90 if upright else 0,
        )


def _scale(axis: Axes) -> None:
    step = 2 ** max(0, math.ceil(math.log2(max(axis.get_ylim()[1], 1) / _MOST_TICKS)))
    axis.yaxis.set_major_locator(MultipleLocator(step))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: units.size(value) if value else "0"))


def _legend(figure: Figure, axis: Axes, colours: Mapping[str, str]) -> float:
    """Name the ops to the right of a panel; the width of that in inches."""
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    line = Line2D([], [], color=INK, lw=1.2, ls="--")
    names = [clipped(name) for name in colours]
    made = axis.legend(
        [*handles, line], [*names, _FLOOR], loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False
    )
    return float(made.get_window_extent(renderer(figure)).width) / DPI + 0.2
