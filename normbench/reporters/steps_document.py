"""A report of steps as data: everything that the markdown, the page and the console say, as plain text."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from normbench import units
from normbench.records import Outcome, Part, Status, StepCell, StepResult, StepRun
from normbench.reporters import (
    brought,
    method,
    statements,
    steps,
    steps_gap,
    steps_learning,
    steps_method,
    steps_trust,
    steps_widths,
    trust,
)
from normbench.reporters.steps_gap import GapLine
from normbench.reporters.steps_learning import CurveLine, LearningLine

HEADS = (
    *("implementation", "step", "÷ baseline", "outcome", "tokens/s", "forward", "backward", "optimizer", "peak"),
    *("saved", "parameters", "norms' share", "flags"),
)
"""The heads of a cell's table."""

LEARNING_HEADS = ("implementation", "runs", "bits per byte", "difference", "seed noise", "verdict")
"""The heads of the table of what was learnt."""

GAP_HEADS = ("candidate", "where", "one norm alone", "predicted", "measured", "gap")
"""The heads of the table of predicted against measured."""

NUMBERS = (1, 2, 4, 5, 6, 7, 8, 9, 10, 11)
"""Which columns of a cell's table are numbers."""


@dataclass(frozen=True, kw_only=True)
class StepLine:
    """One variant's row in a cell's table, as text."""

    name: str
    step: str
    ratio: str
    outcome: str
    tokens: str
    forward: str
    backward: str
    optimizer: str
    peak: str
    saved: str
    parameters: str
    share: str
    flags: str


@dataclass(frozen=True, kw_only=True)
class StepTable:
    """The variants of a cell."""

    title: str
    lines: tuple[StepLine, ...]


@dataclass(frozen=True, kw_only=True)
class StepDocument:
    """A report of steps. Text is plain: whoever shows it escapes it.

    Sentences end with a full stop, except the headline. What there is nothing to say about is empty.
    """

    headline: str
    swaps: tuple[str, ...]
    along: tuple[str, ...]
    learned: tuple[str, ...]
    notes: tuple[str, ...]
    parameters: tuple[str, ...]
    unmeasured: tuple[tuple[str, str, str], ...]
    brought: tuple[brought.Row, ...]
    tables: tuple[StepTable, ...]
    gaps: tuple[GapLine, ...]
    explanations: tuple[str, ...]
    shares: tuple[str, ...]
    learning: tuple[LearningLine, ...]
    corpora: tuple[str, ...]
    curves: tuple[CurveLine, ...]
    trust: tuple[str, ...]
    method: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    baseline: str
    margin: str
    command: str


def of_run(run: StepRun) -> StepDocument:
    """The report of a run of steps."""
    plan = run.header.plan
    training = plan.training
    return StepDocument(
        headline=steps.headline(run),
        swaps=tuple(steps.swaps(run)) if len(run.results_by_cell) > 1 else (),
        along=tuple(steps_widths.along_widths(run)),
        learned=tuple(steps_learning.sentences(run)) if training else (),
        notes=tuple(steps.notes(run)),
        parameters=tuple(steps.parameters(run)),
        unmeasured=tuple(steps_trust.unmeasured(run)),
        brought=brought.rows(run.header.implementations),
        tables=tuple(_table(run, cell) for cell in run.results_by_cell),
        gaps=tuple(steps_gap.lines(run)),
        explanations=tuple(steps_gap.explanations(run)),
        shares=tuple(steps_gap.shares(run)),
        learning=tuple(steps_learning.lines(run)) if training else (),
        corpora=tuple(corpus.name for corpus in training.corpora) if training else (),
        curves=tuple(steps_learning.curve_lines(run)),
        trust=(*steps_trust.noise_notes(run), *_spent(run), *steps_trust.flag_notes(run)),
        method=tuple(steps_method.sentences(run)),
        environment=tuple(method.made(run.header.device, run.header.environment, run.header.created_utc)),
        baseline=plan.baseline,
        margin=units.percent(plan.precision.margin),
        command=shlex.join(run.header.command),
    )


def _spent(run: StepRun) -> list[str]:
    waiting = run.spent.flushing_s  # nothing is flushed: it is for the device that was waited, before the clock began
    spent = replace(run.spent, flushing_s=0.0, preparing_s=run.spent.preparing_s + waiting)
    said = trust.time_note(spent, "Timing steps")
    return [] if said is None else [said]


def _table(run: StepRun, cell: StepCell) -> StepTable:
    results = run.results_by_cell[cell]
    names = [name for name in run.header.plan.implementations if name in results]
    return StepTable(
        title=statements.capital(str(cell)), lines=tuple(_line(run, cell, results[name]) for name in names)
    )


def _line(run: StepRun, cell: StepCell, result: StepResult) -> StepLine:
    comparison = run.comparisons_by_cell.get(cell, {}).get(result.implementation)
    ratio = comparison.as_long if comparison else None
    share = steps_gap.share_of(run, cell, result.implementation)
    step = result.times.get(Part.STEP)
    forward, backward, optimizer = (_time(result, part) for part in (Part.FORWARD, Part.BACKWARD, Part.OPTIMIZER))
    return StepLine(
        name=result.implementation,
        step=units.measured(step.value, step.low, step.high) if step else units.ABSENT,
        ratio=units.as_long(ratio.value, ratio.low, ratio.high) if ratio else units.ABSENT,
        outcome=outcome_word(run, result),
        tokens=units.rate(result.tokens_per_s),
        forward=forward,
        backward=backward,
        optimizer=optimizer,
        peak=units.size(result.peak_memory_bytes),
        saved=units.size(result.saved_bytes),
        parameters=units.whole(result.parameters),
        share=units.ABSENT if share is None else units.percent(share),
        flags=", ".join(result.flags),
    )


def _time(result: StepResult, part: Part) -> str:
    estimate = result.times.get(part)
    return units.duration(estimate.value if estimate else None)


def outcome_word(run: StepRun, result: StepResult) -> str:
    """What a result is in its cell: baseline, an outcome, or the status that it has instead of a time."""
    if result.status is not Status.OK:
        return str(result.status)
    if result.implementation == run.header.plan.baseline:
        return "baseline"
    comparison = run.comparisons_by_cell.get(result.cell, {}).get(result.implementation)
    return str(comparison.outcome if comparison else Outcome.UNDECIDED)
