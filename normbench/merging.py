"""Several runs side by side: whether they can be compared, what each is called, and where their answers differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from normbench import crossover, verdict
from normbench.crossover import Advice
from normbench.records import Cell, Run
from normbench.verdict import Choice


def differences(runs: Sequence[Run]) -> list[str]:
    """What keeps runs from being shown side by side; empty where nothing does.

    Ratios need the same baseline, distances the same floor, outcomes the same margin, values the same eps, and
    there has to be a cell that two of them have.
    """
    asked: dict[str, list[object]] = {
        "--baseline": [run.header.plan.baseline for run in runs],
        "floor": [run.header.plan.floor for run in runs],
        "margin": [run.header.plan.precision.margin for run in runs],
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
    for index, run in enumerate(runs):
        others = {cell for other in (*runs[:index], *runs[index + 1 :]) for cell in other.results_by_cell}
        own = set(run.results_by_cell)
        if own.isdisjoint(others):
            found.append(f"{run.header.device.name} has no cell in common with another: {_apart(own, others)}")
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


def _values(values: set[object]) -> str:
    return " ".join(sorted("off" if value is None else str(value) for value in values))


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
        choices: For each run its choices in those cells that it has.
    """

    cells: tuple[Cell, ...]
    choices: tuple[tuple[Choice, ...], ...]

    @property
    def differs(self) -> bool:
        """Whether there is a width at which no implementation will do for every run that has advice."""
        decided = [of_run for of_run in self.choices if of_run and crossover.advice_of(of_run[0]).best is not None]
        by_cell = zip(*decided, strict=True)
        return any(not set.intersection(*map(_suitable, choices)) for choices in by_cell)


def _suitable(choice: Choice) -> set[str]:
    """What a choice advises, and what can't be told apart from that."""
    return {name for name in (choice.best, *choice.rivals) if name is not None}


def rows(runs: Sequence[Run]) -> Iterator[Row]:
    """What to use by each run, neighbouring widths with the same answers in one row."""
    choices = [_choices(run) for run in runs]
    every = dict.fromkeys(cell for of_run in choices for cell in of_run)

    def answer(cell: Cell) -> tuple[Advice | None, ...]:
        return tuple(crossover.advice_of(of_run[cell]) if cell in of_run else None for of_run in choices)

    for group in verdict.group_cells(every):
        for stretch in crossover.stretches(group, lambda cell: cell.width, answer):
            cells = stretch.items
            yield Row(
                cells=cells,
                choices=tuple(tuple(of_run[c] for c in cells if c in of_run) for of_run in choices),
            )


def _choices(run: Run) -> dict[Cell, Choice]:
    return {choice.cell: choice for group in verdict.of_run(run).groups for choice in group.choices}
