"""A distribution as a small SVG picture that stands in a table's cell."""

from __future__ import annotations

from markupsafe import Markup

from normbench import units
from normbench.spread import REACH, Spread

_STEP = 2
_HEIGHT = 18


def draw(spread: Spread) -> Markup:
    """Bars around the median, from a third below to a half above it; in another colour what lies beyond."""
    tallest, last = max(spread.counts), len(spread.counts) - 1
    inner = "".join(_bar(x, count, tallest) for x, count in enumerate(spread.counts) if count and 0 < x < last)
    outer = "".join(_bar(x, spread.counts[x], tallest) for x in (0, last) if spread.counts[x])
    width = _STEP * len(spread.counts)
    return Markup(
        '<svg class="spread" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img"><title>{2}</title>'
        '<path class="middle" d="M{3} 0v{1}"/><path class="bars" d="{4}"/><path class="beyond" d="{5}"/></svg>'
    ).format(width, _HEIGHT, describe(spread), width / 2, inner, outer)


def _bar(place: int, count: int, tallest: int) -> str:
    height = max(1, round(_HEIGHT * count / tallest))
    return f"M{place * _STEP} {_HEIGHT}v-{height}h{_STEP - 0.5}v{height}z"


def describe(spread: Spread) -> str:
    """The same in words."""
    beyond = spread.counts[0] + spread.counts[-1]
    reach = f"; {beyond} farther from it than a factor of {units.significant(1 + REACH, 2)}" if beyond else ""
    return (
        f"{spread.samples} samples: median {units.duration(spread.median_s)}, nine tenths from "
        f"{units.duration(spread.low_s)} to {units.duration(spread.high_s)}{reach}"
    )
