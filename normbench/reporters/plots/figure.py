"""A figure from empty panels to files: no display, sizes as measured, the same bytes for the same figure."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl

mpl.use("Agg", force=True)  # before pyplot: a missing display must not matter
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from normbench.reporters.plots.styles import INK, MUTED

DPI = 150
HEIGHT = 3.3
"""Of a panel, in inches, as all lengths here."""
_WIDTHS = {1: 4.8, 2: 3.5, 3: 2.7}
_COLUMNS = max(_WIDTHS)
_GAP = 0.24
_EDGE = 0.1
_HEADING = 11.0
_NOTE = 9.0
_LINE = 1.35

_LOOK = {
    "text.parse_math": False,  # a name may hold dollars
    "font.size": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "normbench",
    "svg.fonttype": "none",
}


def files(make: Callable[[Figure], None]) -> list[tuple[str, bytes]]:
    """What ``make`` draws into an empty figure as extension and content: PNG and SVG.

    The reader's own matplotlib settings have no part in it.
    """
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # a name may be in any script
        mpl.rcdefaults()
        settings: Any = mpl.rcParams  # whose keys are a type in some versions
        settings.update(_LOOK)
        figure = plt.figure(dpi=DPI)
        try:
            make(figure)
            return [(extension, _save(figure, extension)) for extension in ("png", "svg")]
        finally:
            plt.close(figure)


def _save(figure: Figure, extension: str) -> bytes:
    buffer = io.BytesIO()
    metadata = {"Date": None, "Title": str(figure.get_label())} if extension == "svg" else {}
    figure.savefig(buffer, format=extension, dpi=DPI, metadata=metadata)
    return buffer.getvalue()


def columns_of(count: int) -> int:
    """How many of so many panels stand beside each other: four in two rows of two."""
    return 2 if count == 4 else min(count, _COLUMNS)


def panels(figure: Figure, count: int, least: float = 0.0) -> list[Axes]:
    """So many panels of their final size, which share the axis of the values; :func:`fit` puts them in place.

    Args:
        figure: Where.
        count: How many.
        least: The width that each should have at least.
    """
    columns = columns_of(count)
    width = max(_WIDTHS[columns], min(least, _WIDTHS[1]))
    figure.set_size_inches(columns * width, HEIGHT)
    axes: list[Axes] = []
    for index in range(count):
        share: dict[str, Any] = {"sharey": axes[0]} if axes else {}
        axes.append(figure.add_axes((0, 0, 1 / columns, 1), label=f"panel {index}", **share))
        if index % columns:
            axes[-1].tick_params(axis="y", labelleft=False)
    return axes


def width_of(axis: Axes) -> float:
    """The width of a panel."""
    return float(axis.get_window_extent().width) / DPI


def fit(figure: Figure, axes: Sequence[Axes], heading: str, notes: str, right: float, above: float = 0.0) -> None:
    """Give the figure the size that panels, ticks and titles need, and put them in place.

    Args:
        figure: Which.
        axes: Its panels.
        heading: What it shows.
        notes: Of what.
        right: The room to keep beside the last panel.
        above: The room to keep above each panel.
    """
    columns, width = columns_of(len(axes)), width_of(axes[0])
    rows = -(-len(axes) // columns)
    left = _EDGE + max(_outside(axis, axis.yaxis) for axis in axes[::columns])
    below = _EDGE + max(_outside(axis, axis.xaxis) for axis in axes)
    across = left + columns * width + (columns - 1) * _GAP + max(right, 2 * _EDGE)
    title = [(line, _HEADING, "bold", INK) for line in wrapped(figure, heading, _HEADING, "bold", across)]
    title += [(line, _NOTE, "normal", MUTED) for line in wrapped(figure, notes, _NOTE, "normal", across)]
    titled = 2 * _EDGE + sum(size * _LINE / 72 for _, size, *_ in title)
    down = titled + rows * (above + HEIGHT + below)
    figure.set_size_inches(across, down)
    top = down - _EDGE
    for line, size, weight, colour in title:
        figure.text(_EDGE / across, top / down, line, size=size, weight=weight, color=colour, va="top")
        top -= size * _LINE / 72
    for index, axis in enumerate(axes):
        row, column = divmod(index, columns)
        x, y = left + column * (width + _GAP), down - titled - row * (above + HEIGHT + below) - above - HEIGHT
        axis.set_position((x / across, y / down, width / across, HEIGHT / down))
    figure.set_label(f"{heading} - {notes}")


def _outside(axis: Axes, side: Axis) -> float:
    """How far the ticks and the label of one side reach out of a panel, to the left or below."""
    box = side.get_tightbbox(renderer(axis.get_figure(root=True)))
    if box is None:
        return 0.0
    inside = axis.get_window_extent()
    reach = inside.x0 - box.x0 if side is axis.yaxis else inside.y0 - box.y0
    return max(0.0, float(reach) / DPI)


def renderer(figure: Figure | None) -> Any:
    """What measures texts as they will be drawn; matplotlib gives it no type."""
    assert figure is not None
    canvas: Any = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    return canvas.get_renderer()  # type: ignore[no-untyped-call]


def text_width(figure: Figure, text: str, size: float, weight: str = "normal") -> float:
    """The width of a line of text."""
    return text_size(figure, text, size, weight)[0]


def text_size(figure: Figure, text: str, size: float, weight: str = "normal") -> tuple[float, float]:
    """The width and the height of a line of text."""
    font = FontProperties(size=size, weight=weight)
    width, height, _descent = renderer(figure).get_text_width_height_descent(text, font, ismath=False)
    return float(width) / DPI, float(height) / DPI


def shortened(figure: Figure, text: str, size: float, weight: str, width: float) -> str:
    """A line of text, or as much of its ends as fits into ``width``."""
    if text_width(figure, text, size, weight) <= width:
        return text
    keep = len(text) - 1
    while keep > 2 and text_width(figure, _ends(text, keep), size, weight) > width:
        keep = min(keep - 1, keep * 9 // 10)
    return _ends(text, keep)


def _ends(text: str, keep: int) -> str:
    return f"{text[: keep - keep // 2]}…{text[len(text) - keep // 2 :]}"


def wrapped(figure: Figure, text: str, size: float, weight: str, across: float) -> list[str]:
    """Lines that are no wider than a figure, or a panel, of that width in inches."""
    room = across - 2 * _EDGE
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(figure, longer, size, weight) <= room:
            lines[-1] = longer
        else:
            lines.append(shortened(figure, word, size, weight, room))
    return lines
