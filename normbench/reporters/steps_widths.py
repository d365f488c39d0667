"""Where the answer of a run of steps changes along the widths, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from normbench import crossover, units
from normbench.crossover import Stretch
from normbench.records import Outcome, Reason, StepCell, StepComparison, StepRun
from normbench.reporters import statements

WORDS = {
    Outcome.SLOWER: "longer",
    Outcome.FASTER: "shorter",
    Outcome.SAME: "no difference",
    Outcome.UNDECIDED: "undecided",
}
"""What a step is with a candidate's norms, beside one with the baseline's."""


def along_widths(run: StepRun) -> list[str]:
    """For each kind of model of several widths: whether and where the answer changes, alike candidates together."""
    lines = []
    for cells in groups(run.results_by_cell):
        if len(cells) > 1:
            said: dict[str, list[str]] = {}
            for name in run.header.plan.implementations:
                found = [c for cell in cells if (c := run.comparisons_by_cell.get(cell, {}).get(name)) is not None]
                if found:
                    said.setdefault(_along(found), []).append(name)
            lines += [
                f"{statements.capital(describe_kind(cells[0]))}, {units.join(names)}: {s}."
                for s, names in said.items()
            ]
    return lines


def groups(cells: Mapping[StepCell, object] | Sequence[StepCell]) -> list[tuple[StepCell, ...]]:
    """Cells that differ in width and heads alone, each group by ascending width."""
    found: dict[StepCell, list[StepCell]] = {}
    for cell in cells:
        found.setdefault(replace(cell, shape=replace(cell.shape, width=1, heads=1)), []).append(cell)
    return [tuple(sorted(group, key=lambda cell: (cell.shape.width, cell.shape.heads))) for group in found.values()]


def describe_kind(cell: StepCell) -> str:
    """What cells of a group share: ``eager model, fp32, 4 layers, 8×256 tokens``."""
    shape = cell.shape
    model = "compiled model" if cell.compiled else "eager model"
    layers = units.count(shape.layers, "layer")
    return f"{model}, {describe_format(cell)}, {layers}, {shape.batch}×{shape.context} tokens"


def _along(comparisons: Sequence[StepComparison]) -> str:
    found = crossover.stretches(comparisons, lambda c: c.cell.shape.width, _answer)
    if len(found) == 1:
        return f"at all widths, {units.numbers(found[0].widths)}: {found[0].answer}"
    decided = [stretch for stretch in found if stretch.items[0].outcome is not Outcome.UNDECIDED]
    between = [
        f"between width {one.widths[-1]} and {other.widths[0]}"
        for one, other in pairwise(decided)
        if one.answer != other.answer
    ]
    parts = units.join([_stretch(stretch) for stretch in found])
    return f"the answer changes {units.join(between)}: {parts}" if between else parts


def _answer(comparison: StepComparison) -> str:
    if comparison.reason in (Reason.NO_CANDIDATE, Reason.NO_BASELINE):
        return "no time"
    return WORDS[comparison.outcome]


def _stretch(stretch: Stretch[str, StepComparison]) -> str:
    values = sorted(c.as_long.value for c in stretch.items if c.as_long is not None)
    ratios = f" ({value_range(values)} times as long)" if values else ""
    return f"{stretch.answer} {statements.along(stretch).removesuffix(': ')}{ratios}"


def value_range(values: Sequence[float]) -> str:
    """The least and the largest of ascending ratios of times; one where they are written alike."""
    low, high = units.as_long(values[0]), units.as_long(values[-1])
    return low if low == high else f"{low} to {high}"


def describe_format(cell: StepCell) -> str:
    """The parameters' dtype, and autocast: ``fp32 with autocast bf16``."""
    return f"{cell.dtype} with autocast {cell.autocast}" if cell.autocast else str(cell.dtype)
