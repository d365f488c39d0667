"""Time, speedup or bandwidth over the width: a panel for each dtype, a line for each implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normbench import units
from normbench.records import Cell, DType, ImplementationInfo, Run
from normbench.reporters import colours, statements
from normbench.reporters.plots import axes as axis_of
from normbench.reporters.plots import labels, styles
from normbench.reporters.plots.choice import Picture
from normbench.reporters.plots.figure import HEIGHT, fit, panels
from normbench.reporters.plots.kinds import KINDS, Kind
from normbench.reporters.plots.labels import End
from normbench.reporters.plots.styles import MUTED, Style
from normbench.reporters.statements import clipped

_SHOWN = 1.6
"""No more of an interval than this factor decides what is shown: a bar may leave the picture."""

_CROSS = 0.085
_BESIDE = 0.03


@dataclass(frozen=True, kw_only=True)
class Point:
    """One value and the ends of its interval, at a width."""

    width: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What one dtype's panel shows: the cells in order of their widths, and the points of each implementation."""

    dtype: DType
    cells: Sequence[Cell]
    points: Mapping[str, Mapping[Cell, Point]]

    @property
    def drawn(self) -> list[Point]:
        """All its points."""
        return [point for of_name in self.points.values() for point in of_name.values()]

    def missing(self, cell: Cell) -> list[str]:
        """The implementations without a point in a cell."""
        return [name for name, of_name in self.points.items() if cell not in of_name]

    def beside(self, name: str) -> float:
        """The factor by which points lie beside a single width, where all bars would lie on each other."""
        middle = (len(self.points) - 1) / 2
        return 1 + _BESIDE * (list(self.points).index(name) - middle) if len(self.cells) == 1 else 1


def make(figure: Figure, run: Run, picture: Picture) -> None:
    """Draw time, speedup or bandwidth of the picture's cells."""
    kind = KINDS[picture.kind]
    shown = kind.shown(run)
    dtypes = list(dict.fromkeys(cell.dtype for cell in picture.cells))
    found = [_panel(run, kind, [c for c in picture.cells if c.dtype is dtype], shown) for dtype in dtypes]
    axes = panels(figure, len(found))
    _scale_values(axes[0], kind, found)
    style = styles.of(run)
    shaded = not kind.floor and any(panel.drawn for panel in found)
    for axis, panel in zip(axes, found, strict=True):
        _draw(axis, panel, style)
        if panel.drawn and shaded:
            margin = run.header.plan.precision.margin
            axis.axhspan(1 / (1 + margin), 1 + margin, color=colours.FLOOR.hex, alpha=0.25, lw=0)
            axis.axhline(1, color=MUTED, lw=0.8)
    axes[0].set_ylabel(clipped(kind.label.format(baseline=run.header.plan.baseline)))
    ends = _ends(found, shown, style)
    right = labels.room(axes[-1], ends)
    fit(figure, axes, *_titles(run, kind, picture, shaded=shaded), right)
    labels.place(axes[-1], ends)


def _panel(run: Run, kind: Kind, cells: Sequence[Cell], shown: Sequence[ImplementationInfo]) -> Panel:
    points: dict[str, dict[Cell, Point]] = {info.name: {} for info in shown}
    for cell in (ordered := sorted(cells, key=lambda cell: cell.width)):
        for result in run.results_by_cell.get(cell, ()):
            measured = kind.measure(run, result) if result.case.implementation in points else None
            if measured is not None:
                value, low, high = measured
                point = Point(width=cell.width, value=value, low=low or value, high=high or value)
                points[result.case.implementation][cell] = point
    return Panel(dtype=cells[0].dtype, cells=ordered, points=points)


def _scale_values(axis: Axes, kind: Kind, found: Sequence[Panel]) -> None:
    """The axis of the values, which the panels share: what is drawn, above it nothing, below it the crosses."""
    points = [point for panel in found for point in panel.drawn]
    if not points:
        axis.set_yticks([])
        return
    crosses = max(len(panel.missing(cell)) for panel in found if panel.drawn for cell in panel.cells)
    lows = [max(point.low, point.value / _SHOWN) for point in points]
    highs = [min(point.high, point.value * _SHOWN) for point in points]
    one = [] if kind.floor else [1.0]  # the baseline's own speedup
    axis_of.limit_values(axis, [*lows, *one], [*highs, *one], crosses * _CROSS)
    axis_of.scale_values(axis, kind.format)


def _draw(axis: Axes, panel: Panel, style: Mapping[str, Style]) -> None:
    count = len(panel.points) * len(panel.cells)
    missing = count - len(panel.drawn)
    note = f"; {missing} of {count} results missing" if missing else ""
    axis.set_xlabel(f"width ({panel.dtype}{note + ': ×' if note and panel.drawn else note})")
    if not panel.drawn:
        axis_of.nothing(axis)
        return
    beside = _BESIDE * len(panel.points) / 2 if len(panel.cells) == 1 else 0
    axis_of.scale_widths(axis, [cell.width for cell in panel.cells], beside)
    axis_of.grid(axis)
    for name, of_name in panel.points.items():
        if of_name:
            _line(axis, name, list(of_name.values()), panel.beside(name), style[name])
    _crosses(axis, panel, style)


def _crosses(axis: Axes, panel: Panel, style: Mapping[str, Style]) -> None:
    """Mark who has no value at a width, above each other at the bottom edge."""
    at: dict[str, list[tuple[float, float]]] = {}
    for cell in panel.cells:
        for place, name in enumerate(panel.missing(cell)):
            point = (cell.width * panel.beside(name), (place + 0.6) * _CROSS / HEIGHT)
            at.setdefault(name, []).append(point)
    for index, (name, points) in enumerate(at.items()):
        axis.plot(
            *zip(*points, strict=True),
            transform=axis.get_xaxis_transform(),
            color=style[name].colour,
            marker="x",
            ms=4.5,
            mew=1.3,
            ls="",
            clip_on=False,
            gid=f"missing-{panel.dtype}-{index}",
        )


def _line(axis: Axes, name: str, points: Sequence[Point], beside: float, style: Style) -> None:
    axis.errorbar(
        [point.width * beside for point in points],
        [point.value for point in points],
        yerr=[[point.value - point.low for point in points], [point.high - point.value for point in points]],
        label=name,
        capsize=2.5,
        lw=1.4,
        ms=5,
        color=style.colour,
        marker=style.marker,
        ls=style.dashes,
    )


def _ends(found: Sequence[Panel], shown: Sequence[ImplementationInfo], style: Mapping[str, Style]) -> list[End]:
    """The end of each line in the last panel; one that is not there is named too, at its height elsewhere."""
    ends = []
    for name in (info.name for info in shown):
        having = [panel for panel in found if panel.points[name]]
        point = list(having[-1].points[name].values())[-1] if having else None
        here = bool(having) and having[-1] is found[-1]
        ends.append(
            End(
                name=clipped(name) + ("" if here else f" ({_where(found, having)})"),
                style=style[name],
                y=point.value if point else None,
                x=point.width * found[-1].beside(name) if point and here else None,
            )
        )
    return ends if any(panel.drawn for panel in found) else []


def _where(found: Sequence[Panel], having: Sequence[Panel]) -> str:
    """In which panels a line is, in the fewest words."""
    if not having:
        return "no time"
    others = [str(panel.dtype) for panel in found if panel not in having]
    if len(others) < len(having):
        return f"not {units.join(others)}"
    return f"{units.join([str(panel.dtype) for panel in having])} only"


def _titles(run: Run, kind: Kind, picture: Picture, *, shaded: bool) -> tuple[str, str]:
    plan, first = run.header.plan, picture.cells[0]
    margin = f" - shaded: within {units.percent(plan.precision.margin)}" if shaded else ""
    busy = " - other programs were running: not reliable" if statements.busy_cells(run) & set(picture.cells) else ""
    what = f"{statements.describe_operation(first)}{statements.describe_rest(first)}"
    return (
        clipped(kind.title.format(baseline=plan.baseline)),
        f"{what}, {first.rows} rows, {first.cache} cache - {clipped(run.header.device.name)}{margin}{busy}",
    )
