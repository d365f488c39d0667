"""A report of several runs: a column for each device, and the places where their verdicts differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from normbench import bounds, merging, units, verdict
from normbench.records import Case, Cell, Comparison, Run
from normbench.reporters import caveats, headline, method, recommendation, statements, swapping
from normbench.reporters.headline import Headline


@dataclass(frozen=True, kw_only=True)
class DeviceAnswer:
    """One run: what it is called, its answer, and the command that repeats it."""

    label: str
    answer: Headline
    command: str


@dataclass(frozen=True, kw_only=True)
class UseLine:
    """What each run says to use at some widths."""

    what: str
    rows: int
    cache: str
    widths: str
    uses: tuple[str, ...]
    differs: bool


@dataclass(frozen=True, kw_only=True)
class SwapLine:
    """Whether RMSNorm pays by each run, for one provider."""

    what: str
    rows: int
    provider: str
    answers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SpeedupLine:
    """An implementation's time and speedup by each run, in one cell."""

    width: int
    name: str
    entries: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SpeedupTable:
    """Cells that differ in their width alone."""

    title: str
    lines: tuple[SpeedupLine, ...]


@dataclass(frozen=True, kw_only=True)
class Merged:
    """A report of several runs, as plain text. Tuples inside a line hold a value a run, ordered as ``labels``."""

    headline: str
    labels: tuple[str, ...]
    devices: tuple[DeviceAnswer, ...]
    notes: tuple[str, ...]
    baseline: str
    uses: tuple[UseLine, ...]
    swaps: tuple[SwapLine, ...]
    speedups: tuple[SpeedupTable, ...]
    environment: tuple[tuple[str, ...], ...]


def of_runs(runs: Sequence[Run]) -> Merged:
    """The report of runs that can be compared (``merging.differences`` finds nothing)."""
    labels, rows = merging.labels(runs), list(merging.rows(runs))
    flags = [bounds.flags(run) for run in runs]
    return Merged(
        headline=_headline(labels, rows),
        labels=labels,
        devices=tuple(_device(*of_run) for of_run in zip(runs, labels, flags, strict=True)),
        notes=tuple(_notes(runs, labels)),
        baseline=runs[0].header.plan.baseline,
        uses=tuple(_use(runs, flags, row) for row in rows),
        swaps=tuple(_swaps(runs)),
        speedups=tuple(_speedups(runs)),
        environment=tuple(_environment(runs)),
    )


def _device(run: Run, label: str, flags: caveats.Flags) -> DeviceAnswer:
    answer = headline.headline(run, verdict.of_run(run), flags)
    return DeviceAnswer(label=label, answer=answer, command=" ".join(run.header.command))


def _headline(labels: Sequence[str], rows: Sequence[merging.Row]) -> str:
    shared = [row for row in rows if sum(map(bool, row.choices)) > 1]
    cells, differ = (sum(len(row.cells) for row in some) for some in (shared, [r for r in shared if r.differs]))
    among = f"{len(labels)} runs ({'; '.join(labels)})"
    if not differ:
        return f"Of {among} none contradicts another in the {cells} cells that several have"
    return f"The verdict depends on the device or software: {among} differ in {differ} of the {cells} cells in common"


def _notes(runs: Sequence[Run], labels: Sequence[str]) -> Iterator[str]:
    yield "Ratios hold within a run: times of different runs are of different machines, days and software."
    by_note: dict[str, list[str]] = {}
    for run, label in zip(runs, labels, strict=True):
        incomplete = [] if run.is_complete else [f"{statements.missing(run)}."]
        for note in (*statements.device_notes(run), *incomplete):
            by_note.setdefault(note, []).append(label)
    for note, of_note in by_note.items():
        yield f"{'All' if len(of_note) == len(runs) else '; '.join(of_note)}: {note}"


def _use(runs: Sequence[Run], flags: Sequence[caveats.Flags], row: merging.Row) -> UseLine:
    first = row.cells[0]
    found = zip(runs, flags, row.choices, strict=True)
    return UseLine(
        what=f"{first.dtype} {statements.describe_rest(first)}",
        rows=first.rows,
        cache=str(first.cache),
        widths=", ".join(str(cell.width) for cell in row.cells),
        uses=tuple(_advice(run, own, choices) for run, own, choices in found),
        differs=row.differs,
    )


def _advice(run: Run, flags: caveats.Flags, choices: Sequence[verdict.Choice]) -> str:
    """What one run says to use, and what its results there were."""
    if not choices:
        return units.ABSENT
    relied_on = [case for choice in choices for case in headline.relied_on_by(run, choice)]
    but = caveats.at_widths(caveats.caveats(flags, relied_on), [choice.cell for choice in choices])
    return f"{recommendation.advice(run, choices)}{f' ({but})' if but else ''}"


def _swaps(runs: Sequence[Run]) -> Iterator[SwapLine]:
    for group in verdict.group_cells(_cells(runs)):
        answers = [swapping.by_provider(run, [c for c in group if c in run.results_by_cell]) for run in runs]
        for provider in dict.fromkeys(name for of_run in answers for name in of_run):
            yield SwapLine(
                what=f"{group[0].dtype} {statements.describe_rest(group[0])}",
                rows=group[0].rows,
                provider=provider,
                answers=tuple(of_run.get(provider, units.ABSENT) for of_run in answers),
            )


def _speedups(runs: Sequence[Run]) -> Iterator[SpeedupTable]:
    times = [_times(run) for run in runs]
    names = dict.fromkeys(name for run in runs for name in run.header.plan.implementations)
    for group in verdict.group_cells(_cells(runs)):
        lines = (
            SpeedupLine(width=cell.width, name=name, entries=tuple(entries))
            for cell in group
            for name in names
            if any(entries := [of_run.get(Case(cell=cell, implementation=name), "") for of_run in times])
        )
        yield SpeedupTable(title=statements.describe_group(group[0]), lines=tuple(lines))


def _times(run: Run) -> Mapping[Case, str]:
    """Each case's time, and its speedup with the outcome; its status where it has no time."""
    found = {}
    for result in run.results:
        case, timing = result.case, result.timing
        comparison = run.comparison(case.cell, case.implementation)
        time = units.duration(timing.time_s.value) if timing else str(result.status)
        found[case] = f"{time}{_speedup(comparison)}" if timing else time
    return found


def _speedup(comparison: Comparison | None) -> str:
    if comparison is None or comparison.speedup is None:
        return ""
    speedup = comparison.speedup
    return f"; {units.ratio(speedup.value, speedup.low, speedup.high)} {comparison.outcome}"


def _cells(runs: Sequence[Run]) -> dict[Cell, None]:
    return dict.fromkeys(cell for run in runs for cell in run.results_by_cell)


def _environment(runs: Sequence[Run]) -> Iterator[tuple[str, ...]]:
    of_each = [dict(method.environment(run.header)) for run in runs]
    for name in dict.fromkeys(name for of_run in of_each for name in of_run):
        yield (name, *(of_run.get(name, units.ABSENT) for of_run in of_each))
