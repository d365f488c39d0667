"""A report of several runs: a column for each device, and the places where their verdicts differ."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from normbench import bounds, merging, units, verdict
from normbench.records import Case, Cell, Comparison, Run
from normbench.reporters import caveats, completeness, headline, method, recommendation, statements, swapping
from normbench.reporters.headline import Headline
from normbench.reporters.statements import MOST_PLACES

_BUT = "these results are"


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
    cache: str
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
        headline=f"{_doubt(runs)}{_headline(runs, labels, rows)}",
        labels=labels,
        devices=tuple(_device(*of_run) for of_run in zip(runs, labels, flags, strict=True)),
        notes=tuple(_notes(runs, labels)),
        baseline=runs[0].header.plan.baseline,
        uses=tuple(_use(runs, flags, row) for row in rows),
        swaps=tuple(_swaps(runs, flags)),
        speedups=tuple(_speedups(runs)),
        environment=tuple(_environment(runs)),
    )


def _device(run: Run, label: str, flags: caveats.Flags) -> DeviceAnswer:
    answer = headline.headline(run, verdict.of_run(run), flags)
    return DeviceAnswer(label=label, answer=answer, command=shlex.join(run.header.command))


def _headline(runs: Sequence[Run], labels: Sequence[str], rows: Sequence[merging.Row]) -> str:
    decided = sum(len(row.cells) for row in rows if row.decided > 1)
    differ = sum(len(row.cells) for row in rows if row.differs)
    among = _among(labels)
    if not decided:
        return f"No two verdicts to compare: in none of the cells that {among} share have two of them one"
    if not differ:
        where = "the one cell" if decided == 1 else f"each of the {decided} cells"
        return f"{among} agree: in {where} where two or more have a verdict, one implementation will do for all"
    cells = "the one cell" if decided == 1 else f"{differ} of the {decided} cells"
    return f"{_cause(runs)}: {among} differ in {cells} where two or more have a verdict"


def _doubt(runs: Sequence[Run]) -> str:
    busy = sum(bool(statements.busy_cells(run)) for run in runs)
    return f"Not reliable, since other programs ran beside {busy} of {len(runs)} runs: " if busy else ""


def _among(labels: Sequence[str]) -> str:
    """The runs by name; many are counted, since each is named below."""
    many = len(labels) > MOST_PLACES
    return f"{len(labels)} runs" if many else " and ".join(filter(None, ["; ".join(labels[:-1]), labels[-1]]))


def _cause(runs: Sequence[Run]) -> str:
    """What runs whose verdicts differ have unlike."""
    causes = {
        "the device": len({run.header.device for run in runs}) > 1,
        "the software": len({run.header.environment for run in runs}) > 1,
    }
    unlike = [name for name, is_unlike in causes.items() if is_unlike]
    return f"The verdict depends on {' or '.join(unlike)}" if unlike else "The verdict is not the same when repeated"


def _notes(runs: Sequence[Run], labels: Sequence[str]) -> Iterator[str]:
    yield (
        "Times of different runs are of different machines, days or software: compare speedups, each of which was "
        "taken within one run."
    )
    by_note: dict[str, list[str]] = {}
    for run, label in zip(runs, labels, strict=True):
        of_run = [*statements.device_notes(run), *statements.advice_notes(run, verdict.of_run(run))]
        incomplete = [] if run.is_complete else [f"{statements.missing(run)}."]
        for note in (*of_run, *completeness.resumption_notes(run), *incomplete):
            by_note.setdefault(note, []).append(label)
    for note, of_note in by_note.items():
        yield f"{'Each run' if len(of_note) == len(runs) else '; '.join(of_note)}: {note}"


def _use(runs: Sequence[Run], flags: Sequence[caveats.Flags], row: merging.Row) -> UseLine:
    first = row.cells[0]
    found = zip(runs, flags, row.choices, strict=True)
    return UseLine(
        what=statements.describe_kind(first),
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


def _swaps(runs: Sequence[Run], flags: Sequence[caveats.Flags]) -> Iterator[SwapLine]:
    """For each provider a line, and one on what the results are that these answers rest on."""
    for group in verdict.group_cells(_cells(runs)):
        own = [[cell for cell in group if cell in run.results_by_cell] for run in runs]
        answers = [swapping.by_provider(run, cells) for run, cells in zip(runs, own, strict=True)]
        buts = [swapping.but(*of_run) for of_run in zip(runs, own, flags, strict=True)]
        lines = {
            provider: tuple(of_run.get(provider, units.ABSENT) for of_run in answers)
            for provider in dict.fromkeys(name for of_run in answers for name in of_run)
        }
        for provider, texts in {**lines, **({_BUT: tuple(buts)} if any(buts) else {})}.items():
            yield SwapLine(
                what=statements.describe_kind(group[0]),
                rows=group[0].rows,
                cache=str(group[0].cache),
                provider=provider,
                answers=texts,
            )


def _speedups(runs: Sequence[Run]) -> Iterator[SpeedupTable]:
    times = [_times(run) for run in runs]
    names = dict.fromkeys(name for run in runs for name in run.header.plan.implementations)
    for group in verdict.group_cells(_cells(runs)):
        lines = (
            SpeedupLine(width=cell.width, name=name, entries=tuple(entry or units.ABSENT for entry in entries))
            for cell in group
            for name in names
            if any(entries := [of_run.get(Case(cell=cell, implementation=name)) for of_run in times])
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
