"""What ``explain`` says, in the words that terminal, markdown and page share; numbers as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from normbench import units
from normbench.records import Op
from normbench.walkthrough import Effect, Example, NormWalk, Step, StepName, Walkthrough

NAMES = {Op.LAYERNORM: "LayerNorm", Op.RMSNORM: "RMSNorm"}
NOT_COMPUTED = "not computed"
"""What stands where a norm has no such step."""

TITLES = {
    StepName.VALUES: "values",
    StepName.MEAN: "mean",
    StepName.CENTRED: "centred",
    StepName.SQUARES: "squares",
    StepName.MEAN_OF_SQUARES: "mean of squares",
    StepName.PLUS_EPS: "+ eps",
    StepName.ROOT: "root",
    StepName.DIVIDED: "divided by the root",
    StepName.TIMES_GAIN: "× gain",
    StepName.PLUS_BIAS: "+ bias",
}

FORMULAS = {
    StepName.VALUES: ("x", "x"),
    StepName.MEAN: ("m = mean of x", ""),
    StepName.CENTRED: ("c = x − m", ""),
    StepName.SQUARES: ("c²", "x²"),
    StepName.MEAN_OF_SQUARES: ("v = mean of c², the variance", "v = mean of x²"),
    StepName.PLUS_EPS: ("v + eps", "v + eps"),
    StepName.ROOT: ("r = √(v + eps)", "r = √(v + eps)"),
    StepName.DIVIDED: ("n = c ÷ r", "n = x ÷ r"),
    StepName.TIMES_GAIN: ("n × gain", "y = n × gain"),
    StepName.PLUS_BIAS: ("y = … + bias", ""),
}
"""Of LayerNorm and of RMSNorm."""

EQUALITY = (
    "Mean of squares = variance + mean²: RMSNorm's root is at least as large as LayerNorm's, and where the mean is 0 "
    "both give the same but for the bias",
    "LayerNorm's mean of squares is the variance of all N values: ÷ N, not ÷ (N - 1)",
)
SHIFT = (
    "LayerNorm subtracts the mean, and a shift with it: of a shift only rounding is left. RMSNorm subtracts nothing, "
    "so that a shift reaches its output"
)
SCALE = (
    "Dividing by the root takes a scale out of both norms, but for the sign of a negative one. eps, inside the root, "
    "breaks that: the more, the smaller the values are"
)
NO_NUMBER = "NaN is 0 ÷ 0 and inf a number ÷ 0: where eps is 0 a root can be 0. That is what eps is for"
SPEED = (
    "In one fused kernel each reads x once and writes y once: the bytes differ by one parameter vector alone, "
    "whatever the number of rows. Saved arithmetic is no saved time where bytes or launches set it, and "
    "`normbench sweep` measures which does"
)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Some numbers, as text.

    Args:
        path: Where they stand in what ``--json`` prints of the norms: ``layernorm.steps.mean``.
        texts: The numbers; None where they are not computed.
        formula: How they come about; empty where that is said elsewhere.
    """

    path: str
    texts: tuple[str, ...] | None
    formula: str = ""

    @property
    def line(self) -> str:
        """All of them as one text."""
        return NOT_COMPUTED if self.texts is None else "  ".join(self.texts)

    @property
    def width(self) -> int:
        """Characters of the longest number."""
        return max(map(len, self.texts or ()), default=0)


@dataclass(frozen=True, kw_only=True)
class StepLine:
    """A step of both norms."""

    number: int
    title: str
    norms: tuple[Figures, Figures]


@dataclass(frozen=True, kw_only=True)
class EffectLine:
    """A norm's output of some input.

    Args:
        norm: The norm's name.
        op: Its word.
        kind: ``output``, ``shifted`` or ``scaled``.
        input: What it is of: ``x``, ``x + 1``.
        output: The output.
        change: The largest difference from the output of x.
        broken: Of a scale, what eps breaks invariance by.
    """

    norm: str
    op: Op
    kind: str
    input: str
    output: Figures
    change: Figures | None = None
    broken: Figures | None = None


@dataclass(frozen=True, kw_only=True)
class Need:
    """What each norm needs of something."""

    what: str
    layernorm: str
    rmsnorm: str


@dataclass(frozen=True, kw_only=True)
class Explained:
    """A walkthrough in words."""

    title: str
    given: str
    steps: tuple[StepLine, ...]
    effects: tuple[EffectLine, ...]
    needs: tuple[Need, ...]
    has_no_number: bool

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on the numbers."""
        return (*EQUALITY, SHIFT, SCALE, *([NO_NUMBER] if self.has_no_number else ()))


def explained(walk: Walkthrough) -> Explained:
    """Put a walkthrough into words."""
    example = walk.example
    return Explained(
        title=f"LayerNorm and RMSNorm of {_listed(example.values)}",
        given=f"eps {units.plain(example.eps)}, gain {_parameter(example.gain)}, bias {_parameter(example.bias)}",
        steps=tuple(_step_line(number, walk) for number in range(len(StepName))),
        effects=tuple(line for norm in walk.norms for line in _effect_lines(norm, example)),
        needs=_needs(walk),
        has_no_number=not all(map(math.isfinite, _outputs(walk))),
    )


def _listed(values: Sequence[float]) -> str:
    return ", ".join(map(units.plain, values))


def _parameter(values: Sequence[float]) -> str:
    return _listed(values[:1] if len(set(values)) == 1 else values)


def shifted(shift: float) -> str:
    """X with a shift: ``x + 1``, ``x - 3``."""
    return f"x {'-' if shift < 0 else '+'} {units.plain(abs(shift))}"


def scaled(scale: float) -> str:
    """X with a scale: ``x × 2``."""
    return f"x × {units.plain(scale)}"


def _step_line(index: int, walk: Walkthrough) -> StepLine:
    both = [norm.steps[index] for norm in walk.norms]
    name = both[0].name
    figures = [
        _figures(f"{norm.op}.steps.{name}", step, formula)
        for norm, step, formula in zip(walk.norms, both, FORMULAS[name], strict=True)
    ]
    return StepLine(number=index + 1, title=TITLES[name], norms=(figures[0], figures[1]))


def _figures(path: str, step: Step, formula: str) -> Figures:
    return Figures(path=path, texts=None if step.figures is None else units.figures(step.figures), formula=formula)


def _effect_lines(norm: NormWalk, example: Example) -> tuple[EffectLine, ...]:
    output = Figures(path=f"{norm.op}.output", texts=units.figures(norm.output))
    return (
        EffectLine(norm=NAMES[norm.op], op=norm.op, kind="output", input="x", output=output),
        _effect_line(norm, "shifted", shifted(example.shift), norm.shifted),
        _effect_line(norm, "scaled", scaled(example.scale), norm.scaled),
    )


def _effect_line(norm: NormWalk, kind: str, of: str, effect: Effect) -> EffectLine:
    def figures(name: str, values: tuple[float, ...]) -> Figures:
        return Figures(path=f"{norm.op}.{kind}.{name}", texts=units.figures(values))

    broken = () if effect.from_invariance is None else (effect.from_invariance,)
    return EffectLine(
        norm=NAMES[norm.op],
        op=norm.op,
        kind=kind,
        input=of,
        output=figures("after", effect.after),
        change=figures("largest_change", (effect.largest_change,)),
        broken=figures("from_invariance", broken) if kind == "scaled" else None,
    )


def _needs(walk: Walkthrough) -> tuple[Need, ...]:
    layernorm, rmsnorm = walk.norms
    return (
        Need(
            what="parameters",
            layernorm=f"2N = {layernorm.parameters}: gain and bias",
            rmsnorm=f"N = {rmsnorm.parameters}: gain",
        ),
        Need(what="reductions over the row", layernorm=_reductions(layernorm), rmsnorm=_reductions(rmsnorm)),
    )


def _reductions(norm: NormWalk) -> str:
    return f"{len(norm.reductions)}: {units.join(norm.reductions)}"


def _outputs(walk: Walkthrough) -> list[float]:
    return [value for norm in walk.norms for value in (*norm.output, *norm.shifted.after, *norm.scaled.after)]
