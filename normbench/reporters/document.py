"""A report of a run as data: everything that the markdown and the HTML page say, as plain text, in their order."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from normbench import bounds, units, verdict
from normbench.records import CaseResult, Cell, Flag, Outcome, Run
from normbench.reporters import (
    against,
    brought,
    caveats,
    completeness,
    headline,
    mermaid,
    method,
    recommendation,
    statements,
    swapping,
    traffic,
    trust,
)
from normbench.reporters import gate as gates
from normbench.reporters.gate import GateRow
from normbench.reporters.headline import Headline
from normbench.reporters.mermaid import Chart
from normbench.reporters.recommendation import Recommendation
from normbench.run_gate import RunGate

_OF_THE_CELL = (Flag.CACHE_RESIDENT, Flag.NEAR_CACHE_SIZE)
"""Flags that mostly hold for a whole cell: said below the tables, and in results.csv, not in every line."""


@dataclass(frozen=True, kw_only=True)
class ResultLine:
    """One result's row, as text."""

    width: int
    name: str
    time: str
    wall: str
    graph: str
    floor: str
    speedup: str
    outcome: str
    flags: str


@dataclass(frozen=True, kw_only=True)
class ResultTable:
    """The results of cells that differ in their width alone."""

    title: str
    lines: tuple[ResultLine, ...]


@dataclass(frozen=True, kw_only=True)
class SwapLine:
    """Whether RMSNorm pays in cells that differ in their width alone: an answer for each provider, in order."""

    what: str
    rows: int
    cache: str
    answers: tuple[str, ...]
    but: str


@dataclass(frozen=True, kw_only=True)
class StandingLine:
    """How one candidate did over all cells of a mode, as text."""

    mode: str
    candidate: str
    speedups: str
    faster: int
    same: int
    slower: int
    undecided: int
    but: str


@dataclass(frozen=True, kw_only=True)
class ReachLine:
    """What share of the floor's bandwidth is reached, as text."""

    where: str
    floor: str
    shares: str


@dataclass(frozen=True, kw_only=True)
class Document:
    """A report. Text is plain: whoever shows it escapes it.

    Every field is a sentence, a list of sentences, or the rows of a table, so that a report with little room can
    take the first of each.
    """

    headline: Headline
    gate: str | None
    gate_rows: tuple[GateRow, ...]
    notes: tuple[str, ...]
    baseline: str
    margin: str
    has_wall: bool
    has_graphs: bool
    recommendations: tuple[Recommendation, ...]
    providers: tuple[str, ...]
    swaps: tuple[SwapLine, ...]
    questions: tuple[str, ...]
    unmeasured: tuple[tuple[str, str, str], ...]
    brought: tuple[brought.Row, ...]
    charts: tuple[Chart, ...]
    standings: tuple[StandingLine, ...]
    results: tuple[ResultTable, ...]
    profiles: tuple[traffic.CellTable, ...]
    trust: tuple[str, ...]
    reaches: tuple[ReachLine, ...]
    flags: tuple[str, ...]
    method: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    command: str


def of_run(run: Run, gate: RunGate | None = None) -> Document:
    """The report of a run, and of what its gate found where it has one."""
    found, flags, plan = verdict.of_run(run), bounds.flags(run), run.header.plan
    swaps = [swapping.by_provider(run, group.cells) for group in found.groups]
    providers = tuple(dict.fromkeys(provider for line in swaps for provider in line))
    charts = (mermaid.chart(run, group.cells, flags) for group in found.groups)
    return Document(
        headline=headline.headline(run, found, flags),
        gate=None if gate is None else gates.sentence(gate),
        gate_rows=() if gate is None else gates.section(gate, plan).rows,
        notes=(
            *against.notes(run),
            *statements.device_notes(run),
            *statements.advice_notes(run, found),
            *completeness.notes(run),
        ),
        baseline=plan.baseline,
        margin=units.percent(plan.precision.margin),
        has_wall=run.header.device.kind != "cpu",
        has_graphs=plan.graphs,
        recommendations=tuple(recommendation.recommend(run, group, flags) for group in found.groups),
        providers=providers,
        swaps=tuple(
            _swap(run, group, line, providers, flags) for group, line in zip(found.groups, swaps, strict=True) if line
        ),
        questions=tuple(statements.open_questions(run, flags)),
        unmeasured=tuple(statements.unmeasured(run)),
        brought=brought.rows(run.header.implementations),
        charts=tuple(chart for chart in charts if chart is not None),
        standings=tuple(_standing(run, standing, flags) for standing in statements.standings(run)),
        results=tuple(_results(run, group, flags) for group in found.groups),
        profiles=tuple(traffic.tables(run, flags)),
        trust=tuple(_trust(run, flags)),
        reaches=tuple(_reach(reach) for reach in trust.reaches(run, flags)),
        flags=tuple(statements.flag_notes(flags)),
        method=tuple(method.sentences(run)),
        environment=tuple(method.environment(run.header)),
        command=shlex.join(run.header.command),
    )


def _swap(
    run: Run, group: verdict.Group, answers: dict[str, str], providers: tuple[str, ...], flags: caveats.Flags
) -> SwapLine:
    return SwapLine(
        what=statements.describe_kind(group.first),
        rows=group.first.rows,
        cache=str(group.first.cache),
        answers=tuple(answers.get(provider, units.ABSENT) for provider in providers),
        but=swapping.but(run, group.cells, flags),
    )


def _standing(run: Run, standing: statements.Standing, flags: caveats.Flags) -> StandingLine:
    low, high = standing.low, standing.high
    counts = standing.counts
    relied_on = caveats.compared(
        c for c in run.comparisons if c.candidate == standing.candidate and c.cell.mode is standing.mode
    )
    cells = len({case.cell for case in relied_on})
    return StandingLine(
        mode=str(standing.mode),
        candidate=standing.candidate,
        speedups=units.ABSENT if low is None or high is None else statements.value_range([low, high]),
        faster=counts[Outcome.FASTER],
        same=counts[Outcome.SAME],
        slower=counts[Outcome.SLOWER],
        undecided=counts[Outcome.UNDECIDED],
        but=caveats.counted(caveats.caveats(flags, relied_on), cells) or "",
    )


def _trust(run: Run, flags: caveats.Flags) -> list[str]:
    noise = trust.noise_notes(run) or [
        "No A/A test ran along: how far identical implementations differ here is not known."
    ]
    rest = (trust.limits_note(run, flags), trust.throttled_note(run), trust.time_note(run.spent))
    return [*noise, *(note for note in rest if note is not None)]


def _reach(reach: trust.Reach) -> ReachLine:
    shares = [f"{name} {units.percent(share)}" for name, share in sorted(reach.shares, key=lambda s: -s[1])]
    return ReachLine(
        where=statements.describe_cell(reach.cell),
        floor=units.bandwidth(reach.floor_bytes_per_s),
        shares=", ".join(shares),
    )


def _results(run: Run, group: verdict.Group, flags: caveats.Flags) -> ResultTable:
    lines = (_line(run, cell, result, flags) for cell in group.cells for result in run.results_by_cell[cell])
    return ResultTable(title=statements.describe_group(group.first), lines=tuple(lines))


def _line(run: Run, cell: Cell, result: CaseResult, flags: caveats.Flags) -> ResultLine:
    name, timing = result.case.implementation, result.timing
    comparison = run.comparison(cell, name)
    speedup = comparison.speedup if comparison else None
    floor = timing.floor_ratio if timing else None
    return ResultLine(
        width=cell.width,
        name=name,
        time=units.duration(timing.time_s.value if timing else None),
        wall=units.duration(timing.wall_s if timing else None),
        graph=units.duration(timing.graph_s if timing else None),
        floor=units.ratio(floor.value) if floor else units.ABSENT,
        speedup=units.ratio(speedup.value, speedup.low, speedup.high) if speedup else units.ABSENT,
        outcome=outcome_word(run, result),
        flags=", ".join(flag for flag in flags[result.case] if flag not in _OF_THE_CELL),
    )


def outcome_word(run: Run, result: CaseResult) -> str:
    """What a result is in its cell: baseline, floor, an outcome, or the status that it has instead of a time."""
    name, plan = result.case.implementation, run.header.plan
    if result.timing is None:
        return str(result.status)
    special = {plan.baseline: "baseline", plan.floor: "floor"}
    comparison = run.comparison(result.case.cell, name)
    return special.get(name, str(comparison.outcome) if comparison else units.ABSENT)
