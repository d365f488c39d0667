"""Making a report shorter: which parts go first where there is little room, and what is said of those that went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from normbench.reporters.document import Document, ResultTable

T = TypeVar("T")

_NO_LIMIT = 10**9


@dataclass(frozen=True, kw_only=True)
class Room:
    """How much of each part is shown at most.

    Args:
        results: Lines of all result tables together.
        profiles: Profiled cells.
        charts: Charts.
        rows: Rows of every other table or list.
        providers: Providers for which it is said whether RMSNorm pays.
        answer: Characters of each text that is the answer: what to use, whether RMSNorm pays, how sure that is.
        characters: Characters of each other text.
    """

    results: int = _NO_LIMIT
    profiles: int = _NO_LIMIT
    charts: int = _NO_LIMIT
    rows: int = _NO_LIMIT
    providers: int = _NO_LIMIT
    answer: int = 4000
    characters: int = 4000


ROOMS = (
    Room(),
    Room(results=400),
    Room(results=200, profiles=12, charts=12, characters=2000),
    Room(results=100, profiles=6, charts=6, rows=100, characters=2000),
    Room(results=50, profiles=3, charts=4, rows=40, characters=1000),
    Room(results=0, profiles=0, charts=2, rows=20, providers=20, characters=600),
    Room(results=0, profiles=0, charts=0, rows=8, providers=8, characters=300),
    Room(results=0, profiles=0, charts=0, rows=3, providers=4, answer=1500, characters=200),
)
"""From everything to the least: the results, which are in a file anyway, go first, and the answer last.

In the last one nothing has more than so many lines of so many characters, and all of them together fit.
"""

_LISTS = {
    "recommendations": ("what to use", "report.html"),
    "swaps": ("the answers on RMSNorm", "swaps.csv"),
    "questions": ("what is undecided", "comparisons.csv"),
    "unmeasured": ("who has no time", "results.csv"),
    "standings": ("the candidates", "comparisons.csv"),
    "trust": ("how far to trust it", "run.json"),
    "reaches": ("bandwidths", "results.csv"),
    "flags": ("flags", "results.csv"),
    "environment": ("the environment", "run.json"),
}
"""The fields that are lists of rows, what they are called, and the file of the run folder that has them all."""


def shortened(document: Document, room: Room) -> tuple[Document, tuple[str, ...]]:
    """A document of which each part fits into the room, and what was left out of it, with the file that has it."""
    changes, left_out = _providers(document, room.providers)
    for name, (what, file) in _LISTS.items():
        whole = changes.get(name, getattr(document, name))
        changes[name], lost = _first(whole, room.rows)
        left_out += _said(lost, len(whole), f"rows of {what}", file)
    changes["charts"], lost = _first(document.charts, room.charts)
    left_out += _said(lost, len(document.charts), "charts", "plots/")
    changes["profiles"], lost = _first(document.profiles, room.profiles)
    left_out += _said(lost, len(document.profiles), "profiled cells", "traffic.csv")
    changes["results"], lost = _results(document.results, room.results)
    left_out += _said(lost, sum(len(table.lines) for table in document.results), "results", "results.csv")
    return replace(document, **changes), tuple(left_out)


def _providers(document: Document, most: int) -> tuple[dict[str, Any], list[str]]:
    """The first providers and, which comes last, the fastest of each."""
    count = len(document.providers)
    if count <= most:
        return {}, []
    kept = [*range(most - 1), count - 1]
    lines = tuple(replace(line, answers=tuple(line.answers[n] for n in kept)) for line in document.swaps)
    changes = {"providers": tuple(document.providers[n] for n in kept), "swaps": lines}
    return changes, _said(count - most, count, "providers", "swaps.csv")


def _first(items: Sequence[T], most: int) -> tuple[tuple[T, ...], int]:
    return tuple(items[:most]), max(0, len(items) - most)


def _results(tables: Sequence[ResultTable], most: int) -> tuple[tuple[ResultTable, ...], int]:
    """The first lines of the tables, in their order; a table of which nothing is left goes."""
    kept, left = [], most
    for table in tables:
        lines = table.lines[:left]
        left -= len(lines)
        kept += [replace(table, lines=lines)] if lines else []
    return tuple(kept), sum(len(table.lines) for table in tables) - (most - left)


def _said(lost: int, count: int, what: str, file: str) -> list[str]:
    return [f"{lost} of {count} {what} (all are in {file})"] if lost else []
