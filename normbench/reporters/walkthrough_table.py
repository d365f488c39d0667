"""``explain`` on the terminal: the ten steps, what a shift and a scale do, what each norm needs."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from normbench import units
from normbench.reporters import sheet, walkthrough
from normbench.reporters.sheet import Field, Sheet
from normbench.reporters.terminal import say
from normbench.reporters.walkthrough import EffectLine, Explained, Figures

_NORMS = tuple(walkthrough.NAMES.values())
_ABSENT = "dim"


def show(found: Explained, out: Console) -> None:
    """Print it."""
    sheet.show(_steps(found), out)
    sheet.show(_effects(found), out)
    sheet.show(_needs(found), out)
    for line in (*found.notes, walkthrough.SPEED):
        say(out, f"{line}.")


def _steps(found: Explained) -> Sheet:
    widths = [max(line.norms[column].width for line in found.steps) for column in range(len(_NORMS))]
    return Sheet(
        title=f"{found.title} in ten steps ({found.given})",
        heads=("step", *_NORMS),
        rows=[(f"{line.number:>2} {line.title}", *map(_beneath, line.norms, widths)) for line in found.steps],
        wrapped=frozenset({1, 2}),
    )


def _beneath(figures: Figures, width: int) -> Field:
    """Numbers as wide as the widest of their norm, so that they stand beneath each other."""
    if figures.texts is None:
        return Text(walkthrough.NOT_COMPUTED, style=_ABSENT)
    return "  ".join(text.rjust(width) for text in figures.texts)


def _effects(found: Explained) -> Sheet:
    width = max(line.output.width for line in found.effects)
    return Sheet(
        title="What a shift and a scale of x do to the output",
        heads=("norm", "of", "output", "largest change", "eps breaks it by"),
        rows=[_effect(line, width) for line in found.effects],
        names=2,
        wrapped=frozenset({2}),
    )


def _effect(line: EffectLine, width: int) -> tuple[Field, ...]:
    return line.norm, line.input, _beneath(line.output, width), number(line.change), number(line.broken)


def number(figures: Figures | None) -> str:
    """One number; nothing where none is asked, a dash where there is none."""
    return "" if figures is None else figures.line or units.ABSENT


def _needs(found: Explained) -> Sheet:
    return Sheet(
        title="What each needs for a row of N values",
        heads=("", *_NORMS),
        rows=[(need.what, need.layernorm, need.rmsnorm) for need in found.needs],
        wrapped=frozenset({1, 2}),
    )
