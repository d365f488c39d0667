"""Charts that GitHub draws itself: speedup over the widths as a mermaid ``xychart-beta``.

The grammar knows neither nulls nor exponents nor logarithmic axes, and draws a series that is shorter than the axis
as NaN without an error; so widths are categories, numbers plain decimals, and a series with a gap is left out and
named. It has no legend either: the lines are named in the text, by their colours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from normbench import units
from normbench.records import Cell, Run
from normbench.reporters import caveats, colours, statements
from normbench.reporters.colours import Colour

_LEAST_POINTS = 2
_HEADROOM = 1.05
_MOST_CHARACTERS = 200
_MOST_LINES = 9


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart.

    Args:
        title: What is drawn.
        source: The mermaid text, without its fence.
        lines: The word for each line's colour, and whose it is.
        left_out: Who is not drawn, and at how many widths a speedup is missing.
        more: How many more are not drawn, since colours would come again.
        but: Which of the results it shows are flagged.
    """

    title: str
    source: str
    lines: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, int], ...]
    more: int
    but: str


def chart(run: Run, cells: Sequence[Cell], flags: caveats.Flags) -> Chart | None:
    """The speedups in cells that differ in their width alone, ascending; None with fewer than two points to draw."""
    speedups = {info.name: _speedups(run, cells, info.name) for info in run.header.candidates}
    whole = {name: [v for v in values if v is not None] for name, values in speedups.items() if None not in values}
    more = max(0, len(whole) - _MOST_LINES)
    whole = dict(list(whole.items())[:_MOST_LINES])
    if len(cells) < _LEAST_POINTS or not whole:
        return None
    baseline = run.header.plan.baseline
    every = colours.of(run.header.implementations)
    drawn = {name: every[name] for name in (baseline, *whole)}
    title = f"{statements.describe_group(cells[0])}: speedup over {baseline}"
    return Chart(
        title=title,
        source=_source(title, [cell.width for cell in cells], {baseline: [1.0] * len(cells), **whole}, drawn),
        lines=tuple((colour.word, name) for name, colour in drawn.items()),
        left_out=tuple((name, values.count(None)) for name, values in speedups.items() if None in values),
        more=more,
        but=_but(run, cells, whole, flags),
    )


def _but(run: Run, cells: Sequence[Cell], drawn: Collection[str], flags: caveats.Flags) -> str:
    shown = [comparison for cell in cells for name in drawn if (comparison := run.comparison(cell, name))]
    return caveats.at_widths(caveats.caveats(flags, caveats.compared(shown)), cells)


def _speedups(run: Run, cells: Sequence[Cell], name: str) -> list[float | None]:
    found = (run.comparison(cell, name) for cell in cells)
    return [None if c is None or c.speedup is None else c.speedup.value for c in found]


def _source(
    title: str, widths: Sequence[int], series: Mapping[str, Sequence[float]], drawn: Mapping[str, Colour]
) -> str:
    top = _HEADROOM * max(value for values in series.values() for value in values)
    palette = ", ".join(colour.hex for colour in drawn.values())
    return "\n".join(
        [
            f'%%{{init: {{"themeVariables": {{"xyChart": {{"plotColorPalette": "{palette}"}}}}}}}}%%',
            "xychart-beta",
            f"    title {_quoted(title)}",
            f"    x-axis {_quoted('width')} [{', '.join(_quoted(str(width)) for width in widths)}]",
            f"    y-axis {_quoted('speedup')} 0 --> {units.significant(top)}",
            *(f"    line [{', '.join(map(units.significant, values))}]" for values in series.values()),
        ]
    )


def _quoted(text: str) -> str:
    """A string of mermaid's, which knows no escape: what would end it or be read as markup is replaced."""
    return f'"{statements.clipped(text, _MOST_CHARACTERS).translate(_REPLACED)}"'


_REPLACED = str.maketrans({'"': "'", "`": "'", "\\": "/", "#": " ", ";": ",", "<": "(", ">": ")", "&": "+", "%": " "})
