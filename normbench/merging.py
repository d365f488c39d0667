"""Several runs side by side: whether they can be compared, what each is called, and where their answers differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from normbench import crossover, units, verdict
from normbench.crossover import Advice
from normbench.records import Cell, Run
from normbench.verdict import Choice


def differences(runs: Sequence[Run]) -> list[str]:
    """What keeps runs from being shown side by side; empty where nothing does.

    Ratios need the same baseline, distances the same floor, outcomes the same margin, values the same eps, and
    there has to be a cell that two of them have.
    """
    asked: dict[str, list[object]] = {
        "--operation": [run.header.plan.operation for run in runs],
        "--baseline": [run.header.plan.baseline for run in runs],
        "floor": [run.header.plan.floor for run in runs],
        "margin": [units.percent(run.header.plan.precision.margin) for run in runs],
        "--eps": [run.header.plan.eps for run in runs],
    }
    found = [
        f"{name} is {' against '.join(dict.fromkeys(map(str, values)))}"
        for name, values in asked.items()
        if len(set(values)) > 1
    ]
    return found or _no_common_cell(runs)


def _no_common_cell(runs: Sequence[Run]) -> list[str]:
    """For a run that shares no cell with any other, the axes of which it has other values."""
    found = []
    for index, (run, label) in enumerate(zip(runs, labels(runs), strict=True)):
        others = {cell for other in (*runs[:index], *runs[index + 1 :]) for cell in other.results_by_cell}
        own = set(run.results_by_cell)
        if own.isdisjoint(others):
            found.append(f"{label} has no cell in common with another: {_apart(own, others)}")
    return found


def _apart(own: set[Cell], others: set[Cell]) -> str:
    """Axes without a common value; where each has one, only their combinations differ."""
    if not own or not others:
        return "one has no results"
    parts = []
    for axis in ("mode", "rows", "width", "dtype", "parameter_dtype", "autocast", "cache"):
        mine, theirs = ({getattr(cell, axis) for cell in cells} for cells in (own, others))
        if mine.isdisjoint(theirs):
            parts.append(f"{axis} {_values(mine)} against {_values(theirs)}")
    return ", ".join(parts) or "no combination of mode, rows, width, dtypes and cache occurs in both"


def _values(values: set[Any]) -> str:
    texts = {"off" if value is None else str(value) for value in values}
    return " ".join(sorted(texts, key=lambda text: (len(text) if text.isdecimal() else 0, text)))


def labels(runs: Sequence[Run]) -> tuple[str, ...]:
    """What each run is called: its device, with torch's version and the time where that does not tell them apart."""
    device = [run.header.device.name for run in runs]
    with_torch = [f"{run.header.device.name}, torch {run.header.environment.torch}" for run in runs]
    with_time = [f"{name}, {run.header.created_utc}" for name, run in zip(with_torch, runs, strict=True)]
    numbered = [f"{name}, run {number}" for number, name in enumerate(with_time, start=1)]
    ways = (device, with_torch, with_time, numbered)
    return next(tuple(way) for way in ways if len(set(way)) == len(runs))


@dataclass(frozen=True, kw_only=True)
class Row:
    """Neighbouring widths in which each run says the same throughout.

    Args:
        cells: The cells, widths ascending.
        choices: For each run its choices in those cells: one for each of them, or none where it lacks them.
        decided: How many runs have advice there.
        differs: Whether no implementation will do, at any of these widths, for every run that has advice.
    """

    cells: tuple[Cell, ...]
    choices: tuple[tuple[Choice, ...], ...]
    decided: int
    differs: bool


def _decided(choices: Iterable[Choice | None]) -> list[Choice]:
    return [choice for choice in choices if choice is not None and crossover.advice_of(choice).best is not None]


def _differ(choices: Iterable[Choice | None]) -> bool:
    """Whether no implementation will do for every run that has advice in a cell."""
    suitable = [_suitable(choice) for choice in _decided(choices)]
    return bool(suitable) and not frozenset.intersection(*suitable)


def _suitable(choice: Choice) -> frozenset[str]:
    """What will do in a cell."""
    return frozenset({str(choice.best), *choice.equals})


def rows(runs: Sequence[Run]) -> Iterator[Row]:
    """What to use by each run, neighbouring widths with the same answers in one row."""
    choices = [_choices(run) for run in runs]
    every = dict.fromkeys(cell for of_run in choices for cell in of_run)

    def answer(cell: Cell) -> tuple[tuple[tuple[Advice, frozenset[str]] | None, ...], bool]:
        found = [of_run.get(cell) for of_run in choices]
        said = tuple((crossover.advice_of(choice), _suitable(choice)) if choice else None for choice in found)
        return said, _differ(found)

    for group in verdict.group_cells(every):
        for stretch in crossover.stretches(group, lambda cell: cell.width, answer):
            cells = stretch.items
            yield Row(
                cells=cells,
                choices=tuple(tuple(of_run[c] for c in cells if c in of_run) for of_run in choices),
                decided=len(_decided(of_run.get(cells[0]) for of_run in choices)),
                differs=stretch.answer[1],
            )


def _choices(run: Run) -> dict[Cell, Choice]:
    return {choice.cell: choice for group in verdict.of_run(run).groups for choice in group.choices}
