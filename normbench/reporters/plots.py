"""Pictures of a run: time, speedup and effective bandwidth against the width, one panel a dtype."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

os.environ.pop("MPLBACKEND", None)  # matplotlib can't be imported with a notebook's backend that is not installed
import matplotlib as mpl

mpl.use("Agg", force=True)  # before pyplot: a missing display must not matter
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from normbench import units
from normbench.records import CaseResult, Cell, DType, ImplementationInfo, Op, Run, Status
from normbench.reporters import statements
from normbench.traffic import floor_bytes

_COLOURS = ("#0072B2", "#D55E00", "#000000", "#CC79A7", "#009E73", "#E69F00", "#56B4E9")
"""Okabe and Ito's colours, told apart by colour-blind readers too; the floor is grey."""
_MARKERS = {"eager": "s", "nn": "o", "compile": "^"}
_FLOOR_COLOUR = "#888888"
_DECADES = 30
_SHOWN = 1.6
_NARROW = 3
_VERY_NARROW = 1.1


@dataclass(frozen=True, kw_only=True)
class Point:
    """One value and the ends of its interval, at a width."""

    width: int
    value: float
    low: float
    high: float


Measure = Callable[[Run, CaseResult], "tuple[float, float | None, float | None] | None"]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of picture: what is drawn over the width."""

    name: str
    title: str
    label: str
    measure: Measure
    format: Callable[[float, int], str]
    floor: bool


def _time(_run: Run, result: CaseResult) -> tuple[float, float | None, float | None] | None:
    time = result.timing.time_s if result.timing else None
    return None if time is None else (time.value, time.low, time.high)


def _speedup(run: Run, result: CaseResult) -> tuple[float, float | None, float | None] | None:
    comparison = run.comparison(result.case.cell, result.case.implementation)
    speedup = comparison.speedup if comparison else None
    return None if speedup is None else (speedup.value, speedup.low, speedup.high)


def _bandwidth(run: Run, result: CaseResult) -> tuple[float, float | None, float | None] | None:
    if result.timing is None:
        return None
    count = floor_bytes(run.header.info(result.case.implementation).op, result.case.cell)
    time = result.timing.time_s
    return count / time.value, count / time.high if time.high else None, count / time.low if time.low else None


KINDS = (
    Kind(name="time", title="Time of one call", label="time", measure=_time, format=units.duration, floor=True),
    Kind(
        name="speedup",
        title="Speedup over {baseline}",
        label="{baseline} time ÷ time",
        measure=_speedup,
        format=units.times,
        floor=False,
    ),
    Kind(
        name="bandwidth",
        title="Effective bandwidth: floor bytes ÷ time",
        label="effective bandwidth",
        measure=_bandwidth,
        format=units.bandwidth,
        floor=True,
    ),
)


def draw(run: Run) -> Iterator[tuple[str, bytes]]:
    """Every picture of a run, as file name and content: PNG and SVG of each kind for each set of panels."""
    for kind in KINDS:
        for suffix, cells in _panel_sets(run):
            if all(r.status is Status.NOT_RUN for cell in cells for r in run.results_by_cell.get(cell, ())):
                continue  # nothing has been tried here yet
            with mpl.rc_context({"text.parse_math": False}):  # a name may hold dollars
                figure = _figure(run, kind, cells)
            try:
                for extension in ("png", "svg"):
                    yield f"{kind.name}-{suffix}.{extension}", save(figure, extension)
            finally:
                plt.close(figure)


def _panel_sets(run: Run) -> Iterator[tuple[str, list[Cell]]]:
    """Cells that share a picture: everything but dtype and width is the same, or follows the dtype."""
    sets: dict[str, list[Cell]] = {}
    plan = run.header.plan
    for cell in plan.cells():
        parts = [str(cell.mode)]
        parts += [f"{cell.rows}rows"] if len(plan.rows) > 1 else []
        parts += [str(cell.cache)] if len(plan.caches) > 1 else []
        parts += [f"autocast-{cell.autocast or 'off'}"] if len(plan.autocasts) > 1 else []
        parts += [f"parameters-{cell.parameter_dtype}"] if len(plan.parameter_dtypes) > 1 else []
        sets.setdefault("-".join(parts), []).append(cell)
    yield from sets.items()


def _figure(run: Run, kind: Kind, cells: Sequence[Cell]) -> Figure:
    dtypes = list(dict.fromkeys(cell.dtype for cell in cells))
    figure, axes = plt.subplots(
        1, len(dtypes), figsize=(2.4 + 4.4 * len(dtypes), 4.6), sharey=True, squeeze=False, layout="constrained"
    )
    baseline = run.header.plan.baseline
    first = cells[0]
    title = kind.title.format(baseline=baseline)
    busy = " - other programs were running: not reliable" if statements.busy_cells(run) & set(cells) else ""
    figure.suptitle(
        f"{title} - {statements.describe_rest(first)}, {first.rows} rows, {first.cache} cache\n"
        f"{run.header.device.name}{busy}",
        fontsize=10,
    )
    panels = zip(axes[0], dtypes, strict=True)
    drawn = [_panel(axis, run, kind, [c for c in cells if c.dtype is dtype], dtype) for axis, dtype in panels]
    if not any(drawn):
        axes[0][0].set_yticks([])  # the panels share them
    axes[0][0].set_ylabel(kind.label.format(baseline=baseline))
    handles, labels = _legend(axes[0])
    if handles:
        figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    return figure


def _panel(axis: Axes, run: Run, kind: Kind, cells: Sequence[Cell], dtype: DType) -> int:
    """Draw one dtype's results; how many there are."""
    widths = sorted({cell.width for cell in cells})
    shown = [info for info in run.header.implementations if kind.floor or info in run.header.candidates]
    drawn: list[Point] = []
    for index, info in enumerate(shown):
        points = list(_points(run, kind, cells, info.name))
        drawn += points
        # At a single width all bars would lie on each other.
        beside = 1 + 0.03 * (index - (len(shown) - 1) / 2) if len(widths) == 1 else 1
        _line(axis, points, beside, info, style(run, info))
    missing = len(shown) * len(cells) - len(drawn)
    note = f"; {missing} of {len(shown) * len(cells)} results missing" if missing else ""
    axis.set_xlabel(f"width ({dtype}{note})")
    if not drawn:
        axis.text(0.5, 0.5, "no result has a time", transform=axis.transAxes, ha="center", color="#555555")
        axis.set_xticks([])
        return 0
    _limit(axis, drawn, [1.0] if kind.name == "speedup" else [])
    _scale(axis, widths, kind)
    if kind.name == "speedup":
        margin = run.header.plan.precision.margin
        axis.axhspan(1 / (1 + margin), 1 + margin, color="#888888", alpha=0.25, lw=0)
        axis.axhline(1, color="#444444", lw=0.8)
    return len(drawn)


def _limit(axis: Axes, points: Sequence[Point], others: Sequence[float]) -> None:
    """Let the values decide what is shown, and of an interval no more than a factor: a bar may leave the picture."""
    lows = [max(point.low, point.value / _SHOWN) for point in points]
    highs = [min(point.high, point.value * _SHOWN) for point in points]
    low, high = min([*lows, *others]), max([*highs, *others])
    shown = axis.get_ylim() if axis.get_yscale() == "log" else (low, high)  # a panel before this one shares the axis
    axis.set_yscale("log")
    axis.set_ylim(min(low / 1.08, shown[0]), max(high * 1.08, shown[1]))


def _points(run: Run, kind: Kind, cells: Sequence[Cell], name: str) -> Iterator[Point]:
    for cell in sorted(cells, key=lambda cell: cell.width):
        for result in run.results_by_cell.get(cell, ()):
            measured = kind.measure(run, result) if result.case.implementation == name else None
            if measured is not None:
                value, low, high = measured
                yield Point(width=cell.width, value=value, low=low or value, high=high or value)


def _line(
    axis: Axes, points: Sequence[Point], beside: float, info: ImplementationInfo, style: dict[str, Any]
) -> None:
    if not points:
        return
    below = [point.value - point.low for point in points]
    above = [point.high - point.value for point in points]
    axis.errorbar(
        [point.width * beside for point in points],
        [point.value for point in points],
        yerr=[below, above],
        label=info.name,
        capsize=2.5,
        lw=1.4,
        ms=5,
        **style,
    )


def style(run: Run, info: ImplementationInfo) -> dict[str, Any]:
    """Colour, marker and line of an implementation: the same in every picture of a run."""
    if info.op is Op.COPY:
        return {"color": _FLOOR_COLOUR, "marker": ".", "ls": ":"}
    norms = [i.name for i in run.header.implementations if i.op is not Op.COPY]
    return {
        "color": _COLOURS[norms.index(info.name) % len(_COLOURS)],
        "marker": _MARKERS.get(info.provider, "D"),
        "ls": "-" if info.op is Op.LAYERNORM else "--",
    }


def _scale(axis: Axes, widths: Sequence[int], kind: Kind) -> None:
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.xaxis.set_major_locator(FixedLocator(list(widths)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:.0f}"))
    axis.tick_params(axis="x", rotation=45 if len(widths) > 4 else 0)
    _scale_values(axis, kind)
    axis.grid(visible=True, which="major", color="#dddddd", lw=0.6)
    axis.spines[["top", "right"]].set_visible(False)


def _scale_values(axis: Axes, kind: Kind) -> None:
    """Ticks at 1, 2 and 5 of each decade, more within one and a half, evenly where the range is narrower."""
    low, high = axis.get_ylim()
    digits = 2
    if high / low < _NARROW:
        axis.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
        digits = 3 if high / low > _VERY_NARROW else 4
    elif high / low < _DECADES:
        axis.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 1.5, 2, 3, 5, 7)))
    else:
        axis.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
        digits = 1
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: kind.format(value, digits)))


def _legend(axes: Sequence[Axes]) -> tuple[list[Any], list[str]]:
    """Each implementation once, whichever panel it is in."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values()), list(found)


def save(figure: Figure, extension: str) -> bytes:
    """A figure as a PNG or SVG file, the same bytes for the same figure."""
    buffer = io.BytesIO()
    metadata = {"Date": None} if extension == "svg" else {}
    with mpl.rc_context({"svg.hashsalt": "normbench", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=extension, dpi=150, metadata=metadata)
    return buffer.getvalue()
