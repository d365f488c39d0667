"""The pictures of a run as PNG and SVG files, the most informative first, and SVG for the inside of an HTML page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from normbench.records import Run
from normbench.reporters.plots.choice import MOST, MOST_POINTS, Planned, chosen, planned
from normbench.reporters.plots.svg import inline_svg

os.environ.pop("MPLBACKEND", None)  # matplotlib can't be imported with a notebook's backend that is not installed

__all__ = ["MOST", "MOST_POINTS", "Planned", "draw", "inline_svg", "planned"]


def draw(run: Run, most: int | None = None) -> Iterator[tuple[str, bytes]]:
    """A run's pictures, each as ``NAME.png`` and ``NAME.svg`` with its content; :func:`planned` says which.

    Args:
        run: The run; a profile's pictures are drawn where it has profiles.
        most: How many pictures to draw at most; unless told as many as are drawn in about five seconds.
    """
    from normbench.reporters.plots import figure, lines, roofline, traffic  # matplotlib takes a second to import

    for picture in chosen(run, most):
        make = {"traffic": traffic.make, "roofline": roofline.make}.get(picture.kind, lines.make)
        for extension, data in figure.files(partial(make, run=run, picture=picture)):
            yield f"{picture.name}.{extension}", data
