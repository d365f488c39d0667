"""``explain`` as one page that needs nothing else: the command's numbers, and sliders that work them out again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from normbench import units
from normbench.records import Op
from normbench.reporters import templating, walkthrough
from normbench.reporters.walkthrough import Figures
from normbench.walkthrough import Example, NormWalk, StepName, Walkthrough

_POSITIONS = 100
"""Steps of a slider from 0 to either end."""
_LEAST_SCALE, _LEAST_PARAMETER, _USUAL = 5.0, 2.0, 5.0
"""What the sliders of the scale and of gain and bias reach at least, and those of x where there are only zeros."""
_EPS_POWERS = -12, 1
"""Powers of ten that the slider of eps reaches at least."""
_EPS_STEP = 0.1
_LEAST_REACH = 1e-100
"""Of a slider: what is much less has no hundredth."""
_STEADY = (1, 2, 5, 10)
_CLOSE = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
"""What times a power of ten a slider, and a chart, may reach."""
_SHORT = 3
"""Significant digits in a chart; all of them stand in the tables."""
_ROOM = 1.1
"""A chart reaches so many times its largest bar, at least."""


@dataclass(frozen=True, kw_only=True)
class Slider:
    """An input of the page.

    Args:
        path: Where its number stands in what the script works out: ``values.0``, ``eps``.
        label: What it is called.
        text: Its number, as text.
        low: The least position.
        high: The largest.
        step: From one position to the next.
        position: Where it stands at first: at the number, or for eps at its logarithm to base ten, the least
            position being 0.
    """

    path: str
    label: str
    text: str
    low: float
    high: float
    step: float
    position: float


@dataclass(frozen=True, kw_only=True)
class Group:
    """Some sliders under one heading."""

    title: str
    sliders: tuple[Slider, ...]


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A bar of a chart: its height and that of its shadow as shares of the chart's reach, and its number as text."""

    height: float
    shadow: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Band:
    """Where a norm measures from and how high its unit is, as shares of the chart's reach and as text."""

    centre: float
    spread: float
    centre_text: str
    root_text: str


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A bar for each value, of one norm."""

    name: str
    op: Op
    bars: tuple[Bar, ...]
    band: Band | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """The charts of both norms, drawn to the same reach.

    Args:
        kind: What the bars show: ``input``, ``output``, ``shifted`` or ``scaled``.
        title: The same for readers.
        reach: Where the charts end, above and below 0.
        charts: LayerNorm's, then RMSNorm's.
    """

    kind: str
    title: str
    reach: float
    charts: tuple[Chart, ...]

    @property
    def reach_text(self) -> str:
        """Where they end, as text."""
        return units.plain(self.reach)


def render(walk: Walkthrough) -> str:
    """The page of a walkthrough."""
    environment = templating.environment(autoescape=True)
    environment.filters["room"] = _room
    return environment.get_template("walkthrough.html.j2").render(
        found=walkthrough.explained(walk),
        names={str(op): name for op, name in walkthrough.NAMES.items()},
        notes=(*walkthrough.EQUALITY, walkthrough.SHIFT, walkthrough.SCALE),
        no_number=walkthrough.NO_NUMBER,
        speed=_coded(walkthrough.SPEED),
        not_computed=walkthrough.NOT_COMPUTED,
        absent=units.ABSENT,
        groups=groups(walk.example),
        rows=rows(walk),
        given=vars(walk.example),
    )


def _room(figures: Figures) -> float:
    """How wide the longest number is, in digits: a point is half of one, a plus a little more than one."""
    return max((len(text) - (0.0 if "+" in text else 0.5) for text in figures.texts or ()), default=0.0)


def _coded(text: str) -> Markup:
    """A text whose commands, between backticks, are set as such."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)
    )


def groups(example: Example) -> tuple[Group, ...]:
    """The sliders: one for each value, one for a parameter that is the same for all of them, else one for each."""
    x = example.values
    return (
        Group(title="Values of x", sliders=_each("values", "x", x, x)),
        Group(
            title="What is done to x",
            sliders=(
                _linear("shift", "shift", example.shift, (example.shift, *x)),
                _linear("scale", "scale", example.scale, (example.scale, _LEAST_SCALE)),
            ),
        ),
        Group(
            title="Parameters of the norms",
            sliders=(_eps(example.eps), *_parameter("gain", example.gain), *_parameter("bias", example.bias)),
        ),
    )


def _parameter(name: str, values: Sequence[float]) -> tuple[Slider, ...]:
    within = (*values, _LEAST_PARAMETER)
    return (_linear(name, name, values[0], within),) if len(set(values)) == 1 else _each(name, name, values, within)


def _each(name: str, label: str, values: Sequence[float], within: Sequence[float]) -> tuple[Slider, ...]:
    return tuple(_linear(f"{name}.{i}", f"{label} {i + 1}", value, within) for i, value in enumerate(values))


def _linear(path: str, label: str, value: float, within: Sequence[float]) -> Slider:
    """A slider to either side of 0, far enough for all of some numbers."""
    largest = max(map(abs, within))
    reach = _nice(max(largest, _LEAST_REACH) if largest else _USUAL, _STEADY)
    step = float(f"{reach / _POSITIONS:.3g}")
    return Slider(path=path, label=label, text=units.plain(value), low=-reach, high=reach, step=step, position=value)


def _eps(eps: float) -> Slider:
    """A logarithmic slider, whose least position is 0."""
    low, high = _EPS_POWERS
    power = math.log10(eps) if eps else low
    if eps:
        low, high = min(low, math.floor(power) - 1), max(high, math.ceil(power))
    return Slider(path="eps", label="eps", text=units.plain(eps), low=low, high=high, step=_EPS_STEP, position=power)


def _nice(least: float, factors: Sequence[float]) -> float:
    """The smallest of some factors times a power of ten that is no less than a number above 0."""
    power = int(f"{least:e}".partition("e")[2])
    return next(nice for factor in factors if (nice := float(f"{factor}e{power}")) >= least)


def rows(walk: Walkthrough) -> tuple[Row, ...]:
    """The charts: x against what each norm measures it by, the output, and what a shift and a scale make of it."""
    shift, scale = walkthrough.shifted(walk.example.shift), walkthrough.scaled(walk.example.scale)
    outputs = [norm.output for norm in walk.norms]
    return (
        _input_row(walk),
        _row(walk, "output", "y, the output", outputs),
        _row(walk, "shifted", f"y of {shift}", [norm.shifted.after for norm in walk.norms]),
        _row(walk, "scaled", f"y of {scale}", [norm.scaled.after for norm in walk.norms]),
    )


def _row(walk: Walkthrough, kind: str, title: str, shown: Sequence[Sequence[float]]) -> Row:
    before = [norm.output for norm in walk.norms]
    reach = _chart_reach([value for values in (*shown, *before) for value in values])
    charts = [
        Chart(name=walkthrough.NAMES[norm.op], op=norm.op, bars=_bars(values, norm.output, reach))
        for norm, values in zip(walk.norms, shown, strict=True)
    ]
    return Row(kind=kind, title=title, reach=reach, charts=tuple(charts))


def _input_row(walk: Walkthrough) -> Row:
    x = walk.example.values
    bands = [_band(norm) for norm in walk.norms]
    reach = _chart_reach([*x, *(end for centre, root in bands for end in (centre - root, centre + root))])
    charts = [
        Chart(
            name=walkthrough.NAMES[norm.op],
            op=norm.op,
            bars=_bars(x, x, reach),
            band=Band(
                centre=centre / reach,
                spread=root / reach,
                centre_text=units.plain(centre, _SHORT),
                root_text=units.plain(root, _SHORT),
            ),
        )
        for norm, (centre, root) in zip(walk.norms, bands, strict=True)
    ]
    return Row(kind="input", title="x, and the unit that each norm measures it by", reach=reach, charts=tuple(charts))


def _band(norm: NormWalk) -> tuple[float, float]:
    """Where a norm measures from, and in which unit."""
    found = {step.name: step.figures for step in norm.steps}
    (root,), (centre,) = found[StepName.ROOT] or (), found[StepName.MEAN] or (0.0,)
    return centre, root


def _chart_reach(values: Sequence[float]) -> float:
    return _nice(_ROOM * max(abs(value) for value in (*values, 0) if math.isfinite(value)) or 1.0, _CLOSE)


def _bars(values: Sequence[float], before: Sequence[float], reach: float) -> tuple[Bar, ...]:
    pairs = zip(values, before, strict=True)
    return tuple(
        Bar(height=_share(value, reach), shadow=_share(other, reach), text=units.plain(value, _SHORT))
        for value, other in pairs
    )


def _share(value: float, reach: float) -> float:
    """A height as a share of the reach; what is infinite ends there, and what is no number has none."""
    return 0.0 if math.isnan(value) else max(-1.0, min(1.0, value / reach))
