"""The table of all results in a page: its columns, and for each field what is shown and what it is sorted by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from normbench import bounds, units
from normbench.records import Case, CaseResult, Estimate, Run
from normbench.reporters import caveats, document, sparkline
from normbench.spread import Spread


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A field: what is shown, and what it is sorted by (None: comes last)."""

    text: str | Markup
    key: float | str | None


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column.

    Args:
        title: Its head.
        is_number: Whether it is aligned and sorted as numbers.
        is_facet: Whether its few values can be chosen among.
    """

    title: str
    is_number: bool = False
    is_facet: bool = False


@dataclass(frozen=True, kw_only=True)
class Source:
    """A run with what its page needs besides: what it is called, and how its samples spread where that is known."""

    run: Run
    label: str = ""
    spreads: Mapping[Case, Spread] = field(default_factory=dict)


def columns(sources: Sequence[Source]) -> list[Column]:
    """The columns that every result needs, those that tell these rows apart, and those with something to show."""
    runs = [source.run for source in sources]
    cells = [cell for run in runs for cell in run.results_by_cell]
    timings = [result.timing for run in runs for result in run.results if result.timing is not None]
    shown = {
        Column(title="device", is_facet=True): len(runs) > 1,
        Column(title="mode", is_facet=True): True,
        Column(title="dtype", is_facet=True): True,
        Column(title="rows", is_number=True): len({cell.rows for cell in cells}) > 1,
        Column(title="parameters", is_facet=True): any(cell.parameter_dtype is not cell.dtype for cell in cells),
        Column(title="autocast", is_facet=True): any(cell.autocast is not None for cell in cells),
        Column(title="cache", is_facet=True): len({cell.cache for cell in cells}) > 1,
        Column(title="width", is_number=True): True,
        Column(title="implementation", is_facet=True): True,
        Column(title="time", is_number=True): True,
        Column(title="wall", is_number=True): any(run.header.device.kind != "cpu" for run in runs),
        Column(title="graph", is_number=True): any(timing.graph_s is not None for timing in timings),
        Column(title="× floor", is_number=True): True,
        Column(title="speedup", is_number=True): True,
        Column(title="outcome", is_facet=True): True,
        Column(title="samples", is_number=True): any(source.spreads for source in sources),
        Column(title="flags"): True,
    }
    return [column for column, is_shown in shown.items() if is_shown]


def rows(sources: Sequence[Source], of: Sequence[Column]) -> list[list[Entry]]:
    """A row for each result of each run."""
    found = []
    for source in sources:
        flags = bounds.flags(source.run)
        for result in source.run.results:
            fields = {**_cell(source, result), **_measured(source.run, result), **_odd(source, result, flags)}
            found.append([fields[column.title] for column in of])
    return found


def _cell(source: Source, result: CaseResult) -> dict[str, Entry]:
    cell = result.case.cell
    return {
        "device": _text(source.label),
        "mode": _text(cell.mode),
        "dtype": _text(cell.dtype),
        "rows": Entry(text=str(cell.rows), key=cell.rows),
        "parameters": _text(cell.parameter_dtype),
        "autocast": _text(cell.autocast or "off"),
        "cache": _text(cell.cache),
        "width": Entry(text=str(cell.width), key=cell.width),
        "implementation": _text(result.case.implementation),
    }


def _measured(run: Run, result: CaseResult) -> dict[str, Entry]:
    timing = result.timing
    comparison = run.comparison(result.case.cell, result.case.implementation)
    return {
        "time": _duration(timing.time_s.value if timing else None),
        "wall": _duration(timing.wall_s if timing else None),
        "graph": _duration(timing.graph_s if timing else None),
        "× floor": _ratio(timing.floor_ratio if timing else None, with_interval=False),
        "speedup": _ratio(comparison.speedup if comparison else None, with_interval=True),
        "outcome": _outcome(document.outcome_word(run, result)),
    }


def _odd(source: Source, result: CaseResult, flags: caveats.Flags) -> dict[str, Entry]:
    return {
        "samples": _samples(source.spreads.get(result.case)),
        "flags": _remark(", ".join(flags[result.case]) or result.reason),
    }


def _samples(spread: Spread | None) -> Entry:
    """A picture, sorted by how wide nine tenths of the samples are, relative to the median."""
    if spread is None:
        return Entry(text=units.ABSENT, key=None)
    return Entry(text=sparkline.draw(spread), key=(spread.high_s - spread.low_s) / spread.median_s)


def _duration(seconds: float | None) -> Entry:
    return Entry(text=units.duration(seconds), key=seconds)


def _ratio(ratio: Estimate | None, *, with_interval: bool) -> Entry:
    if ratio is None:
        return Entry(text=units.ABSENT, key=None)
    interval = (ratio.low, ratio.high) if with_interval else (None, None)
    return Entry(text=units.ratio(ratio.value, *interval), key=ratio.value)


def _outcome(word: str) -> Entry:
    return Entry(text=word, key=None if word == units.ABSENT else word)


def _remark(text: str | None) -> Entry:
    """Flags, or why there is no time: most results have neither, so that an empty field is easier to read."""
    return Entry(text=text or "", key=text or None)


def _text(value: object) -> Entry:
    return Entry(text=str(value), key=str(value))
