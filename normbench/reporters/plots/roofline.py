"""Effective bandwidth against the working set, with the cache's size and the memory's peak as lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from normbench import bounds, traffic, units
from normbench.records import Case, CaseResult, Cell, Run
from normbench.reporters.plots import axes as axis_of
from normbench.reporters.plots import labels, styles
from normbench.reporters.plots.choice import Picture
from normbench.reporters.plots.figure import fit, panels
from normbench.reporters.plots.labels import End
from normbench.reporters.plots.styles import MUTED, Style
from normbench.reporters.statements import clipped

_CAPTION = 0.16

_Points = Mapping[str, Sequence[tuple[int, float]]]


def make(figure: Figure, run: Run, picture: Picture) -> None:
    """Draw the effective bandwidth of the picture's cells."""
    dtypes = list(dict.fromkeys(cell.dtype for cell in picture.cells))
    by_case = {result.case: result for result in run.results}
    found = [_points(run, by_case, [c for c in picture.cells if c.dtype is dtype]) for dtype in dtypes]
    style = styles.of(run)
    axes = panels(figure, len(dtypes))
    reached = [y for of_panel in found for points in of_panel.values() for _, y in points]
    if reached:
        peak = run.header.device.peak_bytes_per_s
        axis_of.limit_values(axes[0], reached, [*reached, peak] if peak else reached, 0)
        axis_of.scale_values(axes[0], units.bandwidth)
    else:
        axes[0].set_yticks([])
    for axis, of_panel, dtype in zip(axes, found, dtypes, strict=True):
        axis.set_xlabel(f"tensors of a call ({dtype})")
        _draw(axis, run, of_panel, style)
    axes[0].set_ylabel("floor bytes ÷ time")
    ends = _ends(found, run, style) if reached else []
    right = labels.room(axes[-1], ends)
    notes = f"{picture.cells[0].mode} - {clipped(run.header.device.name)}"
    fit(figure, axes, "Effective bandwidth against the working set", notes, right, _CAPTION)
    labels.place(axes[-1], ends)


def _points(run: Run, by_case: Mapping[Case, CaseResult], cells: Sequence[Cell]) -> _Points:
    """Of each implementation working set and bandwidth, in ascending order."""
    found: dict[str, list[tuple[int, float]]] = {info.name: [] for info in run.header.implementations}
    for cell in cells:
        for name, points in found.items():
            result = by_case.get(Case(cell=cell, implementation=name))
            reached = bounds.effective_bandwidth(run, result) if result else None
            if reached:
                points.append((traffic.touched_bytes(cell), reached))
    return {name: sorted(points) for name, points in found.items()}


def _draw(axis: Axes, run: Run, found: _Points, style: Mapping[str, Style]) -> None:
    if not any(found.values()):
        axis_of.nothing(axis)
        return
    axis.set_xscale("log", base=2)
    for name, points in found.items():
        xs = [x for x, _ in points]
        one_line = len(set(xs)) == len(xs)  # of cells of the same size, a line would go up and down
        look = style[name]
        axis.plot(
            xs,
            [y for _, y in points],
            label=name,
            lw=1.4,
            ms=5,
            color=look.colour,
            marker=look.marker,
            ls=look.dashes if one_line else "",
            alpha=1 if one_line else 0.7,
        )
    cache, peak = run.header.device.cache_bytes, run.header.device.peak_bytes_per_s
    if cache:
        axis.axvline(cache, color=MUTED, lw=0.9, ls="-.")
        axis.annotate(
            *("last-level cache", (cache, 1)),
            xycoords=axis.get_xaxis_transform(),
            xytext=(0, 2),
            textcoords="offset points",
            size=8,
            ha="center",
            va="bottom",
            color=MUTED,
        )
    if peak:
        axis.axhline(peak, color=MUTED, lw=0.9)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _position: units.size(value)))
    axis.xaxis.set_minor_locator(NullLocator())
    for label in axis.get_xticklabels():
        label.set(rotation=30, ha="right", rotation_mode="anchor")
    axis_of.grid(axis)


def _ends(found: Sequence[_Points], run: Run, style: Mapping[str, Style]) -> list[End]:
    ends = []
    for name in (info.name for info in run.header.implementations):
        having = [points[name] for points in found if points[name]]
        here = bool(found[-1][name])
        ends.append(
            End(
                name=clipped(name) + ("" if here else " (not here)" if having else " (no time)"),
                style=style[name],
                y=having[-1][-1][1] if having else None,
                x=having[-1][-1][0] if here else None,
            )
        )
    return ends
