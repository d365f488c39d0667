"""Pictures of a profile: bytes by op with the floor as a line, and effective bandwidth against the working set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MultipleLocator, NullLocator

from normbench import bounds, traffic, units
from normbench.records import Case, CaseProfile, Cell, Mode, OpTraffic, Run
from normbench.reporters import statements
from normbench.reporters.plots import save, style

_COLOURS = ("#332288", "#88CCEE", "#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499")
"""Tol's muted colours, told apart by colour-blind readers too."""

_MOST_PARTS = 8
_MOST_TICKS = 8
_OTHERS = "other ops"


def draw(run: Run) -> Iterator[tuple[str, bytes]]:
    """Every picture of a run's profiles, as file name and content; none without profiles."""
    modes = dict.fromkeys(profile.case.cell.mode for profile in run.profiles)
    for mode in modes:
        for name, make in (("traffic", _traffic_figure), ("roofline", _roofline_figure)):
            with mpl.rc_context({"text.parse_math": False}):  # a name may hold dollars
                figure = make(run, mode)
            try:
                for extension in ("png", "svg"):
                    yield f"{name}-{mode}.{extension}", save(figure, extension)
            finally:
                plt.close(figure)


def _largest_cells(run: Run, mode: Mode) -> list[Cell]:
    """For each dtype the largest profiled cell."""
    cells = dict.fromkeys(p.case.cell for p in run.profiles if p.case.cell.mode is mode)
    by_dtype: dict[object, list[Cell]] = {}
    for cell in cells:
        by_dtype.setdefault((cell.dtype, cell.parameter_dtype, cell.autocast), []).append(cell)
    return [max(group, key=lambda cell: cell.elements) for group in by_dtype.values()]


def _traffic_figure(run: Run, mode: Mode) -> Figure:
    cells = _largest_cells(run, mode)
    figure, axes = plt.subplots(
        1, len(cells), figsize=(2.6 + 4.2 * len(cells), 4.8), sharey=True, squeeze=False, layout="constrained"
    )
    figure.suptitle(
        f"Bytes read and written by each op, by their shapes - {mode}\n{run.header.device.name}", fontsize=10
    )
    colours = _colours([p for p in run.profiles if p.case.cell in cells])
    for axis, cell in zip(axes[0], cells, strict=True):
        _stack(axis, run, cell, colours)
    axes[0][0].set_ylabel("op bytes of one call")
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    line = Line2D([], [], color="#000000", lw=1.2, ls="--")
    figure.legend(
        [*handles, line], [*colours, "floor: the least"], loc="outside right center", frameon=False, fontsize=8
    )
    return figure


def _colours(profiles: Sequence[CaseProfile]) -> dict[str, str]:
    """A colour for each of the ops that move most; the rest share one."""
    sums: dict[str, int] = {}
    for profile in profiles:
        for op in profile.ops:
            sums[_part(op)] = sums.get(_part(op), 0) + op.bytes
    names = sorted(sums, key=lambda name: -sums[name])
    shown = dict(zip(names[:_MOST_PARTS], _COLOURS, strict=False))
    return shown | ({_OTHERS: "#BBBBBB"} if len(names) > _MOST_PARTS else {})


def _part(op: OpTraffic) -> str:
    """What an op is called in the legend: generated kernels by their number alone."""
    return f"generated {op.name.partition(':')[0]}" if op.name.startswith("kernel ") else op.name


def _stack(axis: Axes, run: Run, cell: Cell, colours: dict[str, str]) -> None:
    profiles = [p for p in run.profiles if p.case.cell == cell]
    for position, profile in enumerate(profiles):
        bottom = 0
        parts: dict[str, int] = {}
        for op in profile.ops:
            name = _part(op) if _part(op) in colours else _OTHERS
            parts[name] = parts.get(name, 0) + op.bytes
        for name, size in parts.items():
            axis.bar(position, size, bottom=bottom, color=colours[name], edgecolor="white", lw=0.4)
            bottom += size
        axis.text(position, bottom, _label(profile), ha="center", va="bottom", fontsize=7)
    baseline = run.header.info(run.header.plan.baseline)
    axis.axhline(traffic.floor_bytes(baseline.op, cell), color="#000000", lw=1.2, ls="--")
    axis.set_xticks(
        range(len(profiles)), [p.case.implementation for p in profiles], rotation=40, ha="right", fontsize=8
    )
    axis.set_xlabel(f"{cell.rows}×{cell.width} {statements.describe_rest(cell)} ({cell.dtype})")
    axis.margins(y=0.12)
    step = 2 ** max(0, math.ceil(math.log2(max(axis.get_ylim()[1], 1) / _MOST_TICKS)))
    axis.yaxis.set_major_locator(MultipleLocator(step))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: units.size(value) if value else "0"))
    axis.spines[["top", "right"]].set_visible(False)


def _label(profile: CaseProfile) -> str:
    return units.size(profile.op_bytes) if profile.op_bytes is not None else "not counted"


def _roofline_figure(run: Run, mode: Mode) -> Figure:
    cells = [cell for cell in run.results_by_cell if cell.mode is mode]
    dtypes = list(dict.fromkeys(cell.dtype for cell in cells))
    figure, axes = plt.subplots(
        1, len(dtypes), figsize=(2.6 + 4.2 * len(dtypes), 4.6), sharey=True, squeeze=False, layout="constrained"
    )
    figure.suptitle(f"Effective bandwidth against the working set - {mode}\n{run.header.device.name}", fontsize=10)
    for axis, dtype in zip(axes[0], dtypes, strict=True):
        _roofline(axis, run, sorted((c for c in cells if c.dtype is dtype), key=traffic.touched_bytes))
        axis.set_xlabel(f"tensors of a call ({dtype})")
    axes[0][0].set_ylabel("floor bytes ÷ time")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    return figure


def _roofline(axis: Axes, run: Run, cells: Sequence[Cell]) -> None:
    by_case = {result.case: result for result in run.results}
    for info in run.header.implementations:
        found = [
            (traffic.touched_bytes(cell), reached)
            for cell in cells
            if (result := by_case.get(Case(cell=cell, implementation=info.name)))
            and (reached := bounds.effective_bandwidth(run, result))
        ]
        if found:
            axis.plot(*zip(*found, strict=True), label=info.name, lw=1.4, ms=5, **style(run, info))
    cache = run.header.device.cache_bytes
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    if cache:
        axis.axvline(cache, color="#444444", lw=0.9, ls="-.")
        axis.text(cache, 0.02, " last-level cache", transform=axis.get_xaxis_transform(), fontsize=7, rotation=90)
    if run.header.device.peak_bytes_per_s:
        axis.axhline(run.header.device.peak_bytes_per_s, color="#444444", lw=0.9)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _position: units.size(value)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: units.bandwidth(value, 2)))
    axis.tick_params(axis="x", rotation=30)
    axis.grid(visible=True, which="major", color="#dddddd", lw=0.6)
    axis.spines[["top", "right"]].set_visible(False)
