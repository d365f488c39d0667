"""Lines named at their right ends: where each name stands, and the legend where there is no room for that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from normbench.reporters.plots.figure import DPI, HEIGHT, renderer, shortened, text_size, text_width, width_of
from normbench.reporters.plots.styles import Style

_SIZE = 8.5
_WEIGHT = "bold"
_LEADING = 1.2
_AWAY = 0.16
_EDGE = 0.1
_WIDEST = 2.6
_NEAR = 0.4


@dataclass(frozen=True, kw_only=True)
class End:
    """Where a line ends, and what it is called.

    Args:
        name: The name, and what else is to be said.
        style: How the line looks.
        y: The value at its end; None where it has no point in any panel.
        x: Where it ends in the last panel; None where it has no point there.
    """

    name: str
    style: Style
    y: float | None
    x: float | None


def spread(targets: Sequence[float], gap: float, low: float, high: float) -> list[float] | None:
    """Positions between ``low`` and ``high``, at least ``gap`` apart and otherwise as near the targets as can be.

    The least sum of squared moves; positions keep the order of the targets, and of equal targets the first is the
    highest. None where there is no room.
    """
    if (len(targets) - 1) * gap > high - low:
        return None
    order = sorted(range(len(targets)), key=lambda i: (targets[i], -i))
    # Without the gaps it is a regression that must not fall: neighbours that would share one mean.
    blocks: list[tuple[float, int]] = []
    for place, index in enumerate(order):
        mean, count = targets[index] - place * gap, 1
        while blocks and blocks[-1][0] > mean:
            other, others = blocks.pop()
            mean, count = (mean * count + other * others) / (count + others), count + others
        blocks.append((mean, count))
    flat = [mean for mean, count in blocks for _ in range(count)]
    most = high - (len(targets) - 1) * gap
    found = [0.0] * len(targets)
    for place, index in enumerate(order):
        found[index] = min(max(flat[place], low), most) + place * gap
    return found


def _line(figure: Figure, ends: Sequence[End]) -> float:
    """The distance between names that do not touch."""
    return _LEADING * max((text_size(figure, end.name, _SIZE, _WEIGHT)[1] for end in ends), default=0)


def room(axis: Axes, ends: Sequence[End]) -> float:
    """How much room, in inches, the names need to the right of a panel; a legend stands there if they don't fit."""
    figure = axis.get_figure(root=True)
    assert figure is not None
    if not ends:
        return 0.0
    if len(ends) * _line(figure, ends) > HEIGHT:
        return _legend(axis, figure, ends)
    return _AWAY + _EDGE + max(text_width(figure, _short(figure, end.name), _SIZE, _WEIGHT) for end in ends)


def place(axis: Axes, ends: Sequence[End]) -> None:
    """Write names that fit to the right of a panel whose place and limits are final, with leaders where needed."""
    figure = axis.get_figure(root=True)
    assert figure is not None
    line = _line(figure, ends)
    targets = [0.0 if end.y is None else _fraction(axis, None, end.y)[1] * HEIGHT for end in ends]
    heights = spread(targets, line, line / 2, HEIGHT - line / 2)
    if heights is None:
        return  # there is a legend
    width = width_of(axis)
    for index, (end, target, height) in enumerate(zip(ends, targets, heights, strict=True)):
        left, middle = 1 + _AWAY / width, height / HEIGHT
        axis.text(
            *(left, middle, _short(figure, end.name)),
            transform=axis.transAxes,
            color=end.style.colour,
            size=_SIZE,
            weight=_WEIGHT,
            va="center_baseline",
            gid=f"label-{index}",
        )
        if end.x is None or end.y is None:
            continue
        x, y = _fraction(axis, end.x, end.y)
        if (1 - x) * width > _NEAR or abs(height - target) > _NEAR * line:
            ends_at = (x + 0.06 / width, left - 0.03 / width)
            leader = Line2D(ends_at, (y, middle), lw=0.6, color=end.style.colour, alpha=0.6, clip_on=False)
            leader.set_transform(axis.transAxes)
            axis.add_artist(leader)


def _legend(axis: Axes, figure: Figure, ends: Sequence[End]) -> float:
    """A legend to the right of a panel, in as many columns as it takes; its width in inches."""
    handles = [
        Line2D([], [], color=end.style.colour, marker=end.style.marker, ls=end.style.dashes, ms=5, lw=1.4)
        for end in ends
    ]
    names = [_short(figure, end.name) for end in ends]
    columns = -(-len(ends) // int(HEIGHT / _line(figure, ends) / _LEADING))
    made = axis.legend(
        handles, names, ncols=columns, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, borderaxespad=0
    )
    return float(made.get_window_extent(renderer(figure)).width) / DPI + 3 * _EDGE


def _short(figure: Figure, name: str) -> str:
    return shortened(figure, name, _SIZE, _WEIGHT, _WIDEST)


def _fraction(axis: Axes, x: float | None, y: float) -> tuple[float, float]:
    """A point of the data as fractions of the panel."""
    at = axis.get_xlim()[0] if x is None else x
    found = axis.transAxes.inverted().transform(axis.transData.transform((at, y)))
    return float(found[0]), float(found[1])
