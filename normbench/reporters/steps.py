"""A run of steps in words: what swapping the norms does to the step, where that changes, and what it rests on."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from normbench import units
from normbench.records import (
    Estimate,
    Flag,
    ModelShape,
    Outcome,
    Status,
    StepCell,
    StepComparison,
    StepResult,
    StepRun,
)
from normbench.reporters import statements, steps_learning
from normbench.reporters.meanings import REASONS
from normbench.reporters.steps_widths import WORDS, describe_format, value_range

MOST_NAMES = 8
"""More candidates than this are counted in a headline, not named."""

_WIDTH_OPTIONS = ("--widths", "--width")


def headline(run: StepRun) -> str:
    """The answer, in a sentence without its full stop."""
    if run.header.plan.training is not None:
        return steps_learning.headline(run)
    on = f"On {statements.clipped(run.header.device.name)}"
    compared = [comparison for comparison in run.comparisons if comparison.speedup is not None]
    if not compared:
        return f"{on}: no verdict, since {_why_none(run)}"
    busy = "Not reliable, since other programs ran beside it: " if _is_busy(run) else ""
    cells = tuple(dict.fromkeys(comparison.cell for comparison in compared))
    if len(cells) == 1:
        return f"{busy}{on}, {cells[0]}: {swap(run, cells[0], MOST_NAMES)}"
    return f"{busy}{on}, {_everywhere(cells)}: {_overall(run)}"


def _is_busy(run: StepRun) -> bool:
    return any(Flag.BUSY_MACHINE in result.flags for result in run.results)


def _why_none(run: StepRun) -> str:
    baseline = run.header.plan.baseline
    if all(result.status is Status.NOT_RUN for result in run.results):
        return "nothing has been measured yet"
    timed = any(r.implementation == baseline and r.status is Status.OK for r in run.results)
    return f"nothing was compared with {baseline}" if timed else f"the baseline {baseline} has no time"


def _everywhere(cells: Sequence[StepCell]) -> str:
    formats = units.join(list(dict.fromkeys(describe_format(cell) for cell in cells)))
    models = units.join(list(dict.fromkeys("compiled" if cell.compiled else "eager" for cell in cells)))
    return f"{statements.at(sorted({cell.shape.width for cell in cells}))}, {formats}, {models} model"


def _overall(run: StepRun) -> str:
    """Each candidate's answer over all cells."""
    by_candidate: dict[str, list[StepComparison]] = {}
    for comparison in _ratios_first(run.comparisons):
        by_candidate.setdefault(comparison.candidate, []).append(comparison)
    baseline = run.header.plan.baseline
    parts: list[str] = []
    for name, found in by_candidate.items():
        parts.append(f"{f'swapping {baseline} ' if not parts else ''}for {name}{_does(found, is_next=bool(parts))}")
    return "; ".join(statements.first_few(parts, MOST_NAMES, "and "))


def _ratios_first(comparisons: Iterable[StepComparison]) -> list[StepComparison]:
    """Those that could be compared before those that could not."""
    return sorted(comparisons, key=lambda comparison: comparison.speedup is None)


def _does(comparisons: Sequence[StepComparison], *, is_next: bool) -> str:
    """What a candidate does to the step over several cells; counted where they don't agree."""
    outcomes = Counter(comparison.outcome for comparison in comparisons)
    values = sorted(c.as_long.value for c in comparisons if c.as_long is not None)
    if not values:
        return ": there is no time"
    ranged = f"{value_range(values)} times as long"
    if len(outcomes) == 1:
        if Outcome.SAME in outcomes:
            return " no difference" if is_next else " makes no difference to the step"
        if Outcome.UNDECIDED in outcomes:
            return f": undecided (estimates {ranged})"
        return f" {ranged}" if is_next else f" makes the step {ranged}"
    counts = units.join([f"{WORDS[outcome]} in {outcomes[outcome]}" for outcome in WORDS if outcome in outcomes])
    return f": {counts} of {len(comparisons)} cells (estimates {ranged})"


def swap(run: StepRun, cell: StepCell, most: int | None = None) -> str:
    """What each candidate does to the step of a cell, in a sentence without its full stop.

    Args:
        run: The run.
        cell: One that was measured.
        most: More candidates than this are counted.
    """
    comparisons = _ratios_first(run.comparisons_by_cell.get(cell, {}).values())
    results = run.results_by_cell[cell]
    if not comparisons:
        return f"nothing was compared with {run.header.plan.baseline}"
    first = _first(comparisons[0], results[comparisons[0].candidate])
    rest = [f"for {c.candidate} {_next(c, results[c.candidate])}" for c in comparisons[1:]]
    return "; ".join(statements.first_few([first, *rest], most, "and "))


def _first(comparison: StepComparison, result: StepResult) -> str:
    swapping = f"swapping {comparison.baseline} for {comparison.candidate}"
    if comparison.outcome in (Outcome.SLOWER, Outcome.FASTER):
        return f"{swapping} makes this step {_next(comparison, result)}"
    if comparison.outcome is Outcome.SAME:
        return f"{swapping} makes no difference to this step ({interval(comparison.as_long)})"
    return f"{swapping}: {_next(comparison, result)}"


def _next(comparison: StepComparison, result: StepResult) -> str:
    found = comparison.as_long
    if found is None:
        return f"no time ({result.status})" if result.status is not Status.OK else f"no ratio ({_why(comparison)})"
    if comparison.outcome is Outcome.SAME:
        return f"no difference ({interval(found)})"
    if comparison.outcome is Outcome.UNDECIDED:
        return f"undecided ({interval(found)}: {_why(comparison)})"
    return f"{units.as_long(found.value)} times as long ({interval(found)})"


def _why(comparison: StepComparison) -> str:
    return REASONS[comparison.reason]


def interval(found: Estimate | None) -> str:
    """The ends of a ratio of times, ``1.079 to 1.095``; its value where it has none."""
    if found is None:
        return units.ABSENT
    if found.low is None or found.high is None:
        return units.as_long(found.value)
    return f"{units.as_long(found.low)} to {units.as_long(found.high)}"


def swaps(run: StepRun) -> list[str]:
    """What each candidate does to the step, a sentence for each cell that was measured."""
    return [f"{statements.capital(str(cell))}: {swap(run, cell)}." for cell in run.results_by_cell]


def notes(run: StepRun) -> list[str]:
    """What must be known to read the answer, a sentence each."""
    device = [] if run.header.plan.training else statements.device_notes(run)  # what is learnt is no device's
    return [*device, *_meaning(run), *_quick(run), *_missing(run), *_elsewhere(run)]


def _meaning(run: StepRun) -> Iterator[str]:
    training = run.header.plan.training
    if training is not None:
        yield (
            f"{units.count(training.steps, 'step')} of a model of this size say nothing about a larger one that is "
            "trained for long, nor about other learning rates."
        )
    elif len({info.op for info in run.header.implementations}) > 1:
        yield (
            "LayerNorm and RMSNorm are different functions: swapping one for the other changes the model. What that "
            "does to what it learns, --train measures."
        )


def _quick(run: StepRun) -> Iterator[str]:
    if run.header.plan.quick:
        yield "Less was asked for than by default (--quick): intervals are wider, and the answer is a first one."


def _missing(run: StepRun) -> Iterator[str]:
    if run.missing:
        cells = len(run.header.plan.cells)
        few = "; ".join(statements.first_few([str(cell) for cell in run.missing], MOST_NAMES))
        yield (
            f"This run is incomplete: {len(run.missing)} of {units.count(cells, 'cell')} "
            f"{'lacks' if len(run.missing) == 1 else 'lack'} a final status: {few}."
        )
    if run.untrained:
        plan = run.header.plan
        every = len(plan.training.seeds if plan.training else ()) * len(plan.implementations)
        yield (
            f"This run is incomplete: {len(run.untrained)} of {every} runs "
            f"{'is' if len(run.untrained) == 1 else 'are'} still to be trained to the end."
        )


def _elsewhere(run: StepRun) -> Iterator[str]:
    """How to ask at another width, where there was one alone."""
    widths = {cell.shape.width for cell in run.header.plan.cells}
    if len(widths) == 1 and any(comparison.speedup is not None for comparison in run.comparisons):
        other = 2 * widths.pop()
        yield f"At another width the answer may be another; re-measure at width {other}: {at_width(run, other)}"


def at_width(run: StepRun, width: int) -> str:
    """The run's command with another width in place of its own."""
    kept: list[str] = []
    place, dropping = None, False
    for word in run.header.command:
        if word.startswith("-"):
            dropping = word.partition("=")[0] in _WIDTH_OPTIONS
        if not dropping:
            kept.append(word)
        elif place is None:
            place = len(kept)
    place = len(kept) if place is None else place
    return shlex.join([*kept[:place], "--widths", str(width), *kept[place:]])


def parameters(run: StepRun) -> list[str]:
    """How many parameters candidates save or add in each model, alike ones together, a sentence each."""
    header, lines = run.header, []
    training = header.plan.training
    shapes = [training.shape] if training else [cell.shape for cell in run.results_by_cell]
    for shape in dict.fromkeys(shapes):
        base = shape.parameters(header.info(header.plan.baseline).op)
        by_count: dict[int, list[str]] = {}
        for info in header.implementations:
            by_count.setdefault(shape.parameters(info.op), []).append(info.name)
        lines += [_parameters(shape, base, count, names) for count, names in by_count.items() if count != base]
    return lines


def _parameters(shape: ModelShape, base: int, count: int, names: Sequence[str]) -> str:
    changed = f"{units.whole(abs(count - base))} {'fewer' if count < base else 'more'} parameters"
    return (
        f"Width {shape.width}, {units.count(shape.layers, 'layer')}: {changed} "
        f"({units.whole(base)} → {units.whole(count)}) with {units.join(names)}."
    )
