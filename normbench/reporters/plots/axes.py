"""The axes of a picture: limits that the values decide, ticks at the widths that were tested and at round values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log2

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from normbench.reporters.plots.figure import HEIGHT, text_width, width_of
from normbench.reporters.plots.styles import GRID, MUTED

_DECADES = 30
_MOST_TICKS = 40
_NARROW = 3
_VERY_NARROW = 1.1
_TICK = 9.0
_BESIDE = 0.06
_SLANTED = 0.19
_UPRIGHT = 0.14
_MARGIN = 0.05


def nothing(axis: Axes) -> None:
    """Say that a panel has nothing to show."""
    axis.text(0.5, 0.5, "no result has a time", transform=axis.transAxes, ha="center", color=MUTED)
    axis.set_xticks([])


def grid(axis: Axes) -> None:
    """Faint lines behind the values."""
    axis.set_axisbelow(True)
    axis.grid(visible=True, which="major", color=GRID, lw=0.6)


def scale_widths(axis: Axes, widths: Sequence[int], beside: float) -> None:
    """Powers of two, and a tick at each width; where labels would touch they turn, and then some are left out.

    Args:
        axis: The panel.
        widths: In ascending order.
        beside: By what factor points may lie beside their width.
    """
    first, last = widths[0], widths[-1]
    margin = (last / first) ** _MARGIN * (1 + beside)
    axis.set_xscale("log", base=2)
    axis.set_xlim(first / margin, last * margin)
    rotation, labelled = _labelled(axis, widths)
    axis.xaxis.set_major_locator(FixedLocator(list(widths) if len(widths) <= _MOST_TICKS else sorted(labelled)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _position: f"{value:.0f}" if round(value) in labelled else "")
    )
    axis.tick_params(axis="x", rotation=rotation)
    if rotation == 45:
        for label in axis.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")


def _labelled(axis: Axes, widths: Sequence[int]) -> tuple[int, set[int]]:
    """How much the labels turn, and which widths have one."""
    figure = axis.get_figure(root=True)
    assert figure is not None
    inch = width_of(axis) * (1 - 2 * _MARGIN) / max(log2(widths[-1] / widths[0]), 1e-9)
    at = [log2(width) * inch for width in widths]
    gaps = [b - a for a, b in pairwise(at)]
    sizes = [text_width(figure, str(width), _TICK) for width in widths]
    if all(gap >= (a + b) / 2 + _BESIDE for gap, (a, b) in zip(gaps, pairwise(sizes), strict=True)):
        return 0, set(widths)
    if min(gaps) >= _SLANTED:
        return 45, set(widths)
    kept, last = {widths[0], widths[-1]}, at[0]
    for width, position in zip(widths, at, strict=True):
        if position - last >= _UPRIGHT and at[-1] - position >= _UPRIGHT:
            kept.add(width)
            last = position
    return 90, kept


def limit_values(axis: Axes, lows: Sequence[float], highs: Sequence[float], below: float) -> None:
    """Show the values from the lowest to the highest, and ``below`` inches under them."""
    low, high = min(lows) / 1.08, max(highs) * 1.08
    share = min(below / HEIGHT, 0.5)
    axis.set_yscale("log")
    axis.set_ylim(low / (high / low) ** (share / (1 - share)), high)


def scale_values(axis: Axes, form: Callable[[float, int], str]) -> None:
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
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: form(value, digits)))
