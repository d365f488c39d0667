"""What can be seen in a picture."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text

from normbench.records import Run
from normbench.reporters import plots
from normbench.reporters.plots.figure import renderer

SVG = "{http://www.w3.org/2000/svg}"


def draw(run: Run) -> dict[str, bytes]:
    """All pictures by file name."""
    return dict(plots.draw(run))


def panels(run: Run, figures: list[Figure], kind: str = "time") -> list[Axes]:
    """The panels of one kind of picture of a run that has one of each."""
    draw(run)
    kinds = [name.partition("-")[0] for name in plots.planned(run).drawn]
    return figures[kinds.index(kind)].axes


def lines(panel: Axes) -> dict[str, ErrorbarContainer]:
    """The lines of a panel by what they are called."""
    return {str(c.get_label()): c for c in panel.containers if isinstance(c, ErrorbarContainer)}


def points(panel: Axes, name: str) -> list[tuple[float, float]]:
    """The points of a line."""
    return [(float(x), float(y)) for x, y in lines(panel)[name].lines[0].get_xydata()]


def labels(panel: Axes) -> list[Text]:
    """The names beside a panel, from the top."""
    found = [text for text in panel.texts if (text.get_gid() or "").startswith("label-")]
    return sorted(found, key=lambda text: -text.get_window_extent(renderer(panel.get_figure(root=True))).y0)


def crosses(panel: Axes) -> dict[tuple[float, float], str]:
    """Where crosses stand, by width and height, and their colours."""
    marks = [line for line in panel.lines if (line.get_gid() or "").startswith("missing-")]
    return {(float(x), float(y)): str(mark.get_color()) for mark in marks for x, y in mark.get_xydata()}  # type: ignore[union-attr]


def texts(picture: bytes) -> list[str]:
    """The texts of an SVG file."""
    return [element.text or "" for element in ET.fromstring(picture.decode()).iter(f"{SVG}text")]


def x_ticks(panel: Axes) -> list[str]:
    """What stands below a panel."""
    return [label.get_text() for label in panel.get_xticklabels()]


def y_ticks(panel: Axes) -> list[str]:
    """What stands at the side of a panel."""
    low, high = panel.get_ylim()
    at = zip(panel.get_yticks(), panel.get_yticklabels(), strict=True)
    return [label.get_text() for value, label in at if low <= value <= high]
